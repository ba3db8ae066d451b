"""The ladder: escalating recovery steps for live matches that have gone silent. The only writer of their rungs.

Guards against the failure that raises no error: everything runs, and no data arrives. `policies/ladder.py` decides
which rung is due. Every step is cheap and safe to repeat, and spares the other matches of a worker: the first rungs
cost a hint and a session, only a later one replaces the browser. All of it is undone when data returns.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef

from scraping.matches import poll_times, scrapers
from scraping.models import CommandKind, Match, MatchRef, Scraper, Source, WorkerCommand
from scraping.models.source import PUSHED
from scraping.policies.ladder import Rung, Silence, next_rung
from scraping.recovery import worker_commands
from scraping.recovery.silent_matches import (
    has_new_reading,
    is_watched_live,
    read_at_once,
    silence_of,
    silent_matches,
    watched_refs,
)
from scraping.signals import silence_climbed, silence_over

logger = logging.getLogger(__name__)

MAX_MOVES = 20  # a move is a dozen statements and delays the scheduler's dispatch; the rest follows in 5 seconds
ACTOR = "scheduler"
# However many matches are silent, a source's session is changed and a worker's browser replaced at most once in these
# shares of the staleness threshold.
AGAIN_SHARES = {CommandKind.FRESH_SESSION: 0.2, CommandKind.RECYCLE_BROWSER: 1.0}


@dataclass(frozen=True)
class StepContext:
    """The running workers, the threshold and the time of one run of the ladder."""

    workers: tuple[str, ...]
    threshold_seconds: float
    now: datetime


@dataclass(frozen=True)
class StepResult:
    summary: str
    detail: dict[str, Any]


def advance(now: datetime, *, staleness_threshold: float) -> int:
    """Moves every silent match up or down the ladder where that is due. Returns the number of moves."""
    context = StepContext(tuple(worker_commands.workers_at_work(now)), staleness_threshold, now)
    moved = 0
    for match in silent_matches(now, staleness_threshold):
        if moved >= MAX_MOVES:
            break
        if not is_watched_live(match) or has_new_reading(match):
            moved += _descend(match, now)
            continue
        silence = silence_of(match, has_workers=bool(context.workers), now=now)
        rung = next_rung(silence, staleness_threshold=staleness_threshold, now=now)
        if rung > match.silence_rung:
            moved += _climb(match, rung, silence, context)
        elif rung < match.silence_rung:
            moved += _descend(match, now)
    return moved + _release_called_in(now)


def _climb(match: Match, rung: Rung, silence: Silence, context: StepContext) -> bool:
    """Writes the rung first, so that two schedulers do not act twice, then takes its step."""
    read_at, now = match.last_scraper_update or match.created_at, context.now
    columns: dict[str, Any] = {"silence_rung": rung, "silence_rung_at": now, "silent_since": read_at}
    if rung is Rung.FROZEN:
        columns["frozen_at"] = now
    unmoved = Match.objects.filter(
        pk=match.pk, silence_rung=match.silence_rung, last_scraper_update=match.last_scraper_update
    )
    if not unmoved.update(**columns):
        return False
    done = take_step(match, rung, context)
    seconds = (now - read_at).total_seconds()
    reason = f"silent for {seconds:.0f} s; data was expected {(now - silence.expected_at).total_seconds():.0f} s ago"
    logger.log(
        logging.ERROR if rung is Rung.FROZEN else logging.WARNING if rung > Rung.HINT else logging.INFO,
        "%s is %s: %s. Its last state stays served, with its age",
        match,
        reason,
        done.summary,
        extra={"action": "silence_climbed", "match_id": match.key, "rung": rung.name.lower(), **done.detail},
    )
    silence_climbed.send_robust(
        sender=Match,
        match_id=match.pk,
        rung=int(rung),
        rung_name=rung.name.lower(),
        reason=reason,
        detail={"did": done.summary, **done.detail},
        now=now,
    )
    return True


def _descend(match: Match, now: datetime) -> bool:
    """Takes the match off the ladder: data has returned, or the match is not watched any more."""
    rung = Rung(match.silence_rung)
    if rung is Rung.GROUND:
        return False
    unmoved = Match.objects.filter(pk=match.pk, silence_rung=rung)
    if not unmoved.update(silence_rung=Rung.GROUND, silence_rung_at=None, silent_since=None, frozen_at=None):
        return False
    since = match.silent_since or match.created_at
    has_data = has_new_reading(match)
    until = match.last_scraper_update if has_data and match.last_scraper_update else now
    seconds = max(0.0, (until - since).total_seconds())
    read = [ref for ref in match.refs.all() if ref.captured_at is not None]
    newest = max(read, key=lambda ref: ref.captured_at or match.created_at, default=None) if has_data else None
    source_key = newest.source.key if newest else ""
    logger.log(
        logging.WARNING if rung is Rung.FROZEN else logging.INFO,
        "%s after %.0f s of silence%s; last step of the ladder: %s",
        f"{match} has data again" if has_data else f"{match} is not watched any more",
        seconds,
        f", from {source_key}" if source_key else "",
        rung.name.lower().replace("_", " "),
        extra={"action": "silence_over", "match_id": match.key, "rung": rung.name.lower(), "seconds": round(seconds)},
    )
    silence_over.send_robust(
        sender=Match, match_id=match.pk, rung=int(rung), seconds=seconds, source_key=source_key, now=now
    )
    return True


def _release_called_in(now: datetime) -> int:
    """Stops polling the sources that were called in once a regular source of the match has data again."""
    others = MatchRef.objects.filter(
        match=OuterRef("match"), is_watched=True, called_in_at=None, captured_at__gt=OuterRef("called_in_at")
    )
    called = MatchRef.objects.filter(Exists(others), called_in_at__isnull=False).select_related("source")
    sent = 0
    for ref in called.defer("payload").order_by("pk")[:MAX_MOVES]:
        if not poll_times.stop_substitute(MatchRef.objects.filter(pk=ref.pk, called_in_at=ref.called_in_at)):
            continue
        sent += 1
        scrapers.stop(ref, reason="the regular source has data again", now=now)
        logger.info(
            "%s is not polled any more: the regular source has data again",
            ref.key,
            extra={"action": "called_in_over", "match_id": ref.key, "source": ref.source.key},
        )
    return sent


def take_step(match: Match, rung: Rung, context: StepContext) -> StepResult:
    """Takes the step, and has the match read at once; where a worker was commanded, when the command has ended."""
    refs = watched_refs(match)
    done = _take_step(match, refs, rung, context)
    if not done.detail.get("commands"):
        read_at_once(refs, context.now)
    return done


def _take_step(match: Match, refs: Sequence[MatchRef], rung: Rung, context: StepContext) -> StepResult:
    if rung is Rung.HINT:
        return StepResult("its task is hinted again", {"refs": [ref.key for ref in refs]})
    if rung is Rung.SESSION:
        return _change_session(refs, context)
    if rung is Rung.BROWSER:
        return _change_browser(match, refs, context)
    if rung is Rung.OTHER_SOURCE:
        return _call_in_others(match, context.now)
    return StepResult("no step has helped: it is served as frozen, an alert is raised, and its scraper is replaced", {})


def _change_session(refs: Sequence[MatchRef], context: StepContext) -> StepResult:
    """Starts the match over with a visit in a fresh session. Other matches keep their state."""
    keys = sorted({ref.source.key for ref in refs})
    given = [
        command
        for worker_id in context.workers
        for key in keys
        if (command := _command(CommandKind.FRESH_SESSION, worker_id, key, f"a match at {key} is silent", context))
    ]
    MatchRef.objects.filter(pk__in=[ref.pk for ref in refs]).update(
        read_mode="", read_mode_reason="silent: starting over", read_mode_since=context.now
    )
    return StepResult(f"it is visited in a fresh session at {' and '.join(keys)}", {"commands": given, "sources": keys})


def _change_browser(match: Match, refs: Sequence[MatchRef], context: StepContext) -> StepResult:
    """Replaces the browser of the worker that reads the match; of all workers where that is unknown."""
    scrapers = Scraper.objects.filter(ref__in=refs, stopped_at__isnull=True)
    reading = set(scrapers.values_list("worker_id", flat=True)) & set(context.workers)
    wanted = sorted(reading or context.workers)
    reason = f"{match.key} is silent"  # public: a title is match data
    given = [
        command
        for worker_id in wanted
        if (command := _command(CommandKind.RECYCLE_BROWSER, worker_id, "", reason, context))
    ]
    summary = "its browser is replaced" if given else "its browser was replaced just now"
    return StepResult(summary, {"commands": given, "workers": wanted})


def _command(kind: CommandKind, worker_id: str, source_key: str, reason: str, context: StepContext) -> int | None:
    """Commands a worker and returns the id of the command; None if it was commanded the same a short time ago."""
    since = context.now - timedelta(seconds=AGAIN_SHARES[kind] * context.threshold_seconds)
    given = WorkerCommand.objects.filter(kind=kind, worker_id=worker_id, source_key=source_key, actor=ACTOR)
    if given.filter(asked_at__gt=since).exists():
        return None
    command = worker_commands.issue(
        kind, worker_id=worker_id, source_key=source_key, reason=reason, actor=ACTOR, now=context.now
    )
    return command.pk if command else None


def _call_in_others(match: Match, now: datetime) -> StepResult:
    """Polls the match at its other sources; without any, reads the lists of sources that may have it."""
    others = [
        ref
        for ref in match.refs.all()
        if not ref.is_watched and ref.source.is_enabled and not ref.source.is_pushed and ref.gone_at is None
    ]
    poll_times.start_substitute(MatchRef.objects.filter(pk__in=[ref.pk for ref in others]), now)
    if others:
        names = ", ".join(sorted(ref.source.name for ref in others))
        return StepResult(f"it is polled at {names} instead", {"called_in": [ref.key for ref in others]})
    watched = watched_refs(match)
    if len(watched) > 1:
        return StepResult(
            "all of its sources are polled at once", {"sources": sorted(ref.source.key for ref in watched)}
        )
    known = {ref.source_id for ref in match.refs.all()}
    elsewhere = Source.objects.filter(is_enabled=True, sport=match.sport).exclude(pk__in=known).exclude(key=PUSHED)
    searched = sorted(elsewhere.values_list("key", flat=True))
    elsewhere.update(last_discovery_at=None)
    summary = f"it is searched in the lists of {', '.join(searched)}" if searched else "no other source has it"
    return StepResult(summary, {"searched": searched})
