"""What surrounds a match: `getMatchMetaData`, `getPostMatchDataV2`, and the pages of `getFixture`."""

from __future__ import annotations

from typing import Any

from stadium.crex.listing import list_item
from stadium.crex.live import match_number, series_key
from stadium.cricket.state import CricketState
from stadium.programme import Match
from stadium.world import World, iso

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


def fixtures(world: World, site: str, page: int) -> list[dict[str, Any]]:
    """Twenty matches: from page 0 on what is not over, soonest first; below 0 what is, latest first."""
    now = world.clock.now()
    known = [match for slot in world.programme.slots if site in slot.sites for match in _around(world, slot, site, now)]
    if page < 0:
        chosen = sorted((m for m in known if m.ends_at <= now), key=lambda m: (-m.ends_at, m.number))
    else:
        chosen = sorted((m for m in known if m.ends_at > now), key=lambda m: (m.starts_at, m.number))
    start = FIXTURES_A_PAGE * (page if page >= 0 else -page - 1)
    return [_fixture(world, match) for match in chosen[start : start + FIXTURES_A_PAGE]]


def _around(world: World, slot: Any, site: str, now: float) -> list[Match]:
    """The last, the present and the next match of a slot, as far as they have pages."""
    if slot.is_once:
        return [world.programme.match(slot, 0, site)]
    turn = world.programme.current_turn(slot, now)
    matches = [world.programme.match(slot, other, site) for other in (turn - 1, turn, turn + 1) if other >= 0]
    return [match for match in matches if world.programme.find(match.number, now)]


def _fixture(world: World, match: Match) -> dict[str, Any]:
    state = world.cricket(match, world.index(match))
    return list_item(match, state, world.start_wall(match), world.clock.wall_at(match.ends_at)) | {"mf": match.key}
