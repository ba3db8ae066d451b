"""Direct reads: a source's endpoints asked with the cookies and headers that a visit has earned, without the browser.

Playwright's own request context would do the same through its driver, and ask Chromium for the cookies of every
request: about seven times the CPU, no cap on the size of an answer, and dead whenever the browser is.
Everything that an answer can grow in has a limit: time, bytes as sent, bytes unpacked, redirects, heads.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from scraping.browser import answers
from scraping.browser.egress import Reach
from scraping.browser.inflate import ENCODINGS, BrokenError, Inflater, TooLargeError
from scraping.errors import EgressRefused, ReadTimeout, SchemaBreak, ScrapingError, Transient
from scraping.readings import Document, Request, Site

CHUNK_BYTES = 64 * 1024
HOST_CONNECTIONS = 16  # at once, of a session to one host: more would be no faster, and no manners
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PLAIN = frozenset({"", "identity"})
PACKED = frozenset({"gzip", "x-gzip", "deflate"})
# Meant for one host: they do not follow a redirect to another. (The cookie jar knows by itself whose a cookie is.)
FOR_ONE_HOST = frozenset({"authorization", "cookie", "proxy-authorization"})
OURS = frozenset({"accept-encoding", "host", "connection", "content-length", "transfer-encoding"})


@dataclass(frozen=True)
class WireLimits:
    max_body_bytes: int = 8 * 1024 * 1024  # as sent, and again as unpacked
    max_redirects: int = 3
    max_head_line_bytes: int = 8190
    max_head_lines: int = 128


class Wire:
    """The connections of one session; lives on the loop thread.

    `upstream`: the proxy through which everything goes. It then resolves the names, so that only they are checked.
    """

    def __init__(
        self,
        site: Site,
        *,
        limits: WireLimits,
        user_agent: str,
        language: str,
        upstream: str | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self.reach = Reach.of(site)
        self.bytes_in = 0
        self.requests = 0
        self.jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)  # at addresses too; sent as they came
        self._limits = limits
        self._upstream = upstream
        proxy_host = urlsplit(upstream).hostname if upstream else None
        vetted = VettedResolver(self.reach, resolver or aiohttp.ThreadedResolver(), trusted=proxy_host)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=vetted, limit=0, limit_per_host=HOST_CONNECTIONS, ttl_dns_cache=60),
            cookie_jar=self.jar,
            headers={
                "User-Agent": user_agent, "Accept-Language": language, "Accept": "*/*", "Accept-Encoding": ENCODINGS
            },
            timeout=aiohttp.ClientTimeout(total=None),  # `ask` has one for all of it
            auto_decompress=False,
            max_line_size=limits.max_head_line_bytes,
            max_field_size=limits.max_head_line_bytes,
            max_headers=limits.max_head_lines,
            trust_env=False,
        )  # fmt: skip

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, request: Request, *, seconds: float, may_be_empty: bool = False) -> Document:
        """One answer, within its limits; every error is one of ours."""
        path = urlsplit(request.url).path
        try:
            async with asyncio.timeout(seconds):
                document = await self._follow(request)
        except TimeoutError as error:
            raise ReadTimeout(f"asking {path} took longer than {seconds:g} s", url=request.url) from error
        except ScrapingError as error:
            error.url = error.url or request.url
            raise
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            refused = _refusal(error)
            if refused is not None:
                raise refused from error
            # Its own words may hold the proxy's address, and that holds a password.
            words = type(error).__name__ if self._upstream else f"{type(error).__name__}: {error}"
            raise Transient(f"asking {path} failed: {words}", url=request.url) from error
        if not document.body and document.status == 200 and not may_be_empty:
            raise Transient(f"{path} answered with nothing", http_status=200, url=request.url)
        return document

    async def _follow(self, request: Request) -> Document:
        """Each hop of a redirect is checked as the first one was."""
        url, method, body = self.reach.url(request.url), request.method, request.body
        headers = {key: value for key, value in request.headers.items() if key.lower() not in OURS}
        cost = 0
        for _ in range(self._limits.max_redirects + 1):
            self.requests += 1
            async with self._client.request(
                method, url, data=body, headers=headers, allow_redirects=False, proxy=self._upstream
            ) as response:
                cost += self._count(sum(len(key) + len(value) + 4 for key, value in response.raw_headers))
                if response.status not in REDIRECTS or "location" not in response.headers:
                    content, size = await self._body(response)
                    found = {key.lower(): value for key, value in response.headers.items()}
                    return answers.document(
                        request.name, request.url, response.status, found, content, wire_bytes=cost + size
                    )
                onward = self._onward(url, response.headers["location"])
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                method, body = "GET", None
                headers = {key: value for key, value in headers.items() if key.lower() != "content-type"}
            if onward.origin() != url.origin():
                headers = {key: value for key, value in headers.items() if key.lower() not in FOR_ONE_HOST}
            url = onward
        raise Transient(f"more than {self._limits.max_redirects} redirects", url=request.url)

    def _onward(self, url: URL, location: str) -> URL:
        try:
            onward = URL(urljoin(str(url), location))
        except ValueError as error:
            raise EgressRefused(f"a redirect leads to no address: {error}; it was not followed") from error
        self.reach.url(onward)
        if url.scheme == "https" and onward.scheme != "https":
            raise EgressRefused(f"{url.raw_host} leads from a secure address to an open one; it was not followed")
        return onward

    async def _body(self, response: aiohttp.ClientResponse) -> tuple[bytes, int]:
        """What was sent, unpacked, and its size as sent."""
        limit = self._limits.max_body_bytes
        if (response.content_length or 0) > limit:
            raise self._too_large(response)
        inflater = _inflater(response.headers, limit)
        parts: list[bytes] = []
        size = 0
        try:
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                size += self._count(len(chunk))
                if size > limit:
                    raise self._too_large(response)
                parts.append(inflater.feed(chunk) if inflater else chunk)
            if inflater:
                inflater.finish()
        except TooLargeError as error:
            raise self._too_large(response) from error
        except BrokenError as error:
            response.close()
            raise Transient(f"the answer could not be unpacked: {error}", http_status=response.status) from error
        return b"".join(parts), size

    def _too_large(self, response: aiohttp.ClientResponse) -> Transient:
        response.close()
        limit = self._limits.max_body_bytes
        return Transient(f"the answer is larger than {limit} bytes: the rest was not read", http_status=response.status)

    def _count(self, size: int) -> int:
        self.bytes_in += size
        return size


class VettedResolver(AbstractResolver):
    """Resolves and looks at every address: those that were vetted are those that are used.

    One bad address among good ones refuses them all: who mixes them tries something.
    """

    def __init__(self, reach: Reach, inner: AbstractResolver, *, trusted: str | None = None) -> None:
        self._reach = reach
        self._inner = inner
        self._trusted = trusted  # the proxy that an operator has named may live anywhere

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if host != self._trusted:
            for one in found:
                self._reach.address(one["host"])
        return found

    async def close(self) -> None:
        await self._inner.close()


def _inflater(headers: Mapping[str, str], limit: int) -> Inflater | None:
    encoding = headers.get("Content-Encoding", "").strip().lower()
    if encoding in PLAIN:
        return None
    if encoding not in PACKED:  # a browser may know it: this falls back to a visit
        raise SchemaBreak(f"the answer is packed as {encoding[:40]}, which was not asked for")
    return Inflater(encoding, limit)


def _refusal(error: BaseException | None) -> EgressRefused | None:
    while error is not None:
        if isinstance(error, EgressRefused):
            return error
        error = error.__cause__ or error.__context__
    return None
