"""The forward proxy inside the worker: every browser context uses it, and the browser has no other way out.

Guards against requests that a page makes by itself: redirects, images, frames, web sockets, fetches. Playwright's
`route()` does not see all of them; a proxy does. The proxy identifies a session by its password, allows the hosts of
the session's own site only, connects to the addresses that it has checked, counts all bytes, and closes connections
that exceed a limit.

Chromium's `--host-resolver-rules` alone cannot replace it (the launcher sets them as a second barrier):
- They are a launch argument of the whole browser. One browser serves several sources with different hosts, ports and
  permissions, and a changed source or a changed address of a host would require a new browser.
- A context with an upstream proxy sends names to that proxy; the resolver rules are not applied to them.
- They limit neither bytes nor time: an endless body or a slow drip would end only with Chromium's memory.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import logging
import secrets
import socket
import struct
import time
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver
from prometheus_client import Counter

from scraping.browser.egress.connection import (
    MAX_HEAD_BYTES,
    MEGABYTE,
    ConnectionCut,
    MalformedHeadError,
    MessageHead,
    ProxyConnection,
    TrafficLimits,
    Unreachable,
    encode_head,
    read_head,
)
from scraping.browser.egress.rules import EgressRules
from scraping.errors import EgressRefused
from scraping.readings import Site

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
REFUSED_HEADER = "x-victoryline-gate"  # distinguishes our own 403 from a source's
LINGER_SECONDS = 5.0  # for the last bytes on their way to the browser
MAX_LOGGED_CAUSES = 100  # of a session: a page that requests ever new names must not fill the log
MINUTE = 60.0

_refused = Counter("victoryline_egress_refused", "Requests of pages that the forward proxy refused.", ["source"])
_cut = Counter(
    "victoryline_egress_cut",
    "Connections of pages that were closed: idle, too long open or too many bytes.",
    ["source"],
)


@dataclass(frozen=True)
class ProxyCredentials:
    """The proxy settings of a browser context."""

    server: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Traffic:
    """Bytes of a session through the proxy (with heads and TLS), and its refused requests."""

    bytes_in: int = 0
    bytes_out: int = 0
    refused: int = 0
    last_refusal: str = ""


class RegisteredSession:
    """A session that may use the proxy: its rules, password, open connections and traffic."""

    def __init__(self, site: Site, upstream: str | None, limits: TrafficLimits) -> None:
        self.rules = EgressRules.of(site)
        self.upstream = upstream
        self.password = secrets.token_urlsafe(24)
        self.connections: set[asyncio.Task[None]] = set()
        self._limits = limits
        self._in = self._out = self._refused = 0
        self._last_refusal = ""
        self._logged: set[str] = set()
        self._minute = (0.0, 0)  # start of the current minute, and its bytes

    @property
    def traffic(self) -> Traffic:
        return Traffic(self._in, self._out, self._refused, self._last_refusal)

    def has_password(self, password: str) -> bool:
        return hmac.compare_digest(self.password.encode(), password.encode())

    def count(self, size: int, *, is_in: bool) -> None:
        """Adds transferred bytes; ConnectionCut where the session exceeds its bytes per minute."""
        if is_in:
            self._in += size
        else:
            self._out += size
        now = time.monotonic()
        began, before = self._minute
        self._minute = (began, before + size) if now - began < MINUTE else (now, size)
        if self._minute[1] > self._limits.minute_bytes:
            raise self.cut(f"more than {self._limits.minute_bytes // MEGABYTE} MB in a minute")

    def refuse(self, host: str, reason: str) -> None:
        self._refused += 1
        _refused.labels(self.rules.key).inc()
        self._last_refusal = reason
        self._log_once(host, "A page of %s requested %s and was refused: %s", self.rules.key, host, reason)

    def cut(self, reason: str) -> ConnectionCut:
        _cut.labels(self.rules.key).inc()
        self._log_once(
            reason, "A connection of %s was closed: %s. The page is read again later", self.rules.key, reason
        )
        return ConnectionCut(reason)

    def _log_once(self, cause: str, message: str, *arguments: str) -> None:
        """Logs each host or cause once. Never the path, which may hold personal data."""
        if cause not in self._logged and len(self._logged) < MAX_LOGGED_CAUSES:
            self._logged.add(cause)
            logger.warning(message, *arguments, extra={"action": "egress_refused", "source": self.rules.key})


class ForwardProxy:
    """Lives on the loop thread."""

    def __init__(self, limits: TrafficLimits | None = None, *, resolver: AbstractResolver | None = None) -> None:
        self.port = 0
        self._limits = limits or TrafficLimits()
        self._resolver = resolver
        self._sessions: dict[str, RegisteredSession] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Starts to listen on a free port, unless it listens already."""
        async with self._starting:
            if self._server is None:
                self._resolver = self._resolver or ThreadedResolver()
                self._server = await asyncio.start_server(self._accept, HOST, 0, limit=MAX_HEAD_BYTES)
                self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stops listening and closes every open connection."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._sessions.clear()
        connections = tuple(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def register(self, session_id: str, site: Site, upstream: str | None = None) -> ProxyCredentials:
        """Allows a session to reach its site. `upstream`: URL of the next HTTP proxy, with user and password."""
        session = self._sessions[session_id] = RegisteredSession(site, upstream, self._limits)
        return ProxyCredentials(f"http://{HOST}:{self.port}", session_id, session.password)

    def traffic(self, session_id: str) -> Traffic:
        session = self._sessions.get(session_id)
        return session.traffic if session else Traffic()

    def unregister(self, session_id: str) -> None:
        """Invalidates the session's password and closes its connections."""
        session = self._sessions.pop(session_id, None)
        for task in session.connections if session else ():
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer, task)
            writer.close()
            async with asyncio.timeout(LINGER_SECONDS):
                await writer.wait_closed()
        except (OSError, EOFError, ConnectionCut, asyncio.CancelledError):  # TimeoutError is an OSError
            # Reset, because after a regular close the browser would take a partial body for a complete one.
            _reset_on_close(writer)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                head = await read_head(reader)
        except MalformedHeadError as error:
            _respond(writer, 400, str(error))
            return
        session = self._authenticate(head)
        if session is None:
            _respond(writer, 407, "Credentials required.", {"Proxy-Authenticate": 'Basic realm="gate"'})
            return
        session.connections.add(task)
        try:
            assert self._resolver is not None
            await ProxyConnection(session, self._limits, self._resolver, (reader, writer)).run(head)
        except MalformedHeadError as error:
            _respond(writer, 400, str(error))
        except EgressRefused as error:
            session.refuse(_host_of(head), str(error))
            _respond(writer, 403, str(error), {REFUSED_HEADER: "refused"})
        except Unreachable as error:
            _respond(writer, error.status, str(error))
        finally:
            session.connections.discard(task)

    def _authenticate(self, head: MessageHead) -> RegisteredSession | None:
        scheme, _, credentials = head.get("proxy-authorization").partition(" ")
        if scheme.lower() != "basic":
            return None
        with contextlib.suppress(ValueError):
            name, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
            session = self._sessions.get(name)
            if session is not None and session.has_password(password):
                return session
        return None


def _reset_on_close(writer: asyncio.StreamWriter) -> None:
    """Makes the close a TCP reset, which the browser reports as an error."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _host_of(head: MessageHead) -> str:
    """Returns the requested host for the log, without path and query."""
    target = head.start[1].partition("://")[2] or head.start[1]
    return target.partition("/")[0].rpartition("@")[2].partition("?")[0][:100]


def _respond(writer: asyncio.StreamWriter, status: int, message: str, fields: dict[str, str] | None = None) -> None:
    body = message.encode()
    added = {**(fields or {}), "Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body))}
    start = "HTTP/1.1", str(status), HTTPStatus(status).phrase
    writer.write(encode_head(start, added, ("Connection", "close")) + body)
