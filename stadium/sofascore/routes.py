"""The routes of the Sofascore-like site."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from aiohttp import web

from stadium.assets import asset
from stadium.context import STADIUM
from stadium.endpoints import Endpoint, Handler
from stadium.football.state import FootballState
from stadium.keys import event_id, number_of_custom_id
from stadium.programme import Match
from stadium.sofascore import page
from stadium.sofascore.answers import give_page, json_answer, not_found
from stadium.sofascore.event import ROUNDS, SEASON_ID, TOURNAMENT_ID, event, match_path, season, tournament
from stadium.sofascore.extras import lineups, statistics
from stadium.sofascore.incidents import incidents
from stadium.world import World

API = "/sofascore/api/v1"
ROBOTS = "User-agent: *\nAllow: /sofascore/\nDisallow: /sofascore/private\n"
Body = Callable[[World, Match, FootballState], dict[str, Any] | None]


def endpoints() -> list[Endpoint]:
    league = f"{API}/unique-tournament/{{tournament}}"
    one = f"{API}/event/{{id}}"
    return [
        Endpoint("sofascore", "list", "GET", "/sofascore", home_page),
        Endpoint("sofascore", "list", "GET", "/sofascore/", home_page),
        Endpoint("sofascore", "page", "GET", "/sofascore/en/football/match/{slug}/{custom}", match_page),
        Endpoint("sofascore", "live", "GET", one, about_match(_event, "max-age=10, s-maxage=172800"), True),
        Endpoint(
            "sofascore", "feed", "GET", f"{one}/incidents", about_match(_incidents, "max-age=10, s-maxage=172800"), True
        ),
        Endpoint("sofascore", "statistics", "GET", f"{one}/statistics", about_match(_statistics, "max-age=10"), True),
        Endpoint(
            "sofascore", "lineups", "GET", f"{one}/lineups", about_match(_lineups, "max-age=10, s-maxage=3600"), True
        ),
        Endpoint("sofascore", "list", "GET", f"{API}/sport/football/events/live", live_events, True),
        Endpoint(
            "sofascore", "list", "GET", f"{API}/sport/football/scheduled-tournaments/{{date}}/page/{{page}}", days, True
        ),
        Endpoint("sofascore", "list", "GET", f"{league}/scheduled-events/{{date}}", scheduled_events, True),
        Endpoint("sofascore", "list", "GET", f"{league}/seasons", seasons, True),
        Endpoint("sofascore", "list", "GET", f"{league}/season/{{season}}/events/round/{{round}}", a_round, True),
        Endpoint("sofascore", "asset", "GET", "/sofascore/assets/{file:.+}", asset),
        Endpoint("sofascore", "asset", "GET", "/sofascore/robots.txt", robots),
    ]


def _event(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    return {"event": event(world, match, state)}


def _incidents(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    return incidents(match, state)


def _statistics(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    return statistics(match, state)


def _lineups(world: World, match: Match, state: FootballState) -> dict[str, Any] | None:
    return lineups(match, state, world.start_wall(match) - world.clock.wall())


def about_match(body: Body, cache_control: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        stadium = request.app[STADIUM]
        match = stadium.match(request, "sofascore", request.match_info["id"])
        found = None if match is None else body(stadium.world, match, _state(stadium.world, match))
        return not_found() if found is None else json_answer(request, found, cache_control)

    return handler


def _state(world: World, match: Match) -> FootballState:
    return world.football(match, world.index(match))


async def live_events(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    found = [_brief(world, match) for match in world.on_show("sofascore") if _state(world, match).status == "live"]
    return json_answer(request, {"events": found}, "max-age=5, stale-while-revalidate=60")


async def days(request: web.Request) -> web.Response:
    """Which tournaments have matches on a day; past the last page there is nothing."""
    if request.match_info["page"] != "1" or not _of_day(request):
        return not_found()
    row = {"tournament": tournament(), "timezoneEventCount": {"0": len(_of_day(request) or [])}}
    return json_answer(request, {"scheduled": [row], "hasNextPage": False}, "max-age=10, s-maxage=900")


async def scheduled_events(request: web.Request) -> web.Response:
    world, matches = request.app[STADIUM].world, _of_day(request)
    if matches is None:
        return not_found()
    found = matches if request.match_info["tournament"] == str(TOURNAMENT_ID) else []
    return json_answer(request, {"events": [_brief(world, match) for match in found]}, "max-age=10, s-maxage=86400")


def _of_day(request: web.Request) -> list[Match] | None:
    world = request.app[STADIUM].world
    try:
        day = date.fromisoformat(request.match_info["date"])
    except ValueError:
        return None
    return [m for m in world.on_show("sofascore") if datetime.fromtimestamp(world.start_wall(m), UTC).date() == day]


async def seasons(request: web.Request) -> web.Response:
    if request.match_info["tournament"] != str(TOURNAMENT_ID):
        return not_found()
    return json_answer(request, {"seasons": [season()]}, "max-age=60")


async def a_round(request: web.Request) -> web.Response:
    """The round's matches in the season that is being played."""
    world, info = request.app[STADIUM].world, request.match_info
    number = int(info["round"]) if info["round"].isdigit() else 0
    if (info["tournament"], info["season"]) != (str(TOURNAMENT_ID), str(SEASON_ID)) or not 1 <= number <= ROUNDS:
        return not_found()
    found = []
    for slot in world.programme.slots:
        if slot.sport == "football":
            first = world.programme.current_turn(slot, world.clock.now()) // ROUNDS * ROUNDS
            found.append(world.programme.match(slot, first + number - 1))
    return json_answer(request, {"events": [_brief(world, match) for match in found]}, "max-age=60")


def _brief(world: World, match: Match) -> dict[str, Any]:
    return event(world, match, _state(world, match), detail=False)


async def home_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    world = stadium.world
    rows = [_link(match, _state(world, match)) for match in world.on_show("sofascore")]
    today = datetime.fromtimestamp(world.clock.wall(), UTC).date().isoformat()
    html = page.home_page(stadium.nonce("sofascore"), rows, page.Home(page.FOOTBALL, today, (TOURNAMENT_ID,)))
    return give_page(request, stadium, html, "sofascore")


def _link(match: Match, state: FootballState) -> page.Row:
    home, away = match.teams
    goals = " - ".join(str(number) for number in state.goals) if state.period else "-"
    return page.Row(match.key, match_path(match), f"{home.name} - {away.name}", goals, state.phase)


async def match_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    number = number_of_custom_id(request.match_info["custom"])
    match = stadium.match(request, "sofascore", str(event_id(number))) if number is not None else None
    if match is None:
        return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")
    state = _state(stadium.world, match)
    body = event(stadium.world, match, state)
    home, away = state.goals
    scores = (str(home), str(away)) if state.period else ("-", "-")
    return give_page(request, stadium, page.match_page(stadium.nonce("sofascore"), match, body, scores), "sofascore")


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)
