"""A session at a source: one identity (profile, proxy, cookies), its browser context and its direct client.

Cookies are kept in memory and outlive the browser: the next visit gets them in a new context.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from playwright.async_api import Browser, BrowserContext, Page, ProxySettings, Response
from playwright.async_api import Error as PlaywrightError
from prometheus_client import Counter as CounterMetric

from scraping.browser.blocking import PageTraffic, RequestBlocker
from scraping.browser.cookies import (
    Cookies,
    changed_cookies,
    cookies_of_context,
    cookies_of_jar,
    merged_cookies,
    replace_cookies,
)
from scraping.browser.direct_client import DirectClient
from scraping.browser.egress.forward_proxy import ForwardProxy
from scraping.browser.egress.upstream_proxies import Proxy
from scraping.browser.host import BrowserHost
from scraping.browser.playwright_calls import translate_error, with_timeout
from scraping.browser.profile import Profile, apply_stealth, user_agent_of
from scraping.browser.request_page import CONNECTION_REFUSED, RequestPage
from scraping.browser.request_trace import trace_failure, trace_responses
from scraping.browser.visit import IsReadable, PageVisit, WantsScreenshot
from scraping.errors import EgressRefused, ReadTimeout, ResourceLost, ScrapingError
from scraping.readings import (
    PAGE,
    Document,
    Endpoint,
    Reading,
    ReadMode,
    RefInfo,
    Request,
    SessionFacts,
    Site,
    attempt_facts,
    note_request,
    report_stage,
)

_navigation_failures = CounterMetric(
    "scraper_navigation_failures", "Pages that could not be loaded: timeouts, refusals, network errors.", ["domain"]
)
CONTEXT_SECONDS = 10.0
CLOSE_SECONDS = 3.0

# Called at the end of each read with the session, its reading or error, and the seconds that it took.
ReadListener = Callable[["Session", "Reading | ScrapingError", float], None]


@dataclass
class SessionRecord:
    """The data of a session for its row; the proxy by its hash."""

    session_id: str
    source: str
    proxy_hash: str
    geo: str
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    last_used_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None
    end_reason: str = ""
    successes: int = 0
    failures: int = 0
    bytes_in: int = 0
    quarantined_until: datetime | None = None


class Session:
    """Lives on the loop thread."""

    def __init__(
        self,
        site: Site,
        host: BrowserHost,
        *,
        session_id: str,
        profile: Profile,
        proxy: Proxy | None,
        created_at: float,
        on_read: ReadListener,
    ) -> None:
        self.site, self.host, self.session_id, self.profile, self.proxy = site, host, session_id, profile, proxy
        self.created_at = self.taken_at = created_at  # monotonic; when it was given to a reader last
        self.record = SessionRecord(session_id, site.key, proxy.hash if proxy else "", proxy.country if proxy else "")
        self.facts = SessionFacts(
            session_id,
            ("gateway" if proxy.is_gateway else "list") if proxy else "",
            self.record.geo,
            self.record.proxy_hash,
        )
        self.generation = 0  # of the browser that the context is in
        self.page_count = 0
        self.is_warm = False  # a visit has succeeded: direct reads have the cookies that they need
        # Modes in which a request was accepted: a later refusal is one of the session, not of the client.
        self.accepted_modes: set[ReadMode] = set()
        self.is_dropped = False  # no new reads; reads under way may finish
        self.is_worn = False  # the next visit replaces it
        options, upstream = host.options, proxy.url if proxy else None
        self.client = DirectClient(
            site,
            max_body_bytes=options.max_body_bytes,
            user_agent=profile.user_agent,
            language=profile.locale,
            upstream=upstream,
            trace=options.trace,
        )
        # An external browser on this machine may run as another user.
        self.forward_proxy = ForwardProxy(site, upstream, own_user_only=not options.cdp_endpoint)
        self.request_page = RequestPage(self)
        self._blocker = RequestBlocker(site, own_hosts_only=not options.has_forward_proxy)
        self._on_read = on_read
        self._in_use = self._visits = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._context: BrowserContext | None = None
        self._pages_in: Counter[BrowserContext] = Counter()  # pages that are open or opening, also of retired contexts
        self._known: Cookies = {}  # cookies of the open context, as last read or set
        self._opening = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether a context of it exists in the current browser."""
        has_context = self._context is not None or bool(self._pages_in)
        return has_context and self.generation == self.host.generation

    @property
    def has_attached_pages(self) -> bool:
        """Whether pages of matches are open that stay open between reads."""
        return self.page_count > self._visits + (self.request_page.page is not None)

    async def wait_idle(self, seconds: float) -> None:
        """Waits until no read is under way, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def close(self) -> None:
        try:
            await self.client.close()
            await self.request_page.close()
            contexts = {one for one in (self._context, *self._pages_in) if one is not None} if self.is_open else set()
            self._context, self._pages_in = None, Counter()
            for context in contexts:
                await _close_context(context)
        finally:
            await self.forward_proxy.stop()

    async def visit(
        self,
        ref: RefInfo,
        endpoints: tuple[Endpoint, ...],
        *,
        wants_screenshot: WantsScreenshot = lambda _: False,
        is_readable: IsReadable = lambda _: True,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Loads the page in the browser; returns it with the responses of the endpoints that its scripts request."""
        async with self.host.visiting():
            timeouts = self.host.timeouts.of(self.site.key, factor=timeout_factor)
            visit = PageVisit(self, ref, endpoints, wants_screenshot, timeouts, is_readable)
            return await self.track(self._visit(visit))

    async def _visit(self, visit: PageVisit) -> Reading:
        began, level = time.monotonic(), self.host.options.trace
        self._visits += 1
        try:
            reading = await visit.read()
        except ScrapingError as error:
            seconds = time.monotonic() - began
            note_request("GET", visit.ref.url, error, seconds)
            trace_failure(level, self.site.key, "GET", visit.ref.url, seconds=seconds, error=error)
            raise
        finally:
            self._visits -= 1
        seconds = time.monotonic() - began
        for document in reading.documents.values():
            note_request("GET", document.url, document, seconds)
        trace_responses(level, self.site.key, "GET", reading.documents.values(), seconds=seconds)
        self.is_warm = self.is_warm or reading.documents[PAGE].status < 400
        return reading

    async def request(
        self,
        ref: RefInfo,
        requests: tuple[Request, ...],
        *,
        mode: ReadMode = ReadMode.DIRECT,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Requests the endpoints with the cookies of the visit: directly, or inside an open page."""
        return await self.track(self._request(ref, requests, mode, timeout_factor))

    async def _request(
        self, ref: RefInfo, requests: tuple[Request, ...], mode: ReadMode, timeout_factor: float
    ) -> Reading:
        started = time.monotonic()
        report_stage("INTERCEPTING")
        fetch = self.request_page.fetch if mode is ReadMode.IN_PAGE else self.client.fetch
        seconds = self.host.timeouts.of(self.site.key, factor=timeout_factor).request_seconds
        with self.host.timeouts.measured(self.site.key):
            if len(requests) == 1:
                documents = [await fetch(requests[0], seconds=seconds)]
            else:
                documents = await asyncio.gather(*(fetch(one, seconds=seconds) for one in requests))
        return Reading(
            ref=ref,
            mode=mode,
            captured_at=datetime.now(UTC),
            documents={one.name: one for one in documents},
            requests={request.name: request for request in requests},
            bytes_in=sum(document.wire_bytes or len(document.body) for document in documents),
            requests_made=len(requests),
            duration_ms=round((time.monotonic() - started) * 1000),
        )

    async def fetch(self, request: Request, *, seconds: float, may_be_empty: bool = False) -> Document:
        """Requests a document that belongs to no match directly, and in a page where that is refused, if it may be."""
        document = await self.client.fetch(request, seconds=seconds, may_be_empty=may_be_empty)
        if document.status in (401, 403) and self.site.read_way != ReadMode.DIRECT:
            with contextlib.suppress(ScrapingError):
                return await self.request_page.fetch(request, seconds=seconds, may_be_empty=may_be_empty)
        return document

    async def track(self, reading: Awaitable[Reading]) -> Reading:
        """Awaits a read of this session, marks the session as in use meanwhile, and counts and reports the outcome."""
        began, facts = time.monotonic(), attempt_facts.get()
        if facts is not None:
            facts.session = self.facts
        self._in_use += 1
        self._idle.clear()
        try:
            result = replace(await reading, session_id=self.session_id)
        except ScrapingError as error:
            self.record.failures += 1
            self._on_read(self, error, time.monotonic() - began)
            raise
        else:
            self.record.successes += is_success(result)
            self.record.failures += not is_success(result)
            self.record.bytes_in += result.bytes_in
            if facts is not None:
                facts.add(result)
            self._on_read(self, result, time.monotonic() - began)
            return result
        finally:
            self.record.last_used_at = datetime.now(UTC)
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()

    async def open_page(self) -> tuple[Page, PageTraffic]:
        """Opens an empty page and counts its traffic. To be closed by `close_page`."""
        context = await self.open_context()
        try:
            page = await with_timeout(context.new_page(), CONTEXT_SECONDS, "opening a page")
        except BaseException as error:
            if isinstance(error, ReadTimeout):
                self._retire(context)
            await self._leave(context)
            raise
        self.page_count += 1
        return page, self._blocker.watch(page)

    async def goto(self, page: Page, url: str, seconds: float) -> Response | None:
        """Loads a URL. EgressRefused where it redirects to a host that the forward proxy refused."""
        self.client.rules.check_url(url)
        before = self.forward_proxy.traffic.refused
        try:
            with _navigation_failures.labels(self.site.key).count_exceptions():
                return await with_timeout(
                    page.goto(url, wait_until="domcontentloaded", timeout=seconds * 1000), seconds + 1, f"loading {url}"
                )
        except PlaywrightError as error:
            traffic = self.forward_proxy.traffic
            if CONNECTION_REFUSED in str(error) and traffic.refused > before:
                raise EgressRefused(f"the page leads elsewhere: {traffic.last_refusal}", url=url) from error
            raise translate_error(error, url=url) from error

    async def close_page(self, page: Page) -> None:
        """Closes a page, and its context if that was retired and this was its last page."""
        self.page_count -= 1
        with contextlib.suppress(Exception):
            await with_timeout(page.close(), CLOSE_SECONDS, "closing a page")
        await self._leave(page.context)

    async def _leave(self, context: BrowserContext) -> None:
        self._pages_in[context] -= 1
        if self._pages_in[context] <= 0 and context is not self._context:
            del self._pages_in[context]
            with contextlib.suppress(Exception):
                await _close_context(context)

    def is_current(self, page: Page) -> bool:
        """Whether the page is in the context in which later pages are opened."""
        return page.context is self._context

    def retire_context(self, page: Page) -> None:
        """Has every later page opened in a fresh context, after a page of the present one timed out (FR-021).

        The fresh context gets the cookies. Other pages of the old context are read on, and the last one closes it.
        """
        self._retire(page.context)

    def _retire(self, context: BrowserContext) -> None:
        if context is self._context:
            self._context = None

    async def open_context(self) -> BrowserContext:
        """Returns the context in the current browser, with the cookies that direct responses have set meanwhile."""
        async with self._opening:
            browser, generation = await self.host.browser()
            if self._context is None or self.generation != generation:
                try:
                    self._context = await self._new_context(browser)
                except Exception as error:
                    failure = translate_error(error, url=self.site.base_url)
                    self.host.report_lost(generation, str(failure))
                    raise ResourceLost(f"the browser opens no context and is being replaced: {failure}") from error
                if self.generation != generation:
                    self.generation, self._pages_in = generation, Counter()
            context = self._context
            self._pages_in[context] += 1
            current = cookies_of_jar(self.client.jar)
            try:
                if changed := changed_cookies(current, self._known):
                    await with_timeout(context.add_cookies(changed), CONTEXT_SECONDS, "restoring cookies")
                    self._known = {**self._known, **current}
            except BaseException:
                await self._leave(context)
                raise
            return context

    async def save_cookies(self, context: BrowserContext, before: Cookies) -> None:
        """Copies the cookies of a visit to the direct client. `before`: the client's cookies before the visit."""
        found = await with_timeout(context.cookies(), CLOSE_SECONDS, "reading cookies")
        visited = cookies_of_context(found)
        if context is self._context:
            self._known = visited
        direct = cookies_of_jar(self.client.jar)
        replace_cookies(self.client.jar, merged_cookies(visited=visited, direct=direct, before=before))

    async def _new_context(self, browser: Browser) -> BrowserContext:
        proxy_settings = await self._proxy_settings()
        # Chromium may have been updated since the session began; its client hints would contradict an old version.
        self.profile = profile = replace(self.profile, user_agent=user_agent_of(browser.version))
        context = await with_timeout(
            browser.new_context(
                user_agent=profile.user_agent,
                locale=profile.locale,
                timezone_id=profile.timezone,
                viewport=profile.viewport,
                screen=profile.viewport,
                device_scale_factor=1,
                accept_downloads=False,
                service_workers="block",  # their requests are not routed
                proxy=proxy_settings,
            ),
            CONTEXT_SECONDS,
            "opening a browser context",
        )
        await with_timeout(context.route("**/*", self._blocker.route), CONTEXT_SECONDS, "setting up blocking")
        if self.host.options.has_stealth:
            await with_timeout(apply_stealth(context), CONTEXT_SECONDS, "setting up stealth")
        self._known = {}
        return context

    async def _proxy_settings(self) -> ProxySettings | None:
        """Returns the forward proxy; for a browser on another machine, which cannot reach it, the upstream."""
        if self.host.options.has_forward_proxy:
            return {"server": await self.forward_proxy.start()}
        if self.proxy is None:
            return None
        server = f"{self.proxy.scheme}://{self.proxy.host}:{self.proxy.port}"
        return {"server": server, "username": self.proxy.username, "password": self.proxy.password}


async def _close_context(context: BrowserContext) -> None:
    await with_timeout(context.close(), CLOSE_SECONDS, "closing a browser context")


def is_success(reading: Reading) -> bool:
    """Whether all responses have a good status. Their content is validated later."""
    return all(document.status < 400 for document in reading.documents.values())
