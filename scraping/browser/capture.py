"""Interception: the answers to a page's own requests that we want, and a picture of the page."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from urllib.parse import urlsplit

from playwright.async_api import Page, Response
from playwright.async_api import Request as PageRequest

from scraping.browser import answers
from scraping.browser.bounded import bounded
from scraping.readings import Document, Endpoint, Request, Site

logger = logging.getLogger(__name__)

SCREENSHOT_SECONDS = 2.0
SCREENSHOT_QUALITY = 60
OPTIONAL_SECONDS = 0.5  # how long an endpoint that is welcome, but not required, is waited for
BODY_SECONDS = 10.0
# Not sent again with a direct read: they belong to one connection or one moment, or are made anew for each request.
OWN_HEADERS = frozenset(
    {
        "accept-encoding", "connection", "content-length", "cookie", "host", "if-match", "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "keep-alive", "proxy-authorization", "proxy-connection",
        "range", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class Capture:
    """The answers to a page's own requests that match the endpoints we want, and no others.

    Strict: host, method, path and kind of content must all be as expected. Of two answers of one endpoint the later
    good one counts.
    """

    def __init__(self, endpoints: tuple[Endpoint, ...], site: Site, *, max_body_bytes: int = 8 * 1024 * 1024) -> None:
        self._endpoints = endpoints
        self._hosts = site.hosts
        self._max_body_bytes = max_body_bytes
        self._found: dict[str, list[asyncio.Task[tuple[Document, Request] | None]]] = {}
        self._seen = asyncio.Event()
        self.requests: dict[str, Request] = {}  # how the page asked; complete once `documents` has answered

    def see(self, response: Response) -> None:
        for endpoint in self._endpoints:
            if self._wants(endpoint, response):
                task = asyncio.ensure_future(self._take(endpoint.name, response))
                self._found.setdefault(endpoint.name, []).append(task)
                self._seen.set()

    def _wants(self, endpoint: Endpoint, response: Response) -> bool:
        """The whitelist. An answer that is an error need not be JSON: that it is one is what we want to know."""
        parts = urlsplit(response.url)
        if response.request.method != endpoint.method or (parts.hostname or "").lower() not in self._hosts:
            return False
        if not endpoint.pattern.search(f"{parts.path}?{parts.query}" if parts.query else parts.path):
            return False
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return response.status >= 400 or endpoint.accepts(kind)

    async def wait(self, seconds: float) -> None:
        """Until the page has asked every required endpoint, and a moment longer for the others."""
        await self._wait_for({endpoint.name for endpoint in self._endpoints if endpoint.is_required}, seconds)
        await self._wait_for({endpoint.name for endpoint in self._endpoints}, OPTIONAL_SECONDS)

    async def _wait_for(self, names: set[str], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not names <= self._found.keys():
                    self._seen.clear()
                    await self._seen.wait()

    async def documents(self) -> dict[str, Document]:
        """Bodies vanish with the page, and when it goes elsewhere: to be awaited before either."""
        documents: dict[str, Document] = {}
        for name, tasks in self._found.items():
            taken = [found for task in tuple(tasks) if (found := await task) is not None]
            if taken:
                good = [found for found in taken if found[0].status < 400]
                documents[name], self.requests[name] = (good or taken)[-1]
        return documents

    def close(self) -> None:
        """Nobody wants what is still on its way."""
        for tasks in self._found.values():
            for task in tasks:
                task.cancel()

    async def _take(self, name: str, response: Response) -> tuple[Document, Request] | None:
        with contextlib.suppress(Exception):  # the page went elsewhere first: as if it had not asked
            request = _as_request(name, response.request)
            body = await capped_body(response, self._max_body_bytes, BODY_SECONDS)
            if body is not None:
                return answers.document(name, response.url, response.status, response.headers, body), request
        return None


async def capped_body(response: Response, max_bytes: int, seconds: float) -> bytes | None:
    """The body of an answer; None where it is larger than anything we want to hold."""
    length = response.headers.get("content-length", "")
    body = b""
    is_large = length.isascii() and length.isdigit() and int(length[:12]) > max_bytes
    if not is_large:
        body = await bounded(response.body(), seconds, "reading an answer")
    if is_large or len(body) > max_bytes:
        host = urlsplit(response.url).hostname
        logger.warning(
            "An answer of %s is larger than %s bytes and was not kept.",
            host,
            max_bytes,
            extra={"action": "answer_too_large", "host": host},
        )
        return None
    return body


def _as_request(name: str, request: PageRequest) -> Request:
    """How the page asked, header by header, so that it can be asked again in the same words."""
    headers = {key: value for key, value in request.headers.items() if key not in OWN_HEADERS}
    with contextlib.suppress(Exception):  # its frame may be gone already
        headers = {**headers, **fetch_metadata(request.url, request.frame.url)}
    return Request(name, request.url, request.method, request.post_data_buffer, headers)


def fetch_metadata(url: str, page_url: str) -> dict[str, str]:
    """What Chromium adds to a script's request on its way out, where it trusts the connection."""
    there, here = urlsplit(url), urlsplit(page_url)
    if there.scheme != "https" and there.hostname not in ("127.0.0.1", "localhost", "::1"):
        return {}
    site = "cross-site"
    if (there.scheme, there.netloc) == (here.scheme, here.netloc):
        site = "same-origin"
    elif there.scheme == here.scheme and _family(there.hostname) == _family(here.hostname):
        site = "same-site"
    return {"sec-fetch-dest": "empty", "sec-fetch-mode": "cors", "sec-fetch-site": site}


def _family(host: str | None) -> str:
    """The part of a name that one owner holds, as far as that can be told without the list of all suffixes."""
    labels = (host or "").lower().split(".")
    if labels[-1].isdigit():  # an address
        return host or ""
    is_short = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3  # such as co.uk
    return ".".join(labels[-3 if is_short else -2 :])


async def screenshot_of(page: Page) -> bytes:
    """What a person would see, without what stands in its fields; nothing where that cannot be had in time."""
    with contextlib.suppress(Exception):
        return await bounded(
            page.screenshot(
                type="jpeg",
                quality=SCREENSHOT_QUALITY,
                scale="css",
                timeout=SCREENSHOT_SECONDS * 1000,
                mask=[page.locator("input, textarea, select")],
            ),
            SCREENSHOT_SECONDS + 0.5,
            "taking a screenshot",
        )
    return b""
