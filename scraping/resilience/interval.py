"""How soon to look at a match again, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scraping.payloads import Status

HIGH, NORMAL, LOW = 0, 1, 2  # importance, as the match's column has it
RUSH_SECONDS = 2.0
REMEMBERED_POLLS = 10
QUIET_IN_BREAK_POLLS = 10
QUIET_IN_PLAY_POLLS = 40  # the source says play; a minute between two balls is no break
COMPLETED_SECONDS = 300.0
UPCOMING_LONGEST_SECONDS = 300.0
UPCOMING_SHORTEST_SECONDS = 5.0
# Of the usual interval: what matters more is read more often, and what matters less makes room for it.
PLAY_SHARES = {HIGH: 0.8, NORMAL: 1.0, LOW: 2.0}
BREAK_SHARES = {HIGH: 0.5, NORMAL: 1.0, LOW: 2.0}


@dataclass(frozen=True)
class Activity:
    """What is known about a match when the next poll is planned."""

    status: Status
    start_time: datetime | None = None
    is_break: bool = False  # the source says that nobody plays just now
    unchanged_polls: int = 0
    recent_changes: str = ""  # of the last ten polls: "1" changed, "0" not
    importance: int = NORMAL
    slowed_seconds: float = 0.0  # what its errors force, see slowing


@dataclass(frozen=True)
class Pace:
    baseline_seconds: float = 2.5
    break_seconds: float = 30.0
    is_adaptive: bool = True
    detects_phases: bool = True
    error_calm_seconds: float = 300.0


@dataclass(frozen=True)
class Planned:
    seconds: float
    reason: str


def plan(activity: Activity, pace: Pace, now: datetime) -> Planned:
    if activity.status in (Status.COMPLETED, Status.ABANDONED):
        return Planned(COMPLETED_SECONDS, "it is over")
    if activity.status is Status.UPCOMING:
        usual = Planned(_until_start(activity.start_time, now), "it has not begun")
    else:
        usual = _live(activity, pace) if pace.is_adaptive else Planned(pace.baseline_seconds, "the usual pace")
    if pace.is_adaptive and activity.slowed_seconds > usual.seconds:
        return Planned(activity.slowed_seconds, "slowed by errors")
    return usual


def _until_start(start: datetime | None, now: datetime) -> float:
    """A quarter of the time that is left, so that a moved start is noticed early and the real one at once."""
    if start is None:
        return UPCOMING_LONGEST_SECONDS / 5
    left = (start - now).total_seconds()
    return min(UPCOMING_LONGEST_SECONDS, max(UPCOMING_SHORTEST_SECONDS, left / 4))


def _live(activity: Activity, pace: Pace) -> Planned:
    usual = pace.baseline_seconds * PLAY_SHARES[activity.importance]
    if pace.detects_phases and activity.unchanged_polls >= _patience(activity):
        seconds = max(pace.break_seconds * BREAK_SHARES[activity.importance], usual)
        why = "a break" if activity.is_break else "nothing moves"
        return Planned(seconds, f"{why}: no change in {activity.unchanged_polls} polls")
    changed = activity.recent_changes.count("1")
    if len(activity.recent_changes) >= REMEMBERED_POLLS and 2 * changed > REMEMBERED_POLLS:
        return Planned(min(RUSH_SECONDS, usual), f"a rush: {changed} of {REMEMBERED_POLLS} polls brought something")
    words = {HIGH: "an important match", NORMAL: "in play", LOW: "a match of low importance"}
    return Planned(usual, words[activity.importance])


def _patience(activity: Activity) -> int:
    return QUIET_IN_BREAK_POLLS if activity.is_break else QUIET_IN_PLAY_POLLS
