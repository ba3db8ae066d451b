"""A visit: loads a page, intercepts the responses of its endpoints, reads the rendered page, closes it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, Response
from playwright.async_api import Request as PageRequest

from scraping.browser.blocking import PageTraffic
from scraping.browser.cookies import cookies_of_jar
from scraping.browser.playwright_calls import translate_error, underlying_error, with_timeout
from scraping.errors import PageCrashed, ReadTimeout, ScrapingError, Transient
from scraping.policies.timeouts import Timeouts
from scraping.readings import (
    PAGE,
    AttemptEvidence,
    Document,
    Endpoint,
    Reading,
    ReadMode,
    RefInfo,
    Request,
    Site,
    attach_evidence,
    report_stage,
)

if TYPE_CHECKING:
    from scraping.browser.session import Session

logger = logging.getLogger(__name__)

SCREENSHOT_SECONDS = 2.0
OPTIONAL_SECONDS = 0.5  # the wait for optional endpoints
BODY_SECONDS = 10.0
# Not repeated by direct reads: they belong to one connection, or are set for each request.
REQUEST_HEADERS = frozenset(
    {
        "accept-encoding", "connection", "content-length", "cookie", "host", "if-match", "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "keep-alive", "proxy-authorization", "proxy-connection",
        "range", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip

# Whether to take a screenshot of this page (None: the page did not load).
WantsScreenshot = Callable[[Document | None], bool]
# Whether a reading can be parsed; if not, a screenshot shows why. Called while the page is open, on another thread.
IsReadable = Callable[[Reading], bool]


@dataclass(frozen=True)
class PageVisit:
    session: Session
    ref: RefInfo
    endpoints: tuple[Endpoint, ...]
    wants_screenshot: WantsScreenshot
    timeouts: Timeouts
    is_readable: IsReadable = lambda _: True

    async def read(self) -> Reading:
        """Returns the page and the intercepted documents, with a screenshot where wanted."""
        page: Page | None = None
        interception = Interception(self.endpoints, self.session.site, self.session.host.options.max_body_bytes)
        try:
            page, traffic = await self.session.open_page()
            return await self._read_page(page, traffic, interception)
        except Exception as error:
            failure = translate_error(error, url=self.ref.url)
            if page is not None:
                failure = await underlying_error(failure, page, is_browser_leaving=self.session.host.is_leaving)
            if page is not None and isinstance(failure, ReadTimeout) and self.wants_screenshot(None):
                attach_evidence(failure, AttemptEvidence(screenshot=await take_screenshot(page)))
            if page is not None and isinstance(failure, ReadTimeout):
                self.session.retire_context(page)
            raise failure from error
        finally:
            interception.close()
            if page is not None:
                await self.session.close_page(page)

    async def _read_page(self, page: Page, traffic: PageTraffic, interception: Interception) -> Reading:
        started, cookies_before = time.monotonic(), cookies_of_jar(self.session.client.jar)
        crashes: list[Page] = []
        page.on("crash", lambda crashed: crashes.append(crashed))  # noqa: PLW0108 - Playwright marks its handlers
        page.on("response", interception.on_response)
        report_stage("NAVIGATING")
        document = await self._load(page)
        if document.status < 400:
            report_stage("INTERCEPTING")
            await interception.wait(self.timeouts.selector_seconds)
            document = await self._rendered(page, document)
        if crashes:  # the missing documents are not the source's fault
            raise PageCrashed("the page crashed while it was read", url=self.ref.url)
        documents = {PAGE: document, **await interception.documents()}
        if document.status < 400:
            await self.session.save_cookies(page.context, cookies_before)
        reading = Reading(
            ref=self.ref,
            mode=ReadMode.VISIT,
            captured_at=datetime.now(UTC),
            duration_ms=round((time.monotonic() - started) * 1000),
            documents=documents,
            requests=interception.requests,
            bytes_in=await traffic.bytes_in(),
            requests_made=traffic.made.total(),
            requests_blocked=traffic.blocked.total(),
            requests_by_type=dict(traffic.made),
            blocked_by_type=dict(traffic.blocked),
        )
        if self.wants_screenshot(document) or not await asyncio.to_thread(self.is_readable, reading):
            reading = replace(reading, screenshot=await take_screenshot(page))
        return reading

    async def _load(self, page: Page) -> Document:
        url = self.ref.url
        with self.session.host.timeouts.measured(self.session.site.key):
            response = await self.session.goto(page, url, self.timeouts.navigation_seconds)
        if response is None:
            return Document(PAGE, url, 200, "text/html", b"")
        body = await limited_body(response, self.session.host.options.max_body_bytes, self.timeouts.page_seconds)
        if body is None:
            raise Transient("the page is larger than the limit for a page", url=url)
        return Document.from_response(PAGE, page.url, response.status, response.headers, body)

    async def _rendered(self, page: Page, loaded: Document) -> Document:
        """Returns the page after its scripts ran; the loaded one where that cannot be read."""
        with contextlib.suppress(ScrapingError, PlaywrightError):
            html = await with_timeout(page.content(), self.timeouts.selector_seconds, "reading the rendered page")
            return Document(PAGE, loaded.url, loaded.status, loaded.content_type, html.encode())
        return loaded


class Interception:
    """Keeps the responses to a page's own requests that match an endpoint by host, method, path and content type."""

    def __init__(self, endpoints: tuple[Endpoint, ...], site: Site, max_body_bytes: int) -> None:
        self._endpoints = endpoints
        self._hosts = site.hosts
        self._max_body_bytes = max_body_bytes
        self._found: dict[str, list[asyncio.Task[tuple[Document, Request] | None]]] = {}
        self._arrived = asyncio.Event()
        self.requests: dict[str, Request] = {}  # of the page, by endpoint; complete after `documents`

    def on_response(self, response: Response) -> None:
        parts, method = urlsplit(response.url), response.request.method
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if (parts.hostname or "").lower() not in self._hosts:
            return
        for endpoint in self._endpoints:
            # An error matches with any content type, to be reported.
            is_accepted = response.status >= 400 or endpoint.accepts(kind)
            if is_accepted and method == endpoint.method and endpoint.pattern.search(target):
                task = asyncio.ensure_future(self._take(endpoint.name, response))
                self._found.setdefault(endpoint.name, []).append(task)
                self._arrived.set()

    async def wait(self, seconds: float) -> None:
        """Waits until the page has requested every required endpoint, and a moment longer for the others."""
        await self._wait_for({endpoint.name for endpoint in self._endpoints if endpoint.is_required}, seconds)
        await self._wait_for({endpoint.name for endpoint in self._endpoints}, OPTIONAL_SECONDS)

    async def _wait_for(self, names: set[str], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not names <= self._found.keys():
                    self._arrived.clear()
                    await self._arrived.wait()

    async def documents(self) -> dict[str, Document]:
        """Returns the documents by endpoint; to be awaited before the page closes or navigates, when bodies vanish."""
        documents: dict[str, Document] = {}
        for name, tasks in self._found.items():
            taken = [found for task in tuple(tasks) if (found := await task) is not None]
            if taken:
                good = [found for found in taken if found[0].status < 400]
                documents[name], self.requests[name] = (good or taken)[-1]
        return documents

    def close(self) -> None:
        for tasks in self._found.values():
            for task in tasks:
                task.cancel()

    async def _take(self, name: str, response: Response) -> tuple[Document, Request] | None:
        with contextlib.suppress(Exception):  # the page has navigated: as if it had not requested it
            request = _as_request(name, response.request)
            body = await limited_body(response, self._max_body_bytes, BODY_SECONDS)
            if body is not None:
                return Document.from_response(name, response.url, response.status, response.headers, body), request
        return None


async def limited_body(response: Response, max_bytes: int, seconds: float) -> bytes | None:
    """Returns the body of a response; None where it is larger than the limit."""
    length = response.headers.get("content-length", "")
    body = b""
    is_large = length.isascii() and length.isdigit() and int(length[:12]) > max_bytes
    if not is_large:
        body = await with_timeout(response.body(), seconds, "reading a response body")
    if is_large or len(body) > max_bytes:
        host = urlsplit(response.url).hostname
        logger.warning(
            "A response of %s is larger than %s bytes and was discarded.",
            host,
            max_bytes,
            extra={"action": "answer_too_large", "host": host},
        )
        return None
    return body


def _as_request(name: str, request: PageRequest) -> Request:
    """Returns the page's request with its headers, to be repeated by direct reads."""
    headers = {key: value for key, value in request.headers.items() if key not in REQUEST_HEADERS}
    with contextlib.suppress(Exception):  # its frame may be closed
        headers = {**headers, **fetch_metadata(request.url, request.frame.url)}
    return Request(name, request.url, request.method, request.post_data_buffer, headers)


def fetch_metadata(url: str, page_url: str) -> dict[str, str]:
    """Returns the Sec-Fetch headers that Chromium adds to a script's request on a trusted connection."""
    target, page = urlsplit(url), urlsplit(page_url)
    if target.scheme != "https" and target.hostname not in ("127.0.0.1", "localhost", "::1"):
        return {}
    site = "cross-site"
    if (target.scheme, target.netloc) == (page.scheme, page.netloc):
        site = "same-origin"
    elif target.scheme == page.scheme and _registrable_domain(target.hostname) == _registrable_domain(page.hostname):
        site = "same-site"
    return {"sec-fetch-dest": "empty", "sec-fetch-mode": "cors", "sec-fetch-site": site}


def _registrable_domain(host: str | None) -> str:
    """Returns the registrable domain of a host; an estimate without the public suffix list."""
    labels = (host or "").lower().split(".")
    if labels[-1].isdigit():  # an address
        return host or ""
    is_short = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3  # such as co.uk
    return ".".join(labels[-3 if is_short else -2 :])


async def take_screenshot(page: Page) -> bytes:
    """Returns a picture of the page with its input fields masked; empty where it cannot be taken in time."""
    with contextlib.suppress(Exception):
        return await with_timeout(
            page.screenshot(
                type="png",
                scale="css",
                timeout=SCREENSHOT_SECONDS * 1000,
                mask=[page.locator("input, textarea, select")],
            ),
            SCREENSHOT_SECONDS + 0.5,
            "taking a screenshot",
        )
    return b""
