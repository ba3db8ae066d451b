"""How soon to look at a match again, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scraping.payloads import Status
from scraping.policies.phases import Doing, Signs, judge
from scraping.policies.scores import ScoreSays

HIGH, NORMAL, LOW = 0, 1, 2  # importance, as the match's column has it
RUSH_SECONDS = 2.0
REMEMBERED_POLLS = 10
COMPLETED_SECONDS = 300.0
UPCOMING_LONGEST_SECONDS = 300.0
UPCOMING_SHORTEST_SECONDS = 5.0
UNKNOWN_START_SECONDS = 60.0
LATE_PART = 1 / 360  # of the time since a start that did not come: 5 s for half an hour, a minute after six
# Of the usual interval: what matters more is read more often, and what matters less makes room for it.
PLAY_SHARES = {HIGH: 0.8, NORMAL: 1.0, LOW: 2.0}
# At most 45 s in a break: data that is a minute old counts as late, and the system as unwell.
BREAK_SHARES = {HIGH: 0.5, NORMAL: 1.0, LOW: 1.5}


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
    score_says: ScoreSays = ScoreSays.GOES_ON  # asked for only where nothing moves
    is_postponed: bool = False  # the source says that its start has no meaning any more


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
    """When errors and the match itself disagree, the slower one is kept."""
    if activity.status in (Status.COMPLETED, Status.ABANDONED):
        return Planned(COMPLETED_SECONDS, "it is over")
    if activity.status is Status.UPCOMING:
        usual = _upcoming(activity, now)
    else:
        usual = _live(activity, pace) if pace.is_adaptive else Planned(pace.baseline_seconds, "the usual pace")
    if pace.is_adaptive and activity.slowed_seconds > usual.seconds:
        return Planned(activity.slowed_seconds, "slowed by errors")
    return usual


def _upcoming(activity: Activity, now: datetime) -> Planned:
    """A quarter of the time that is left, so that a moved start is noticed early and the real one at once.

    A source may be late to say that it has begun; one that has not said so for hours will not say so in seconds.
    """
    if activity.is_postponed:
        return Planned(UPCOMING_LONGEST_SECONDS, "it is postponed")
    if activity.start_time is None:
        return Planned(UNKNOWN_START_SECONDS, "nobody says when it begins")
    left = (activity.start_time - now).total_seconds()
    seconds = left / 4 if left >= 0 else -left * LATE_PART
    within = min(UPCOMING_LONGEST_SECONDS, max(UPCOMING_SHORTEST_SECONDS, seconds))
    return Planned(within, "it has not begun" if left > 0 else "it should have begun")


def _live(activity: Activity, pace: Pace) -> Planned:
    usual = pace.baseline_seconds * PLAY_SHARES[activity.importance]
    doing = judge(_signs(activity)) if pace.detects_phases else Doing.PLAY
    if doing is Doing.ENDING:  # the one thing that everybody waits for
        return Planned(usual, f"{doing}: no change in {activity.unchanged_polls} polls")
    if doing is not Doing.PLAY:
        seconds = max(pace.break_seconds * BREAK_SHARES[activity.importance], usual)
        return Planned(seconds, f"{doing}: no change in {activity.unchanged_polls} polls")
    changed = activity.recent_changes.count("1")
    if len(activity.recent_changes) >= REMEMBERED_POLLS and 2 * changed > REMEMBERED_POLLS:
        return Planned(min(RUSH_SECONDS, usual), f"a rush: {changed} of {REMEMBERED_POLLS} polls brought something")
    words = {HIGH: "an important match", NORMAL: "in play", LOW: "a match of low importance"}
    return Planned(usual, words[activity.importance])


def _signs(activity: Activity) -> Signs:
    return Signs(activity.status, activity.is_break, activity.unchanged_polls, activity.score_says)
