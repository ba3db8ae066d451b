"""When a match is read next, from what its rows remember: the way from the columns to the pure policies and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scraping.models import Match, MatchRef
from scraping.payloads import BREAKS, Phase, Status
from scraping.policies import slowing
from scraping.policies.interval import REMEMBERED_POLLS, Activity, Pace, plan
from scraping.policies.phases import QUIET_IN_BREAK_POLLS
from scraping.policies.scores import ScoreSays, read_score
from scraping.policies.slowing import Slowing

State = Mapping[str, Any]

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
        """The caller saves. What is sent to us has an interval but no next poll."""
        ref.next_poll_at = None if ref.source.is_pushed else self.at
        ref.polling_interval_seconds, ref.pace_reason = self.seconds, self.reason[:80]
        ref.unchanged_polls, ref.recent_changes = self.history.unchanged_polls, self.history.recent_changes
        slowed = self.history.slowing
        ref.error_level, ref.error_level_at = slowed.level, slowed.level_at
        ref.slowed_seconds, ref.slowed_until = slowed.seconds, slowed.until


def asks_for_score(unchanged_polls: int) -> bool:
    """Does the pace depend on what the score says, after so many polls without news?"""
    return unchanged_polls >= QUIET_IN_BREAK_POLLS


def after_reading(
    ref: MatchRef, match: Match, *, is_changed: bool, pace: Pace, now: datetime, state: State | None = None
) -> NextPoll:
    """`state`: as the source tells it; may be left out where the score is not asked for."""
    history = _History(
        0 if is_changed else ref.unchanged_polls + 1,
        (ref.recent_changes + ("1" if is_changed else "0"))[-REMEMBERED_POLLS:],
        slowing.after_success(Slowing.of(ref), now=now),
    )
    return _next(ref, match, history, pace=pace, now=now, state=state)


def after_error(ref: MatchRef, match: Match, *, errors_in_a_row: int, pace: Pace, now: datetime) -> NextPoll:
    """Of the source's faults only: our own slow nobody down."""
    slowed = slowing.after_error(
        Slowing.of(ref), errors_in_a_row=errors_in_a_row, calm_seconds=pace.error_calm_seconds, now=now
    )
    history = _History(ref.unchanged_polls, ref.recent_changes, slowed)
    return _next(ref, match, history, pace=pace, now=now, state=ref.payload)


def as_before(ref: MatchRef, match: Match, *, pace: Pace, now: datetime) -> NextPoll:
    """Nothing was learnt about it: the attempt failed by our own fault."""
    history = _History(ref.unchanged_polls, ref.recent_changes, Slowing.of(ref))
    return _next(ref, match, history, pace=pace, now=now, state=ref.payload)


def _next(
    ref: MatchRef, match: Match, history: _History, *, pace: Pace, now: datetime, state: State | None
) -> NextPoll:
    is_asked = asks_for_score(history.unchanged_polls)
    activity = Activity(
        status=Status(match.status),
        start_time=match.start_time,
        is_break=match.phase in BREAKS,
        unchanged_polls=history.unchanged_polls,
        recent_changes=history.recent_changes,
        importance=match.importance,
        slowed_seconds=history.slowing.at(now),
        score_says=read_score(state) if state and is_asked else ScoreSays.GOES_ON,
        is_postponed=match.phase == Phase.POSTPONED,
    )
    planned = plan(activity, pace, now)
    seconds, reason = planned.seconds, planned.reason
    if seconds < ref.source.min_interval_seconds:
        seconds, reason = ref.source.min_interval_seconds, "as often as the source allows"
    return NextPoll(at=now + timedelta(seconds=seconds), seconds=seconds, reason=reason, history=history)
