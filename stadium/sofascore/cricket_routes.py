"""The routes of the Sofascore-like site's cricket, which stands under an address of its own here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from aiohttp import web

from stadium.context import STADIUM
from stadium.cricket.state import CricketState
from stadium.endpoints import Endpoint, Handler, Site
from stadium.keys import event_id, number_of_custom_id
from stadium.programme import Match
from stadium.sofascore import cricket_cards, page
from stadium.sofascore.answers import give_page, json_answer, json_bytes, not_found
from stadium.sofascore.cricket_balls import IncidentBook
from stadium.sofascore.cricket_event import event, match_path, tournament
from stadium.world import Shelf, World

SITE: Site = "sofascorecricket"
API = f"/{SITE}/api/v1"
BOOKS = web.AppKey("sofascore_cricket_books", Shelf[IncidentBook])
ROBOTS = f"User-agent: *\nAllow: /{SITE}/\nDisallow: /{SITE}/private\n"
Body = Callable[[World, Match, CricketState], dict[str, Any] | None]


def endpoints() -> list[Endpoint]:
    one = f"{API}/event/{{id}}"
    tournament_day = f"{API}/unique-tournament/{{tournament}}/scheduled-events/{{date}}"
    return [
        Endpoint(SITE, "list", "GET", f"/{SITE}", home_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/", home_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/cricket", home_page),
        Endpoint(SITE, "page", "GET", f"/{SITE}/en/cricket/match/{{slug}}/{{custom}}", match_page),
        Endpoint(SITE, "live", "GET", one, about_match(_event, "max-age=10, s-maxage=172800"), True),
        Endpoint(SITE, "feed", "GET", f"{one}/incidents", incidents, True),
        Endpoint(SITE, "map", "GET", f"{one}/innings", about_match(_innings, "max-age=60"), True),
        Endpoint(SITE, "lineups", "GET", f"{one}/lineups", about_match(_lineups, "max-age=10, s-maxage=3600"), True),
        Endpoint(SITE, "list", "GET", f"{API}/sport/cricket/events/live", live_events, True),
        Endpoint(SITE, "list", "GET", f"{API}/sport/cricket/scheduled-tournaments/{{date}}/page/{{page}}", days, True),
        Endpoint(SITE, "list", "GET", tournament_day, scheduled_events, True),
        Endpoint(SITE, "asset", "GET", f"/{SITE}/robots.txt", robots),
    ]


def _event(world: World, match: Match, state: CricketState) -> dict[str, Any]:
    return {"event": event(world, match, state)}


def _innings(world: World, match: Match, state: CricketState) -> dict[str, Any] | None:
    return cricket_cards.innings(state) if state.innings else None


def _lineups(world: World, match: Match, state: CricketState) -> dict[str, Any] | None:
    return cricket_cards.lineups(match, state, world.start_wall(match) - world.clock.wall())


def about_match(body: Body, cache_control: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        stadium = request.app[STADIUM]
        match = stadium.match(request, SITE, request.match_info["id"])
        found = None if match is None else body(stadium.world, match, _state(stadium.world, match))
        return not_found() if found is None else json_answer(request, found, cache_control)

    return handler


async def incidents(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    match = stadium.match(request, SITE, request.match_info["id"])
    if match is None:
        return not_found()
    index = stadium.world.index(match)
    book = request.app[BOOKS].get(match.edition, lambda: IncidentBook(match))
    if book.state.applied > index:  # the clock was set back
        book = IncidentBook(match)
    book.advance(index)
    return json_bytes(request, book.body(), "max-age=10, s-maxage=172800")


def _state(world: World, match: Match) -> CricketState:
    return world.cricket(match, world.index(match))


async def live_events(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    found = [_brief(world, match) for match in world.on_show(SITE) if _state(world, match).status == "live"]
    return json_answer(request, {"events": found}, "max-age=5, stale-while-revalidate=60")


async def days(request: web.Request) -> web.Response:
    """Which tournaments have matches on a day; past the last page there is nothing."""
    found = {tournament(match)["uniqueTournament"]["id"]: tournament(match) for match in _of_day(request) or []}
    if request.match_info["page"] != "1" or not found:
        return not_found()
    rows = [{"tournament": one, "timezoneEventCount": {"0": 1}} for one in found.values()]
    return json_answer(request, {"scheduled": rows, "hasNextPage": False}, "max-age=10, s-maxage=900")


async def scheduled_events(request: web.Request) -> web.Response:
    world, wanted = request.app[STADIUM].world, request.match_info["tournament"]
    matches = _of_day(request)
    if matches is None:
        return not_found()
    found = [match for match in matches if str(tournament(match)["uniqueTournament"]["id"]) == wanted]
    return json_answer(request, {"events": [_brief(world, match) for match in found]}, "max-age=10, s-maxage=86400")


def _of_day(request: web.Request) -> list[Match] | None:
    world = request.app[STADIUM].world
    try:
        day = date.fromisoformat(request.match_info["date"])
    except ValueError:
        return None
    return [m for m in world.on_show(SITE) if datetime.fromtimestamp(world.start_wall(m), UTC).date() == day]


def _brief(world: World, match: Match) -> dict[str, Any]:
    return event(world, match, _state(world, match), detail=False)


async def home_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    world = stadium.world
    rows = [_link(match, _state(world, match)) for match in world.on_show(SITE)]
    today = datetime.fromtimestamp(world.clock.wall(), UTC).date().isoformat()
    ids = sorted({tournament(match)["uniqueTournament"]["id"] for match in world.on_show(SITE)})
    html = page.home_page(stadium.nonce(SITE), rows, page.Home(page.CRICKET, today, tuple(ids)))
    return give_page(request, stadium, html, SITE)


def _link(match: Match, state: CricketState) -> page.Row:
    first, second = match.teams
    current = state.current
    score = f"{current.batting.short} {current.score}" if current else "-"
    return page.Row(match.key, match_path(match), f"{first.name} - {second.name}", score, state.phase)


async def match_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    number = number_of_custom_id(request.match_info["custom"])
    match = stadium.match(request, SITE, str(event_id(number))) if number is not None else None
    if match is None:
        return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")
    state = _state(stadium.world, match)
    body = event(stadium.world, match, state)
    scores = (str(body["homeScore"].get("display", "-")), str(body["awayScore"].get("display", "-")))
    html = page.match_page(stadium.nonce(SITE), match, body, scores, page.CRICKET)
    return give_page(request, stadium, html, SITE)


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)
