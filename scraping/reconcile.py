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
SIDES = ("team_a", "team_b")


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
    """A partial state (read from the page's markup) completed with what was known, so that it erases nothing.

    A page shows short names, and first whoever bats: the sides stay where they were, with the names they had.
    """
    if _is_crossed(partial, known):
        partial = _with_sides_exchanged(partial)
    filled = _laid_over(known, partial)
    for name in MERGED:
        filled[name] = _laid_over(known.get(name) or {}, partial.get(name) or {})
    if known.get("teams") and (not _names_both_teams(partial) or _are_same(partial, known, SIDES)):
        filled["teams"] = known["teams"]
        filled["title"] = known.get("title") or partial.get("title")
    return filled


def shows_other_teams(partial: State, known: State) -> bool:
    """Does a partial state name two teams, and not those of the match?"""
    if not (known.get("teams") and _names_both_teams(partial)):
        return False
    return not (_are_same(partial, known, SIDES) or _is_crossed(partial, known))


def _is_crossed(partial: State, known: State) -> bool:
    return not _are_same(partial, known, SIDES) and _are_same(partial, known, SIDES[::-1])


def _are_same(partial: State, known: State, sides: Sequence[str]) -> bool:
    """Are the partial state's teams those that are known as these sides? One name of each in common is enough."""
    pairs = zip(SIDES, sides, strict=True)
    return all(_names_of(partial, one) & _names_of(known, other) for one, other in pairs)


def _names_of(state: State, side: str) -> set[str]:
    team = (state.get("teams") or {}).get(side) or {}
    return {str(team[name]).casefold() for name in ("name", "short_name") if team.get(name)}


def _with_sides_exchanged(state: State) -> dict[str, Any]:
    other = dict(zip(SIDES, SIDES[::-1], strict=True))
    exchanged = dict(state)
    for name in ("teams", "score"):
        if state.get(name):
            exchanged[name] = {side: state[name].get(other[side]) for side in SIDES}
    exchanged["innings"] = [{**one, "team": other[one["team"]]} for one in state.get("innings") or ()]
    return exchanged


def _laid_over(known: State, partial: State) -> dict[str, Any]:
    return {**known, **{name: value for name, value in partial.items() if name not in known or not is_empty(value)}}


def _names_both_teams(state: State) -> bool:
    teams = state.get("teams") or {}
    return all(teams.get(side, {}).get("short_name") for side in SIDES)


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
