"""Milestones of a match, at which all of it is read: the next innings, a long break, an end that is overdue. Pure.

The source announces them by its phase, or they follow from a score that shows that the innings or the match is finished
while nothing changes any more. Guards against a source whose phase lags behind its numbers: "live" hours after the last
ball. It decides nothing about the data that is served, only when it is read; a score that is unclear counts as in
progress.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from scraping.payloads import Phase, Sport, Status

State = Mapping[str, Any]

ALL_OUT = 10
FULL_TIME = {Phase.PLAY: 90, Phase.EXTRA_TIME: 120}
_LONG = re.compile(r"\btests?\b|first.?class|\bfc\b|mdm|multi.?day|\b[345].day\b", re.IGNORECASE)
_OVERS = (
    (re.compile(r"t20|twenty.?20|\bit20\b", re.IGNORECASE), 20),
    (re.compile(r"t10\b", re.IGNORECASE), 10),
    (re.compile(r"\bodi?s?\b|one.?day|list.?a|\b50.over", re.IGNORECASE), 50),
)
_MINUTE = re.compile(r"(\d{1,3})(?:\+\d{1,2})?'?")
LONG_BREAKS = frozenset({Phase.INNINGS_BREAK, Phase.LUNCH, Phase.TEA, Phase.STUMPS, Phase.HALFTIME})


class ScoreProgress(StrEnum):
    IN_PROGRESS = "in progress"
    INNINGS_FINISHED = "innings finished"  # and another one follows
    MATCH_FINISHED = "match finished"


# The score that makes a milestone at exactly so many polls without a change, so that it is one only once.
UNANNOUNCED = {10: ScoreProgress.INNINGS_FINISHED, 40: ScoreProgress.MATCH_FINISHED}


def is_milestone(before: State, after: State) -> bool:
    """Returns whether the next innings has begun between two states of a live match, or a break longer than drinks."""
    if before.get("status") != Status.LIVE or after.get("status") != Status.LIVE:
        return False
    if (after.get("current_innings") or 0) > (before.get("current_innings") or 0) > 0:
        return True
    return after.get("phase") in LONG_BREAKS and before.get("phase") not in LONG_BREAKS


def is_unannounced_milestone(state: State, *, unchanged_polls: int) -> bool:
    """Returns whether the innings or the match is finished by the score while the source has announced no break."""
    if unchanged_polls not in UNANNOUNCED or state.get("phase") in LONG_BREAKS:
        return False
    return score_progress(state) is UNANNOUNCED[unchanged_polls]


def score_progress(state: State) -> ScoreProgress:
    """Returns what the score of a state (plain JSON values) says about the innings and the match."""
    if state.get("status") != Status.LIVE:
        return ScoreProgress.IN_PROGRESS
    if state.get("result"):
        return ScoreProgress.MATCH_FINISHED
    return _football(state) if state.get("sport") == Sport.FOOTBALL else _cricket(state)


def _football(state: State) -> ScoreProgress:
    """The last minute is reached. Added time follows it, so it means the end only once nothing changes any more."""
    minute = _MINUTE.fullmatch(str(state.get("clock") or ""))
    last = FULL_TIME.get(state.get("phase") or Phase.PLAY)
    is_finished = minute is not None and last is not None and int(minute[1]) >= last
    return ScoreProgress.MATCH_FINISHED if is_finished else ScoreProgress.IN_PROGRESS


def _cricket(state: State) -> ScoreProgress:
    innings: Sequence[State] = state.get("innings") or ()
    if not innings or any(one.get("is_super_over") for one in innings):
        return ScoreProgress.IN_PROGRESS
    last, kind = innings[-1], str((state.get("metadata") or {}).get("match_type") or "")
    most_overs = next((overs for pattern, overs in _OVERS if pattern.search(kind)), None)
    is_long = most_overs is None and (bool(_LONG.search(kind)) or len(innings) > 2)
    is_last = len(innings) >= (4 if is_long else 2) and (is_long or bool(most_overs) or bool(last.get("target")))
    if is_last and _is_won(innings):
        return ScoreProgress.MATCH_FINISHED
    if not _is_closed(last, most_overs):
        return ScoreProgress.IN_PROGRESS
    is_match_finished = is_last or (is_long and _is_lost(innings))
    return ScoreProgress.MATCH_FINISHED if is_match_finished else ScoreProgress.INNINGS_FINISHED


def _is_closed(innings: State, most_overs: int | None) -> bool:
    overs = int(str(innings.get("overs") or "0").partition(".")[0])
    is_bowled = most_overs is not None and overs >= most_overs
    return bool(innings.get("is_declared")) or int(innings.get("wickets") or 0) >= ALL_OUT or is_bowled


def _is_won(innings: Sequence[State]) -> bool:
    """Returns whether the side that bats last has won. Its stated target comes first: rain may have changed it."""
    last = innings[-1]
    if last.get("target"):
        return int(last["runs"]) >= int(last["target"])
    own, others = _totals(innings)
    return own > others


def _is_lost(innings: Sequence[State]) -> bool:
    """Returns whether the side has lost by an innings: out twice with fewer runs than the other side's one innings."""
    own, others = _totals(innings)
    batted = sum(one.get("team") == innings[-1].get("team") for one in innings)
    return len(innings) == 3 and batted == 2 and own < others


def _totals(innings: Sequence[State]) -> tuple[int, int]:
    side = innings[-1].get("team")
    own = sum(int(one["runs"]) for one in innings if one.get("team") == side)
    return own, sum(int(one["runs"]) for one in innings) - own
