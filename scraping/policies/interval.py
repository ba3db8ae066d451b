"""Plans the interval until the next poll of a match, with the reason (FR-024). Pure.

The activity of a live match follows from the phase that the source states, from the score, and from polls without a
change. Guards against a phase that is out of date: "play" during a break, "live" after the end. No announcement is
needed for a break: enough polls without a change make one, and the first change ends it.

How many are enough depends on the evidence. Every source that we read has phases for breaks, from "drinks" to "stumps"
(of football: "halftime" and "interrupted"); so where it says play, play is likely, and a minute between two balls is no
break: 40 polls, a hundred seconds. Where it says a break, or the score shows that there can be no play (all out, the
last over bowled), ten polls are enough. Both numbers are settings.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from scraping.payloads import Status
from scraping.policies.milestones import ScoreProgress

HIGH, NORMAL, LOW = 0, 1, 2  # importance, as the match's column has it
RUSH_SECONDS = 2.0
REMEMBERED_POLLS = 10
COMPLETED_SECONDS = 300.0
UPCOMING_LONGEST_SECONDS = 300.0
UPCOMING_SHORTEST_SECONDS = 5.0
UNKNOWN_START_SECONDS = 60.0
LATE_PART = 1 / 360  # of the time since a start that did not come: 5 s for half an hour, a minute after six
ENDING_POLLS = 240  # ten minutes at the usual pace: a source that has not announced the end by then is not waited for
# Parts of the usual interval by importance.
PLAY_SHARES = {HIGH: 0.8, NORMAL: 1.0, LOW: 2.0}
# At most 45 s in a break: data that is a minute old counts as late, and the system as degraded.
BREAK_SHARES = {HIGH: 0.5, NORMAL: 1.0, LOW: 1.5}


class Activity(StrEnum):
    """The present activity of a match, as far as polling is concerned."""

    NOT_BEGUN = "not begun"
    PLAY = "play"
    BREAK = "a break"
    BETWEEN_INNINGS = "between innings"  # by the score: the source has announced no break
    QUIET = "nothing moves"
    ENDING = "its end is due"  # by the score: the source has not announced it yet
    OVER = "over"


@dataclass(frozen=True)
class Pace:
    baseline_seconds: float = 2.5
    break_seconds: float = 30.0
    is_adaptive: bool = True
    detects_phases: bool = True
    error_calm_seconds: float = 300.0
    break_after_polls: int = 10  # without a change, where the source or the score says that there is no play
    break_after_polls_in_play: int = 40  # where the source says that play is on


@dataclass(frozen=True)
class PollHistory:
    """The facts about a match at one source from which its next poll is planned."""

    status: Status
    start_time: datetime | None = None
    is_break: bool = False  # the source says that play is interrupted
    unchanged_polls: int = 0
    recent_changes: str = ""  # of the last ten polls: "1" changed, "0" not
    importance: int = NORMAL
    slowed_seconds: float = 0.0  # the interval that its errors force, see error_slowdown
    score: ScoreProgress = ScoreProgress.IN_PROGRESS  # read only after polls without a change
    is_postponed: bool = False  # the source says that its start time is no longer valid


@dataclass(frozen=True)
class Interval:
    seconds: float
    reason: str


def plan(history: PollHistory, pace: Pace, now: datetime) -> Interval:
    """Returns the interval until the next poll. Errors can only make it longer."""
    if history.status in (Status.COMPLETED, Status.ABANDONED):
        return Interval(COMPLETED_SECONDS, "it is over")
    if history.status is Status.UPCOMING:
        usual = _upcoming(history, now)
    else:
        usual = _live(history, pace) if pace.is_adaptive else Interval(pace.baseline_seconds, "the usual pace")
    if pace.is_adaptive and history.slowed_seconds > usual.seconds:
        return Interval(history.slowed_seconds, "slowed by errors")
    return usual


def activity_of(history: PollHistory, pace: Pace) -> Activity:
    if history.status in (Status.COMPLETED, Status.ABANDONED):
        return Activity.OVER
    if history.status is Status.UPCOMING:
        return Activity.NOT_BEGUN
    if history.unchanged_polls < pace.break_after_polls:
        return Activity.PLAY
    if history.score is ScoreProgress.MATCH_FINISHED:
        return Activity.ENDING if history.unchanged_polls < ENDING_POLLS else Activity.QUIET
    if history.is_break:
        return Activity.BREAK
    if history.score is ScoreProgress.INNINGS_FINISHED:
        return Activity.BETWEEN_INNINGS
    return Activity.QUIET if history.unchanged_polls >= pace.break_after_polls_in_play else Activity.PLAY


def _upcoming(history: PollHistory, now: datetime) -> Interval:
    """A quarter of the time left, so that a moved start is noticed; less often if the start is late by hours."""
    if history.is_postponed:
        return Interval(UPCOMING_LONGEST_SECONDS, "it is postponed")
    if history.start_time is None:
        return Interval(UNKNOWN_START_SECONDS, "its start is unknown")
    left = (history.start_time - now).total_seconds()
    seconds = left / 4 if left >= 0 else -left * LATE_PART
    within = min(UPCOMING_LONGEST_SECONDS, max(UPCOMING_SHORTEST_SECONDS, seconds))
    return Interval(within, "it has not begun" if left > 0 else "it should have begun")


def _live(history: PollHistory, pace: Pace) -> Interval:
    usual = pace.baseline_seconds * PLAY_SHARES[history.importance]
    activity = activity_of(history, pace) if pace.detects_phases else Activity.PLAY
    if activity is Activity.ENDING:  # consumers wait for the result: no slower than in play
        return Interval(usual, f"{activity}: no change in {history.unchanged_polls} polls")
    if activity is not Activity.PLAY:
        seconds = max(pace.break_seconds * BREAK_SHARES[history.importance], usual)
        return Interval(seconds, f"{activity}: no change in {history.unchanged_polls} polls")
    changed = history.recent_changes.count("1")
    if len(history.recent_changes) >= REMEMBERED_POLLS and 2 * changed > REMEMBERED_POLLS:
        return Interval(min(RUSH_SECONDS, usual), f"a rush: {changed} of {REMEMBERED_POLLS} polls brought something")
    reasons = {HIGH: "an important match", NORMAL: "in play", LOW: "a match of low importance"}
    return Interval(usual, reasons[history.importance])
