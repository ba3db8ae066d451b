"""How many polls a second: VictoryLine's whole way of a poll against scrapy-playwright, on the same pages.

Ours is the real system: scheduler, worker and browser as processes, every poll claimed from the journal, read, parsed,
checked, ingested and committed. All matches are due at all times. A poll counts when its transaction is committed. The
peer visits the same pages with the same Chromium and only takes the state out of them; nothing is stored. Both get
the machine for themselves, in turns, because machines have moods: ours is frozen while the peer runs. `ratio` compares
the rates, `cpu_ratio` the CPU time of one poll, everything included; the latter holds on a busy machine as well.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchmarks import results
from benchmarks.arena import DATABASES, Arena, arena
from benchmarks.cpu import Cpu, CpuMark, milliseconds_each
from benchmarks.peers import scrapy_playwright as peer
from benchmarks.progress import let_run, say
from benchmarks.truth import Seen, scores_of, wrong_ones

if TYPE_CHECKING:
    from benchmarks.watch import Window

SUMMARY = "polls a second, against scrapy-playwright"
WARM_UP_SECONDS_A_MATCH = 2.0
SAMPLE = 60
OPEN_TASKS = 64  # enough for the worker never to wait, few enough to be finished soon after the turn
OURS_SLACK_SECONDS = 2.0  # a reading's own time to the moment it is noted
# Always due: the shortest interval there is, for busy and quiet matches alike, and a scheduler that looks all the time.
SATURATED = {
    "POLLING_INTERVAL_SECONDS": "0.5",
    "BREAK_INTERVAL_SECONDS": "0.5",
    "SCHEDULER_TICK_SECONDS": "0.05",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=20.0, help="a turn of each side (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side (%(default)s)")
    parser.add_argument("--matches", type=int, default=200, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="ours (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of ours (%(default)s)")
    parser.add_argument("--threads", type=int, default=8, help="tasks a worker runs at once (%(default)s)")
    parser.add_argument("--pages", type=int, default=8, help="pages the peer has open at once (%(default)s)")
    parser.add_argument("--fresh-pages", action="store_true", help="the peer opens and closes a page for every visit")
    parser.add_argument("--pace", type=float, default=1.0, help="how fast the matches move; 1 is life (%(default)s)")


@dataclass(frozen=True)
class Turn:
    """One turn of ours."""

    seconds: float
    window: Window
    cpu: Cpu
    requests: dict[str, int]
    seen: list[Seen]


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    peer.ensure_installed()
    settings = {**SATURATED, "WORKER_THREADS": str(options.threads)}
    with arena(
        database=options.database, programme=f"load:{options.matches}", pace=options.pace, settings=settings
    ) as place:
        ours, theirs = _turns(place, options)
        return _result(place, options, ours, theirs)


def _turns(place: Arena, options: Namespace) -> tuple[list[Turn], list[peer.Visits]]:
    from benchmarks import watch

    watch.set_up_source(max_open_tasks=min(options.matches, OPEN_TASKS))
    place.start_engine(workers=options.workers)
    watch.wait_for_first_readings(
        place, matches=options.matches, seconds=60 + WARM_UP_SECONDS_A_MATCH * options.matches
    )
    matches = [{"key": one["key"], "url": one["url"]} for one in place.stadium.matches()]
    ours, theirs = [], []
    for number in range(1, options.rounds + 1):
        say(f"round {number} of {options.rounds}: VictoryLine, {options.seconds:g} s")
        ours.append(_our_turn(place, options.seconds))
        say(f"round {number} of {options.rounds}: {peer.NAME}, {options.seconds:g} s")
        theirs.append(
            peer.visit(
                matches,
                seconds=options.seconds,
                pages=options.pages,
                is_fresh=options.fresh_pages,
                chromium=place.chromium,
                stadium=place.stadium,
            )
        )
        say(f"  ours {_rate(ours[-1]):.1f} a second, {peer.NAME} {_rate(theirs[-1]):.1f} a second")
        if number < options.rounds:
            watch.go_on(place)
    return ours, theirs


def _our_turn(place: Arena, seconds: float) -> Turn:
    from django.utils import timezone

    from benchmarks import watch

    place.stadium.clear()
    start, before = timezone.now(), CpuMark.of(place.trees())
    let_run(seconds, what="VictoryLine", how_far=lambda: f"{watch.polls_since(start)} polls", do=place.check)
    end, after = timezone.now(), CpuMark.of(place.trees())
    requests = place.stadium.requests()["sites"].get(watch.SITE, {}).get("targets", {})
    watch.pause(place)
    return Turn((end - start).total_seconds(), watch.between(start, end), before.until(after), requests, _seen(start))


def _seen(start: datetime) -> list[Seen]:
    """Every snapshot of the turn, and what each match says at its end."""
    from scraping.models import MatchRef, Snapshot

    snapshots = Snapshot.objects.filter(created_at__gte=start).values_list(
        "match__refs__source_event_id", "captured_at", "payload"
    )
    latest = MatchRef.objects.filter(captured_at__gte=start).values_list("source_event_id", "captured_at", "payload")
    return [
        Seen(key, at.timestamp() - OURS_SLACK_SECONDS, at.timestamp(), scores_of(payload["score"]))
        for key, at, payload in (*snapshots, *latest)
    ]


def _rate(turn: Turn | peer.Visits) -> float:
    done = turn.window.polls if isinstance(turn, Turn) else len(turn.seen)
    return done / turn.seconds if turn.seconds else 0.0


def _result(place: Arena, options: Namespace, ours: list[Turn], theirs: list[peer.Visits]) -> dict[str, Any]:
    say("comparing what was read with the truth")
    our_sample, our_wrong = wrong_ones([one for turn in ours for one in turn.seen], place.stadium, sample=SAMPLE)
    their_sample, their_wrong = wrong_ones([one for turn in theirs for one in turn.seen], place.stadium, sample=SAMPLE)
    our_rate, their_rate = _overall(ours), _overall(theirs)
    our_errors = [error for turn in ours for error in turn.window.errors]
    their_errors = [error for turn in theirs for error in turn.errors]
    our_cost = milliseconds_each([turn.cpu for turn in ours], sum(turn.window.polls for turn in ours))
    their_cost = milliseconds_each([turn.cpu for turn in theirs], sum(len(turn.seen) for turn in theirs))
    rounds = [round(_rate(a) / _rate(b), 1) if _rate(b) else 0.0 for a, b in zip(ours, theirs, strict=True)]
    return {
        "ours": round(our_rate, 1),
        "peers": {peer.NAME: round(their_rate, 2)},
        "ratio": round(our_rate / their_rate, 1) if their_rate else 0.0,
        "unit": "polls a second",
        "round_ratios": rounds,
        "cpu_ratio": round(their_cost["all"] / our_cost["all"], 1) if our_cost["all"] else 0.0,
        "database": options.database,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "matches": options.matches,
        "pace": options.pace,
        "ours_details": {
            "workers": options.workers,
            "threads": options.threads,
            "polls": sum(turn.window.polls for turn in ours),
            "errors": len(our_errors),
            **_times([value for turn in ours for value in turn.window.milliseconds]),
            "checked": our_sample,
            "wrong": len(our_wrong),
            "matches_polled": min(turn.window.matches for turn in ours),
            "requests": ours[-1].requests,
            "cpu_percent": ours[-1].cpu.percent(),
            "cpu_ms_a_poll": our_cost,
        },
        "peer_details": {
            "pages": options.pages,
            "fresh_pages": options.fresh_pages,
            "polls": sum(len(turn.seen) for turn in theirs),
            "errors": len(their_errors),
            **_times([value for turn in theirs for value in turn.milliseconds]),
            "checked": their_sample,
            "wrong": len(their_wrong),
            "cpu_percent": theirs[-1].cpu.percent(),
            "cpu_ms_a_poll": their_cost,
        },
        "versions": results.versions(place.chromium, "django", "dramatiq", "playwright")
        | {name: version for name, version in peer.pins().items() if "scrapy" in name},
        "problems": [
            *_problems("VictoryLine", our_rate, our_errors, our_wrong),
            *_problems(peer.NAME, their_rate, their_errors, their_wrong),
        ],
    }


def _overall(turns: list[Turn] | list[peer.Visits]) -> float:
    return sum(_rate(turn) for turn in turns) / len(turns)


def _times(milliseconds: list[float]) -> dict[str, float]:
    return {f"p{percent}_ms": round(results.percentile(milliseconds, percent), 1) for percent in (50, 95)}


def _problems(who: str, rate: float, errors: list[str], wrong: list[str]) -> list[str]:
    found = [] if rate else [f"{who} has done nothing"]
    found += [f"{who}: {len(errors)} errors, the first: {errors[0]}"] if errors else []
    return found + ([f"{who}: {len(wrong)} wrong results, the first: {wrong[0]}"] if wrong else [])
