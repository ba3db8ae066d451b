"""One connection of the browser through the forward proxy: check the target, connect, copy within the limits.

An HTTP request gets a connection of its own, so that each one is checked. TLS and web sockets use a CONNECT tunnel.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from aiohttp.abc import AbstractResolver
from yarl import URL

from scraping.browser.egress.rules import CheckedResolver, is_ip_literal

if TYPE_CHECKING:
    from scraping.browser.egress.forward_proxy import RegisteredSession

MEGABYTE = 1024 * 1024
CHUNK_BYTES = 64 * 1024
MAX_HEAD_BYTES = 64 * 1024
HEAD_END = b"\r\n\r\n"
# Fields for one hop only (RFC 9110): not forwarded.
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "upgrade"}
)
# Statuses by which an upstream proxy reports about the source; any other is a fault of the proxy and becomes 502.
FORWARDED_PROXY_STATUSES = frozenset({"403", "429", "503"})
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class MalformedHeadError(Exception):
    """The head is not HTTP, or is larger than the limit."""


class ConnectionCut(Exception):  # noqa: N818 - not an error of the proxy
    """The connection was idle, open too long, or transferred too many bytes."""


class Unreachable(Exception):  # noqa: N818 - carries the status for the browser
    """The site or its upstream proxy does not respond."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class TrafficLimits:
    head_seconds: float = 15.0
    connect_seconds: float = 10.0
    idle_seconds: float = 120.0  # without a byte in either direction
    connection_seconds: float = 3600.0
    # Bytes allowed at once, and then per second of age: attached pages stay open for hours.
    connection_bytes: int = 32 * MEGABYTE
    connection_bytes_a_second: int = MEGABYTE // 2
    minute_bytes: int = 256 * MEGABYTE  # of all connections of a session


@dataclass(frozen=True)
class MessageHead:
    """Start line and fields of a request or response."""

    start: tuple[str, str, str]
    fields: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name]

    def get(self, name: str) -> str:
        return next(iter(self.all(name)), "")

    @property
    def length(self) -> int | None:
        """The Content-Length; None without one. MalformedHeadError where it is no number or contradicts itself."""
        sizes = set(self.all("content-length"))
        if not sizes:
            return None
        size = sizes.pop()
        if sizes or not (size.isascii() and size.isdigit()):
            raise MalformedHeadError("the Content-Length is not one number")
        return int(size[:18])

    @property
    def is_chunked(self) -> bool:
        return bool(self.all("transfer-encoding"))

    def forwarded(self, start: tuple[str, str, str], added: Mapping[str, str]) -> bytes:
        """Encodes the head for the next hop: another start line, no hop-by-hop fields, `Connection: close`."""
        named = {name.strip().lower() for value in self.all("connection") for name in value.split(",")}
        left_out = HOP_BY_HOP | named | {key.lower() for key in added}
        kept = [(key, value) for key, value in self.fields if key.lower() not in left_out]
        return encode_head(start, {}, *kept, *added.items(), ("Connection", "close"))


def encode_head(start: tuple[str, str, str], fields: Mapping[str, str], *more: tuple[str, str]) -> bytes:
    lines = [f"{key}: {value}" for key, value in (*fields.items(), *more)]
    return "\r\n".join([" ".join(start), *lines, "", ""]).encode("latin-1", errors="replace")


async def read_head(reader: asyncio.StreamReader) -> MessageHead:
    """Reads the next head; asyncio.IncompleteReadError at the end of the stream."""
    try:
        raw = await reader.readuntil(HEAD_END)
    except asyncio.LimitOverrunError as error:
        raise MalformedHeadError(f"the head has more than {MAX_HEAD_BYTES} bytes") from error
    first, *lines = raw[: -len(HEAD_END)].decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    fields = [line.partition(":") for line in lines]
    if len(parts) < 2 or any(not colon or key != key.strip() or "\n" in value for key, colon, value in fields):
        raise MalformedHeadError("this is not HTTP")
    third = parts[2] if len(parts) > 2 else ""
    return MessageHead((parts[0], parts[1], third), tuple((key, value.strip()) for key, _, value in fields))


