"""The middleware every request passes: counts it, lets faults strike it, and keeps the gate."""

from __future__ import annotations

import json

from aiohttp import web

from stadium.context import STADIUM, Stadium
from stadium.counters import Asked
from stadium.endpoints import Endpoint, Handler, endpoint_of
from stadium.keys import event_id, number_of_custom_id
from stadium.mischief import CHALLENGE_BODY, answer


@web.middleware
async def doorman(request: web.Request, handler: Handler) -> web.StreamResponse:
    endpoint = endpoint_of(request)
    if endpoint is None:
        return await handler(request)
    stadium = request.app[STADIUM]
    wall = stadium.world.clock.wall()
    match = _match_in_address(request)
    stadium.counters.enter(endpoint.site, endpoint.target, wall, match)
    status = 0  # what a connection that was cut counts as
    try:
        response = await _serve(request, endpoint, handler, stadium, wall)
        status = response.status
        return response
    except web.HTTPException as refusal:
        status = refusal.status
        raise
    finally:
        stadium.counters.leave(Asked(wall, endpoint.site, endpoint.target, match, status))


async def _serve(
    request: web.Request, endpoint: Endpoint, handler: Handler, stadium: Stadium, wall: float
) -> web.StreamResponse:
    async def guarded(request: web.Request) -> web.StreamResponse:
        if endpoint.is_gated and not stadium.gates[endpoint.site].is_open(request.cookies, wall, stadium.policy):
            return _refused(endpoint.site)
        if endpoint.wants_token and not stadium.tokens.is_good(request.headers.get("Authorization", ""), wall):
            return _wants_token()
        return await handler(request)

    if not stadium.faults.faults:
        return await guarded(request)
    match = await _match_of(request)
    faults = stadium.faults.strike(endpoint.site, endpoint.target, request.path, match, wall)
    return await answer(request, endpoint, faults, guarded, stadium.stopping)


def _refused(site: str) -> web.Response:
    body = '{"error":"Forbidden"}' if site == "crex" else CHALLENGE_BODY
    return web.Response(status=403, text=body, content_type="application/json")


def _wants_token() -> web.Response:
    return web.json_response({"error": "Unauthorized"}, status=401, headers={"WWW-Authenticate": "Bearer"})


async def _match_of(request: web.Request) -> str:
    """Which match a request is about, as the faults name it; empty if none."""
    named = _match_in_address(request)
    if named or request.method != "POST":
        return named
    try:
        body = json.loads(await request.read())
    except ValueError:
        return ""
    return str(body.get("matchKey") or body.get("mf") or "") if isinstance(body, dict) else ""


def _match_in_address(request: web.Request) -> str:
    info = request.match_info
    if "name" in info:  # a slug with the key behind it, of Crex and of ESPNcricinfo
        return info["name"].rpartition("-")[2]
    if "custom" in info:
        number = number_of_custom_id(info["custom"])
        return "" if number is None else str(event_id(number))
    return info.get("id") or request.query.get("key") or request.query.get("event") or ""
