"""What a match is doing, from the source's words and from what moves (FR-024). Pure.

Guards against believing a word that has outlived what it said: "play" while nobody plays, "live" when all is over. No
word is needed for a break: where nothing moves for long enough there is one, and the first change ends it at once.

How long is long enough depends on who says what. Every source that we read has words for breaks, from "drinks" to
"stumps" (of football: "halftime" and "interrupted"); so where one says play, play is likely, and a minute between two
balls is no break: 40 polls, a hundred seconds. Where its word is a break, or the score shows that nobody can be playing
(all out, the last over bowled, and no word for what follows), ten polls are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scraping.payloads import Status
from scraping.policies.scores import ScoreSays

QUIET_IN_BREAK_POLLS = 10
QUIET_IN_PLAY_POLLS = 40
ENDING_POLLS = 240  # ten minutes at the usual pace: whoever has not told the end by then tells it later


class Doing(StrEnum):
    NOT_BEGUN = "not begun"
    PLAY = "play"
    BREAK = "a break"
    BETWEEN_INNINGS = "between innings"  # by the score: the source has said nothing of a break
    QUIET = "nothing moves"
    ENDING = "its end is due"  # by the score: the source has not said so yet
    OVER = "over"


@dataclass(frozen=True)
class Signs:
    """What is seen of a match at one source."""

    status: Status
    is_break: bool = False  # the source says that nobody plays just now
    unchanged_polls: int = 0
    score_says: ScoreSays = ScoreSays.GOES_ON


def judge(signs: Signs) -> Doing:
    if signs.status in (Status.COMPLETED, Status.ABANDONED):
        return Doing.OVER
    if signs.status is Status.UPCOMING:
        return Doing.NOT_BEGUN
    if signs.unchanged_polls < QUIET_IN_BREAK_POLLS:
        return Doing.PLAY
    if signs.score_says is ScoreSays.MATCH_DONE:
        return Doing.ENDING if signs.unchanged_polls < ENDING_POLLS else Doing.QUIET
    if signs.is_break:
        return Doing.BREAK
    if signs.score_says is ScoreSays.INNINGS_DONE:
        return Doing.BETWEEN_INNINGS
    return Doing.QUIET if signs.unchanged_polls >= QUIET_IN_PLAY_POLLS else Doing.PLAY
