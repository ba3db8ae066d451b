"""Levers for operators and tests: pace, sessions, faults, counters."""

from __future__ import annotations

import json
from typing import Any, get_args

from aiohttp import web

from stadium import told
from stadium.context import STADIUM
from stadium.endpoints import Site
from stadium.faults import BadFaultError


def add_routes(app: web.Application) -> None:
    app.router.add_get("/control/health", health)
    app.router.add_post("/control/pace", set_pace)
    app.router.add_post("/control/skip", skip)
    app.router.add_post("/control/sessions", set_sessions)
    app.router.add_post("/control/tokens", set_tokens)
    app.router.add_post("/control/told", set_told)
    app.router.add_get("/control/told", show_told)
    app.router.add_post("/control/faults", plant_fault)
    app.router.add_get("/control/faults", list_faults)
    app.router.add_delete("/control/faults", clear_faults)
    app.router.add_delete("/control/faults/{id}", remove_fault)
    app.router.add_get("/control/requests", show_requests)
    app.router.add_get("/control/requests/latest", show_latest)
    app.router.add_post("/control/reset", reset)


async def health(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    return web.json_response(
        {
            "status": "ok",
            "simulated_time": world.clock.now(),
            "pace": world.clock.pace,
            "programme": world.config.programme,
            "seed": world.config.seed,
            "sites": sorted({site for slot in world.programme.slots for site in slot.sites}),
        }
    )


async def set_pace(request: web.Request) -> web.Response:
    clock = request.app[STADIUM].world.clock
    clock_pace = _number(await _body(request), "pace")
    return _changed(clock.set_pace, clock_pace, request)


async def skip(request: web.Request) -> web.Response:
    """Jump ahead so many simulated seconds; everything in between happens at once."""
    seconds = _number(await _body(request), "seconds")
    return _changed(request.app[STADIUM].world.clock.skip, seconds, request)


def _changed(change: Any, value: float, request: web.Request) -> web.Response:
    try:
        change(value)
    except ValueError as error:
        raise _bad(str(error)) from error
    clock = request.app[STADIUM].world.clock
    return web.json_response({"pace": clock.pace, "simulated_time": clock.now()})


async def set_sessions(request: web.Request) -> web.Response:
    """`{"seconds": 60}` sets how long sessions last; `{"revoke": true}` ends all that are open."""
    stadium, body = request.app[STADIUM], await _body(request)
    unknown = set(body) - {"seconds", "revoke"}
    if unknown or not body:
        raise _bad(f"give seconds (a number) or revoke (true); got {', '.join(sorted(body)) or 'nothing'}")
    if "seconds" in body:
        stadium.policy.seconds = _number(body, "seconds")
    if body.get("revoke"):
        stadium.policy.not_before = stadium.world.clock.wall()
    return web.json_response({"seconds": stadium.policy.seconds, "not_before": stadium.policy.not_before})


async def set_tokens(request: web.Request) -> web.Response:
    """Of the members' site: `{"seconds": 60}` new tokens last so long; `{"revoke": true}` all that were given are void;
    `{"in_pages": true}` its pages bring a token of their own along.
    """
    stadium, body = request.app[STADIUM], await _body(request)
    policy = stadium.tokens.policy
    if set(body) - {"seconds", "revoke", "in_pages"} or not body:
        raise _bad(f"give seconds (a number), revoke or in_pages (true); got {', '.join(sorted(body)) or 'nothing'}")
    if "seconds" in body:
        policy.seconds = _number(body, "seconds")
    if body.get("revoke"):
        policy.not_before = stadium.world.clock.wall()
    if "in_pages" in body:
        policy.in_pages = bool(body["in_pages"])
    return web.json_response({"seconds": policy.seconds, "not_before": policy.not_before, "in_pages": policy.in_pages})


async def set_told(request: web.Request) -> web.Response:
    """How a site tells what another knows better: `{"site": "espncricinfo", "delay": 3, "mistakes": 0.02,
    "corrects_after": 20, "names": true, "sides": true}`. What is not given stays; a site that is the first of a
    match's sites only ever heeds the delay.
    """
    body, manners = await _body(request), request.app[STADIUM].world.programme.manners
    site = body.pop("site", None)
    if site not in get_args(Site):
        raise _bad(f"site must be one of {', '.join(get_args(Site))}; got {site!r}")
    try:
        manners[site] = told.changed(manners.get(site, told.RIGHT), body)
    except ValueError as error:
        raise _bad(str(error)) from error
    return web.json_response({"site": site, **manners[site].as_json()})


async def show_told(request: web.Request) -> web.Response:
    manners = request.app[STADIUM].world.programme.manners
    return web.json_response({site: manner.as_json() for site, manner in manners.items()})


async def plant_fault(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    try:
        fault = stadium.faults.plant(await _body(request), stadium.world.clock.wall())
    except BadFaultError as error:
        raise _bad(str(error)) from error
    return web.json_response(fault.as_json(stadium.world.clock.wall()), status=201)


async def list_faults(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    wall = stadium.world.clock.wall()
    return web.json_response([fault.as_json(wall) for fault in stadium.faults.faults.values()])


async def clear_faults(request: web.Request) -> web.Response:
    return web.json_response({"removed": request.app[STADIUM].faults.clear()})


async def remove_fault(request: web.Request) -> web.Response:
    if not request.app[STADIUM].faults.remove(request.match_info["id"]):
        return web.json_response({"error": "no such fault"}, status=404)
    return web.json_response({"removed": 1})


async def show_requests(request: web.Request) -> web.Response:
    return web.json_response(request.app[STADIUM].counters.as_json())


async def show_latest(request: web.Request) -> web.Response:
    """The latest requests one by one: when, site, target, match, status."""
    return web.json_response(list(request.app[STADIUM].counters.latest))


async def reset(request: web.Request) -> web.Response:
    """Counters to zero, no faults, and sites that tell as they did at the start. The clock and the matches go on."""
    stadium = request.app[STADIUM]
    removed = stadium.faults.clear()
    stadium.counters.reset()
    stadium.policy.seconds, stadium.policy.not_before = stadium.world.config.session_seconds, 0.0
    stadium.tokens.reset()
    stadium.world.reset_manners()
    return web.json_response({"removed": removed})


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read() or b"{}")
    except ValueError as error:
        raise _bad(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise _bad("the body must be a JSON object")
    return body


def _number(body: dict[str, Any], name: str) -> float:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(f"{name} must be a number; got {value!r}")
    return float(value)


def _bad(message: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=json.dumps({"error": message}), content_type="application/json")
