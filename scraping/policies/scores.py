"""What the score alone says of a match: that it goes on, that an innings is done, that all of it is. Pure.

Guards against a source whose words lag behind its numbers: "live" hours after the last ball. It decides nothing about
what is served, only how closely somebody looks; so it may err, and says that a match goes on where it cannot tell.
"""

from __future__ import annotations

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


class ScoreSays(StrEnum):
    GOES_ON = "goes on"
    INNINGS_DONE = "innings done"  # and another one follows
    MATCH_DONE = "match done"


def read_score(state: State) -> ScoreSays:
    """`state`: a match as plain JSON values."""
    if state.get("status") != Status.LIVE:
        return ScoreSays.GOES_ON
    if state.get("result"):
        return ScoreSays.MATCH_DONE
    return _football(state) if state.get("sport") == Sport.FOOTBALL else _cricket(state)


def _football(state: State) -> ScoreSays:
    """The last minute has come. Added time runs on after it: only where nothing moves any more this means the end."""
    minute = _MINUTE.fullmatch(str(state.get("clock") or ""))
    last = FULL_TIME.get(state.get("phase") or Phase.PLAY)
    is_done = minute is not None and last is not None and int(minute[1]) >= last
    return ScoreSays.MATCH_DONE if is_done else ScoreSays.GOES_ON


def _cricket(state: State) -> ScoreSays:
    innings: Sequence[State] = state.get("innings") or ()
    if not innings or any(one.get("is_super_over") for one in innings):
        return ScoreSays.GOES_ON
    last, kind = innings[-1], str((state.get("metadata") or {}).get("match_type") or "")
    most_overs = next((overs for pattern, overs in _OVERS if pattern.search(kind)), None)
    is_long = most_overs is None and (bool(_LONG.search(kind)) or len(innings) > 2)
    is_last = len(innings) >= (4 if is_long else 2) and (is_long or bool(most_overs) or bool(last.get("target")))
    if is_last and _is_won(innings):
        return ScoreSays.MATCH_DONE
    if not _is_closed(last, most_overs):
        return ScoreSays.GOES_ON
    return ScoreSays.MATCH_DONE if is_last or (is_long and _is_lost(innings)) else ScoreSays.INNINGS_DONE


def _is_closed(innings: State, most_overs: int | None) -> bool:
    overs = int(str(innings.get("overs") or "0").partition(".")[0])
    is_bowled = most_overs is not None and overs >= most_overs
    return bool(innings.get("is_declared")) or int(innings.get("wickets") or 0) >= ALL_OUT or is_bowled


def _is_won(innings: Sequence[State]) -> bool:
    """Has the side that bats last what it needs? Its printed target counts first: rain may have changed it."""
    last = innings[-1]
    if last.get("target"):
        return int(last["runs"]) >= int(last["target"])
    own, others = _totals(innings)
    return own > others


def _is_lost(innings: Sequence[State]) -> bool:
    """By an innings: the side was out twice, and has not as much as the other made in one."""
    own, others = _totals(innings)
    batted = sum(one.get("team") == innings[-1].get("team") for one in innings)
    return len(innings) == 3 and batted == 2 and own < others


def _totals(innings: Sequence[State]) -> tuple[int, int]:
    """Runs of the side that bats last, and of the other one."""
    side = innings[-1].get("team")
    own = sum(int(one["runs"]) for one in innings if one.get("team") == side)
    return own, sum(int(one["runs"]) for one in innings) - own
