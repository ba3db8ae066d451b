"""What each route is, for the gate, the faults and the counters: which site, what it serves, who may call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

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
    is_gated: bool = False  # by the cookies that a visit earns
    wants_token: bool = False  # by an Authorization header


ENDPOINTS = web.AppKey("endpoints", dict[int, Endpoint])


def register(app: web.Application, endpoints: list[Endpoint]) -> None:
    for endpoint in endpoints:
        routes = [app.router.add_route(endpoint.method, endpoint.path, endpoint.handler)]
        for route in routes:
            app[ENDPOINTS][id(route)] = endpoint


def endpoint_of(request: web.Request) -> Endpoint | None:
    return request.app[ENDPOINTS].get(id(request.match_info.route))
