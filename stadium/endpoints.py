"""Endpoints of the sites: site, kind of content and required access, for middleware, faults and counters."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import web

from stadium.matches.ids import event_id, number_of_custom_id

Site = Literal["crex", "sofascore", "crexpro", "board", "espncricinfo", "espn", "espnsoccer", "sofascorecricket"]
Target = Literal["page", "live", "feed", "list", "map", "lineups", "statistics", "asset", "token", "public"]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    site: Site
    target: Target
    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    needs_session: bool = False  # the cookies that a page visit sets
    needs_token: bool = False  # an Authorization header


ENDPOINTS = web.AppKey("endpoints", dict[int, Endpoint])


def register(app: web.Application, endpoints: list[Endpoint]) -> None:
    for endpoint in endpoints:
        route = app.router.add_route(endpoint.method, endpoint.path, endpoint.handler)
        app[ENDPOINTS][id(route)] = endpoint


def robots_endpoint(site: Site) -> Endpoint:
    """The robots.txt of a site, below the site's own path."""

    async def robots(_: web.Request) -> web.Response:
        return web.Response(text=f"User-agent: *\nAllow: /{site}/\nDisallow: /{site}/private\n")

    return Endpoint(site, "asset", "GET", f"/{site}/robots.txt", robots)


def endpoint_of(request: web.Request) -> Endpoint | None:
    return request.app[ENDPOINTS].get(id(request.match_info.route))


def site_of(request: web.Request) -> Site:
    return request.app[ENDPOINTS][id(request.match_info.route)].site


def match_key_in_address(request: web.Request) -> str:
    """Returns the key of the match that the address of a request names; empty if none."""
    info = request.match_info
    if "name" in info:  # a slug followed by the key
        return info["name"].rpartition("-")[2]
    if "custom" in info:
        number = number_of_custom_id(info["custom"])
        return "" if number is None else str(event_id(number))
    return info.get("id") or request.query.get("key") or request.query.get("event") or ""


async def json_object(request: web.Request) -> dict[str, Any] | None:
    """Returns the body of a request, or None if it is not a JSON object."""
    try:
        body = json.loads(await request.read())
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
