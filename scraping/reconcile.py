"""One truth out of what the sources say, and the difference between two truths.

Pure functions over plain JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from victoryline.lib.times import as_utc_iso

State = Mapping[str, Any]

EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})
MERGED = ("metadata", "score")  # where a partial state has half of it, the other half stays


@dataclass(frozen=True)
class SourceView:
    """The latest state as one source tells it."""

    source: str
    weight: int
    captured_at: datetime
    state: State


@dataclass(frozen=True)
class Reconciled:
    state: dict[str, Any]
    provenance: dict[str, dict[str, Any]]


def reconcile(views: Sequence[SourceView]) -> Reconciled:
    """Field by field: the heaviest source that has it; among equals the newest."""
    ranked = sorted(views, key=lambda view: (view.weight, view.captured_at), reverse=True)
    state: dict[str, Any] = {}
    provenance: dict[str, dict[str, Any]] = {}
    for field in dict.fromkeys(name for view in ranked for name in view.state):
        view = next((v for v in ranked if not is_empty(v.state.get(field))), ranked[0])
        state[field] = view.state.get(field)
        provenance[field] = {"source": view.source, "confidence": 1.0, "timestamp": as_utc_iso(view.captured_at)}
    return Reconciled(state, provenance)


def is_empty(value: Any) -> bool:
    """Says nothing: absent, blank, or an object of nothing but such values."""
    return value in EMPTY_VALUES or (isinstance(value, Mapping) and all(is_empty(one) for one in value.values()))


def fill_gaps(partial: State, known: State) -> dict[str, Any]:
    """A partial state (read from the page's markup) completed with what was known, so that it erases nothing."""
    filled = _laid_over(known, partial)
    for name in MERGED:
        filled[name] = _laid_over(known.get(name) or {}, partial.get(name) or {})
    if known.get("teams") and not _names_both_teams(partial):
        filled["teams"] = known["teams"]
    return filled


def _laid_over(known: State, partial: State) -> dict[str, Any]:
    return {**known, **{name: value for name, value in partial.items() if name not in known or not is_empty(value)}}


def _names_both_teams(state: State) -> bool:
    teams = state.get("teams") or {}
    return all(teams.get(side, {}).get("short_name") for side in ("team_a", "team_b"))


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
    goals = [_goals(state, side) for side in ("team_a", "team_b")]
    return {"status": state.get("status"), "progress": _progress(state), "goals": goals}


def _progress(state: State) -> tuple[int, ...]:
    """Grows with every ball: the number of innings, then the latest one's runs and wickets."""
    innings = state.get("innings") or ()
    if not innings:
        return (0,)
    total = sum(int(one["runs"]) + int(one["wickets"]) for one in innings)
    return (len(innings), total)


def _any_goal_lost(before: State, after: State) -> bool:
    return any(_goals(after, side) < _goals(before, side) for side in ("team_a", "team_b"))


def _goals(state: State, side: str) -> int:
    return int(((state.get("score") or {}).get(side) or {}).get("goals") or 0)
