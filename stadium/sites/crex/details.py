"""Details of a match (`getMatchMetaData`, `getPostMatchDataV2`), and the pages of `getFixture`."""

from __future__ import annotations

from typing import Any

from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, iso
from stadium.sites.crex.listing import list_item
from stadium.sites.crex.live import match_number, series_key

FIXTURES_A_PAGE = 20


def meta(match: Match, start_wall: float) -> dict[str, Any]:
    return {
        "ft": 2,
        "mn": match_number(match),
        "s": 1,
        "t": iso(start_wall),
        "v": match.venue,
        "sf": series_key(match),
        "dt": 1_125_900_013_000_000 + match.number,
    }


def named_meta(match: Match, start_wall: float) -> dict[str, Any]:
    first, second = match.teams
    return meta(match, start_wall) | {"team1": first.name, "team2": second.name}


def post_match(state: CricketState) -> dict[str, Any]:
    """Toss and result; `chose_to` is 1 for the bat."""
    winner = state.toss_winner
    return {
        "toss_team": winner.name if winner else "",
        "chose_to": (1 if state.toss_bats else 2) if winner else 0,
        "result": state.result_long,
    }


def fixtures(simulation: Simulation, site: str, page: int) -> list[dict[str, Any]]:
    """Returns twenty matches: from page 0 on unfinished ones, earliest first; below 0 finished ones, latest first."""
    now = simulation.clock.now()
    known = [
        match
        for slot in simulation.programme.slots
        if site in slot.sites
        for match in _around(simulation, slot, site, now)
    ]
    if page < 0:
        chosen = sorted((m for m in known if m.ends_at <= now), key=lambda m: (-m.ends_at, m.number))
    else:
        chosen = sorted((m for m in known if m.ends_at > now), key=lambda m: (m.starts_at, m.number))
    start = FIXTURES_A_PAGE * (page if page >= 0 else -page - 1)
    return [list_item(simulation, match) | {"mf": match.key} for match in chosen[start : start + FIXTURES_A_PAGE]]


def _around(simulation: Simulation, slot: Any, site: str, now: float) -> list[Match]:
    """Returns the previous, current and next match of a slot, if they have pages."""
    if slot.recording:
        return [simulation.programme.match(slot, 0, site)]
    turn = simulation.programme.current_turn(slot, now)
    matches = [simulation.programme.match(slot, other, site) for other in (turn - 1, turn, turn + 1) if other >= 0]
    return [match for match in matches if simulation.programme.find(match.number, now)]
