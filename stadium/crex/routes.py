"""The routes of the Crex-like site."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from stadium.assets import asset
from stadium.context import STADIUM, Stadium
from stadium.crex import page
from stadium.crex.details import fixtures, named_meta, post_match
from stadium.crex.feed import PAGE_SIZE, FeedBook
from stadium.crex.listing import list_item, names
from stadium.crex.live import live
from stadium.crex.scorecard import scorecard
from stadium.crex.squads import squads
from stadium.endpoints import Endpoint
from stadium.programme import Match
from stadium.world import Shelf, World

FEEDS = web.AppKey("crex_feeds", Shelf[FeedBook])
ROBOTS = "User-agent: *\nAllow: /crex/\nDisallow: /crex/private\n"
OLD_ADDRESS = "/crex/scoreboard/{id}/{series}/{number}/{first}/{second}/{slug}/{tab}"
TABS = ("live", "match-details", "match-scorecard", "info", "scorecard")
_API_HEADERS = {"Cache-Control": "no-cache"}


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("crex", "list", "GET", "/crex", list_page),
        Endpoint("crex", "list", "GET", "/crex/", list_page),
        Endpoint("crex", "list", "GET", "/crex/cricket-live-score", list_page),
        Endpoint("crex", "list", "GET", "/crex/schedule", schedule_page),
        Endpoint("crex", "page", "GET", "/crex/cricket-live-score/{name}", match_page),
        Endpoint("crex", "page", "GET", "/crex/cricket-live-score/{name}/{tab}", match_page),
        Endpoint("crex", "page", "GET", OLD_ADDRESS, match_page),
        Endpoint("crex", "list", "GET", "/crex/api/v3/getLiveMatches", live_matches, is_gated=True),
        Endpoint("crex", "live", "GET", "/crex/api/v3/getSV3", live_state, is_gated=True),
        Endpoint("crex", "feed", "POST", "/crex/commentary/v2/getBallFeeds", ball_feeds, is_gated=True),
        Endpoint("crex", "map", "POST", "/crex/mapping/getHomeMapData", map_data, is_gated=True),
        Endpoint("crex", "statistics", "GET", "/crex/api/v3/getSC4", scorecard_answer, is_gated=True),
        Endpoint("crex", "lineups", "GET", "/crex/api/v3/getIV4", squads_answer, is_gated=True),
        Endpoint("crex", "list", "POST", "/crex/fixture/getFixture", fixture_list, is_gated=True),
        Endpoint("crex", "map", "POST", "/crex/live/getMatchMetaData", match_meta, is_gated=True),
        Endpoint("crex", "map", "POST", "/crex/i/live/getPostMatchDataV2", after_match, is_gated=True),
        Endpoint("crex", "asset", "GET", "/crex/assets/{file:.+}", asset),
        Endpoint("crex", "asset", "GET", "/crex/robots.txt", robots),
    ]


def feed_book(app: web.Application, match: Match) -> FeedBook:
    """The match's feed, written up to now."""
    world = app[STADIUM].world
    book = app[FEEDS].get(match.edition, lambda: FeedBook(match))
    book.advance(world.ids(match, world.index(match)))
    return book


def listing(world: World, site: str = "crex") -> dict[str, Any]:
    return {match.key: _list_item(world, match) for match in world.on_show(site)}


def _list_item(world: World, match: Match) -> dict[str, Any]:
    end = world.clock.wall_at(match.ends_at)
    return list_item(match, world.cricket(match, world.index(match)), world.start_wall(match), end)


async def list_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    world = stadium.world
    rows = [(match, world.cricket(match, world.index(match))) for match in world.on_show("crex")]
    html = page.list_page(_frame(request, stadium), rows, listing(world))
    return _page(request, stadium, html)


async def match_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    world = stadium.world
    key = _key_of_page(request)
    if not key:
        return web.Response(status=403, text="<h1>403 Forbidden</h1>", content_type="text/html")
    match, tab = stadium.match(request, "crex", key), request.match_info.get("tab", "live")
    if match is None or tab not in TABS:
        return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")
    book = feed_book(request.app, match)
    state = world.cricket(match, book.state.applied)
    newest = book.items[: -PAGE_SIZE - 1 : -1]
    html = page.match_page(_frame(request, stadium), match, state, world.start_wall(match), newest, tab=tab)
    return _page(request, stadium, html)


def _key_of_page(request: web.Request) -> str:
    """In the present address it ends the name and a bare key is none; in the old one it has a place of its own."""
    if "id" in request.match_info:
        return request.match_info["id"]
    _slug, dash, key = request.match_info["name"].rpartition("-")
    return key if dash else ""


