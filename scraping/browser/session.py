"""A browser context of one source: its cookies, its blocked resources, and the two ways to read through it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import urlsplit

from playwright._impl._api_structures import SetCookieParam
from playwright.async_api import Browser, BrowserContext, Page, Response, Route
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Request as PageRequest

from scraping.browser.bounded import bounded
from scraping.browser.faults import translate
from scraping.browser.options import BrowserOptions
from scraping.errors import ReadTimeout, ScrapingError
from scraping.readings import PAGE, Document, Endpoint, Reading, ReadMode, RefInfo, Request
from scraping.sights import Sight, give
from scraping.stages import reached

BLOCKED_TYPES = frozenset({"image", "media", "font", "stylesheet"})
CONTEXT_SECONDS = 10.0
CLOSE_SECONDS = 3.0
SCREENSHOT_SECONDS = 2.0
SCREENSHOT_QUALITY = 60
OPTIONAL_SECONDS = 0.5  # how long an endpoint that is welcome, but not required, is waited for
KEPT_HEADERS = frozenset({"content-type", "accept", "x-requested-with", "authorization"})
MAX_BODY_BYTES = 8_000_000
MAX_RETRY_AFTER_SECONDS = 900.0


# Does this page (None: it did not even load) look like one whose picture will be asked for?
LooksWrong = Callable[[Document | None], bool]


def _fine(_: Document | None) -> bool:
    return False


class Session:
    def __init__(self, context: BrowserContext, options: BrowserOptions, generation: int) -> None:
        self.generation = generation
        self.cookies: list[SetCookieParam] = []  # as of the last visit; they outlive the browser
        self._context = context
        self._options = options
        self._blocked = 0
        self.page_count = 0

    @classmethod
    async def open(
        cls, browser: Browser, options: BrowserOptions, generation: int, cookies: list[SetCookieParam]
    ) -> Session:
        try:
            context = await bounded(
                browser.new_context(locale=options.locale, timezone_id=options.timezone, user_agent=options.user_agent),
                CONTEXT_SECONDS,
                "opening a browser context",
            )
            session = cls(context, options, generation)
            await bounded(context.route("**/*", session._route), CONTEXT_SECONDS, "setting up resource blocking")
            if cookies:
                await bounded(context.add_cookies(cookies), CONTEXT_SECONDS, "restoring cookies")
                session.cookies = cookies
        except Exception as error:
            raise translate(error, url="") from error
        return session

    async def close(self, seconds: float) -> None:
        await bounded(self._context.close(), seconds, "closing a browser context")

    async def _route(self, route: Route) -> None:
        with contextlib.suppress(Exception):  # the page may be gone before its last request is answered
            if route.request.resource_type in BLOCKED_TYPES:
                self._blocked += 1
                await route.abort()
            else:
                await route.continue_()

    async def visit(
        self,
        ref: RefInfo,
        endpoints: tuple[Endpoint, ...],
        *,
        looks_wrong: LooksWrong = _fine,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Open the page, let its script ask for the endpoints, keep the answers and the page, close it.

        A page that looks wrong is photographed before it goes: later nobody can.
        """
        started, blocked_before = time.monotonic(), self._blocked
        page: Page | None = None
        screenshot = b""
        try:
            page = await bounded(self._context.new_page(), CONTEXT_SECONDS, "opening a page")
            self.page_count += 1
            capture = _Capture(endpoints)
            page.on("response", capture.see)
            reached("NAVIGATING")
            document = await self._load(page, ref.url, timeout_factor)
            if document.status < 400:
                reached("INTERCEPTING")
                await capture.wait(self._options.capture_timeout_seconds * timeout_factor)
                document = await self._rendered(page, document)
            documents = {PAGE: document, **await capture.documents()}
            if looks_wrong(document):
                screenshot = await _screenshot(page)
            if document.status < 400:
                self.cookies = await self._current_cookies()
        except Exception as error:
            failure = translate(error, url=ref.url)
            if page is not None and isinstance(failure, ReadTimeout) and looks_wrong(None):
                give(failure, Sight(screenshot=await _screenshot(page)))
            raise failure from error
        finally:
            if page is not None:
                self.page_count -= 1
                with contextlib.suppress(Exception):
                    await bounded(page.close(), CLOSE_SECONDS, "closing a page")
        blocked = self._blocked - blocked_before
        reading = _reading(ref, ReadMode.VISIT, documents, capture.requests, started=started, blocked=blocked)
        return replace(reading, screenshot=screenshot) if screenshot else reading

    async def _current_cookies(self) -> list[SetCookieParam]:
        found = await bounded(self._context.cookies(), CLOSE_SECONDS, "reading cookies")
        return [cast("SetCookieParam", cookie) for cookie in found]

    async def _load(self, page: Page, url: str, timeout_factor: float) -> Document:
        limit = self._options.navigation_timeout_seconds * timeout_factor
        response = await bounded(
            page.goto(url, wait_until="domcontentloaded", timeout=limit * 1000), limit + 1, f"loading {url}"
        )
        if response is None:
            return Document(PAGE, url, 200, "text/html", b"")
        page_limit = self._options.page_timeout_seconds * timeout_factor
        body = await bounded(response.body(), page_limit, f"reading {url}")
        return _document(PAGE, page.url, response.status, response.headers, body)

    async def _rendered(self, page: Page, loaded: Document) -> Document:
        """The page after its script ran; where that cannot be had, as it came over the wire."""
        with contextlib.suppress(ScrapingError, PlaywrightError):
            html = await bounded(page.content(), self._options.capture_timeout_seconds, "reading the rendered page")
            return Document(PAGE, loaded.url, loaded.status, loaded.content_type, html.encode())
        return loaded

    async def direct(self, ref: RefInfo, requests: tuple[Request, ...], *, timeout_factor: float = 1.0) -> Reading:
        """Ask the endpoints through this context's cookies, without a page."""
        started = time.monotonic()
        reached("INTERCEPTING")
        documents = await asyncio.gather(*(self._ask(request, timeout_factor) for request in requests))
        asked = {request.name: request for request in requests}
        return _reading(ref, ReadMode.DIRECT, {one.name: one for one in documents}, asked, started=started, blocked=0)

    async def _ask(self, request: Request, timeout_factor: float) -> Document:
        limit = self._options.request_timeout_seconds * timeout_factor
        try:
            response = await bounded(
                self._context.request.fetch(
                    request.url,
                    method=request.method,
                    data=request.body,
                    headers=dict(request.headers),
                    timeout=limit * 1000,
                    max_redirects=0,
                ),
                limit + 1,
                f"asking {urlsplit(request.url).path}",
            )
            try:
                body = await bounded(response.body(), limit, f"reading {urlsplit(request.url).path}")
            finally:
                await bounded(response.dispose(), CLOSE_SECONDS, "disposing an answer")
        except Exception as error:
            raise translate(error, url=request.url) from error
        return _document(request.name, request.url, response.status, response.headers, body)


