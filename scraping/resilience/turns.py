"""Turns of a match: the next innings, or a break that leaves time to look at everything. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scraping.payloads import Phase, Status

LONG_BREAKS = frozenset({Phase.INNINGS_BREAK, Phase.LUNCH, Phase.TEA, Phase.STUMPS, Phase.HALFTIME})


def is_turn(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Has the next innings begun between these two states of a live match, or a break longer than drinks?"""
    if before.get("status") != Status.LIVE or after.get("status") != Status.LIVE:
        return False
    if (after.get("current_innings") or 0) > (before.get("current_innings") or 0) > 0:
        return True
    return after.get("phase") in LONG_BREAKS and before.get("phase") not in LONG_BREAKS
