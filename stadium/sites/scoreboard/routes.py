"""Routes of the scoreboard site: pages, and the WebSocket that keeps an open page up to date."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import WSCloseCode, web

from stadium.assets import asset
from stadium.context import STADIUM, Stadium
from stadium.endpoints import Endpoint, robots_endpoint
from stadium.matches.programme import Match
from stadium.responses import missing_page
from stadium.sites.crex.feed import feed_item, feed_page
from stadium.sites.scoreboard import markup
from stadium.sites.scoreboard.markup import Layout, layout_for

CHECK_SECONDS = 0.25
CLOCK_SECONDS = 1.0


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("board", "list", "GET", "/board", list_page),
        Endpoint("board", "list", "GET", "/board/", list_page),
        Endpoint("board", "page", "GET", "/board/match/{name}", match_page),
        Endpoint("board", "live", "GET", "/board/push/{id}", push),
        Endpoint("board", "asset", "GET", "/board/assets/{file:.+}", asset),
        robots_endpoint("board"),
    ]


async def list_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    simulation, layout = stadium.simulation, _layout(stadium)
    rows = [(match, simulation.cricket(match)) for match in simulation.listed_matches("board")]
    return stadium.page(request, markup.page("Scoreboards", markup.cards(layout, rows), _clock(stadium, layout)))


async def match_page(request: web.Request) -> web.Response:
    """The present state of a match; `?before=ID` shows older balls with the same score, without updates."""
    stadium = request.app[STADIUM]
    match = stadium.match(request)
    if match is None:
        return missing_page()
    before = request.query.get("before", "")
    if before and not (before.isascii() and before.isdigit()):
        return web.Response(status=400, text="<h1>400 Bad Request</h1>", content_type="text/html")
    layout = _layout(stadium, match.key)
    content = _scoreboard(stadium, match, layout, int(before) if before else None)
    title = " v ".join(team.name for team in match.teams)
    html = markup.page(title, content, _clock(stadium, layout), live="" if before else match.key)
    return stadium.page(request, html)


def _layout(stadium: Stadium, key: str = "") -> Layout:
    """Returns the layout of a match's page, or of the list; the fault `layout` also changes pages that are open."""
    target, path = ("page", f"/board/match/{key}") if key else ("list", "/board/")
    wall = stadium.simulation.clock.wall()
    fault = stadium.faults.find_active("layout", site="board", target=target, path=path, match=key, wall=wall)
    return layout_for(None if fault is None else fault.value)


def _scoreboard(stadium: Stadium, match: Match, layout: Layout, before: int | None = None) -> str:
    """The present score, with the newest balls or those before an id."""
    feed, start = stadium.simulation.log(match, feed_item), stadium.simulation.start_wall(match)
    return markup.scoreboard(layout, match, feed.state, start, feed_page(feed.items, before, markup.BALLS_SHOWN))


def _clock(stadium: Stadium, layout: Layout) -> str:
    return markup.clock(layout, stadium.simulation.clock.wall())


async def push(request: web.Request) -> web.StreamResponse:
    """Sends new markup after each event, and the clock in between, until the client closes the socket."""
    stadium = request.app[STADIUM]
    match = stadium.match(request)
    if match is None:
        raise web.HTTPNotFound
    socket = web.WebSocketResponse(heartbeat=20)
    await socket.prepare(request)
    closed = asyncio.ensure_future(_until_closed(socket))
    try:
        await _send_updates(stadium, socket, match, closed)
    finally:
        closed.cancel()
        with contextlib.suppress(Exception):
            await socket.close(code=WSCloseCode.GOING_AWAY)
    return socket


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass


async def _send_updates(
    stadium: Stadium, socket: web.WebSocketResponse, match: Match, closed: asyncio.Future[None]
) -> None:
    sent: tuple[int, int] | None = None
    clock_at = 0.0
    with contextlib.suppress(ConnectionError):
        while not (closed.done() or stadium.stopping.is_set()):
            wall = stadium.simulation.clock.wall()
            if not _is_silent(stadium, match, wall):
                layout = _layout(stadium, match.key)
                current = stadium.simulation.event_count(match), layout.number
                if current != sent:
                    sent = current
                    await socket.send_str("b" + _scoreboard(stadium, match, layout))
                if wall - clock_at >= CLOCK_SECONDS:
                    clock_at = wall
                    await socket.send_str("c" + _clock(stadium, layout))
            await asyncio.wait((closed,), timeout=CHECK_SECONDS)


def _is_silent(stadium: Stadium, match: Match, wall: float) -> bool:
    """True while a fault `hang` of target `live` keeps the socket open without sending."""
    path = f"/board/push/{match.key}"
    return bool(stadium.faults.find_active("hang", site="board", target="live", path=path, match=match.key, wall=wall))
