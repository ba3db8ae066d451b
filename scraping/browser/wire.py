"""Direct reads: a source's endpoints asked with the cookies and headers that a visit has earned, without the browser.

Playwright's own request context would do the same through its driver, and ask Chromium for the cookies of every
request: about seven times the CPU, no cap on the size of an answer, and dead whenever the browser is.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from scraping.browser import answers
from scraping.browser.egress import check_address, check_url
from scraping.errors import EgressRefused, ReadTimeout, ScrapingError, Transient
from scraping.readings import Document, Request, Site

CHUNK_BYTES = 64 * 1024
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class WireLimits:
    max_body_bytes: int = 8 * 1024 * 1024
    max_redirects: int = 3


class Wire:
    """The connections of one session; lives on the loop thread."""

    def __init__(self, site: Site, *, limits: WireLimits, user_agent: str, language: str) -> None:
        self._site = site
        self._limits = limits
        self.jar = aiohttp.CookieJar(unsafe=True)  # stadiums live at addresses, not at names
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=VettedResolver(site), limit=0, limit_per_host=0, ttl_dns_cache=60),
            cookie_jar=self.jar,
            headers={"User-Agent": user_agent, "Accept-Language": language, "Accept": "*/*"},
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, request: Request, *, seconds: float) -> Document:
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(request)
        except TimeoutError as error:
            raise ReadTimeout(
                f"asking {urlsplit(request.url).path} took longer than {seconds:g} s", url=request.url
            ) from error
        except ScrapingError:
            raise
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            refused = _refusal(error)
            if refused is not None:
                raise refused from error
            raise Transient(f"{type(error).__name__}: {error}", url=request.url) from error

    async def _follow(self, request: Request) -> Document:
        """Each hop of a redirect is checked as the first one was."""
        url, method, body = request.url, request.method, request.body
        for _ in range(self._limits.max_redirects + 1):
            check_url(url, self._site)
            async with self._client.request(
                method, URL(url, encoded=True), data=body, headers=dict(request.headers), allow_redirects=False
            ) as response:
                if response.status not in REDIRECTS or "location" not in response.headers:
                    content = await self._body(response)
                    headers = {key.lower(): value for key, value in response.headers.items()}
                    return answers.document(request.name, request.url, response.status, headers, content)
                url = urljoin(url, response.headers["location"])
                if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                    method, body = "GET", None
        raise Transient(f"more than {self._limits.max_redirects} redirects", url=request.url)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        limit = self._limits.max_body_bytes
        parts: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            size += len(chunk)
            if size > limit:
                response.close()
                raise Transient(
                    f"the answer is larger than {limit} bytes: the rest was not read", url=str(response.url)
                )
            parts.append(chunk)
        return b"".join(parts)


class VettedResolver(AbstractResolver):
    """Resolves and looks at every address: those that were vetted are those that are used."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        for one in found:
            check_address(one["host"], self._site)
        return found

    async def close(self) -> None:
        await self._inner.close()


def _refusal(error: BaseException | None) -> EgressRefused | None:
    while error is not None:
        if isinstance(error, EgressRefused):
            return error
        error = error.__cause__ or error.__context__
    return None
