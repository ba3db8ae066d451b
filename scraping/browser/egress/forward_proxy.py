"""The forward proxy of a session: a SOCKS5 server inside the worker, and the browser context's only way out.

Guards against requests that a page makes by itself: redirects, images, frames, web sockets, fetches. Playwright's
`route()` does not see all of them; a proxy does. It allows the hosts of the session's own site only, connects to the
addresses that it has checked, counts all bytes, and closes connections that exceed a limit. SOCKS, because a
connection then has one target for all of its requests; an HTTP proxy would have to parse and check each of them.

Chromium's `--host-resolver-rules` alone cannot replace it (tried; the launcher sets them as a second barrier):
- Behind an upstream proxy they are not applied: Chromium sent a forbidden name and 169.254.169.254 to that proxy.
- They limit neither bytes nor time: 35 MB of an endless page, in ten seconds, took 1.6 GB of Chromium's memory.
- They are a launch argument: a new source, or a new address of a host, would need a new browser.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import os
import socket
import struct
import time
from collections.abc import Coroutine
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver
from prometheus_client import Counter

from scraping.browser.egress.rules import CheckedResolver, EgressRules, is_ip_literal
from scraping.errors import EgressRefused
from scraping.readings import Site
from victoryline.lib.units import MEGABYTE

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
CHUNK_BYTES = 64 * 1024
LINGER_SECONDS = 5.0  # for the last bytes on their way to the browser
MAX_LOGGED_CAUSES = 100  # of a session: a page that requests ever new names must not fill the log
# Codes of RFC 1928.
SOCKS_VERSION, NO_AUTHENTICATION, CONNECT = 5, 0, 1
IPV4, HOST_NAME, IPV6 = 1, 3, 4
SUCCEEDED, NOT_ALLOWED, UNREACHABLE = 0, 2, 4

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_refused = Counter("victoryline_egress_refused", "Connections of pages that the forward proxy refused.", ["source"])
_cut = Counter(
    "victoryline_egress_cut",
    "Connections of pages that were closed: idle, too long open or too many bytes.",
    ["source"],
)


class ConnectionCut(Exception):  # noqa: N818 - not an error of the proxy
    """The connection was idle, open too long, or transferred too many bytes."""


@dataclass(frozen=True)
class TrafficLimits:
    request_seconds: float = 15.0
    connect_seconds: float = 10.0
    idle_seconds: float = 120.0  # without a byte in either direction
    connection_seconds: float = 3600.0
    # Bytes allowed at once, and then per second of age: attached pages stay open for hours.
    connection_bytes: int = 32 * MEGABYTE
    connection_bytes_a_second: int = MEGABYTE // 2
    minute_bytes: int = 256 * MEGABYTE  # of all connections of a session


@dataclass
class Traffic:
    """Bytes of a session through the proxy (with heads and TLS), and its refused connections."""

    bytes: int = 0  # in both directions
    requested: int = 0  # bytes of responses that we have requested
    refused: int = 0
    last_refusal: str = ""


class ForwardProxy:
    """Lives on the loop thread. `upstream`: URL of the next HTTP proxy, with user and password.

    `own_user_only`: refuses programs of other users on this machine.
    """

    def __init__(
        self,
        site: Site,
        upstream: str | None = None,
        *,
        limits: TrafficLimits | None = None,
        resolver: AbstractResolver | None = None,
        own_user_only: bool = True,
    ) -> None:
        self.rules = EgressRules.of(site)
        self.traffic = Traffic()
        self.limits = limits or TrafficLimits()
        self._upstream = upstream
        self._resolver = CheckedResolver(self.rules, resolver or ThreadedResolver())
        self._own_user_only = own_user_only
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._logged: set[str] = set()
        self._minute = (0.0, 0)  # start of the current minute, and its bytes

    def credit(self, size: int) -> None:
        """Takes bytes of a response that we have requested, and limited, out of the limits for what pages load."""
        self.traffic.requested += size
        began, counted = self._minute
        self._minute = began, max(0, counted - size)

    async def start(self) -> str:
        """Listens on a free port, unless it listens already; returns its address for a browser context."""
        if self._server is None:
            # In a context of its own: log lines of a connection must not name the task that opened the first page.
            starting = asyncio.start_server(self._accept, HOST, 0)
            self._server = await asyncio.get_running_loop().create_task(starting, context=Context())
        return f"socks5://{HOST}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        connections = tuple(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if not self._own_user_only or is_own_user(writer):
                await self._serve(reader, writer)
            writer.close()
            async with asyncio.timeout(LINGER_SECONDS):
                await writer.wait_closed()
        except (OSError, EOFError, ValueError, ConnectionCut, asyncio.CancelledError):  # TimeoutError is an OSError
            # Reset, because after a regular close the browser would take a partial body for a complete one.
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads the target of one connection, checks it, connects, and copies until one side closes."""
        async with asyncio.timeout(self.limits.request_seconds):
            host, port = await read_target(reader, writer)
        try:
            remote = await self._connect(host, port)
        except EgressRefused as error:
            self.traffic.refused += 1
            self.traffic.last_refusal = str(error)
            _refused.labels(self.rules.key).inc()
            self._log_once(host, "A page of %s requested %s and was refused: %s", self.rules.key, host[:100], error)
            writer.write(_reply(NOT_ALLOWED))
            return
        except (OSError, EOFError, UnicodeError, asyncio.LimitOverrunError):
            writer.write(_reply(UNREACHABLE))
            return
        try:
            writer.write(_reply(SUCCEEDED))
            await self._copy_both_ways((reader, writer), remote)
        finally:
            remote[1].transport.abort()

    async def _connect(self, host: str, port: int) -> Streams:
        """Connects to the site, or to its upstream proxy, which resolves the site's name itself."""
        self.rules.check_host(host, port)
        if self._upstream:
            return await self._connect_upstream(host, port)
        addresses = [host]
        if not is_ip_literal(host):
            async with asyncio.timeout(self.limits.connect_seconds):
                addresses = [one["host"] for one in await self._resolver.resolve(host, port)]
        for address in addresses:
            with contextlib.suppress(OSError):
                return await self._open(address, port)
        raise OSError(f"{host} accepts no connections")

    async def _open(self, host: str, port: int, *, uses_tls: bool = False) -> Streams:
        async with asyncio.timeout(self.limits.connect_seconds):
            return await asyncio.open_connection(host, port, ssl=True if uses_tls else None)

    async def _connect_upstream(self, host: str, port: int) -> Streams:
        """Opens a tunnel through the upstream proxy. A proxy that refuses it counts as unreachable."""
        proxy = urlsplit(self._upstream or "")
        uses_tls = proxy.scheme == "https"
        remote = await self._open(proxy.hostname or "", proxy.port or (443 if uses_tls else 80), uses_tls=uses_tls)
        try:
            target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
            if proxy.username is not None:
                user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
                lines.append(f"Proxy-Authorization: Basic {base64.b64encode(user).decode()}")
            remote[1].write("\r\n".join([*lines, "", ""]).encode())
            async with asyncio.timeout(self.limits.idle_seconds):
                response = await remote[0].readuntil(b"\r\n\r\n")
            if response.split()[1:2] != [b"200"]:
                raise OSError("the upstream proxy refused the tunnel")
        except BaseException:
            remote[1].transport.abort()
            raise
        return remote

    async def _copy_both_ways(self, browser: Streams, remote: Streams) -> None:
        """Copies until one side closes; ConnectionCut at a limit."""
        limits, began = self.limits, time.monotonic()
        moved, transferred, requested = began, 0, self.traffic.requested

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            nonlocal moved, transferred
            while chunk := await source.read(CHUNK_BYTES):
                moved, transferred = time.monotonic(), transferred + len(chunk)
                self._count(len(chunk))
                allowed = limits.connection_bytes + limits.connection_bytes_a_second * (moved - began)
                if transferred > allowed + self.traffic.requested - requested:
                    raise self._cut(f"more than {limits.connection_bytes // MEGABYTE} MB at once")
                sink.write(chunk)
                await sink.drain()

        async def watch_idle() -> None:
            while (left := moved + limits.idle_seconds - time.monotonic()) > 0:  # noqa: ASYNC110 - it waits for time
                await asyncio.sleep(left)
            raise self._cut(f"idle for {limits.idle_seconds:g} s", level=logging.INFO)

        try:
            async with asyncio.timeout(limits.connection_seconds):
                await _run_until_first(copy(browser[0], remote[1]), copy(remote[0], browser[1]), watch_idle())
        except TimeoutError:
            raise self._cut(f"open for {limits.connection_seconds:g} s") from None

    def _count(self, size: int) -> None:
        """Adds transferred bytes; ConnectionCut where the session exceeds its bytes per minute."""
        self.traffic.bytes += size
        now, (began, before) = time.monotonic(), self._minute
        self._minute = (began, before + size) if now - began < 60.0 else (now, size)
        if self._minute[1] > self.limits.minute_bytes:
            raise self._cut(f"more than {self.limits.minute_bytes // MEGABYTE} MB in a minute")

    def _cut(self, reason: str, *, level: int = logging.WARNING) -> ConnectionCut:
        _cut.labels(self.rules.key).inc()
        message = "A connection of %s was closed: %s. The next visit opens another"
        self._log_once(reason, message, self.rules.key, reason, level=level)
        return ConnectionCut(reason)

    def _log_once(self, cause: str, message: str, *arguments: object, level: int = logging.WARNING) -> None:
        """Logs each host or cause once."""
        if cause not in self._logged and len(self._logged) < MAX_LOGGED_CAUSES:
            self._logged.add(cause)
            logger.log(level, message, *arguments, extra={"action": "egress_refused", "source": self.rules.key})


