"""Turns of a match: the next innings, a break that leaves time to look at everything, an end that is overdue. Pure.

They are told by the source, or they show in what does not move any more (see phases).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.payloads import Phase, Status
from scraping.policies.phases import QUIET_IN_BREAK_POLLS, QUIET_IN_PLAY_POLLS
from scraping.policies.scores import ScoreSays, read_score

LONG_BREAKS = frozenset({Phase.INNINGS_BREAK, Phase.LUNCH, Phase.TEA, Phase.STUMPS, Phase.HALFTIME})
# At exactly so many polls without news, so that one silence is one turn: what the score must say then.
SILENT_TURNS = {QUIET_IN_BREAK_POLLS: ScoreSays.INNINGS_DONE, QUIET_IN_PLAY_POLLS: ScoreSays.MATCH_DONE}


def is_turn(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Has the next innings begun between these two states of a live match, or a break longer than drinks?"""
    if before.get("status") != Status.LIVE or after.get("status") != Status.LIVE:
        return False
    if (after.get("current_innings") or 0) > (before.get("current_innings") or 0) > 0:
        return True
    return after.get("phase") in LONG_BREAKS and before.get("phase") not in LONG_BREAKS


def may_be_silent_turn(unchanged_polls: int) -> bool:
    """Is this the poll at which the score has to be looked at?"""
    return unchanged_polls in SILENT_TURNS


def is_silent_turn(state: Mapping[str, Any], *, unchanged_polls: int) -> bool:
    """Does the source keep to itself that the innings is done, or the match? A break that it has told was a turn."""
    is_told = state.get("phase") in LONG_BREAKS
    return not is_told and unchanged_polls in SILENT_TURNS and read_score(state) is SILENT_TURNS[unchanged_polls]
