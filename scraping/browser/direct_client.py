"""The HTTP client for direct reads: requests a source's endpoints with the cookies and headers of a visit.

Playwright's request context would take about seven times the CPU, has no limit on the size of a response, and ends
with the browser. Every dimension of a response has a limit: time, bytes (sent, decompressed), redirects, headers.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import Awaitable, Mapping
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from scraping.browser.egress.rules import CheckedResolver, EgressRules
from scraping.browser.request_trace import TraceLevel, trace_failure, trace_responses
from scraping.errors import EgressRefused, ReadTimeout, SchemaBreak, ScrapingError, Transient
from scraping.readings import Document, Request, Site, note_request

CHUNK_BYTES = 64 * 1024
MAX_REDIRECTS = 3
HOST_CONNECTIONS = 16  # of a session to one host, at once: more would be impolite and no faster
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PLAIN_ENCODINGS = frozenset({"", "identity"})
COMPRESSED_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
ACCEPT_ENCODING = "gzip, deflate"  # only encodings that can be decompressed within a limit
MAX_GZIP_MEMBERS = 32  # of one stream: thousands of empty ones cost time and no bytes
ZLIB_METHOD = 8
GZIP_MAGIC = b"\x1f"
# Not sent after a redirect to another origin. (The cookie jar decides by itself about cookies.)
ORIGIN_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
CLIENT_HEADERS = frozenset({"accept-encoding", "host", "connection", "content-length", "transfer-encoding"})


class DirectClient:
    """The HTTP client of one session; lives on the loop thread.

    `upstream`: the proxy for all requests. It resolves the names, so only names are checked here, not addresses.
    """

    def __init__(
        self,
        site: Site,
        *,
        max_body_bytes: int,  # as sent, and again decompressed
        user_agent: str,
        language: str,
        upstream: str | None = None,
        trace: TraceLevel = "none",
        resolver: AbstractResolver | None = None,
    ) -> None:
        self.rules = EgressRules.of(site)
        # Also for IP addresses; values are sent unchanged.
        self.jar = aiohttp.CookieJar(unsafe=True, quote_cookie=False)
        self._max_body_bytes = max_body_bytes
        self._source, self._trace = site.key, trace
        self._upstream = upstream
        proxy_host = urlsplit(upstream).hostname if upstream else None
        checked = CheckedResolver(self.rules, resolver or aiohttp.ThreadedResolver(), trusted=proxy_host)
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=checked, limit=0, limit_per_host=HOST_CONNECTIONS, ttl_dns_cache=60
            ),
            cookie_jar=self.jar,
            headers={
                "User-Agent": user_agent,
                "Accept-Language": language,
                "Accept": "*/*",
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            timeout=aiohttp.ClientTimeout(total=None),  # `fetch` has one for the whole request
            auto_decompress=False,
            max_line_size=8190,
            max_field_size=8190,
            max_headers=128,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.close()

    async def fetch(self, request: Request, *, seconds: float, may_be_empty: bool = False) -> Document:
        """Returns the response, within the limits; every error is a ScrapingError."""
        return await traced(self._trace, self._source, request, self._fetch(request, seconds, may_be_empty))

    async def _fetch(self, request: Request, seconds: float, may_be_empty: bool) -> Document:
        path = urlsplit(request.url).path
        try:
            async with asyncio.timeout(seconds):
                document = await self._follow(request)
        except TimeoutError as error:
            raise ReadTimeout(f"requesting {path} took longer than {seconds:g} s", url=request.url) from error
        except ScrapingError as error:
            error.url = error.url or request.url
            raise
        except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
            refused = _refusal(error)
            if refused is not None:
                raise refused from error
            # With a proxy only the type: the text may hold the proxy's address with its password.
            text = type(error).__name__ if self._upstream else f"{type(error).__name__}: {error}"
            raise Transient(f"requesting {path} failed: {text}", url=request.url) from error
        if not document.body and document.status == 200 and not may_be_empty:
            raise Transient(f"{path} responded with an empty body", http_status=200, url=request.url)
        return document

    async def _follow(self, request: Request) -> Document:
        """Follows redirects; each hop is checked like the first request."""
        url, method, body = self.rules.check_url(request.url), request.method, request.body
        headers = {key: value for key, value in request.headers.items() if key.lower() not in CLIENT_HEADERS}
        cost = 0
        for _ in range(MAX_REDIRECTS + 1):
            async with self._client.request(
                method, url, data=body, headers=headers, allow_redirects=False, proxy=self._upstream
            ) as response:
                cost += sum(len(key) + len(value) + 4 for key, value in response.raw_headers)
                if response.status not in REDIRECTS or "location" not in response.headers:
                    content, size = await self._body(response)
                    found = {key.lower(): value for key, value in response.headers.items()}
                    return Document.from_response(
                        request.name, request.url, response.status, found, content, wire_bytes=cost + size
                    )
                location = response.headers["location"]
            try:
                onward = URL(urljoin(str(url), location))
            except ValueError as error:
                raise EgressRefused(f"a redirect has no valid address: {error}; it was not followed") from error
            self.rules.check_url(onward)
            if url.scheme == "https" and onward.scheme != "https":
                raise EgressRefused(f"{url.raw_host} redirects from https to http; it was not followed")
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                method, body = "GET", None
                headers = {key: value for key, value in headers.items() if key.lower() != "content-type"}
            if onward.origin() != url.origin():
                headers = {key: value for key, value in headers.items() if key.lower() not in ORIGIN_HEADERS}
            url = onward
        raise Transient(f"more than {MAX_REDIRECTS} redirects", url=request.url)

    async def _body(self, response: aiohttp.ClientResponse) -> tuple[bytes, int]:
        """Returns the decompressed body and its size as sent."""
        limit = self._max_body_bytes
        decompressor = _decompressor(response.headers, limit)
        parts: list[bytes] = []
        size = 0
        try:
            if (response.content_length or 0) > limit:
                raise _too_large(limit)
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                parts.append(decompressor.feed(chunk) if decompressor else chunk)
            if decompressor:
                decompressor.finish()
        except Transient as error:
            response.close()
            error.http_status = response.status
            raise
        return b"".join(parts), size


async def traced(level: TraceLevel, source: str, request: Request, fetching: Awaitable[Document]) -> Document:
    """Awaits the response to one request, and logs it or its failure as SOURCE_TRACE says."""
    began = time.monotonic()
    try:
        document = await fetching
    except ScrapingError as error:
        seconds = time.monotonic() - began
        note_request(request.method, request.url, error, seconds)
        trace_failure(level, source, request.method, request.url, seconds=seconds, error=error)
        raise
    seconds = time.monotonic() - began
    note_request(request.method, request.url, document, seconds)
    if document.status >= 400 or level in ("slow", "all"):
        trace_responses(level, source, request.method, (document,), seconds=seconds)
    return document


def _too_large(limit: int) -> Transient:
    return Transient(f"the body is larger than {limit} bytes: the rest was not read")


def _corrupt(problem: object) -> Transient:
    return Transient(f"the body could not be decompressed: {problem}")


class Decompressor:
    """Decompresses one body: `feed` its chunks, then `finish`.

    Guards against compression bombs: zlib is never asked for more than the rest of the limit.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._is_gzip = encoding in ("gzip", "x-gzip")
        self._limit = self._left = limit
        self._members = 0
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        while data:
            if self._stream is None and self._members and not (self._is_gzip and data.startswith(GZIP_MAGIC)):
                break  # trailing bytes after the end of the stream
            stream = self._stream = self._stream or self._open(data)
            try:
                part = stream.decompress(data, self._left + 1)
            except zlib.error as error:
                raise _corrupt(error) from error
            self._left -= len(part)
            if self._left < 0:
                raise _too_large(self._limit)
            parts.append(part)
            data = stream.unconsumed_tail
            if stream.eof:
                data, self._stream = stream.unused_data, None
        return b"".join(parts)

    def finish(self) -> None:
        if self._stream is not None:
            raise _corrupt("it is incomplete")

    def _open(self, data: bytes) -> zlib._Decompress:
        self._members += 1
        if self._members > MAX_GZIP_MEMBERS:
            raise _corrupt(f"it has more than {MAX_GZIP_MEMBERS} parts")
        if self._is_gzip:
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        # Many servers that declare "deflate" send it without the zlib header.
        has_header = data[0] & 0x0F == ZLIB_METHOD
        return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _decompressor(headers: Mapping[str, str], limit: int) -> Decompressor | None:
    encoding = headers.get("Content-Encoding", "").strip().lower()
    if encoding in PLAIN_ENCODINGS:
        return None
    if encoding not in COMPRESSED_ENCODINGS:  # a browser may support it: the reader falls back to a visit
        raise SchemaBreak(f"the body is encoded as {encoding[:40]}, which was not requested")
    return Decompressor(encoding, limit)


def _refusal(error: BaseException | None) -> EgressRefused | None:
    """Returns the refusal of an address that aiohttp has wrapped into an error of its own."""
    while error is not None:
        if isinstance(error, EgressRefused):
            return error
        error = error.__cause__ or error.__context__
    return None
