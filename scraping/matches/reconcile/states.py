"""Match states as plain JSON values: which side is which, what changed, and whether a score went backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scraping import names
from scraping.names import NO_ALIASES, Aliases, TeamName
from victoryline.lib.times import as_utc_iso

State = Mapping[str, Any]

EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})
SIDES = ("team_a", "team_b")
OTHER = dict(zip(SIDES, SIDES[::-1], strict=True))
# Fields that must be consistent with each other.
PLAY = ("status", "phase", "score", "innings", "current_innings", "clock", "last_event", "result")
MERGED = ("metadata", "score")  # objects that a partial state may have half of


@dataclass(frozen=True)
class SourceView:
    source: str
    weight: int
    captured_at: datetime
    state: State
    is_crossed: bool = False  # it names the sides in the other order than the match does
    unmoved_seconds: float | None = None  # for at least so long its play has not changed; None: it changes, or unknown


@dataclass(frozen=True)
class FieldConflict:
    """Two sources differ in one field by more than a delay would explain."""

    field: str  # "innings.1.runs", "score.team_a.goals", "status", "teams.team_b", "toss.winner", "start_time"
    chosen_source: str
    chosen_value: Any
    other_source: str
    other_value: Any
    difference_percent: float | None = None  # None where it is no number


@dataclass(frozen=True)
class Reconciled:
    state: dict[str, Any]
    provenance: dict[str, dict[str, Any]]
    conflicts: tuple[FieldConflict, ...] = ()


def only_source(view: SourceView) -> Reconciled:
    state = oriented(view.state, is_crossed=view.is_crossed)
    return Reconciled(dict(state), {field: provenance_entry(view) for field in state})


def provenance_entry(view: SourceView, confidence: float = 1.0) -> dict[str, Any]:
    return {"source": view.source, "confidence": confidence, "timestamp": as_utc_iso(view.captured_at)}


def is_empty(value: Any) -> bool:
    """Returns whether a value is absent, blank, or an object of nothing but such values."""
    return value in EMPTY_VALUES or (isinstance(value, Mapping) and all(is_empty(one) for one in value.values()))


def has_play_changed(before: State, after: State) -> bool:
    """Returns whether a field of the play differs between two states of one source."""
    return any(before.get(field) != after.get(field) for field in PLAY)


def delta(before: State, after: State) -> dict[str, Any]:
    """Returns the top-level fields of `after` that differ from `before`; a removed field is null."""
    if not before:
        return {"_diff_type": "initial", "_sequence_delta": 1, **after}
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    removed = {name: None for name in before if name not in after}
    return {"_diff_type": "update", "_sequence_delta": 1, **changed, **removed}


def goes_backwards(before: State, after: State) -> bool:
    """Returns whether `after` has fewer runs, wickets, goals or innings than `before`, or reopens an ended match."""
    if before.get("status") in ("completed", "abandoned") and after.get("status") in ("live", "upcoming"):
        return True
    if before.get("status") == "live" and after.get("status") == "upcoming":
        return True
    return _progress(after) < _progress(before) or any(_goals(after, side) < _goals(before, side) for side in SIDES)


def progress_summary(state: State) -> dict[str, Any]:
    """Returns the values that `goes_backwards` compares; equal summaries mean the same score at any clock time."""
    goals = [_goals(state, side) for side in SIDES]
    return {"status": state.get("status"), "progress": _progress(state), "goals": goals}


def _progress(state: State) -> tuple[int, ...]:
    """Grows with every ball: the number of innings, then the sum of runs and wickets."""
    innings = state.get("innings") or ()
    if not innings:
        return (0,)
    total = sum(int(one["runs"]) + int(one["wickets"]) for one in innings)
    return (len(innings), total)


def _goals(state: State, side: str) -> int:
    return int(((state.get("score") or {}).get(side) or {}).get("goals") or 0)


def is_crossed(state: State, match_state: State, aliases: Aliases = NO_ALIASES) -> bool | None:
    """Returns whether a state names the sides in the other order than the match; None if the names don't show it."""
    own, match = ([team_name(one, side, aliases) for side in SIDES] for one in (state, match_state))
    straight = names.similarity(own[0], match[0]) + names.similarity(own[1], match[1])
    crossed = names.similarity(own[0], match[1]) + names.similarity(own[1], match[0])
    return None if straight == crossed else crossed > straight


def team_name(state: State, side: str, aliases: Aliases = NO_ALIASES) -> TeamName:
    team = (state.get("teams") or {}).get(side) or {}
    return names.team(str(team.get("name") or ""), str(team.get("short_name") or ""), aliases)


def oriented(state: State, *, is_crossed: bool) -> State:
    """Returns a source's state with the sides in the order of the match."""
    return swap_sides(state) if is_crossed else state


def swap_sides(state: State) -> dict[str, Any]:
    swapped = dict(state)
    for name in ("teams", "score"):
        if state.get(name):
            swapped[name] = {side: state[name].get(OTHER[side]) for side in SIDES}
    swapped["innings"] = [{**one, "team": OTHER[one["team"]]} for one in state.get("innings") or ()]
    return swapped


def swap_slot_sides(slot: str) -> str:
    """Returns the slot of an event of a crossed source: "g:team_a:1" becomes "g:team_b:1"."""
    return ":".join(OTHER.get(part, part) for part in slot.split(":"))


def swap_detail_sides(detail: Mapping[str, Any], *, has_goals: bool) -> dict[str, Any]:
    """Returns an event's detail with the sides swapped, and with `has_goals` also its score "2-1"."""
    swapped = {name: OTHER.get(value, value) if isinstance(value, str) else value for name, value in detail.items()}
    score = swapped.get("score")
    if has_goals and isinstance(score, str) and score.count("-") == 1:
        swapped["score"] = "-".join(score.split("-")[::-1])
    return swapped


def fill_gaps(partial: State, known: State) -> dict[str, Any]:
    """Returns a partial state (of the page's markup) completed with known values; sides keep their order and names."""
    is_straight = _are_same_teams(partial, known, SIDES)
    if not is_straight and _are_same_teams(partial, known, SIDES[::-1]):
        partial, is_straight = swap_sides(partial), True
    filled = _laid_over(known, partial)
    for name in MERGED:
        filled[name] = _laid_over(known.get(name) or {}, partial.get(name) or {})
    if known.get("teams") and (not _names_both_teams(partial) or is_straight):
        filled["teams"] = known["teams"]
        filled["title"] = known.get("title") or partial.get("title")
    return filled


def shows_other_teams(partial: State, known: State) -> bool:
    """Returns whether a partial state names two teams, and not those of the match."""
    if not (known.get("teams") and _names_both_teams(partial)):
        return False
    return not any(_are_same_teams(partial, known, sides) for sides in (SIDES, SIDES[::-1]))


def _are_same_teams(partial: State, known: State, sides: Sequence[str]) -> bool:
    """Returns whether the partial state's teams are those known as `sides`; one name in common is enough."""
    pairs = zip(SIDES, sides, strict=True)
    return all(_names_of(partial, one) & _names_of(known, other) for one, other in pairs)


def _names_of(state: State, side: str) -> set[str]:
    team = (state.get("teams") or {}).get(side) or {}
    return {str(team[name]).casefold() for name in ("name", "short_name") if team.get(name)}


def _laid_over(known: State, partial: State) -> dict[str, Any]:
    return {**known, **{name: value for name, value in partial.items() if name not in known or not is_empty(value)}}


def _names_both_teams(state: State) -> bool:
    teams = state.get("teams") or {}
    return all(teams.get(side, {}).get("short_name") for side in SIDES)
