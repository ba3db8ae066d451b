"""The next poll of each match at a source: plans the time and writes it.

The only module that writes `next_poll_at`, `is_watched` and `called_in_at` of refs (the scheduler's `clock` shifts all
times when the machine's clock was set back). A watched ref has a next poll time; a ref that is not watched has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from scraping.models import Match, MatchRef, Source
from scraping.payloads import BREAKS, Phase, Status
from scraping.policies import error_slowdown
from scraping.policies.error_slowdown import NO_SLOWDOWN, Slowdown
from scraping.policies.interval import REMEMBERED_POLLS, Pace, PollHistory, plan
from scraping.policies.milestones import ScoreProgress, score_progress
from victoryline.lib import bulk_sql

State = Mapping[str, Any]

_WRITE_UNCHANGED = bulk_sql.with_columns(
    MatchRef,
    """UPDATE {table} SET {captured_at} = v.column3, {polling_interval_seconds} = v.column4, {next_poll_at} = v.column5,
         {recent_changes} = v.column6, {pace_reason} = v.column7, {unchanged_polls} = {unchanged_polls} + 1
       FROM (VALUES {{rows}}) AS v
       WHERE {id} = v.column1 AND {captured_at} = v.column2 AND {suspect_checksum} = ''""",
)
COLUMNS = (
    *("unchanged_polls", "recent_changes", "polling_interval_seconds", "next_poll_at", "pace_reason"),
    *("error_level", "error_level_at", "slowed_seconds", "slowed_until"),
)


@dataclass(frozen=True)
class NextPoll:
    at: datetime
    seconds: float
    reason: str
    unchanged_polls: int
    recent_changes: str
    slowdown: Slowdown

    def write_to(self, ref: MatchRef) -> None:
        """Sets the columns of COLUMNS; the caller saves."""
        set_next_poll(ref, self.at)
        ref.polling_interval_seconds, ref.pace_reason = self.seconds, self.reason[:80]
        ref.unchanged_polls, ref.recent_changes = self.unchanged_polls, self.recent_changes
        ref.error_level, ref.error_level_at = self.slowdown.level, self.slowdown.level_at
        ref.slowed_seconds, ref.slowed_until = self.slowdown.seconds, self.slowdown.until


def plan_needs_score(unchanged_polls: int, pace: Pace) -> bool:
    """Returns whether the plan depends on the score after so many unchanged polls."""
    return unchanged_polls >= pace.break_after_polls


def after_reading(ref: MatchRef, *, is_changed: bool, pace: Pace, now: datetime, state: State | None) -> NextPoll:
    """Plans the poll after a successful one. `state` may be None where `plan_needs_score` is False."""
    polls = 0 if is_changed else ref.unchanged_polls + 1
    changes = (ref.recent_changes + ("1" if is_changed else "0"))[-REMEMBERED_POLLS:]
    slowed = error_slowdown.after_success(Slowdown.of(ref), now=now) if ref.error_level_at else NO_SLOWDOWN
    return _next(ref, polls, changes, slowed, pace=pace, now=now, state=state)


def after_failure(ref: MatchRef, *, errors_in_a_row: int | None, pace: Pace, now: datetime) -> NextPoll:
    """Plans the poll after a failure. `errors_in_a_row`: None if the source is not at fault, which slows nothing."""
    slowed = Slowdown.of(ref)
    if errors_in_a_row is not None:
        slowed = error_slowdown.after_error(
            slowed, errors_in_a_row=errors_in_a_row, calm_seconds=pace.error_calm_seconds, now=now
        )
    return _next(ref, ref.unchanged_polls, ref.recent_changes, slowed, pace=pace, now=now, state=ref.payload)


def _next(
    ref: MatchRef,
    unchanged_polls: int,
    recent_changes: str,
    slowdown: Slowdown,
    *,
    pace: Pace,
    now: datetime,
    state: State | None,
) -> NextPoll:
    match: Match = ref.match
    facts = PollHistory(
        status=Status(match.status),
        start_time=match.start_time,
        is_break=match.phase in BREAKS,
        unchanged_polls=unchanged_polls,
        recent_changes=recent_changes,
        importance=match.importance,
        slowed_seconds=slowdown.seconds_at(now) if slowdown.until else 0.0,
        score=score_progress(state) if state and plan_needs_score(unchanged_polls, pace) else ScoreProgress.IN_PROGRESS,
        is_postponed=match.phase == Phase.POSTPONED,
    )
    planned = plan(facts, pace, now)
    seconds, reason = planned.seconds, planned.reason
    if seconds < ref.source.min_interval_seconds:
        seconds, reason = ref.source.min_interval_seconds, "as often as the source allows"
    return NextPoll(now + timedelta(seconds=seconds), seconds, reason, unchanged_polls, recent_changes, slowdown)


def set_next_poll(ref: MatchRef, at: datetime) -> None:
    """Sets the time on one ref; the caller saves. One that is not watched is not polled, nor one that is sent to us."""
    ref.next_poll_at = at if ref.is_watched and not ref.source.is_pushed else None


def make_due(refs: QuerySet[MatchRef], now: datetime) -> int:
    """Makes watched refs due at once; those that are due already keep their place in the queue."""
    later = Q(next_poll_at=None) | Q(next_poll_at__gt=now)
    return refs.filter(later, is_watched=True).update(next_poll_at=now)


def restart_wait(refs: QuerySet[MatchRef], now: datetime) -> int:
    """Makes watched refs due at once and forgets since when they have been due: nothing was polled in a pause."""
    return refs.filter(is_watched=True).update(next_poll_at=now)


def postpone(refs: QuerySet[MatchRef], until: datetime) -> int:
    """Puts off polls that would come before `until`."""
    return refs.filter(next_poll_at__lt=until).update(next_poll_at=until)


def first_poll(source: Source, at: datetime | None, *, waits_from: datetime | None = None) -> dict[str, Any]:
    """Returns the columns of a new ref. Without a time the first reading is that of a job's task.

    `waits_from`: there is too little memory for another watch; it starts later (see `watches.begin_waiting`).
    """
    is_watched = not source.is_pushed and waits_from is None
    return {
        "is_watched": is_watched,
        "next_poll_at": at if is_watched else None,
        "watch_at": None if source.is_pushed else waits_from,
    }


def start_watching(refs: QuerySet[MatchRef], now: datetime) -> int:
    """Polls these refs from now on, because of a person or because there is room for a watch that was put off."""
    return refs.update(is_watched=True, watch_at=None, next_poll_at=now)


def stop_watching(refs: QuerySet[MatchRef], *, watch_again_at: datetime | None = None) -> int:
    """Polls these refs no longer. With `watch_again_at` the watch starts again then, if there is room."""
    return refs.update(is_watched=False, next_poll_at=None, called_in_at=None, watch_at=watch_again_at)


def start_substitute(refs: QuerySet[MatchRef], now: datetime) -> int:
    """Polls refs that are not watched, while the sources that are watched give no data."""
    return refs.filter(is_watched=False).update(is_watched=True, next_poll_at=now, called_in_at=now)


def stop_substitute(refs: QuerySet[MatchRef]) -> int:
    return refs.update(is_watched=False, next_poll_at=None, called_in_at=None)


def make_substitute_permanent(refs: QuerySet[MatchRef]) -> int:
    """Turns substitutes into ordinary watches, because a person requested the match."""
    return refs.filter(called_in_at__isnull=False).update(called_in_at=None)


def write_unchanged(polls: Sequence[tuple[MatchRef, datetime, NextPoll]]) -> int:
    """Writes the plans of many unchanged polls in one statement; returns how many refs were still as they were."""
    rows = [
        (ref.pk, ref.captured_at, captured_at, planned.seconds, planned.at, planned.recent_changes, planned.reason)
        for ref, captured_at, planned in polls
    ]
    return bulk_sql.execute_rows(_WRITE_UNCHANGED, rows)