async def _screenshot(page: Page) -> bytes:
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


class _Capture:
    """The answers to a page's own requests that match the endpoints we want."""

    def __init__(self, endpoints: tuple[Endpoint, ...]) -> None:
        self._endpoints = endpoints
        self._bodies: dict[str, asyncio.Task[Document | None]] = {}
        self.requests: dict[str, Request] = {}
        self._seen = asyncio.Event()

    def see(self, response: Response) -> None:
        request = response.request
        for endpoint in self._endpoints:
            if request.method == endpoint.method and endpoint.pattern.search(response.url):
                self._bodies[endpoint.name] = asyncio.ensure_future(_body(endpoint.name, response))
                self.requests[endpoint.name] = _as_request(endpoint.name, request)
                self._seen.set()

    async def wait(self, seconds: float) -> None:
        """Until the page has asked every required endpoint, and a moment longer for the others."""
        await self._wait_for({endpoint.name for endpoint in self._endpoints if endpoint.is_required}, seconds)
        await self._wait_for({endpoint.name for endpoint in self._endpoints}, OPTIONAL_SECONDS)

    async def _wait_for(self, names: set[str], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not names <= self._bodies.keys():
                    self._seen.clear()
                    await self._seen.wait()

    async def documents(self) -> dict[str, Document]:
        # Bodies must be awaited before the page goes: they vanish with it.
        found = {name: await task for name, task in self._bodies.items()}
        return {name: document for name, document in found.items() if document is not None}


async def _body(name: str, response: Response) -> Document | None:
    with contextlib.suppress(Exception):
        body = await bounded(response.body(), 10.0, f"reading {name}")
        return _document(name, response.url, response.status, response.headers, body)
    return None


def _as_request(name: str, request: PageRequest) -> Request:
    """How the page asked, so that it can be asked again."""
    headers = {key: value for key, value in request.headers.items() if key in KEPT_HEADERS or key == "referer"}
    return Request(name, request.url, request.method, request.post_data_buffer, headers)


def retry_after_seconds(value: str | None, *, now: datetime) -> float | None:
    """A Retry-After header, in seconds or as a date; bounded, for a source must not send us away for ever."""
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(min(int(value[:9]), MAX_RETRY_AFTER_SECONDS))
    try:
        seconds = (parsedate_to_datetime(value) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _document(name: str, url: str, status: int, headers: Mapping[str, str], body: bytes) -> Document:
    wait = retry_after_seconds(headers.get("retry-after"), now=datetime.now(UTC))
    return Document(name, url, status, headers.get("content-type", ""), body[:MAX_BODY_BYTES], wait)


def _reading(
    ref: RefInfo,
    mode: ReadMode,
    documents: dict[str, Document],
    requests: dict[str, Request],
    *,
    started: float,
    blocked: int,
) -> Reading:
    return Reading(
        ref=ref,
        mode=mode,
        captured_at=datetime.now(UTC),
        documents=documents,
        requests=requests,
        bytes_in=sum(len(document.body) for document in documents.values()),
        requests_blocked=blocked,
        duration_ms=round((time.monotonic() - started) * 1000),
    )
