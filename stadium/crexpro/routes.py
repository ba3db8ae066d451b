"""The routes of the members' site. It is made like the Crex-like one; what differs is who may ask for what."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from aiohttp import web

from stadium.assets import read_asset
from stadium.context import STADIUM
from stadium.crex import page
from stadium.crex.live import live
from stadium.crex.readable import readable
from stadium.crex.routes import (
    ball_feeds,
    listing,
    live_matches,
    live_state,
    map_data,
    scorecard_answer,
    squads_answer,
)
from stadium.crexpro.tokens import CREDENTIAL
from stadium.cricket.state import CricketState
from stadium.endpoints import Endpoint, Site
from stadium.programme import Match

SITE: Site = "crexpro"
ROBOTS = f"User-agent: *\nAllow: /{SITE}/\nDisallow: /{SITE}/private\n"
NO_CACHE = {"Cache-Control": "no-cache"}
# What everybody may know: who plays, the score, where the match stands. No players, no overs, no ball feed.
PUBLIC = ("a", "B", "F", "fo", "mt", "h", "j", "k", "mn", "sf", "st", "dt_id", "fid", "comment1", "C", "over_reduced")


def endpoints() -> list[Endpoint]:
    return [
        Endpoint(SITE, "list", "GET", f"/{SITE}", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/cricket-live-score", list_page),
        Endpoint(SITE, "page", "GET", f"/{SITE}/cricket-live-score/{{name}}", match_page),
        Endpoint(SITE, "page", "GET", f"/{SITE}/cricket-live-score/{{name}}/{{tab}}", match_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/api/v3/getLiveMatches", live_matches),
        Endpoint(SITE, "lineups", "GET", f"/{SITE}/api/v3/getIV4", squads_answer),
        Endpoint(SITE, "statistics", "GET", f"/{SITE}/api/v3/getSC4", scorecard_answer, wants_token=True),
        Endpoint(SITE, "public", "GET", f"/{SITE}/api/v3/public/getSV3", public_state),
        Endpoint(SITE, "live", "GET", f"/{SITE}/api/v3/getSV3", live_state, wants_token=True),
        Endpoint(SITE, "feed", "POST", f"/{SITE}/commentary/v2/getBallFeeds", ball_feeds, wants_token=True),
        Endpoint(SITE, "map", "POST", f"/{SITE}/mapping/getHomeMapData", map_data),
        Endpoint(SITE, "token", "POST", f"/{SITE}/token/generate-token", generate_token),
        Endpoint(SITE, "asset", "GET", f"/{SITE}/assets/{{file:.+}}", asset),
        Endpoint(SITE, "asset", "GET", f"/{SITE}/robots.txt", robots),
    ]


async def generate_token(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict) or body.get("api_key") != CREDENTIAL:
        return web.json_response({"error": "unknown credential"}, status=401)
    answer = stadium.tokens.issue(stadium.world.clock.wall())
    return web.json_response(answer, headers={"Cache-Control": "no-store"})


async def public_state(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    match = stadium.match(request, SITE, request.query.get("key", ""))
    if match is None:
        return web.json_response({"error": "Not Found"}, status=404)
    state = stadium.world.cricket(match, stadium.world.index(match))
    return web.json_response(_public(match, state), headers=NO_CACHE)


def _public(match: Match, state: CricketState) -> dict[str, Any]:
    told = live(match, state)
    return {name: told[name] for name in PUBLIC if name in told}


async def list_page(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    rows = [(match, world.cricket(match, world.index(match))) for match in world.on_show(SITE)]
    return _page(request, page.list_page(_frame(request), rows, listing(world, SITE)))


async def match_page(request: web.Request) -> web.Response:
    """As a stranger sees it: names and the score, and nothing that the live endpoints ask a token for."""
    stadium = request.app[STADIUM]
    world = stadium.world
    match = stadium.match(request, SITE, request.match_info["name"].rpartition("-")[2])
    if match is None:
        return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")
    state = world.cricket(match, world.index(match))
    frame = _frame(request)
    content = page.match_content(match, state, world.start_wall(match), readable(match, state), [])
    blob = page.match_state(frame, match, state, world.start_wall(match), [])
    for closed in ("commentary/v2/getBallFeeds", "api/v3/getSC4"):
        blob.pop(f"{frame.base}/{closed}", None)
    blob[f"{frame.base}/api/v3/getSV3"] = _public(match, state)
    return _page(request, page.document(frame, f"{match.teams[0].short} live", content, blob, "match"))


def _frame(request: web.Request) -> page.Frame:
    return page.Frame(f"{request.scheme}://{request.host}/{SITE}", nonce="")


def _page(request: web.Request, html: str) -> web.Response:
    stadium = request.app[STADIUM]
    html = _at_home(html)
    if stadium.tokens.policy.in_pages:
        token = stadium.tokens.issue(stadium.world.clock.wall())["token"]
        html = html.replace("</head>", f'<meta name="cx-t" content="{escape(token)}"></head>', 1)
    return web.Response(text=html, content_type="text/html", headers=NO_CACHE)


def _at_home(text: str) -> str:
    """Pages and scripts are the Crex-like site's: everything that they refer to lives here under this site's name."""
    return text.replace("/crex/", f"/{SITE}/").replace("path=/crex;", f"path=/{SITE};")


async def asset(request: web.Request) -> web.Response:
    name = request.match_info["file"]
    found = read_asset("crex", name)
    if found is None:
        raise web.HTTPNotFound
    body, kind = found
    if name.endswith(".js"):
        body = _at_home(body.decode()).encode()
    return web.Response(body=body, content_type=kind, headers={"Cache-Control": "max-age=3600"})


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)
