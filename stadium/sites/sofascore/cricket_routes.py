"""Routes of the site's cricket section, which has its own base path here."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from stadium.context import STADIUM
from stadium.cricket.state import CricketState
from stadium.endpoints import Endpoint, Site
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, State
from stadium.sites.sofascore import cricket_innings
from stadium.sites.sofascore.cricket_event import event, tournament
from stadium.sites.sofascore.cricket_incidents import incident, incidents
from stadium.sites.sofascore.section import LONG_CACHE, Section, bytes_response, not_found

SITE: Site = "sofascorecricket"


def endpoints() -> list[Endpoint]:
    one = f"{SECTION.api}/event/{{id}}"
    about = SECTION.about_match
    return [
        *SECTION.endpoints(),
        Endpoint(SITE, "list", "GET", f"/{SITE}/cricket", SECTION.home_page),
        Endpoint(SITE, "feed", "GET", f"{one}/incidents", balls, True),
        Endpoint(SITE, "map", "GET", f"{one}/innings", about(_innings, "max-age=60"), True),
        Endpoint(SITE, "lineups", "GET", f"{one}/lineups", about(_lineups, "max-age=10, s-maxage=3600"), True),
    ]


def _event(simulation: Simulation, match: Match, detail: bool) -> dict[str, Any]:
    return event(simulation, match, simulation.cricket(match), detail=detail)


def _innings(simulation: Simulation, match: Match) -> dict[str, Any] | None:
    state = simulation.cricket(match)
    return cricket_innings.innings(state) if state.innings else None


def _lineups(simulation: Simulation, match: Match) -> dict[str, Any] | None:
    seconds_to_start = simulation.start_wall(match) - simulation.clock.wall()
    return cricket_innings.lineups(match, simulation.cricket(match), seconds_to_start)


async def balls(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    match = stadium.match(request)
    if match is None:
        return not_found()
    return bytes_response(request, incidents(stadium.simulation.log(match, incident).items), LONG_CACHE)


def _row_score(state: State) -> str:
    assert isinstance(state, CricketState)
    return f"{state.current.batting.short} {state.current.score}" if state.current else "-"


SECTION = Section(SITE, "cricket", _event, tournament, _row_score)
