"""Routes of the site's football section."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from stadium.assets import asset
from stadium.context import STADIUM
from stadium.endpoints import Endpoint
from stadium.football.state import FootballState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, State
from stadium.sites.sofascore.football_event import ROUNDS, SEASON_ID, TOURNAMENT_ID, event, tournament
from stadium.sites.sofascore.football_incidents import incidents
from stadium.sites.sofascore.football_lineups import lineups
from stadium.sites.sofascore.section import LONG_CACHE, Section, json_response, not_found


def endpoints() -> list[Endpoint]:
    one = f"{SECTION.api}/event/{{id}}"
    league = f"{SECTION.api}/unique-tournament/{{tournament}}"
    about = SECTION.about_match
    return [
        *SECTION.endpoints(),
        Endpoint("sofascore", "feed", "GET", f"{one}/incidents", about(_incidents, LONG_CACHE), True),
        Endpoint("sofascore", "lineups", "GET", f"{one}/lineups", about(_lineups, "max-age=10, s-maxage=3600"), True),
        Endpoint("sofascore", "list", "GET", f"{league}/season/{{season}}/events/round/{{round}}", round_events, True),
        Endpoint("sofascore", "asset", "GET", "/sofascore/assets/{file:.+}", asset),
    ]


def _event(simulation: Simulation, match: Match, detail: bool) -> dict[str, Any]:
    return event(simulation, match, simulation.football(match), detail=detail)


def _incidents(simulation: Simulation, match: Match) -> dict[str, Any]:
    return incidents(match, simulation.football(match))


def _lineups(simulation: Simulation, match: Match) -> dict[str, Any] | None:
    return lineups(match, simulation.football(match), simulation.start_wall(match) - simulation.clock.wall())


async def round_events(request: web.Request) -> web.Response:
    """The matches of a round in the current season."""
    simulation, info = request.app[STADIUM].simulation, request.match_info
    number = int(info["round"]) if info["round"].isdigit() else 0
    if (info["tournament"], info["season"]) != (str(TOURNAMENT_ID), str(SEASON_ID)) or not 1 <= number <= ROUNDS:
        return not_found()
    matches = []
    for slot in simulation.programme.slots:
        if slot.sport == "football":
            first = simulation.programme.current_turn(slot, simulation.clock.now()) // ROUNDS * ROUNDS
            matches.append(simulation.programme.match(slot, first + number - 1))
    return json_response(request, SECTION.events(simulation, matches), "max-age=60")


def _row_score(state: State) -> str:
    assert isinstance(state, FootballState)
    return " - ".join(str(number) for number in state.goals) if state.period else "-"


SECTION = Section("sofascore", "football", _event, lambda match: tournament(), _row_score)
