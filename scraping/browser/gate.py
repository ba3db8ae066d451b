"""The gate: a forward proxy inside the worker, and the browser's only way out.

Guards against what a page does by itself: redirects, images, frames, sockets, whatever its script asks for.
Playwright's routing does not see all of that; a proxy does, and the browser can resolve no name without it. The gate
knows each session by its password, lets it through to the hosts of its own site only, connects to the very addresses
that it has looked at, counts every byte, and cuts what runs too long or brings too much.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver

from scraping.browser.heads import MAX_HEAD_BYTES, BadHeadError, Head, read_head, written
from scraping.browser.passage import Passage, Unreachable
from scraping.browser.visitors import CutOff, GateLimits, Traffic, Visitor
from scraping.errors import EgressRefused
from scraping.readings import Site

HOST = "127.0.0.1"
REFUSED_HEADER = "x-victoryline-gate"  # tells our own refusal from a source's
LINGER_SECONDS = 5.0  # for the last bytes on their way to the browser


@dataclass(frozen=True)
class GatePass:
    """What a browser context needs to get through: its proxy."""

    server: str
    username: str
    password: str = field(repr=False)


class Gate:
    """Lives on the loop thread."""

    def __init__(self, limits: GateLimits | None = None, *, resolver: AbstractResolver | None = None) -> None:
        self.port = 0
        self._limits = limits or GateLimits()
        self._resolver = resolver
        self._visitors: dict[str, Visitor] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Open it; nothing happens where it is open already."""
        async with self._starting:
            if self._server is None:
                self._resolver = self._resolver or ThreadedResolver()
                self._server = await asyncio.start_server(self._welcome, HOST, 0, limit=MAX_HEAD_BYTES)
                self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close it, and cut everything that is open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._visitors.clear()
        open_ones = tuple(self._connections)
        for task in open_ones:
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)

    def register(self, session_id: str, site: Site, upstream: str | None = None) -> GatePass:
        """Let a session through to its site. `upstream`: the HTTP proxy behind the gate, with user and password."""
        visitor = self._visitors[session_id] = Visitor(site, upstream, self._limits)
        return GatePass(f"http://{HOST}:{self.port}", session_id, visitor.password)

    def traffic(self, session_id: str) -> Traffic:
        visitor = self._visitors.get(session_id)
        return visitor.traffic if visitor else Traffic()

    def forget(self, session_id: str) -> None:
        """Its password is worth nothing any more, and what it has open is cut."""
        visitor = self._visitors.pop(session_id, None)
        for task in visitor.connections if visitor else ():
            task.cancel()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer, task)
            writer.close()
            async with asyncio.timeout(LINGER_SECONDS):
                await writer.wait_closed()
        except (OSError, EOFError, CutOff, asyncio.CancelledError):  # TimeoutError is an OSError
            # Either side went away or was sent away. A browser that sees a plain end takes the half for the whole.
            _reset(writer)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                head = await read_head(reader)
            visitor = self._visitor(head)
        except BadHeadError as error:
            _refuse(writer, 400, str(error))
            return
        if visitor is None:
            _refuse(writer, 407, "Who is there?", {"Proxy-Authenticate": 'Basic realm="gate"'})
            return
        visitor.connections.add(task)
        try:
            assert self._resolver is not None
            await Passage(visitor, self._limits, self._resolver, (reader, writer)).go(head)
        except BadHeadError as error:
            _refuse(writer, 400, str(error))
        except EgressRefused as error:
            visitor.refuse(_host_of(head), str(error))
            _refuse(writer, 403, str(error), {REFUSED_HEADER: "refused"})
        except Unreachable as error:
            _refuse(writer, error.status, str(error))
        finally:
            visitor.connections.discard(task)

    def _visitor(self, head: Head) -> Visitor | None:
        scheme, _, told = head.get("proxy-authorization").partition(" ")
        if scheme.lower() != "basic":
            return None
        with contextlib.suppress(ValueError):
            name, _, password = base64.b64decode(told, validate=True).decode().partition(":")
            visitor = self._visitors.get(name)
            if visitor is not None and visitor.is_known_by(password):
                return visitor
        return None


def _reset(writer: asyncio.StreamWriter) -> None:
    """From now on closing it says that something went wrong."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _host_of(head: Head) -> str:
    """Without path and query, for the log."""
    target = head.start[1].partition("://")[2] or head.start[1]
    return target.partition("/")[0].rpartition("@")[2].partition("?")[0][:100]


def _refuse(writer: asyncio.StreamWriter, status: int, words: str, fields: dict[str, str] | None = None) -> None:
    body = words.encode()
    added = {**(fields or {}), "Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body))}
    start = "HTTP/1.1", str(status), HTTPStatus(status).phrase
    writer.write(written(start, added, ("Connection", "close")) + body)
