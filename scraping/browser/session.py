"""A session at a source: one identity (profile, proxy, cookies), its browser context and its direct client.

Cookies are kept in memory and outlive the browser: when Chromium dies, direct reads continue, and the next visit gets
the same cookies in a new context.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime

from scraping.browser.context import SessionContext
from scraping.browser.direct_client import DirectClient, ResponseLimits
from scraping.browser.egress.forward_proxy import ForwardProxy
from scraping.browser.egress.upstream_proxies import Proxy
from scraping.browser.host import BrowserHost
from scraping.browser.profile import Profile
from scraping.browser.visit import PageVisit, WantsScreenshot
from scraping.errors import ScrapingError
from scraping.readings import PAGE, Endpoint, Reading, ReadMode, RefInfo, Request, Site, report_stage

# Called at the end of each read with the session, its reading or error, and its start (monotonic).
ReadListener = Callable[["Session", "Reading | ScrapingError", float], None]


def _no_screenshot(_: object) -> bool:
    return False


def _ignore(session: Session, outcome: Reading | ScrapingError, began: float) -> None:
    pass


def new_session_id() -> str:
    return secrets.token_hex(8)


class Session:
    """Lives on the loop thread."""

    def __init__(
        self,
        site: Site,
        host: BrowserHost,
        *,
        forward_proxy: ForwardProxy,
        profile: Profile,
        session_id: str = "",
        proxy: Proxy | None = None,
        on_read: ReadListener = _ignore,
    ) -> None:
        self.site = site
        self.session_id = session_id or new_session_id()
        self.proxy = proxy
        self.created_at = time.monotonic()
        self.opened_at = self.last_used_at = datetime.now(UTC)
        self.is_warm = False  # a visit has succeeded: direct reads have the cookies that they need
        self.is_dropped = False  # no new reads; reads under way may finish
        self.is_worn = False  # the next visit replaces it
        self.successes = self.failures = self.bytes_in = 0
        self._host = host
        self._on_read = on_read
        self._in_use = self._visits = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.client = DirectClient(
            site,
            limits=ResponseLimits(host.options.max_body_bytes, host.options.max_redirects),
            user_agent=profile.user_agent,
            language=profile.locale,
            upstream=proxy.url if proxy else None,
        )
        self.context = SessionContext(
            site,
            host,
            self.client,
            forward_proxy=forward_proxy,
            session_id=self.session_id,
            profile=profile,
            proxy=proxy,
        )

    @property
    def has_attached_pages(self) -> bool:
        """Whether pages are open that stay open between reads."""
        return self.context.page_count > self._visits

    @property
    def proxy_hash(self) -> str:
        return self.proxy.hash if self.proxy else ""

    async def wait_idle(self, seconds: float) -> None:
        """Waits until no read is under way, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def close(self) -> None:
        try:
            await self.client.close()
        finally:
            await self.context.close()

    async def visit(
        self,
        ref: RefInfo,
        endpoints: tuple[Endpoint, ...],
        *,
        wants_screenshot: WantsScreenshot = _no_screenshot,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Loads the page in the browser; returns it with the responses of the endpoints that its scripts request."""
        async with self._host.visiting():
            timeouts = self._host.timeouts.of(self.site.key, factor=timeout_factor)
            visit = PageVisit(self.site, self._host, self.context, ref, endpoints, wants_screenshot, timeouts)
            return await self.track(self._visit(visit))

    async def _visit(self, visit: PageVisit) -> Reading:
        self._visits += 1
        try:
            reading = await visit.read()
        finally:
            self._visits -= 1
        self.is_warm = self.is_warm or reading.documents[PAGE].status < 400
        return reading

    async def direct(self, ref: RefInfo, requests: tuple[Request, ...], *, timeout_factor: float = 1.0) -> Reading:
        """Requests the endpoints with the cookies of the visit, without a page."""
        return await self.track(self._direct(ref, requests, timeout_factor))

    async def _direct(self, ref: RefInfo, requests: tuple[Request, ...], timeout_factor: float) -> Reading:
        started = time.monotonic()
        report_stage("INTERCEPTING")
        seconds = self._host.timeouts.of(self.site.key, factor=timeout_factor).request_seconds
        with self._host.timeouts.measured(self.site.key):
            if len(requests) == 1:
                documents = [await self.client.fetch(requests[0], seconds=seconds)]
            else:
                documents = await asyncio.gather(*(self.client.fetch(one, seconds=seconds) for one in requests))
        return Reading(
            ref=ref,
            mode=ReadMode.DIRECT,
            captured_at=datetime.now(UTC),
            documents={one.name: one for one in documents},
            requests={request.name: request for request in requests},
            bytes_in=sum(document.wire_bytes or len(document.body) for document in documents),
            requests_made=len(requests),
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    async def track(self, reading: Awaitable[Reading]) -> Reading:
        """Awaits a read of this session, marks the session as in use meanwhile, and counts and reports the outcome."""
        began = time.monotonic()
        self._in_use += 1
        self._idle.clear()
        try:
            result = replace(await reading, session_id=self.session_id)
        except ScrapingError as error:
            self.failures += 1
            self._on_read(self, error, began)
            raise
        else:
            self.successes += is_success(result)
            self.failures += not is_success(result)
            self.bytes_in += result.bytes_in
            self._on_read(self, result, began)
            return result
        finally:
            self.last_used_at = datetime.now(UTC)
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()


def is_success(reading: Reading) -> bool:
    """Whether all responses have a good status. Their content is validated later."""
    return all(document.status < 400 for document in reading.documents.values())
