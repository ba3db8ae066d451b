"""A session at a source: its cookies and headers, and the ways to read through it.

What a visit has earned lives here, in memory, and outlives the browser: when Chromium dies, direct reads go on, and the
next visit gets the same cookies in a new context.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from playwright._impl._api_structures import SetCookieParam
from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError
from yarl import URL

from scraping.browser import answers
from scraping.browser.blocking import Blocker
from scraping.browser.bounded import bounded
from scraping.browser.capture import Capture, screenshot_of
from scraping.browser.faults import translate
from scraping.browser.host import BrowserHost
from scraping.browser.options import BrowserOptions
from scraping.browser.wire import Wire, WireLimits
from scraping.errors import ReadTimeout, ResourceLost, ScrapingError
from scraping.readings import PAGE, Document, Endpoint, Reading, ReadMode, RefInfo, Request, Site
from scraping.sights import Sight, give
from scraping.stages import reached

CONTEXT_SECONDS = 10.0
CLOSE_SECONDS = 3.0

# Does this page (None: it did not even load) look like one whose picture will be asked for?
LooksWrong = Callable[[Document | None], bool]


def _fine(_: Document | None) -> bool:
    return False


class Session:
    """Lives on the loop thread."""

    def __init__(self, site: Site, host: BrowserHost, options: BrowserOptions) -> None:
        self.site = site
        self.session_id = secrets.token_hex(8)
        self.created_at = time.monotonic()
        self.is_warm = False  # a visit has earned what direct reads need
        self.generation = 0  # of the browser that its context is in
        self.page_count = 0
        self._host = host
        self._options = options
        self._blocker = Blocker()
        self._cookies: list[SetCookieParam] = []
        self._context: BrowserContext | None = None
        self._opening = asyncio.Lock()
        limits = WireLimits(options.max_body_bytes, options.max_redirects)
        self._wire = Wire(site, limits=limits, user_agent=options.user_agent or "", language=options.locale)

    @property
    def has_context(self) -> bool:
        return self._context is not None and self.generation == self._host.generation

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        await self._wire.close()
        if self._context is not None and self.has_context:
            await bounded(self._context.close(), seconds, "closing a browser context")

    async def _open_context(self) -> BrowserContext:
        """The context in the present browser; a browser that opens none is of no use, and is reported."""
        async with self._opening:
            browser, generation = await self._host.browser()
            if self._context is not None and self.generation == generation:
                return self._context
            options = self._options
            try:
                context = await bounded(
                    browser.new_context(
                        locale=options.locale, timezone_id=options.timezone, user_agent=options.user_agent
                    ),
                    CONTEXT_SECONDS,
                    "opening a browser context",
                )
                await bounded(context.route("**/*", self._blocker.route), CONTEXT_SECONDS, "setting up blocking")
                if self._cookies:
                    await bounded(context.add_cookies(self._cookies), CONTEXT_SECONDS, "restoring cookies")
            except Exception as error:
                failure = translate(error, url=self.site.base_url)
                self._host.report_lost(generation, str(failure))
                raise ResourceLost(f"the browser opens no context and is being replaced: {failure}") from error
            self._context, self.generation = context, generation
            return context

    async def _keep_cookies(self, context: BrowserContext) -> None:
        """What the visit has earned, also for direct reads."""
        found = await bounded(context.cookies(), CLOSE_SECONDS, "reading cookies")
        self._cookies = [cast("SetCookieParam", cookie) for cookie in found]
        self._wire.jar.clear()
        for cookie in found:
            host = str(cookie.get("domain", "")).lstrip(".")
            address = URL.build(scheme="https" if cookie.get("secure") else "http", host=host, path="/")
            self._wire.jar.update_cookies({str(cookie.get("name")): str(cookie.get("value"))}, address)

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
        started, before = time.monotonic(), (self._blocker.requests, self._blocker.blocked)
        page: Page | None = None
        capture = Capture(endpoints, self.site)
        screenshot = b""
        try:
            context = await self._open_context()
            page = await bounded(context.new_page(), CONTEXT_SECONDS, "opening a page")
            self.page_count += 1
            page.on("response", capture.see)
            reached("NAVIGATING")
            document = await self._load(page, ref.url, timeout_factor)
            if document.status < 400:
                reached("INTERCEPTING")
                await capture.wait(self._options.capture_timeout_seconds * timeout_factor)
                document = await self._rendered(page, document)
            documents = {PAGE: document, **await capture.documents()}
            if looks_wrong(document):
                screenshot = await screenshot_of(page)
            if document.status < 400:
                await self._keep_cookies(context)
                self.is_warm = True
        except Exception as error:
            failure = translate(error, url=ref.url)
            if page is not None and isinstance(failure, ReadTimeout) and looks_wrong(None):
                give(failure, Sight(screenshot=await screenshot_of(page)))
            raise failure from error
        finally:
            if page is not None:
                self.page_count -= 1
                with contextlib.suppress(Exception):
                    await bounded(page.close(), CLOSE_SECONDS, "closing a page")
        reading = _reading(
            ref,
            ReadMode.VISIT,
            documents,
            capture.requests,
            started=started,
            made=self._blocker.requests - before[0],
            blocked=self._blocker.blocked - before[1],
        )
        return replace(reading, screenshot=screenshot) if screenshot else reading

    async def _load(self, page: Page, url: str, timeout_factor: float) -> Document:
        limit = self._options.navigation_timeout_seconds * timeout_factor
        response = await bounded(
            page.goto(url, wait_until="domcontentloaded", timeout=limit * 1000), limit + 1, f"loading {url}"
        )
        if response is None:
            return Document(PAGE, url, 200, "text/html", b"")
        page_limit = self._options.page_timeout_seconds * timeout_factor
        body = await bounded(response.body(), page_limit, f"reading {url}")
        return answers.document(PAGE, page.url, response.status, response.headers, body)

    async def _rendered(self, page: Page, loaded: Document) -> Document:
        """The page after its script ran; where that cannot be had, as it came over the wire."""
        with contextlib.suppress(ScrapingError, PlaywrightError):
            html = await bounded(page.content(), self._options.capture_timeout_seconds, "reading the rendered page")
            return Document(PAGE, loaded.url, loaded.status, loaded.content_type, html.encode())
        return loaded

    async def direct(self, ref: RefInfo, requests: tuple[Request, ...], *, timeout_factor: float = 1.0) -> Reading:
        """Ask the endpoints with what the visit has earned, without a page."""
        started = time.monotonic()
        reached("INTERCEPTING")
        seconds = self._options.request_timeout_seconds * timeout_factor
        if len(requests) == 1:
            documents = [await self._wire.ask(requests[0], seconds=seconds)]
        else:
            documents = await asyncio.gather(*(self._wire.ask(request, seconds=seconds) for request in requests))
        asked = {request.name: request for request in requests}
        found = {one.name: one for one in documents}
        return _reading(ref, ReadMode.DIRECT, found, asked, started=started, made=len(requests), blocked=0)


def _reading(
    ref: RefInfo,
    mode: ReadMode,
    documents: dict[str, Document],
    requests: dict[str, Request],
    *,
    started: float,
    made: int,
    blocked: int,
) -> Reading:
    return Reading(
        ref=ref,
        mode=mode,
        captured_at=datetime.now(UTC),
        documents=documents,
        requests=requests,
        bytes_in=sum(len(document.body) for document in documents.values()),
        requests_made=made,
        requests_blocked=blocked,
        duration_ms=round((time.monotonic() - started) * 1000),
    )
