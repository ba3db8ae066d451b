"""Polls per second: complete polls of VictoryLine compared with other crawlers on the same pages.

Ours is the real system: scheduler, worker and browser as processes, every poll claimed from the journal, read, parsed,
validated, ingested and committed. All matches are always due. A poll counts when its transaction is committed.

The peers visit the same pages with the same Chromium and only extract the state; nothing is stored:

- `scrapy-playwright` as its documentation shows it: a page is opened and closed for every request. `ratio` compares
  with it.
- `scrapy-playwright, pages reused`: tuned by us, pages stay open between visits (`ratio_tuned`).
- `crawlee`: its PlaywrightCrawler, which always opens a page for every request.

All have the same number of pages (--pages), block the same resources and wait only for the document; see the programs
in benchmarks/peers. All results are compared with the ground truth.

Turns alternate, because the speed of a machine varies; our processes are stopped while a peer runs. `ratio` compares
the rates, `cpu_ratio` the CPU time of one poll, everything included; the latter is also valid on a busy machine.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchmarks import results
from benchmarks.cpu import Cpu, CpuTimes, milliseconds_each
from benchmarks.environment import DATABASES, BenchEnvironment, bench_environment
from benchmarks.ground_truth import ObservedScore, scores_of, wrong_scores
from benchmarks.peers.crawlers import PEER_CRAWLERS, PLAIN, TUNED, CrawlResult
from benchmarks.progress import let_run, say

if TYPE_CHECKING:
    from benchmarks.polling import PollWindow

SUMMARY = "polls a second, against scrapy-playwright and crawlee"
WARM_UP_SECONDS_A_MATCH = 2.0
SAMPLE = 60
OPEN_TASKS = 200  # enough for the worker never to wait, few enough to be finished soon after the turn
OURS_SLACK_SECONDS = 2.0  # from the reading to its timestamp
# Always due: the shortest interval there is, for busy and quiet matches alike, and a scheduler with a short tick.
ALWAYS_DUE = {
    "POLLING_INTERVAL_SECONDS": "0.5",
    "BREAK_INTERVAL_SECONDS": "0.5",
    "SCHEDULER_TICK_SECONDS": "0.05",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=15.0, help="a turn of each program (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each program (%(default)s)")
    parser.add_argument("--matches", type=int, default=200, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="ours (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of ours (%(default)s)")
    parser.add_argument("--threads", type=int, default=8, help="tasks a worker runs at once (%(default)s)")
    parser.add_argument("--pages", type=int, default=8, help="pages a peer has open at once (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="speed of the matches; 1 is real time (%(default)s)")


@dataclass(frozen=True)
class Turn:
    """One turn of ours."""

    seconds: float
    window: PollWindow
    cpu: Cpu
    requests: dict[str, int]
    seen: list[ObservedScore]


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    for peer in PEER_CRAWLERS:
        peer.ensure_installed()
    settings = {**ALWAYS_DUE, "WORKER_THREADS": str(options.threads)}
    with bench_environment(
        database=options.database, programme=f"load:{options.matches}", pace=options.pace, settings=settings
    ) as environment:
        ours, theirs = _turns(environment, options)
        return _result(environment, options, ours, theirs)


def _turns(environment: BenchEnvironment, options: Namespace) -> tuple[list[Turn], dict[str, list[CrawlResult]]]:
    from benchmarks import polling

    polling.set_up_source(max_open_tasks=min(options.matches, OPEN_TASKS))
    environment.start_engine(workers=options.workers)
    polling.wait_for_first_readings(
        environment, matches=options.matches, seconds=60 + WARM_UP_SECONDS_A_MATCH * options.matches
    )
    matches = [{"key": one["key"], "url": one["url"]} for one in environment.stadium.matches()]
    ours: list[Turn] = []
    theirs: dict[str, list[CrawlResult]] = {peer.name: [] for peer in PEER_CRAWLERS}
    for number in range(1, options.rounds + 1):
        say(f"round {number} of {options.rounds}: VictoryLine, {options.seconds:g} s")
        ours.append(_our_turn(environment, options.seconds))
        say(f"  VictoryLine: {_rate(ours[-1]):.1f} a second")
        for peer in PEER_CRAWLERS:
            say(f"round {number} of {options.rounds}: {peer.name}, {options.seconds:g} s")
            theirs[peer.name].append(
                peer.visit(
                    matches,
                    seconds=options.seconds,
                    pages=options.pages,
                    chromium=environment.chromium,
                    stadium=environment.stadium,
                )
            )
            say(f"  {peer.name}: {_rate(theirs[peer.name][-1]):.1f} a second")
        if number < options.rounds:
            polling.resume(environment)
    return ours, theirs


def _our_turn(environment: BenchEnvironment, seconds: float) -> Turn:
    from django.utils import timezone

    from benchmarks import polling

    environment.stadium.clear()
    start, before = timezone.now(), CpuTimes.of(environment.trees())
    let_run(seconds, what="VictoryLine", progress=lambda: f"{polling.polls_since(start)} polls", do=environment.check)
    end, after = timezone.now(), CpuTimes.of(environment.trees())
    requests = environment.stadium.requests()["sites"].get(polling.SITE, {}).get("targets", {})
    polling.pause(environment)
    return Turn((end - start).total_seconds(), polling.between(start, end), before.until(after), requests, _seen(start))


def _seen(start: datetime) -> list[ObservedScore]:
    """Returns the scores of every snapshot of the turn, and of each match at its end."""
    from scraping.models import MatchRef, Snapshot

    snapshots = Snapshot.objects.filter(created_at__gte=start).values_list(
        "match__refs__source_event_id", "captured_at", "payload"
    )
    latest = MatchRef.objects.filter(captured_at__gte=start).values_list("source_event_id", "captured_at", "payload")
    return [
        ObservedScore(key, at.timestamp() - OURS_SLACK_SECONDS, at.timestamp(), scores_of(payload["score"]))
        for key, at, payload in (*snapshots, *latest)
    ]


def _rate(turn: Turn | CrawlResult) -> float:
    done = turn.window.polls if isinstance(turn, Turn) else len(turn.seen)
    return done / turn.seconds if turn.seconds else 0.0


def _result(
    environment: BenchEnvironment, options: Namespace, ours: list[Turn], theirs: dict[str, list[CrawlResult]]
) -> dict[str, Any]:
    say("comparing the scores with the ground truth")
    our_rate, details = _overall(ours), _our_details(environment, options, ours)
    rates = {name: _overall(turns) for name, turns in theirs.items()}
    peers = {name: _peer_details(environment, options, turns) for name, turns in theirs.items()}
    our_cost, their_cost = details["cpu_ms_a_poll"]["all"], peers[PLAIN.name]["cpu_ms_a_poll"]["all"]
    return {
        "ours": round(our_rate, 1),
        "peers": {name: round(rate, 2) for name, rate in rates.items()},
        "ratio": _ratio(our_rate, rates[PLAIN.name]),
        "ratio_tuned": _ratio(our_rate, rates[TUNED.name]),
        "unit": "polls a second",
        "round_ratios": [_ratio(_rate(a), _rate(b)) for a, b in zip(ours, theirs[PLAIN.name], strict=True)],
        "cpu_ratio": _ratio(their_cost, our_cost),
        "database": options.database,
        "seconds": options.seconds,
        "rounds": options.rounds,
        "matches": options.matches,
        "pace": options.pace,
        "ours_details": {name: value for name, value in details.items() if name != "problems"},
        "peer_details": {
            peer: {name: value for name, value in one.items() if name != "problems"} for peer, one in peers.items()
        },
        "versions": results.versions(environment.chromium, "django", "dramatiq", "playwright") | _peer_versions(),
        "problems": _problems("VictoryLine", our_rate, details)
        + [problem for name, one in peers.items() for problem in _problems(name, rates[name], one)],
    }


def _our_details(environment: BenchEnvironment, options: Namespace, turns: list[Turn]) -> dict[str, Any]:
    checked, wrong = wrong_scores([one for turn in turns for one in turn.seen], environment.stadium, sample=SAMPLE)
    errors = [error for turn in turns for error in turn.window.errors]
    polls = sum(turn.window.polls for turn in turns)
    return {
        "workers": options.workers,
        "threads": options.threads,
        "polls": polls,
        "errors": len(errors),
        **_times([value for turn in turns for value in turn.window.milliseconds]),
        "checked": checked,
        "wrong": len(wrong),
        "matches_polled": min(turn.window.matches for turn in turns),
        "requests": turns[-1].requests,
        "cpu_percent": turns[-1].cpu.percent(),
        "cpu_ms_a_poll": milliseconds_each([turn.cpu for turn in turns], polls),
        "problems": (errors, wrong),
    }


def _peer_details(environment: BenchEnvironment, options: Namespace, turns: list[CrawlResult]) -> dict[str, Any]:
    checked, wrong = wrong_scores([one for turn in turns for one in turn.seen], environment.stadium, sample=SAMPLE)
    errors = [error for turn in turns for error in turn.errors]
    polls = sum(len(turn.seen) for turn in turns)
    return {
        "pages": options.pages,
        "polls": polls,
        "errors": len(errors),
        **_times([value for turn in turns for value in turn.milliseconds]),
        "checked": checked,
        "wrong": len(wrong),
        "cpu_percent": turns[-1].cpu.percent(),
        "cpu_ms_a_poll": milliseconds_each([turn.cpu for turn in turns], polls),
        "problems": (errors, wrong),
    }


def _peer_versions() -> dict[str, str]:
    return {
        name: text for peer in PEER_CRAWLERS for name, text in peer.pins().items() if name in {"scrapy", peer.package}
    }


def _ratio(one: float, other: float) -> float:
    return round(one / other, 1) if other else 0.0


def _overall(turns: list[Turn] | list[CrawlResult]) -> float:
    return sum(_rate(turn) for turn in turns) / len(turns)


def _times(milliseconds: list[float]) -> dict[str, float]:
    return {f"p{percent}_ms": round(results.percentile(milliseconds, percent), 1) for percent in (50, 95)}


def _problems(name: str, rate: float, details: dict[str, Any]) -> list[str]:
    errors, wrong = details["problems"]
    found = [] if rate else [f"{name} has done no poll"]
    found += [f"{name}: {len(errors)} errors, the first: {errors[0]}"] if errors else []
    return found + ([f"{name}: {len(wrong)} wrong results, the first: {wrong[0]}"] if wrong else [])
