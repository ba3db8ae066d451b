"""When a match is read next, from what its rows remember: the way from the columns to the pure policies and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scraping.models import Match, MatchRef
from scraping.payloads import BREAKS, Status
from scraping.resilience import slowing
from scraping.resilience.interval import REMEMBERED_POLLS, Activity, Pace, plan
from scraping.resilience.slowing import Slowing

COLUMNS = (
    *("unchanged_polls", "recent_changes", "polling_interval_seconds", "next_poll_at", "pace_reason"),
    *("error_level", "error_level_at", "slowed_seconds", "slowed_until"),
)


@dataclass(frozen=True)
class _History:
    """What a match at a source remembers of its polls."""

    unchanged_polls: int
    recent_changes: str
    slowing: Slowing


@dataclass(frozen=True)
class NextPoll:
    at: datetime
    seconds: float
    reason: str
    history: _History

    def write_to(self, ref: MatchRef) -> None:
        """The caller saves."""
        ref.next_poll_at, ref.polling_interval_seconds, ref.pace_reason = self.at, self.seconds, self.reason[:80]
        ref.unchanged_polls, ref.recent_changes = self.history.unchanged_polls, self.history.recent_changes
        slowed = self.history.slowing
        ref.error_level, ref.error_level_at = slowed.level, slowed.level_at
        ref.slowed_seconds, ref.slowed_until = slowed.seconds, slowed.until


def slowing_of(ref: MatchRef) -> Slowing:
    return Slowing(ref.error_level, ref.error_level_at, ref.slowed_seconds, ref.slowed_until)


def after_reading(ref: MatchRef, match: Match, *, is_changed: bool, pace: Pace, now: datetime) -> NextPoll:
    history = _History(
        0 if is_changed else ref.unchanged_polls + 1,
        (ref.recent_changes + ("1" if is_changed else "0"))[-REMEMBERED_POLLS:],
        slowing.after_success(slowing_of(ref), now=now),
    )
    return _next(ref, match, history, pace, now)


def after_error(ref: MatchRef, match: Match, *, errors_in_a_row: int, pace: Pace, now: datetime) -> NextPoll:
    """Of the source's faults only: our own slow nobody down."""
    slowed = slowing.after_error(
        slowing_of(ref), errors_in_a_row=errors_in_a_row, calm_seconds=pace.error_calm_seconds, now=now
    )
    return _next(ref, match, _History(ref.unchanged_polls, ref.recent_changes, slowed), pace, now)


def as_before(ref: MatchRef, match: Match, *, pace: Pace, now: datetime) -> NextPoll:
    """Nothing was learnt about it: the attempt failed by our own fault."""
    return _next(ref, match, _History(ref.unchanged_polls, ref.recent_changes, slowing_of(ref)), pace, now)


def _next(ref: MatchRef, match: Match, history: _History, pace: Pace, now: datetime) -> NextPoll:
    activity = Activity(
        Status(match.status),
        match.start_time,
        match.phase in BREAKS,
        history.unchanged_polls,
        history.recent_changes,
        match.importance,
        history.slowing.at(now),
    )
    planned = plan(activity, pace, now)
    seconds, reason = planned.seconds, planned.reason
    if seconds < ref.source.min_interval_seconds:
        seconds, reason = ref.source.min_interval_seconds, "as often as the source allows"
    return NextPoll(at=now + timedelta(seconds=seconds), seconds=seconds, reason=reason, history=history)
