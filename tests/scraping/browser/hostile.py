"""Hostile servers on addresses of this machine, and a resolver with configured responses."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

MEGABYTE = 1024 * 1024
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """A server, and the requests that reached it."""

    host: str
    port: int = 0
    requests: list[web.BaseRequest] = field(default_factory=list)
    connections: int = 0
    sent: int = 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


@asynccontextmanager
async def web_server(routes: Mapping[str, Handler], *, host: str = "127.0.0.1") -> AsyncIterator[Seen]:
    """Serves the routes, responds 404 to other paths, and records all requests."""
    seen = Seen(host)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        seen.requests.append(request)
        route = routes.get(request.path)
        return await route(request) if route else web.Response(status=404, text="nothing here")  # type: ignore[arg-type]

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    seen.port = runner.addresses[0][1]
    try:
        yield seen
    finally:
        await runner.cleanup()


Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Seen], Awaitable[None]]


@asynccontextmanager
async def raw_server(behave: Raw, *, host: str = "127.0.0.1") -> AsyncIterator[Seen]:
    """Serves raw connections with the given behaviour."""
    seen = Seen(host)
    connections: set[asyncio.Task[Any]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        connections.add(task)
        seen.connections += 1
        try:
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                await behave(reader, writer, seen)
        finally:
            connections.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(accept, host, 0)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


class Names(AbstractResolver):
    """A resolver. A name may have several responses: they are given in turn, the last one repeatedly."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        turns = self._answers.get(host)
        if not turns:
            raise OSError(f"{host} is not known")
        found = turns.pop(0) if len(turns) > 1 else turns[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in found
        ]

    async def close(self) -> None:
        pass


def redirect(to: str, status: int = 302) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": to})

    return answer


def text(body: str | bytes, content_type: str = "application/json", **headers: str) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        raw = body if isinstance(body, bytes) else body.encode()
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return web.Response(body=raw, content_type=content_type, headers=named)

    return answer


def bomb(megabytes: int, *, is_gzip: bool = True) -> bytes:
    """Returns some kilobytes that decompress to this many megabytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31 if is_gzip else 15)
    return b"".join(packer.compress(bytes(MEGABYTE)) for _ in range(megabytes)) + packer.flush()


def compressed(body: bytes) -> bytes:
    return gzip.compress(body)


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Seen) -> None:
    """Sends a gigabyte as fast as possible."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
    for _ in range(1024):
        writer.write(b"x" * MEGABYTE)
        await writer.drain()
        seen.sent += MEGABYTE


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: Seen) -> None:
    """Sends single bytes without end."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


def saying(raw: bytes) -> Raw:
    """Responds to any request with these bytes, then closes."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: Seen) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return behave


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: Seen) -> None:
    """Resets the connection in the middle of a response."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
