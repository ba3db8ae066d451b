"""Two states of one match, one after the other: what differs, and whether it went backwards."""

from __future__ import annotations

from typing import Any

from scraping.matches.reconcile.sides import SIDES
from scraping.matches.reconcile.views import State


def delta(before: State, after: State, *, sequence_delta: int) -> dict[str, Any]:
    """The top-level fields of `after` that differ from `before`; a field that has gone is null."""
    if not before:
        return {"_diff_type": "initial", "_sequence_delta": sequence_delta, **after}
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    gone = {name: None for name in before if name not in after}
    return {"_diff_type": "update", "_sequence_delta": sequence_delta, **changed, **gone}


def goes_backwards(before: State, after: State) -> bool:
    """Does `after` take back runs, wickets, goals, an innings, or the end of the match?"""
    if before.get("status") in ("completed", "abandoned") and after.get("status") in ("live", "upcoming"):
        return True
    if before.get("status") == "live" and after.get("status") == "upcoming":
        return True
    return _progress(after) < _progress(before) or _any_goal_lost(before, after)


def standing(state: State) -> dict[str, Any]:
    """What `goes_backwards` looks at: equal standings tell the same score, whatever the clock says."""
    goals = [_goals(state, side) for side in SIDES]
    return {"status": state.get("status"), "progress": _progress(state), "goals": goals}


def _progress(state: State) -> tuple[int, ...]:
    """Grows with every ball: the number of innings, then the latest one's runs and wickets."""
    innings = state.get("innings") or ()
    if not innings:
        return (0,)
    total = sum(int(one["runs"]) + int(one["wickets"]) for one in innings)
    return (len(innings), total)


def _any_goal_lost(before: State, after: State) -> bool:
    return any(_goals(after, side) < _goals(before, side) for side in SIDES)


def _goals(state: State, side: str) -> int:
    return int(((state.get("score") or {}).get(side) or {}).get("goals") or 0)
