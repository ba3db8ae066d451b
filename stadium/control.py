"""Control endpoints for operators and tests: pace, sessions, tokens, distortions, faults, request counters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

from aiohttp import web

from stadium.context import STADIUM
from stadium.endpoints import Site
from stadium.faults import InvalidFaultError
from stadium.matches.clock import StadiumClock
from stadium.matches.distortion import UNDISTORTED, with_changes


def add_routes(app: web.Application) -> None:
    app.router.add_get("/control/health", health)
    app.router.add_post("/control/pace", set_pace)
    app.router.add_post("/control/skip", skip)
    app.router.add_post("/control/sessions", set_sessions)
    app.router.add_post("/control/tokens", set_tokens)
    app.router.add_post("/control/distortions", set_distortion)
    app.router.add_get("/control/distortions", show_distortions)
    app.router.add_post("/control/faults", add_fault)
    app.router.add_get("/control/faults", list_faults)
    app.router.add_delete("/control/faults", clear_faults)
    app.router.add_delete("/control/faults/{id}", remove_fault)
    app.router.add_get("/control/requests", show_requests)
    app.router.add_get("/control/requests/latest", show_latest)
    app.router.add_post("/control/reset", reset)


async def health(request: web.Request) -> web.Response:
    simulation = request.app[STADIUM].simulation
    return web.json_response(
        {
            "status": "ok",
            "simulated_time": simulation.clock.now(),
            "pace": simulation.clock.pace,
            "programme": simulation.config.programme,
            "seed": simulation.config.seed,
            "sites": sorted({site for slot in simulation.programme.slots for site in slot.sites}),
        }
    )


async def set_pace(request: web.Request) -> web.Response:
    pace = _number(await _body(request), "pace")
    return _change_clock(request, StadiumClock.set_pace, pace)


async def skip(request: web.Request) -> web.Response:
    """Skips simulated seconds; all events in between happen at once."""
    seconds = _number(await _body(request), "seconds")
    return _change_clock(request, StadiumClock.skip, seconds)


def _change_clock(request: web.Request, change: Callable[[StadiumClock, float], None], value: float) -> web.Response:
    clock = request.app[STADIUM].simulation.clock
    try:
        change(clock, value)
    except ValueError as error:
        raise _bad(str(error)) from error
    return web.json_response({"pace": clock.pace, "simulated_time": clock.now()})


async def set_sessions(request: web.Request) -> web.Response:
    """`{"seconds": 60}` sets the lifetime of sessions; `{"revoke": true}` ends all open sessions."""
    stadium, body = request.app[STADIUM], await _body(request)
    unknown = set(body) - {"seconds", "revoke"}
    if unknown or not body:
        raise _bad(f"give seconds (a number) or revoke (true); got {', '.join(sorted(body)) or 'nothing'}")
    if "seconds" in body:
        stadium.session_policy.seconds = _number(body, "seconds")
    if body.get("revoke"):
        stadium.session_policy.not_before = stadium.simulation.clock.wall()
    return web.json_response(
        {"seconds": stadium.session_policy.seconds, "not_before": stadium.session_policy.not_before}
    )


async def set_tokens(request: web.Request) -> web.Response:
    """Crexpro's tokens: `{"seconds": 60}` sets the lifetime of new ones, `{"revoke": true}` revokes all that were
    issued, `{"in_pages": true}` puts a token into each page.
    """
    stadium, body = request.app[STADIUM], await _body(request)
    policy = stadium.tokens.policy
    if set(body) - {"seconds", "revoke", "in_pages"} or not body:
        raise _bad(f"give seconds (a number), revoke or in_pages (true); got {', '.join(sorted(body)) or 'nothing'}")
    if "seconds" in body:
        policy.seconds = _number(body, "seconds")
    if body.get("revoke"):
        policy.not_before = stadium.simulation.clock.wall()
    if "in_pages" in body:
        policy.in_pages = bool(body["in_pages"])
    return web.json_response({"seconds": policy.seconds, "not_before": policy.not_before, "in_pages": policy.in_pages})


async def set_distortion(request: web.Request) -> web.Response:
    """Changes how a site distorts matches: `{"site": "espncricinfo", "delay": 3, "mistakes": 0.02,
    "corrects_after": 20, "names": true, "sides": true}`. Fields that are not given keep their value; the first site of
    a match only applies the delay.
    """
    body, distortions = await _body(request), request.app[STADIUM].simulation.programme.distortions
    site = body.pop("site", None)
    if site not in get_args(Site):
        raise _bad(f"site must be one of {', '.join(get_args(Site))}; got {site!r}")
    try:
        distortions[site] = with_changes(distortions.get(site, UNDISTORTED), body)
    except ValueError as error:
        raise _bad(str(error)) from error
    return web.json_response({"site": site, **distortions[site].as_json()})


async def show_distortions(request: web.Request) -> web.Response:
    distortions = request.app[STADIUM].simulation.programme.distortions
    return web.json_response({site: distortion.as_json() for site, distortion in distortions.items()})


async def add_fault(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    try:
        fault = stadium.faults.add(await _body(request), stadium.simulation.clock.wall())
    except InvalidFaultError as error:
        raise _bad(str(error)) from error
    return web.json_response(fault.as_json(stadium.simulation.clock.wall()), status=201)


async def list_faults(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    wall = stadium.simulation.clock.wall()
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
    """Lists the latest requests: time, site, target, match, status."""
    return web.json_response(list(request.app[STADIUM].counters.latest))


async def reset(request: web.Request) -> web.Response:
    """Resets counters, faults, policies and distortions to their initial values. Clock and matches continue."""
    stadium = request.app[STADIUM]
    removed = stadium.faults.clear()
    stadium.counters.reset()
    stadium.session_policy.seconds, stadium.session_policy.not_before = stadium.simulation.config.session_seconds, 0.0
    stadium.tokens.reset()
    stadium.simulation.reset_distortions()
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
