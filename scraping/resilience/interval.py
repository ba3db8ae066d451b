"""How soon to look at a match again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scraping.payloads import Status

HIGH_ACTIVITY_SECONDS = 2.0
QUIET_IN_BREAK_POLLS = 10
QUIET_IN_PLAY_POLLS = 40  # the source says play; a minute between two balls is no break
COMPLETED_SECONDS = 300.0
UPCOMING_LONGEST_SECONDS = 300.0
UPCOMING_SHORTEST_SECONDS = 5.0
ERROR_STEPS = ((20, 20.0), (10, 10.0), (5, 5.0))  # errors in a row, at least so many seconds


@dataclass(frozen=True)
class Activity:
    """What is known about a match when the next poll is planned."""

    status: Status
    start_time: datetime | None = None
    is_break: bool = False  # the source says that nobody plays just now
    unchanged_polls: int = 0
    recent_changes: str = ""  # of the last ten polls: "1" changed, "0" not
    errors_in_a_row: int = 0


@dataclass(frozen=True)
class Pace:
    baseline_seconds: float = 2.5
    break_seconds: float = 30.0
    is_adaptive: bool = True


def interval_seconds(activity: Activity, pace: Pace, now: datetime) -> float:
    if activity.status in (Status.COMPLETED, Status.ABANDONED):
        return COMPLETED_SECONDS
    slowed = _slowed_by_errors(activity.errors_in_a_row) if pace.is_adaptive else 0.0
    if activity.status is Status.UPCOMING:
        return max(slowed, _until_start(activity.start_time, now))
    if not pace.is_adaptive:
        return pace.baseline_seconds
    return max(slowed, _by_activity(activity, pace))


def _slowed_by_errors(errors: int) -> float:
    return next((seconds for least, seconds in ERROR_STEPS if errors >= least), 0.0)


def _until_start(start: datetime | None, now: datetime) -> float:
    """A quarter of the time that is left, so that a moved start is noticed early and the real one at once."""
    if start is None:
        return UPCOMING_LONGEST_SECONDS / 5
    left = (start - now).total_seconds()
    return min(UPCOMING_LONGEST_SECONDS, max(UPCOMING_SHORTEST_SECONDS, left / 4))


def _by_activity(activity: Activity, pace: Pace) -> float:
    if activity.unchanged_polls >= (QUIET_IN_BREAK_POLLS if activity.is_break else QUIET_IN_PLAY_POLLS):
        return max(pace.break_seconds, pace.baseline_seconds)
    is_busy = len(activity.recent_changes) == 10 and activity.recent_changes.count("1") > 5
    return min(HIGH_ACTIVITY_SECONDS, pace.baseline_seconds) if is_busy else pace.baseline_seconds
