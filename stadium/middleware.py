"""Middleware of every site request: counts it, applies injected faults, and checks client, session and token."""

from __future__ import annotations

from aiohttp import web

from stadium.client_check import suspicion
from stadium.context import STADIUM, Stadium
from stadium.endpoints import Endpoint, Handler, endpoint_of, json_object, match_key_in_address
from stadium.fault_responses import CHALLENGE_BODY, respond
from stadium.request_counters import RequestRecord
from stadium.reshaping import reshape


@web.middleware
async def request_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    endpoint = endpoint_of(request)
    if endpoint is None:
        return await handler(request)
    stadium = request.app[STADIUM]
    wall = stadium.simulation.clock.wall()
    match = match_key_in_address(request)
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
        if endpoint.site in stadium.browser_only and (reason := suspicion(request)):
            return _forbidden(endpoint.site, reason)
        if endpoint.needs_session:
            check = stadium.session_checks[endpoint.site]
            if not check.allows(request.cookies, wall, stadium.session_policy):
                return _forbidden(endpoint.site)
        if endpoint.needs_token and not stadium.tokens.is_valid(request.headers.get("Authorization", ""), wall):
            return _unauthorized()
        return reshape(await handler(request), stadium.simulation.programme.shapes.get(endpoint.site, ()))

    if not stadium.faults.faults:
        return await guarded(request)
    match = await _match_of(request)
    faults = stadium.faults.hits_for(endpoint.site, endpoint.target, request.path, match, wall)
    return await respond(request, endpoint, faults, guarded, stadium.stopping)


def _forbidden(site: str, reason: str = "no session") -> web.Response:
    body = '{"error":"Forbidden"}' if site == "crex" else CHALLENGE_BODY
    headers = {"X-Stadium-Reason": reason}  # for tests and operators; no real site tells it
    return web.Response(status=403, text=body, content_type="application/json", headers=headers)


def _unauthorized() -> web.Response:
    return web.json_response({"error": "Unauthorized"}, status=401, headers={"WWW-Authenticate": "Bearer"})


async def _match_of(request: web.Request) -> str:
    """Returns the key of the match that a request is about, as faults name it; empty if none."""
    key = match_key_in_address(request)
    if key or request.method != "POST":
        return key
    body = await json_object(request) or {}
    return str(body.get("matchKey") or body.get("mf") or "")