async def read_target(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Reads greeting and request of SOCKS5; returns host and port. ValueError where it is another protocol."""
    version, methods = await reader.readexactly(2)
    if version != SOCKS_VERSION or NO_AUTHENTICATION not in await reader.readexactly(methods):
        raise ValueError("the greeting is not SOCKS5 without authentication")
    writer.write(bytes((SOCKS_VERSION, NO_AUTHENTICATION)))
    version, command, _, kind = await reader.readexactly(4)
    if version != SOCKS_VERSION or command != CONNECT:
        raise ValueError("the request is not CONNECT")
    if kind == HOST_NAME:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii").strip("[]").lower()
    elif kind in (IPV4, IPV6):
        size, family = (4, socket.AF_INET) if kind == IPV4 else (16, socket.AF_INET6)
        host = socket.inet_ntop(family, await reader.readexactly(size))
    else:
        raise ValueError("the kind of address is unknown")
    return host, int.from_bytes(await reader.readexactly(2))


def _reply(code: int) -> bytes:
    return bytes((SOCKS_VERSION, code, 0, IPV4)) + bytes(6)  # no bound address


def is_own_user(writer: asyncio.StreamWriter) -> bool:
    """Whether the program at the other end of a local connection runs as this user (by the kernel's table)."""
    ends = [f"0100007F:{writer.get_extra_info(end)[1]:04X}" for end in ("peername", "sockname")]
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
    return any(row[1:3] == ends and row[7] == str(os.geteuid()) for row in rows)


async def _run_until_first(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Runs them until the first one ends, then cancels the others."""
    tasks = [asyncio.ensure_future(one) for one in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
