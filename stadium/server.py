"""Builds the stadium's web application and runs it until a signal stops it."""

from __future__ import annotations

import asyncio
import signal
import sys
from html import escape
from pathlib import Path
from typing import get_args

from aiohttp import web

from stadium import client_check, control, ground_truth
from stadium.access import AccessPolicy, SessionCheck, TokenIssuer
from stadium.config import StadiumConfig
from stadium.context import STADIUM, Stadium
from stadium.endpoints import ENDPOINTS, Site, register
from stadium.faults import FaultRegistry
from stadium.matches.simulation import Simulation
from stadium.middleware import request_middleware
from stadium.sites import crexpro
from stadium.sites.crex import routes as crex
from stadium.sites.espn import routes as espn
from stadium.sites.espncricinfo import routes as espncricinfo
from stadium.sites.scoreboard import routes as scoreboard
from stadium.sites.sofascore import cricket_routes as sofascore_cricket
from stadium.sites.sofascore import football_routes as sofascore_football

SHUTDOWN_SECONDS = 0.5
_SITES = (crex, crexpro, scoreboard, sofascore_football, sofascore_cricket, espncricinfo, espn)


def build_app(config: StadiumConfig, simulation: Simulation | None = None) -> web.Application:
    simulation = simulation or Simulation(config)
    app = web.Application(middlewares=[request_middleware])
    app[STADIUM] = Stadium(
        simulation=simulation,
        faults=FaultRegistry(config.seed),
        session_policy=AccessPolicy(config.session_seconds),
        session_checks={
            "crex": SessionCheck("crex", "cxsid", "cxjs", config.seed),
            "sofascore": SessionCheck("sofascore", "sfsid", "sfclr", config.seed),
            "sofascorecricket": SessionCheck("sofascorecricket", "sfcsid", "sfcclr", config.seed),
        },
        tokens=TokenIssuer(config.seed),
        browser_only=set(config.browser_only),
    )
    app[ENDPOINTS] = {}
    for site in _SITES:
        register(app, site.endpoints())
    app.router.add_get("/", index_page)
    app.router.add_get("/robots.txt", robots)
    control.add_routes(app)
    ground_truth.add_routes(app)
    app.on_shutdown.append(_release_waiting)
    return app


async def index_page(request: web.Request) -> web.Response:
    """Lists the matches of all sites with links to their pages and their ground truth."""
    simulation = request.app[STADIUM].simulation
    moment = simulation.clock.now()
    rows = []
    for match in (match for site in get_args(Site) for match in simulation.listed_matches(site, moment)):
        fields = ground_truth.summary(simulation, match, moment)
        names = escape(" - ".join(team.name for team in match.teams))
        rows.append(
            f'<tr><td>{match.site}</td><td><a href="{fields["url"]}">{names}</a></td><td>{fields["status"]}</td>'
            f'<td>{fields["phase"]}</td><td><a href="/truth/matches/{match.site}/{match.key}">truth</a></td></tr>'
        )
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Stadium</title></head><body><h1>Stadium</h1>'
        f"<p>Simulated sites, pace {simulation.clock.pace:g}.</p><table>{''.join(rows)}</table></body></html>"
    )
    return web.Response(text=html, content_type="text/html")


async def robots(_: web.Request) -> web.Response:
    return web.Response(text="User-agent: *\nAllow: /\nDisallow: /control\nDisallow: /truth\n")


async def _release_waiting(app: web.Application) -> None:
    """Ends requests that a fault keeps waiting, so that they do not delay the shutdown."""
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
        tls = client_check.tls_context(config.tls) if config.tls else None
        await web.TCPSite(runner, config.host, config.port, backlog=1024, ssl_context=tls).start()
        port = int(runner.addresses[0][1])
        for line in app[STADIUM].simulation.programme.replay_summary():
            _log(line)
        _log(f"programme {config.programme} at {'https' if tls else 'http'}://{config.host}:{port}/")
        if config.port_file:
            _write_port(config.port_file, port)
        await stop.wait()
    finally:
        await runner.cleanup()
        _log("closed")


def _log(text: str) -> None:
    sys.stdout.write(f"stadium: {text}\n")
    sys.stdout.flush()


def _write_port(path: Path, port: int) -> None:
    """Writes the file atomically: another process that waits for it never reads a partial number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(f"{port}\n")
    partial.replace(path)
