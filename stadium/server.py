"""Builds the stadium's web application and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from aiohttp import web

from stadium import control, front, truth
from stadium.board import routes as board
from stadium.config import StadiumConfig
from stadium.context import STADIUM, Stadium
from stadium.crex import routes as crex
from stadium.crex.feed import FeedBook
from stadium.crexpro import routes as crexpro
from stadium.crexpro.tokens import TokenOffice
from stadium.doorman import doorman
from stadium.endpoints import ENDPOINTS, register
from stadium.espn import routes as espn
from stadium.espn.plays import Diary
from stadium.espncricinfo import routes as espncricinfo
from stadium.espncricinfo.balls import BallBook
from stadium.faults import FaultBox
from stadium.gate import Gate, SessionPolicy
from stadium.sofascore import cricket_routes as sofascore_cricket
from stadium.sofascore import routes as sofascore
from stadium.sofascore.cricket_balls import IncidentBook
from stadium.world import Shelf, World

SHUTDOWN_SECONDS = 0.5


def build_app(config: StadiumConfig, world: World | None = None) -> web.Application:
    world = world or World(config)
    app = web.Application(middlewares=[doorman])
    app[ENDPOINTS] = {}
    app[STADIUM] = Stadium(
        world=world,
        faults=FaultBox(config.seed),
        policy=SessionPolicy(config.session_seconds),
        gates={
            "crex": Gate("crex", "cxsid", "cxjs", config.seed),
            "sofascore": Gate("sofascore", "sfsid", "sfclr", config.seed),
            "sofascorecricket": Gate("sofascorecricket", "sfcsid", "sfcclr", config.seed),
        },
        tokens=TokenOffice(config.seed),
    )
    app[crex.FEEDS] = Shelf[FeedBook](max(96, 2 * len(world.programme.slots)))
    register(app, crex.endpoints() + sofascore.endpoints() + crexpro.endpoints())
    register(app, board.endpoints())
    app[sofascore_cricket.BOOKS] = Shelf[IncidentBook](max(96, 2 * len(world.programme.slots)))
    register(app, sofascore_cricket.endpoints())
    app[espncricinfo.BOOKS] = Shelf[BallBook](max(96, 2 * len(world.programme.slots)))
    register(app, espncricinfo.endpoints())
    app[espn.DIARIES] = Shelf[Diary](max(96, 2 * len(world.programme.slots)))
    register(app, espn.endpoints())
    front.add_routes(app)
    control.add_routes(app)
    truth.add_routes(app)
    app.on_shutdown.append(_release_waiting)
    return app


async def _release_waiting(app: web.Application) -> None:
    """Requests that a fault keeps waiting must not keep the process alive."""
    app[STADIUM].stopping.set()
    app[STADIUM].faults.clear()


def serve(config: StadiumConfig) -> None:
    """Blocks until SIGTERM or SIGINT."""
    asyncio.run(_serve(config))


async def _serve(config: StadiumConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    app = build_app(config)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, config.host, config.port, backlog=1024).start()
        port = int(runner.addresses[0][1])
        for line in app[STADIUM].world.programme.announcement():
            _say(line)
        _say(f"programme {config.programme} at http://{config.host}:{port}/")
        if config.port_file:
            _write_port(config.port_file, port)
        await stop.wait()
    finally:
        await runner.cleanup()
        _say("closed")


def _say(text: str) -> None:
    sys.stdout.write(f"stadium: {text}\n")
    sys.stdout.flush()


def _write_port(path: Path, port: int) -> None:
    """In one step, so that nobody who waits for the file reads half a number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(f"{port}\n")
    partial.replace(path)
