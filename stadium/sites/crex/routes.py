"""Routes of the Crex site. The Crexpro site uses most of the handlers too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from stadium.assets import asset
from stadium.context import STADIUM
from stadium.cricket.state import CricketState
from stadium.endpoints import Endpoint, Handler, json_object, robots_endpoint, site_of
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.responses import NO_CACHE, compact_json, missing_page
from stadium.sites.crex import page
from stadium.sites.crex.details import fixtures
from stadium.sites.crex.feed import feed_item, feed_page
from stadium.sites.crex.listing import list_item, names
from stadium.sites.crex.live import live
from stadium.sites.crex.scorecard import scorecard, squads

OLD_ADDRESS = "/crex/scoreboard/{id}/{series}/{number}/{first}/{second}/{slug}/{tab}"
TABS = ("live", "match-details", "match-scorecard", "info", "scorecard")


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("crex", "list", "GET", "/crex", list_page),
        Endpoint("crex", "list", "GET", "/crex/", list_page),
        Endpoint("crex", "list", "GET", "/crex/cricket-live-score", list_page),
        Endpoint("crex", "list", "GET", "/crex/schedule", schedule_page),
        Endpoint("crex", "page", "GET", "/crex/cricket-live-score/{name}", match_page),
        Endpoint("crex", "page", "GET", "/crex/cricket-live-score/{name}/{tab}", match_page),
        Endpoint("crex", "page", "GET", OLD_ADDRESS, match_page),
        Endpoint("crex", "list", "GET", "/crex/api/v3/getLiveMatches", live_matches, needs_session=True),
        Endpoint("crex", "live", "GET", "/crex/api/v3/getSV3", live_state, needs_session=True),
        Endpoint("crex", "feed", "POST", "/crex/commentary/v2/getBallFeeds", ball_feeds, needs_session=True),
        Endpoint("crex", "map", "POST", "/crex/mapping/getHomeMapData", map_data, needs_session=True),
        Endpoint("crex", "statistics", "GET", "/crex/api/v3/getSC4", match_scorecard, needs_session=True),
        Endpoint("crex", "lineups", "GET", "/crex/api/v3/getIV4", match_squads, needs_session=True),
        Endpoint("crex", "list", "POST", "/crex/fixture/getFixture", fixture_list, needs_session=True),
        Endpoint("crex", "asset", "GET", "/crex/assets/{file:.+}", asset),
        robots_endpoint("crex"),
    ]


def listing(simulation: Simulation, site: str) -> dict[str, Any]:
    return {match.key: list_item(simulation, match) for match in simulation.listed_matches(site)}


async def list_page(request: web.Request) -> web.Response:
    simulation, site = request.app[STADIUM].simulation, site_of(request)
    rows = [(match, simulation.cricket(match)) for match in simulation.listed_matches(site)]
    return respond(request, page.list_page(context(request), rows, listing(simulation, site)))


async def match_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    if "-" not in request.match_info.get("name", "-"):  # a key without a slug
        return web.Response(status=403, text="<h1>403 Forbidden</h1>", content_type="text/html")
    match, tab = stadium.match(request), request.match_info.get("tab", "live")
    if match is None or tab not in TABS:
        return missing_page()
    feed, start = stadium.simulation.log(match, feed_item), stadium.simulation.start_wall(match)
    html = page.match_page(context(request), match, feed.state, start, feed_page(feed.items, None), tab=tab)
    return respond(request, html)


async def schedule_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    rows = fixtures(stadium.simulation, "crex", 0)
    matches = [match for row in rows if (match := stadium.simulation.find("crex", row["mf"]))]
    return respond(request, page.schedule_page(context(request), rows, names(matches)))


def context(request: web.Request) -> page.PageContext:
    stadium, site = request.app[STADIUM], site_of(request)
    token = stadium.page_token() if site == "crexpro" else ""
    return page.PageContext(f"{request.scheme}://{request.host}/{site}", stadium.nonce(site), token)


def respond(request: web.Request, html: str) -> web.Response:
    """The pages are rendered with Crex's paths."""
    return request.app[STADIUM].page(request, html.replace("/crex/", f"/{site_of(request)}/"))


async def live_matches(request: web.Request) -> web.Response:
    return web.json_response(listing(request.app[STADIUM].simulation, site_of(request)), headers=NO_CACHE)


def about_match(name: str, render: Callable[[Match, CricketState], Any]) -> Handler:
    """Makes a handler of a match's JSON, which is rendered once after each event."""

    async def handler(request: web.Request) -> web.Response:
        stadium = request.app[STADIUM]
        match = stadium.match(request)
        if match is None:
            return _not_found()
        simulation, count = stadium.simulation, stadium.simulation.event_count(match)
        body = simulation.rendered.get_or_make(
            (match.version, name, count), lambda: compact_json(render(match, simulation.cricket(match, count)))
        )
        return web.Response(body=body, content_type="application/json", headers=NO_CACHE)

    return handler


live_state = about_match("live", live)
match_scorecard = about_match("scorecard", lambda match, state: scorecard(state))
match_squads = about_match("squads", squads)


async def ball_feeds(request: web.Request) -> web.Response:
    body = await json_object(request)
    if body is None or not isinstance(body.get("matchKey"), str) or not _is_document_id(body.get("lastDocId", "")):
        return _bad_request()
    stadium = request.app[STADIUM]
    match = stadium.match(request, body["matchKey"])
    if match is None:
        return _not_found()
    before, feed = int(body.get("lastDocId") or 0) or None, stadium.simulation.log(match, feed_item)
    key = (match.version, "feed", feed.state.applied, before)
    page_body = stadium.simulation.rendered.get_or_make(key, lambda: compact_json(feed_page(feed.items, before)))
    return web.Response(body=page_body, content_type="application/json", headers=NO_CACHE)


def _is_document_id(value: object) -> bool:
    return value is None or str(value) == "" or str(value).isdigit()


async def map_data(request: web.Request) -> web.Response:
    body = await json_object(request)
    if body is None or not all(isinstance(body.get(letter, []), list) for letter in "ptsv"):
        return _bad_request()
    wanted = {letter: {str(key) for key in body.get(letter, [])} for letter in "ptsv"}
    matches = request.app[STADIUM].simulation.listed_matches(site_of(request))
    return web.json_response(names(matches, wanted), headers=NO_CACHE)


async def fixture_list(request: web.Request) -> web.Response:
    body = await json_object(request)
    if body is None or not isinstance(body.get("page"), int):
        return _bad_request()
    return web.json_response(
        fixtures(request.app[STADIUM].simulation, site_of(request), body["page"]), headers=NO_CACHE
    )


def _not_found() -> web.Response:
    return web.json_response({"error": "Not Found"}, status=404)


def _bad_request() -> web.Response:
    return web.Response(status=400, text="Request Payload Error!")
