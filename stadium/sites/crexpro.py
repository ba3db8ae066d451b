"""The Crexpro site: a variant of Crex with open pages, and live endpoints that need a bearer token."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from stadium.access import CREDENTIAL
from stadium.assets import asset
from stadium.context import STADIUM
from stadium.cricket.state import CricketState
from stadium.endpoints import Endpoint, Site, json_object, robots_endpoint
from stadium.matches.programme import Match
from stadium.responses import missing_page
from stadium.sites.crex import page
from stadium.sites.crex.display_fields import display_fields
from stadium.sites.crex.live import live
from stadium.sites.crex.routes import (
    about_match,
    ball_feeds,
    context,
    list_page,
    live_matches,
    live_state,
    map_data,
    match_scorecard,
    match_squads,
    respond,
)

SITE: Site = "crexpro"
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
    body = await json_object(request)
    if body is None or body.get("api_key") != CREDENTIAL:
        return web.json_response({"error": "unknown credential"}, status=401)
    issued = stadium.tokens.issue(stadium.simulation.clock.wall())
    return web.json_response(issued, headers={"Cache-Control": "no-store"})


def _public_state(match: Match, state: CricketState) -> dict[str, Any]:
    fields = live(match, state)
    return {name: fields[name] for name in PUBLIC if name in fields}


async def match_page(request: web.Request) -> web.Response:
    """Names and score, without the data that the live endpoints need a token for."""
    stadium = request.app[STADIUM]
    simulation = stadium.simulation
    match = stadium.match(request)
    if match is None:
        return missing_page()
    state, start = simulation.cricket(match), simulation.start_wall(match)
    own = context(request)
    content = page.match_content(match, state, start, display_fields(match, state), [])
    blob = page.match_state(own, match, state, start, [])
    for private in ("commentary/v2/getBallFeeds", "api/v3/getSC4"):
        blob.pop(f"{own.base}/{private}", None)
    blob[f"{own.base}/api/v3/getSV3"] = _public_state(match, state)
    return respond(request, page.document(own, f"{match.teams[0].short} live", content, blob, "match"))