class ProxyConnection:
    def __init__(
        self, session: RegisteredSession, limits: TrafficLimits, resolver: AbstractResolver, browser: Streams
    ) -> None:
        self._session = session
        self._limits = limits
        self._resolver = CheckedResolver(session.rules, resolver)
        self._browser = browser
        self._began = self._moved = time.monotonic()
        self._transferred = 0

    async def run(self, head: MessageHead) -> None:
        """Serves one request. Raises EgressRefused, Unreachable or ConnectionCut."""
        url = target_of(head)
        self._session.rules.check_url(url)
        remote = await self._connect(url)
        try:
            if head.start[0] == "CONNECT":
                await self._tunnel(url, remote)
            else:
                await self._exchange(url, head, remote)
        finally:
            remote[1].transport.abort()

    async def _connect(self, url: URL) -> Streams:
        """Connects to the site, or to its upstream proxy, which resolves the site's name itself."""
        if self._session.upstream:
            proxy = urlsplit(self._session.upstream)
            uses_tls = proxy.scheme == "https"
            return await self._open(proxy.hostname or "", proxy.port or (443 if uses_tls else 80), uses_tls=uses_tls)
        for address in await self._addresses(url.raw_host or "", url.port or 0):
            with contextlib.suppress(Unreachable):
                return await self._open(address, url.port or 0)
        raise Unreachable(502, f"{url.raw_host} accepts no connections")

    async def _addresses(self, host: str, port: int) -> list[str]:
        if is_ip_literal(host):
            return [host]
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return [one["host"] for one in await self._resolver.resolve(host, port)]
        except (OSError, UnicodeError) as error:
            raise Unreachable(502, f"{host} has no address") from error

    async def _open(self, address: str, port: int, *, uses_tls: bool = False) -> Streams:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return await asyncio.open_connection(
                    address, port, limit=MAX_HEAD_BYTES, ssl=True if uses_tls else None
                )
        except OSError as error:  # TimeoutError is an OSError
            raise Unreachable(502, "the proxy accepts no connections") from error

    async def _tunnel(self, url: URL, remote: Streams) -> None:
        if self._session.upstream:
            await self._connect_upstream(f"{url.host_subcomponent}:{url.port}", self._session.upstream, remote)
        self._browser[1].write(encode_head(("HTTP/1.1", "200", "Connection established"), {}))
        await run_until_first(
            self._copy(self._browser[0], remote[1], is_in=False), self._copy(remote[0], self._browser[1], is_in=True)
        )

    async def _connect_upstream(self, target: str, upstream: str, remote: Streams) -> None:
        request = encode_head(("CONNECT", target, "HTTP/1.1"), {"Host": target, **credentials(upstream)})
        self._session.count(len(request), is_in=False)
        remote[1].write(request)
        response = await self._response_head(remote[0])
        if response.start[1] != "200":
            # Never forwards a 407: the browser would send the password of our own proxy.
            status = response.start[1] if response.start[1] in FORWARDED_PROXY_STATUSES else "502"
            raise Unreachable(int(status), f"the proxy responded {response.start[1][:3]}")

    async def _exchange(self, url: URL, head: MessageHead, remote: Streams) -> None:
        """Forwards one request and its response; the connection closes afterwards."""
        if head.is_chunked:
            raise Unreachable(411, "a body without a length is not forwarded")
        upstream = self._session.upstream
        target = str(url) if upstream else url.raw_path_qs
        added = {"Host": _authority(url), **(credentials(upstream) if upstream else {})}
        request = head.forwarded((head.start[0], target, "HTTP/1.1"), added)
        self._session.count(len(request), is_in=False)
        remote[1].write(request)
        await self._copy(self._browser[0], remote[1], is_in=False, size=head.length or 0)
        response = await self._response_head(remote[0])
        if response.start[1] == "407":
            raise Unreachable(502, "the proxy refused its credentials")
        self._browser[1].write(response.forwarded(response.start, {}))
        # The read ends when the browser closes the page; the rest of the body is then not needed.
        size = None if response.is_chunked else response.length
        body = self._copy(remote[0], self._browser[1], is_in=True, size=size)
        await run_until_first(body, self._browser[0].read(1))

    async def _response_head(self, reader: asyncio.StreamReader) -> MessageHead:
        """Reads the head of the response and skips interim (1xx) ones."""
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                while True:
                    head = await read_head(reader)
                    self._session.count(len(encode_head(head.start, {}, *head.fields)), is_in=True)
                    if not head.start[1].startswith("1"):
                        return head
        except MalformedHeadError as error:
            raise Unreachable(502, f"the response is not HTTP: {error}") from error
        except TimeoutError as error:
            raise Unreachable(504, "no response in time") from error

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_in: bool, size: int | None = None
    ) -> None:
        left = size
        while left is None or left > 0:
            chunk = await self._read(source, CHUNK_BYTES if left is None else min(left, CHUNK_BYTES))
            if not chunk:
                return
            self._check_limits(len(chunk), is_in=is_in)
            sink.write(chunk)
            async with asyncio.timeout(self._limits.idle_seconds):
                await sink.drain()
            left = None if left is None else left - len(chunk)

    async def _read(self, source: asyncio.StreamReader, size: int) -> bytes:
        """Reads a chunk; the idle limit counts bytes of both directions."""
        while True:
            try:
                async with asyncio.timeout(self._limits.idle_seconds):
                    return await source.read(size)
            except TimeoutError:
                if time.monotonic() - self._moved >= self._limits.idle_seconds:
                    raise self._session.cut(f"idle for {self._limits.idle_seconds:g} s") from None

    def _check_limits(self, size: int, *, is_in: bool) -> None:
        self._moved = time.monotonic()
        self._session.count(size, is_in=is_in)
        self._transferred += size
        age = self._moved - self._began
        if self._transferred > self._limits.connection_bytes + self._limits.connection_bytes_a_second * age:
            raise self._session.cut(f"more than {self._limits.connection_bytes // MEGABYTE} MB at once")
        if age > self._limits.connection_seconds:
            raise self._session.cut(f"open for {self._limits.connection_seconds:g} s")


def target_of(head: MessageHead) -> URL:
    """Returns the URL that a proxy request names: host and port of a tunnel, or an absolute http URL."""
    method, target, _ = head.start
    text = f"https://{target}" if method == "CONNECT" else target
    try:
        url = URL(text, encoded=True)
        port = url.explicit_port  # parsed only when read
    except ValueError as error:
        raise MalformedHeadError("the target is not a URL") from error
    if method == "CONNECT" and (url.raw_path_qs != "/" or not port):
        raise MalformedHeadError("a tunnel needs a host and a port")
    if method != "CONNECT" and url.scheme != "http":
        raise MalformedHeadError("only http requests are forwarded without a tunnel")
    return url


def credentials(upstream: str) -> dict[str, str]:
    """Returns the authorization field for an upstream proxy; empty where its URL holds no user."""
    parts = urlsplit(upstream)
    if parts.username is None:
        return {}
    text = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(text).decode()}"}


async def run_until_first(*coroutines: Coroutine[Any, Any, object]) -> None:
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


def _authority(url: URL) -> str:
    host = url.host_subcomponent or ""
    return f"{host}:{url.explicit_port}" if url.explicit_port else host
