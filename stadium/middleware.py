"""Middleware of every site request: counts it, applies injected faults, and checks session and token."""

from __future__ import annotations

import json

from aiohttp import web

from stadium.context import STADIUM, Stadium
from stadium.endpoints import Endpoint, Handler, endpoint_of
from stadium.fault_responses import CHALLENGE_BODY, respond
from stadium.matches.ids import event_id, number_of_custom_id
from stadium.request_counters import RequestRecord


@web.middleware
async def request_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    endpoint = endpoint_of(request)
    if endpoint is None:
        return await handler(request)
    stadium = request.app[STADIUM]
    wall = stadium.simulation.clock.wall()
    match = _match_in_address(request)
    stadium.counters.enter(endpoint.site, endpoint.target, match)
    status = 0  # recorded for a connection that was cut
    try:
        response = await _serve(request, endpoint, handler, stadium, wall)
        status = response.status
        return response
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        stadium.counters.leave(RequestRecord(wall, endpoint.site, endpoint.target, match, status))


async def _serve(
    request: web.Request, endpoint: Endpoint, handler: Handler, stadium: Stadium, wall: float
) -> web.StreamResponse:
    async def guarded(request: web.Request) -> web.StreamResponse:
        if endpoint.needs_session:
            check = stadium.session_checks[endpoint.site]
            if not check.allows(request.cookies, wall, stadium.session_policy):
                return _forbidden(endpoint.site)
        if endpoint.needs_token and not stadium.tokens.is_valid(request.headers.get("Authorization", ""), wall):
            return _unauthorized()
        return await handler(request)

    if not stadium.faults.faults:
        return await guarded(request)
    match = await _match_of(request)
    faults = stadium.faults.hits_for(endpoint.site, endpoint.target, request.path, match, wall)
    return await respond(request, endpoint, faults, guarded, stadium.stopping)


def _forbidden(site: str) -> web.Response:
    body = '{"error":"Forbidden"}' if site == "crex" else CHALLENGE_BODY
    return web.Response(status=403, text=body, content_type="application/json")


def _unauthorized() -> web.Response:
    return web.json_response({"error": "Unauthorized"}, status=401, headers={"WWW-Authenticate": "Bearer"})


async def _match_of(request: web.Request) -> str:
    """Returns the key of the match that a request is about, as faults name it; empty if none."""
    key = _match_in_address(request)
    if key or request.method != "POST":
        return key
    try:
        body = json.loads(await request.read())
    except ValueError:
        return ""
    return str(body.get("matchKey") or body.get("mf") or "") if isinstance(body, dict) else ""


def _match_in_address(request: web.Request) -> str:
    info = request.match_info
    if "name" in info:  # a slug followed by the key, at Crex and ESPNcricinfo
        return info["name"].rpartition("-")[2]
    if "custom" in info:
        number = number_of_custom_id(info["custom"])
        return "" if number is None else str(event_id(number))
    return info.get("id") or request.query.get("key") or request.query.get("event") or ""
