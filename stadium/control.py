"""Control endpoints for operators and tests: pace, sessions, tokens, clients, distortions, faults, request counters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, Field, ValidationError

from stadium.access import AccessPolicy
from stadium.context import STADIUM
from stadium.endpoints import Site
from stadium.faults import FaultSpec
from stadium.matches.clock import StadiumClock
from stadium.matches.distortion import UNDISTORTED, Distortion
from stadium.shapes import SHAPES
from stadium.validation import StrictModel, first_error

Model = TypeVar("Model", bound=BaseModel)


def add_routes(app: web.Application) -> None:
    app.router.add_get("/control/health", health)
    app.router.add_post("/control/pace", set_pace)
    app.router.add_post("/control/skip", skip)
    app.router.add_post("/control/sessions", set_sessions)
    app.router.add_post("/control/tokens", set_tokens)
    app.router.add_post("/control/browser_only", set_browser_only)
    app.router.add_post("/control/distortions", set_distortion)
    app.router.add_get("/control/distortions", show_distortions)
    app.router.add_post("/control/shapes", set_shapes)
    app.router.add_get("/control/shapes", show_shapes)
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


class Pace(StrictModel):
    pace: float


class Skip(StrictModel):
    seconds: float


class PolicyChange(StrictModel):
    """Changes the lifetime of sessions or tokens; `revoke` ends all that were issued."""

    seconds: float | None = None
    revoke: bool = False


class TokenPolicyChange(PolicyChange):
    in_pages: bool | None = None  # put a token into each page


class BrowserOnly(StrictModel):
    """Has a site refuse every client but a browser, or ends that."""

    site: Site
    is_on: bool = Field(True, alias="on")


class SiteDistortion(Distortion):
    """Fields that are not given keep their value; the first site of a match only applies the delay."""

    site: Site


class SiteShapes(StrictModel):
    """The shapes of a site, in place of those that it had."""

    site: Site
    shapes: list[str]


async def set_pace(request: web.Request) -> web.Response:
    return _change_clock(request, StadiumClock.set_pace, (await _body(request, Pace)).pace)


async def skip(request: web.Request) -> web.Response:
    """Skips simulated seconds; all events in between happen at once."""
    return _change_clock(request, StadiumClock.skip, (await _body(request, Skip)).seconds)


def _change_clock(request: web.Request, change: Callable[[StadiumClock, float], None], value: float) -> web.Response:
    clock = request.app[STADIUM].simulation.clock
    try:
        change(clock, value)
    except ValueError as error:
        raise _bad(str(error)) from error
    return web.json_response({"pace": clock.pace, "simulated_time": clock.now()})


async def set_sessions(request: web.Request) -> web.Response:
    change = await _body(request, PolicyChange)
    return _change_policy(request, request.app[STADIUM].session_policy, change)


async def set_tokens(request: web.Request) -> web.Response:
    change, policy = await _body(request, TokenPolicyChange), request.app[STADIUM].tokens.policy
    if change.in_pages is not None:
        policy.in_pages = change.in_pages
    return _change_policy(request, policy, change)


def _change_policy(request: web.Request, policy: AccessPolicy, change: PolicyChange) -> web.Response:
    if not change.model_fields_set:
        raise _bad(f"give one or more of {', '.join(type(change).model_fields)}")
    if change.seconds is not None:
        policy.seconds = change.seconds
    if change.revoke:
        policy.not_before = request.app[STADIUM].simulation.clock.wall()
    return web.json_response(asdict(policy))


async def set_browser_only(request: web.Request) -> web.Response:
    change, sites = await _body(request, BrowserOnly), request.app[STADIUM].browser_only
    (sites.add if change.is_on else sites.discard)(change.site)
    return web.json_response({"browser_only": sorted(sites)})


async def set_distortion(request: web.Request) -> web.Response:
    change, distortions = await _body(request, SiteDistortion), request.app[STADIUM].simulation.programme.distortions
    given = change.model_dump(exclude_unset=True, exclude={"site"})
    changed = distortions[change.site] = distortions.get(change.site, UNDISTORTED).model_copy(update=given)
    return web.json_response({"site": change.site, **changed.model_dump(by_alias=True)})


async def show_distortions(request: web.Request) -> web.Response:
    distortions = request.app[STADIUM].simulation.programme.distortions
    return web.json_response({site: distortion.model_dump(by_alias=True) for site, distortion in distortions.items()})


async def set_shapes(request: web.Request) -> web.Response:
    change, simulation = await _body(request, SiteShapes), request.app[STADIUM].simulation
    try:
        simulation.set_shapes({**simulation.programme.shapes, change.site: tuple(change.shapes)})
    except ValueError as error:
        raise _bad(str(error)) from error
    return web.json_response({"site": change.site, "shapes": simulation.programme.shapes.get(change.site, ())})


async def show_shapes(request: web.Request) -> web.Response:
    table = {name: {"effect": shape.effect, "sites": shape.sites} for name, shape in SHAPES.items()}
    return web.json_response({"active": request.app[STADIUM].simulation.programme.shapes, "shapes": table})


async def add_fault(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    wall = stadium.simulation.clock.wall()
    fault = stadium.faults.add(await _body(request, FaultSpec), wall)
    return web.json_response(fault.as_json(wall), status=201)


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
    """Resets counters, faults, policies, accepted clients, distortions and shapes. Clock and matches continue."""
    stadium = request.app[STADIUM]
    removed = stadium.faults.clear()
    stadium.counters.reset()
    stadium.session_policy.seconds, stadium.session_policy.not_before = stadium.simulation.config.session_seconds, 0.0
    stadium.tokens.reset()
    stadium.browser_only = set(stadium.simulation.config.browser_only)
    stadium.simulation.reset_distortions()
    stadium.simulation.set_shapes(dict(stadium.simulation.config.shapes))
    return web.json_response({"removed": removed})


async def _body(request: web.Request, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(await request.read() or b"{}")
    except ValidationError as error:
        raise _bad(first_error(error)) from error


def _bad(message: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=json.dumps({"error": message}), content_type="application/json")
