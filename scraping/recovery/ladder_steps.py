"""The recovery step of each rung. Every step is cheap and safe to repeat.

Guards the other matches of a worker against the recovery of one: the first rungs cost a hint and a session, only a
later one replaces the browser, and no step waits for its effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scraping.matches import poll_times
from scraping.models import CommandKind, Match, MatchRef, Scraper, Source, WorkerCommand
from scraping.models.source import PUSHED
from scraping.policies.ladder import Rung
from scraping.recovery import worker_commands
from scraping.recovery.silent_matches import read_at_once, watched_refs

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
