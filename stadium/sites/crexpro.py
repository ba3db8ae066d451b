"""The Crexpro site: a variant of Crex with open pages, and live endpoints that need a bearer token."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from aiohttp import web

from stadium.access import CREDENTIAL
from stadium.assets import read_asset
from stadium.context import STADIUM
from stadium.cricket.state import CricketState
from stadium.endpoints import Endpoint, Site, robots_endpoint
from stadium.matches.programme import Match
from stadium.sites.crex import page
from stadium.sites.crex.display_fields import display_fields
from stadium.sites.crex.live import live
from stadium.sites.crex.routes import (
    about_match,
    ball_feeds,
    listing,
    live_matches,
    live_state,
    map_data,
    match_scorecard,
    match_squads,
)

SITE: Site = "crexpro"
NO_CACHE = {"Cache-Control": "no-cache"}
# Fields of the live state that are public: teams, score and status, but no players, overs or ball feed.
PUBLIC = ("a", "B", "F", "fo", "mt", "h", "j", "k", "mn", "sf", "st", "dt_id", "fid", "comment1", "C", "over_reduced")


def endpoints() -> list[Endpoint]:
    return [
        Endpoint(SITE, "list", "GET", f"/{SITE}", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/cricket-live-score", list_page),
        Endpoint(SITE, "page", "GET", f"/{SITE}/cricket-live-score/{{name}}", match_page),
        Endpoint(SITE, "page", "GET", f"/{SITE}/cricket-live-score/{{name}}/{{tab}}", match_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/api/v3/getLiveMatches", live_matches),
        Endpoint(SITE, "lineups", "GET", f"/{SITE}/api/v3/getIV4", match_squads),
        Endpoint(SITE, "statistics", "GET", f"/{SITE}/api/v3/getSC4", match_scorecard, needs_token=True),
        Endpoint(SITE, "public", "GET", f"/{SITE}/api/v3/public/getSV3", about_match("public", _public_state)),
        Endpoint(SITE, "live", "GET", f"/{SITE}/api/v3/getSV3", live_state, needs_token=True),
        Endpoint(SITE, "feed", "POST", f"/{SITE}/commentary/v2/getBallFeeds", ball_feeds, needs_token=True),
        Endpoint(SITE, "map", "POST", f"/{SITE}/mapping/getHomeMapData", map_data),
        Endpoint(SITE, "token", "POST", f"/{SITE}/token/generate-token", generate_token),
        Endpoint(SITE, "asset", "GET", f"/{SITE}/assets/{{file:.+}}", asset),
        robots_endpoint(SITE),
    ]


async def generate_token(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict) or body.get("api_key") != CREDENTIAL:
        return web.json_response({"error": "unknown credential"}, status=401)
    issued = stadium.tokens.issue(stadium.simulation.clock.wall())
    return web.json_response(issued, headers={"Cache-Control": "no-store"})


def _public_state(match: Match, state: CricketState) -> dict[str, Any]:
    fields = live(match, state)
    return {name: fields[name] for name in PUBLIC if name in fields}


async def list_page(request: web.Request) -> web.Response:
    simulation = request.app[STADIUM].simulation
    rows = [(match, simulation.cricket(match)) for match in simulation.listed_matches(SITE)]
    return _page(request, page.list_page(_context(request), rows, listing(simulation, SITE)))


async def match_page(request: web.Request) -> web.Response:
    """Names and score, without the data that the live endpoints need a token for."""
    stadium = request.app[STADIUM]
    simulation = stadium.simulation
    match = stadium.match(request, SITE, request.match_info["name"].rpartition("-")[2])
    if match is None:
        return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")
    state, start = simulation.cricket(match), simulation.start_wall(match)
    context = _context(request)
    content = page.match_content(match, state, start, display_fields(match, state), [])
    blob = page.match_state(context, match, state, start, [])
    for private in ("commentary/v2/getBallFeeds", "api/v3/getSC4"):
        blob.pop(f"{context.base}/{private}", None)
    blob[f"{context.base}/api/v3/getSV3"] = _public_state(match, state)
    return _page(request, page.document(context, f"{match.teams[0].short} live", content, blob, "match"))


def _context(request: web.Request) -> page.PageContext:
    return page.PageContext(f"{request.scheme}://{request.host}/{SITE}", nonce="")


def _page(request: web.Request, html: str) -> web.Response:
    stadium = request.app[STADIUM]
    html = _with_own_paths(html)
    if stadium.tokens.policy.in_pages:
        token = stadium.tokens.issue(stadium.simulation.clock.wall())["token"]
        html = html.replace("</head>", f'<meta name="cx-t" content="{escape(token)}"></head>', 1)
    return web.Response(text=html, content_type="text/html", headers=NO_CACHE)


def _with_own_paths(text: str) -> str:
    """Replaces the paths in Crex's pages and scripts, which this site reuses."""
    return text.replace("/crex/", f"/{SITE}/").replace("path=/crex;", f"path=/{SITE};")


async def asset(request: web.Request) -> web.Response:
    name = request.match_info["file"]
    found = read_asset("crex", name)
    if found is None:
        raise web.HTTPNotFound
    body, kind = found
    if name.endswith(".js"):
        body = _with_own_paths(body.decode()).encode()
    return web.Response(body=body, content_type=kind, headers={"Cache-Control": "max-age=3600"})