async def schedule_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    frame = _frame(request, stadium)
    rows = fixtures(stadium.world, "crex", 0)
    shown = [match for row in rows if (match := stadium.world.find("crex", row["mf"]))]
    return _page(request, stadium, page.schedule_page(frame, rows, names(shown)))


def _frame(request: web.Request, stadium: Stadium) -> page.Frame:
    return page.Frame(f"{request.scheme}://{request.host}/crex", stadium.nonce("crex"))


def _page(request: web.Request, stadium: Stadium, html: str) -> web.Response:
    response = web.Response(text=html, content_type="text/html", headers=_API_HEADERS)
    stadium.give_session(request, response, "crex")
    return response


async def live_matches(request: web.Request) -> web.Response:
    return web.json_response(listing(request.app[STADIUM].world, _site(request)), headers=_API_HEADERS)


async def live_state(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    world = stadium.world
    match = stadium.match(request, _site(request), request.query.get("key", ""))
    if match is None:
        return _error(404, "Not Found")
    index = world.index(match)
    body = world.rendered.get((match.edition, index), lambda: _render(world, match, index))
    return web.Response(body=body, content_type="application/json", headers=_API_HEADERS)


def _render(world: World, match: Match, index: int) -> bytes:
    return _dump(live(match, world.cricket(match, index)))


def _dump(answer: object) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()


async def ball_feeds(request: web.Request) -> web.Response:
    body = await _json_object(request)
    if body is None or not isinstance(body.get("matchKey"), str) or not _is_document_id(body.get("lastDocId", "")):
        return web.Response(status=400, text="Request Payload Error!")
    match = request.app[STADIUM].match(request, _site(request), body["matchKey"])
    if match is None:
        return _error(404, "Not Found")
    before = int(body.get("lastDocId") or 0) or None
    text = feed_book(request.app, match).page(before)
    return web.Response(text=text, content_type="application/json", headers=_API_HEADERS)


def _is_document_id(value: object) -> bool:
    return value is None or str(value) == "" or str(value).isdigit()


async def map_data(request: web.Request) -> web.Response:
    body = await _json_object(request)
    if body is None or not all(isinstance(body.get(letter, []), list) for letter in "ptsv"):
        return web.Response(status=400, text="Request Payload Error!")
    wanted = {letter: {str(key) for key in body.get(letter, [])} for letter in "ptsv"}
    matches = request.app[STADIUM].world.on_show(_site(request))
    return web.json_response(names(matches, wanted), headers=_API_HEADERS)


async def scorecard_answer(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    match = stadium.match(request, _site(request), request.query.get("key", ""))
    if match is None:
        return _error(404, "Not Found")
    world, index = stadium.world, stadium.world.index(match)
    body = world.rendered.get((match.edition, "card", index), lambda: _dump(scorecard(world.cricket(match, index))))
    return web.Response(body=body, content_type="application/json", headers=_API_HEADERS)


async def squads_answer(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    match = stadium.match(request, _site(request), request.query.get("key", ""))
    if match is None:
        return _error(404, "Not Found")
    state = stadium.world.cricket(match, stadium.world.index(match))
    return web.json_response(squads(match, state), headers=_API_HEADERS)


async def fixture_list(request: web.Request) -> web.Response:
    body = await _json_object(request)
    if body is None or not isinstance(body.get("page"), int):
        return web.Response(status=400, text="Request Payload Error!")
    return web.json_response(fixtures(request.app[STADIUM].world, _site(request), body["page"]), headers=_API_HEADERS)


async def match_meta(request: web.Request) -> web.Response:
    stadium, match = request.app[STADIUM], await _match_in_body(request)
    if match is None:
        return web.Response(status=400, text="Request Payload Error!")
    return web.json_response([named_meta(match, stadium.world.start_wall(match))], headers=_API_HEADERS)


async def after_match(request: web.Request) -> web.Response:
    world, match = request.app[STADIUM].world, await _match_in_body(request)
    if match is None:
        return web.Response(status=400, text="Request Payload Error!")
    return web.json_response([post_match(world.cricket(match, world.index(match)))], headers=_API_HEADERS)


async def _match_in_body(request: web.Request) -> Match | None:
    body = await _json_object(request)
    return request.app[STADIUM].match(request, _site(request), str((body or {}).get("mf", "")))


async def _json_object(request: web.Request) -> dict[str, Any] | None:
    try:
        body = json.loads(await request.read())
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _site(request: web.Request) -> str:
    """The members' site answers with these handlers too."""
    return request.path.split("/")[1]


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)
