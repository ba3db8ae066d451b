"""The socket through which a page is kept fresh: new markup when something happened, a clock in between."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import WSCloseCode, web

from stadium.board import show
from stadium.context import STADIUM, Stadium
from stadium.programme import Match

LOOK_SECONDS = 0.25
CLOCK_SECONDS = 1.0


async def push(request: web.Request) -> web.StreamResponse:
    stadium = request.app[STADIUM]
    match = stadium.match(request, "board", request.match_info["id"])
    if match is None:
        raise web.HTTPNotFound
    socket = web.WebSocketResponse(heartbeat=20)
    await socket.prepare(request)
    listening = asyncio.ensure_future(_until_closed(socket))
    try:
        await _tell(request, socket, stadium, match, listening)
    finally:
        listening.cancel()
        with contextlib.suppress(Exception):
            await socket.close(code=WSCloseCode.GOING_AWAY)
    return socket


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for _ in socket:
        pass


async def _tell(
    request: web.Request,
    socket: web.WebSocketResponse,
    stadium: Stadium,
    match: Match,
    listening: asyncio.Future[None],
) -> None:
    told: tuple[int, int] | None = None
    clock_at = 0.0
    with contextlib.suppress(ConnectionError):
        while not (listening.done() or stadium.stopping.is_set()):
            wall = stadium.world.clock.wall()
            if not _is_mute(stadium, match, wall):
                skin = show.skin(stadium, match.key)
                standing = stadium.world.index(match), skin.number
                if standing != told:
                    told = standing
                    await socket.send_str("b" + show.board(request.app, match, skin))
                if wall - clock_at >= CLOCK_SECONDS:
                    clock_at = wall
                    await socket.send_str("c" + show.clock(stadium, skin))
            await asyncio.wait((listening,), timeout=LOOK_SECONDS)


def _is_mute(stadium: Stadium, match: Match, wall: float) -> bool:
    """A planted `hang` of target `live` leaves the socket open and says nothing through it."""
    path = f"/board/push/{match.key}"
    return bool(stadium.faults.standing("hang", site="board", target="live", path=path, match=match.key, wall=wall))
