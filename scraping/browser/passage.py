"""One connection of the browser's through the gate: looked at, connected to a vetted address, copied, cut in time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections.abc import Coroutine
from typing import Any
from urllib.parse import unquote, urlsplit

from aiohttp.abc import AbstractResolver
from yarl import URL

from scraping.browser.egress import is_literal
from scraping.browser.heads import MAX_HEAD_BYTES, BadHeadError, Head, read_head, written
from scraping.browser.visitors import MEGABYTE, GateLimits, Visitor

CHUNK_BYTES = 64 * 1024
# Of a proxy behind the gate, these say something about the source; any other answer of its own is its own trouble.
TOLD_BY_PROXIES = frozenset({"403", "429", "503"})
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Unreachable(Exception):  # noqa: N818 - the status that the browser gets says the rest
    """Nobody answers behind the gate."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Passage:
    def __init__(self, visitor: Visitor, limits: GateLimits, resolver: AbstractResolver, browser: Streams) -> None:
        self._visitor = visitor
        self._limits = limits
        self._resolver = resolver
        self._browser = browser
        self._began = self._moved = time.monotonic()
        self._brought = 0

    async def go(self, head: Head) -> None:
        """EgressRefused where it must not go, Unreachable where nobody answers, CutOff where it is too much."""
        url = target_of(head)
        self._visitor.reach.url(url)
        remote = await self._connect(url)
        try:
            if head.start[0] == "CONNECT":
                await self._tunnel(url, remote)
            else:
                await self._exchange(url, head, remote)
        finally:
            remote[1].transport.abort()

    async def _connect(self, url: URL) -> Streams:
        """To the site, or to the proxy through which it is to be reached: that one resolves the site's name itself."""
        if self._visitor.upstream:
            proxy = urlsplit(self._visitor.upstream)
            uses_tls = proxy.scheme == "https"
            return await self._open(proxy.hostname or "", proxy.port or (443 if uses_tls else 80), uses_tls=uses_tls)
        for address in await self._addresses(url.raw_host or "", url.port or 0):
            with contextlib.suppress(Unreachable):
                return await self._open(address, url.port or 0)
        raise Unreachable(502, f"{url.raw_host} takes no connections")

    async def _addresses(self, host: str, port: int) -> list[str]:
        """Every one of them is looked at; one bad address among good ones refuses them all."""
        if is_literal(host):
            return [host]
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                found = [one["host"] for one in await self._resolver.resolve(host, port)]
        except (OSError, UnicodeError) as error:
            raise Unreachable(502, f"{host} has no address") from error
        for address in found:
            self._visitor.reach.address(address)
        return found

    async def _open(self, address: str, port: int, *, uses_tls: bool = False) -> Streams:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                return await asyncio.open_connection(
                    address, port, limit=MAX_HEAD_BYTES, ssl=True if uses_tls else None
                )
        except OSError as error:  # TimeoutError is one
            raise Unreachable(502, "the proxy takes no connections") from error

    async def _tunnel(self, url: URL, remote: Streams) -> None:
        """TLS and web sockets: whatever it is, it goes to this one address only."""
        if self._visitor.upstream:
            await self._ask_proxy(f"{url.host_subcomponent}:{url.port}", self._visitor.upstream, remote)
        self._browser[1].write(written(("HTTP/1.1", "200", "Connection established"), {}))
        await until_either(
            self._copy(self._browser[0], remote[1], is_in=False), self._copy(remote[0], self._browser[1], is_in=True)
        )

    async def _ask_proxy(self, where: str, upstream: str, remote: Streams) -> None:
        ask = written(("CONNECT", where, "HTTP/1.1"), {"Host": where, **credentials(upstream)})
        self._visitor.count(len(ask), is_in=False)
        remote[1].write(ask)
        answer = await self._answer(remote[0])
        if answer.start[1] != "200":
            # Never its 407: the browser would answer that with the gate's own password.
            status = answer.start[1] if answer.start[1] in TOLD_BY_PROXIES else "502"
            raise Unreachable(int(status), f"the proxy answered {answer.start[1][:3]}")

    async def _exchange(self, url: URL, head: Head, remote: Streams) -> None:
        """One request, one answer: the next request comes on a connection of its own, and is looked at again."""
        if head.is_chunked:
            raise Unreachable(411, "a body without a length is not passed on")
        upstream = self._visitor.upstream
        place = str(url) if upstream else url.raw_path_qs
        added = {"Host": _authority(url), **(credentials(upstream) if upstream else {})}
        request = head.passed_on((head.start[0], place, "HTTP/1.1"), added)
        self._visitor.count(len(request), is_in=False)
        remote[1].write(request)
        await self._copy(self._browser[0], remote[1], is_in=False, size=head.length or 0)
        answer = await self._answer(remote[0])
        if answer.start[1] == "407":
            raise Unreachable(502, "the proxy wants another password")
        self._browser[1].write(answer.passed_on(answer.start, {}))
        # A browser that closes the page hangs up: then nobody wants the rest.
        body = self._copy(remote[0], self._browser[1], is_in=True, size=None if answer.is_chunked else answer.length)
        await until_either(body, self._browser[0].read(1))

    async def _answer(self, reader: asyncio.StreamReader) -> Head:
        """The head of the answer; what says only "wait" is left out."""
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                while True:
                    head = await read_head(reader)
                    self._visitor.count(len(written(head.start, {}, *head.fields)), is_in=True)
                    if not head.start[1].startswith("1"):
                        return head
        except BadHeadError as error:
            raise Unreachable(502, f"what answers is no web server: {error}") from error
        except TimeoutError as error:
            raise Unreachable(504, "no answer in time") from error

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_in: bool, size: int | None = None
    ) -> None:
        left = size
        while left is None or left > 0:
            chunk = await self._read(source, CHUNK_BYTES if left is None else min(left, CHUNK_BYTES))
            if not chunk:
                return
            self._check(len(chunk), is_in=is_in)
            sink.write(chunk)
            async with asyncio.timeout(self._limits.idle_seconds):
                await sink.drain()
            left = None if left is None else left - len(chunk)

    async def _read(self, source: asyncio.StreamReader, size: int) -> bytes:
        """Patient as long as the other direction moves."""
        while True:
            try:
                async with asyncio.timeout(self._limits.idle_seconds):
                    return await source.read(size)
            except TimeoutError:
                if time.monotonic() - self._moved >= self._limits.idle_seconds:
                    raise self._visitor.cut_off(f"nothing moved for {self._limits.idle_seconds:g} s") from None

    def _check(self, size: int, *, is_in: bool) -> None:
        self._moved = time.monotonic()
        self._visitor.count(size, is_in=is_in)
        self._brought += size
        age = self._moved - self._began
        if self._brought > self._limits.connection_bytes + self._limits.connection_bytes_a_second * age:
            raise self._visitor.cut_off(f"more than {self._limits.connection_bytes // MEGABYTE} MB at once")
        if age > self._limits.connection_seconds:
            raise self._visitor.cut_off(f"open for {self._limits.connection_seconds:g} s")


def target_of(head: Head) -> URL:
    """Where a request to a proxy wants to go: host and port of a tunnel, or a whole address."""
    method, target, _ = head.start
    text = f"https://{target}" if method == "CONNECT" else target
    try:
        url = URL(text, encoded=True)
        port = url.explicit_port  # looked at only now
    except ValueError as error:
        raise BadHeadError("this is no address") from error
    if method == "CONNECT" and (url.raw_path_qs != "/" or not port):
        raise BadHeadError("a tunnel leads to a host and a port")
    if method != "CONNECT" and url.scheme != "http":
        raise BadHeadError("only http is passed on like this")
    return url


def credentials(upstream: str) -> dict[str, str]:
    """The head line that a proxy wants; none where its address holds no user."""
    parts = urlsplit(upstream)
    if parts.username is None:
        return {}
    told = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(told).decode()}"}


async def until_either(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Until the first of them ends; the others are ended with it."""
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
