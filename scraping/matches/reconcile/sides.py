"""Which team is which: sources do not agree on who is named first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scraping import names
from scraping.matches.reconcile.views import State, is_empty
from scraping.names import NO_ALIASES, Aliases, TeamName

SIDES = ("team_a", "team_b")
OTHER = dict(zip(SIDES, SIDES[::-1], strict=True))
MERGED = ("metadata", "score")  # where a partial state has half of it, the other half stays


def orient(state: State, known: State, aliases: Aliases = NO_ALIASES) -> bool | None:
    """Are the state's sides exchanged against the match's? None where the names do not tell."""
    own, match = ([named(one, side, aliases) for side in SIDES] for one in (state, known))
    straight = names.sameness(own[0], match[0]) + names.sameness(own[1], match[1])
    crossed = names.sameness(own[0], match[1]) + names.sameness(own[1], match[0])
    return None if straight == crossed else crossed > straight


def named(state: State, side: str, aliases: Aliases = NO_ALIASES) -> TeamName:
    team = (state.get("teams") or {}).get(side) or {}
    return names.team(str(team.get("name") or ""), str(team.get("short_name") or ""), aliases)


def with_sides_exchanged(state: State) -> dict[str, Any]:
    """The same state with its teams the other way round."""
    turned = dict(state)
    for name in ("teams", "score"):
        if state.get(name):
            turned[name] = {side: state[name].get(OTHER[side]) for side in SIDES}
    turned["innings"] = [{**one, "team": OTHER[one["team"]]} for one in state.get("innings") or ()]
    return turned


def exchanged_slot(slot: str) -> str:
    """The name of a happening, of a source that has the sides the other way round: "g:team_a:1" is "g:team_b:1"."""
    return ":".join(OTHER.get(part, part) for part in slot.split(":"))


def exchanged_detail(detail: Mapping[str, Any], *, has_goals: bool) -> dict[str, Any]:
    """What an event says besides, of such a source: whose it is, and with `has_goals` the score "2-1" after it."""
    turned = {name: OTHER.get(value, value) if isinstance(value, str) else value for name, value in detail.items()}
    score = turned.get("score")
    if has_goals and isinstance(score, str) and score.count("-") == 1:
        turned["score"] = "-".join(score.split("-")[::-1])
    return turned


def fill_gaps(partial: State, known: State) -> dict[str, Any]:
    """A partial state (read from the page's markup) completed with what was known, so that it erases nothing.

    A page shows short names, and first whoever bats: the sides stay where they were, with the names they had.
    """
    if _is_crossed(partial, known):
        partial = with_sides_exchanged(partial)
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


def _laid_over(known: State, partial: State) -> dict[str, Any]:
    return {**known, **{name: value for name, value in partial.items() if name not in known or not is_empty(value)}}


def _names_both_teams(state: State) -> bool:
    teams = state.get("teams") or {}
    return all(teams.get(side, {}).get("short_name") for side in SIDES)
