"""Finds differences between sources that are too large to be explained by a delay of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scraping import names
from scraping.matches.reconcile.states import SIDES, FieldConflict, SourceView, State, is_empty, team_name
from scraping.names import Aliases

TOLERATED_PERCENT = 5.0
LATE_BALLS = 12  # a source up to this far behind is late, not wrong; farther behind, it is stuck
TOLERATED_START = timedelta(minutes=15)
ENDED = ("completed", "abandoned")

Difference = tuple[str, Any, Any, float | None]  # field, chosen value, other value, percent


def find_conflicts(
    state: State,
    play: SourceView,
    views: Sequence[SourceView],
    provenance: Mapping[str, Mapping[str, Any]],
    aliases: Aliases,
) -> tuple[FieldConflict, ...]:
    """Compares the chosen state with each source that counts. `play`: the source of the score."""
    return tuple(
        FieldConflict(field, source, chosen, view.source, other, percent)
        for view in views
        for field, chosen, other, percent in _differences(state, view.state, aliases)
        if (source := provenance.get(field.partition(".")[0], {}).get("source", play.source)) != view.source
    )


def _differences(state: State, other: State, aliases: Aliases) -> Iterator[Difference]:
    own, their = state.get("status"), other.get("status")
    # One has the match as over and the other does not, or they differ in how it ended.
    if own and their and own != their and (own in ENDED or their in ENDED):
        yield "status", own, their, None
    yield from _score(state, other)
    yield from _names(state, other, aliases)
    yield from _toss(state, other, aliases)
    own, their = state.get("start_time"), other.get("start_time")
    if own and their and abs(datetime.fromisoformat(own) - datetime.fromisoformat(their)) > TOLERATED_START:
        yield "start_time", own, their, None


def _score(state: State, other: State) -> Iterator[Difference]:
    """Compares innings that both have (a missing one has not begun there yet), or the score where one has none."""
    if not is_empty(state.get("innings")) and not is_empty(other.get("innings")):
        theirs = {one["number"]: one for one in other["innings"]}
        for one in state["innings"]:
            if (their := theirs.get(one["number"])) is not None:
                yield from _runs(f"innings.{one['number']}", one, their)
        return
    for side in SIDES:
        own, their = (_part(_part(one, "score"), side) for one in (state, other))
        yield from _runs(f"score.{side}", own, their)
        yield from _number(f"score.{side}.goals", own.get("goals"), their.get("goals"))


def _runs(field: str, own: Mapping[str, Any], their: Mapping[str, Any]) -> Iterator[Difference]:
    if not (_is_late(own, their) or _is_late(their, own)):
        for name in ("runs", "wickets"):
            yield from _number(f"{field}.{name}", own.get(name), their.get(name))


def _is_late(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether the one is in the place where the other was some balls ago."""
    balls = [_balls(side.get("overs")) for side in (one, other)]
    if balls[0] is None or balls[1] is None or not 0 < balls[1] - balls[0] <= LATE_BALLS:
        return False
    return all((one.get(name) or 0) <= (other.get(name) or 0) for name in ("runs", "wickets"))


def _balls(overs: Any) -> int | None:
    """Returns the number of balls: "14.4" is 88."""
    whole, _, rest = str(overs or "").partition(".")
    return int(whole) * 6 + int(rest or 0) if whole.isdecimal() and (rest or "0").isdecimal() else None


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _number(field: str, one: int | None, other: int | None) -> Iterator[Difference]:
    if one is None or other is None or one == other:
        return
    percent = round(abs(one - other) * 100 / max(one, other), 1)
    if percent > TOLERATED_PERCENT:
        yield field, one, other, percent


def _names(state: State, other: State, aliases: Aliases) -> Iterator[Difference]:
    for side in SIDES:
        if _part(_part(state, "teams"), side) == _part(_part(other, "teams"), side):
            continue
        own, their = team_name(state, side, aliases), team_name(other, side, aliases)
        if own.is_known and their.is_known and not names.similarity(own, their):
            yield f"teams.{side}", state["teams"][side]["name"], other["teams"][side]["name"], None


def _toss(state: State, other: State, aliases: Aliases) -> Iterator[Difference]:
    """Compares by side: one source has the winner's full name and the other its short one."""
    winners = [str(_part(one, "toss").get("winner") or "") for one in (state, other)]
    if not all(winners) or winners[0] == winners[1]:
        return
    sides = [_side_of(winner, (state, other), aliases) for winner in winners]
    if all(sides) and sides[0] != sides[1]:
        yield "toss.winner", winners[0], winners[1], None


def _side_of(name: str, states: Sequence[State], aliases: Aliases) -> str:
    team = names.team(name, "", aliases)
    found = {side: max(names.similarity(team, team_name(one, side, aliases)) for one in states) for side in SIDES}
    best = max(SIDES, key=lambda side: found[side])
    return best if found[best] and len(set(found.values())) > 1 else ""


def as_text(value: Any) -> str:
    """Returns a value of a state as text, short enough for a table."""
    if isinstance(value, Mapping):
        if "winner" in value:
            return f"{value['winner']} {value.get('decision') or ''}".strip()
        parts = {name: as_text(one) for name, one in value.items() if not is_empty(one)}
        label = parts.get("name") or parts.get("description")
        return label or ", ".join(f"{name} {part}" for name, part in parts.items())
    if isinstance(value, list | tuple):
        return "; ".join(_innings_as_text(one) if isinstance(one, Mapping) else str(one) for one in value)
    return "" if value is None else str(value)


def _innings_as_text(one: Mapping[str, Any]) -> str:
    if "runs" in one and "wickets" in one:
        return f"{one['runs']}/{one['wickets']} ({one.get('overs', '')})"
    return as_text(one)
