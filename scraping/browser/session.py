"""A session at a source: its profile, its cookies, its way out, and the ways to read through it.

What a visit has earned lives here, in memory, and outlives the browser: when Chromium dies, direct reads go on, and the
next visit gets the same cookies in a new context.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from playwright.async_api import Browser, BrowserContext, Page, ProxySettings, Response
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from scraping.browser import answers, cookies, stealth
from scraping.browser.blocking import Blocker, PageTally
from scraping.browser.bounded import bounded
from scraping.browser.capture import Capture, capped_body, screenshot_of
from scraping.browser.faults import cause_of, translate
from scraping.browser.gate import REFUSED_HEADER, Gate, GatePass
from scraping.browser.host import BrowserHost
from scraping.browser.options import BrowserOptions
from scraping.browser.profile import Profile, user_agent_of
from scraping.browser.proxies import Proxy
from scraping.browser.wire import Wire, WireLimits
from scraping.errors import EgressRefused, PageCrashed, ReadTimeout, ResourceLost, ScrapingError, Transient
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

CONTEXT_SECONDS = 10.0
CLOSE_SECONDS = 3.0
NO_TUNNEL = "ERR_TUNNEL_CONNECTION_FAILED"  # how Chromium says that the gate did not open

# Does this page (None: it did not even load) look like one whose picture will be asked for?
LooksWrong = Callable[[Document | None], bool]
# A read that began at this time has come to an end: what it brought, or why it brought nothing.
Told = Callable[["Session", "Reading | ScrapingError", float], None]


def _fine(_: Document | None) -> bool:
    return False


def _tell_nobody(session: Session, outcome: Reading | ScrapingError, began: float) -> None:
    pass


def new_session_id() -> str:
    return secrets.token_hex(8)


class Session:
    """Lives on the loop thread."""

    def __init__(
        self,
        site: Site,
        host: BrowserHost,
        options: BrowserOptions,
        *,
        gate: Gate,
        profile: Profile,
        session_id: str = "",
        proxy: Proxy | None = None,
        told: Told = _tell_nobody,
    ) -> None:
        self.site = site
        self.session_id = session_id or new_session_id()
        self.profile = profile
        self.proxy = proxy
        self.created_at = time.monotonic()
        self.opened_at = self.last_used_at = datetime.now(UTC)
        self.is_warm = False  # a visit has earned what direct reads need
        self.is_dropped = False  # nobody gets it any more; those who have it may finish
        self.is_worn = False  # somebody wants another one; this one serves until that is there
        self.generation = 0  # of the browser that its context is in
        self.page_count = 0
        self.successes = self.failures = self.bytes_in = 0
        self._host = host
        self._options = options
        self._gate = gate
        self._pass: GatePass | None = None
        self._told = told
        self._blocker = Blocker(site, own_hosts_only=not options.has_gate)
        self._known: cookies.Cookies = {}  # the cookies of the open context, as far as we know
        self._context: BrowserContext | None = None
        self._opening = asyncio.Lock()
        self._in_use = self._visits = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._wire = Wire(
            site,
            limits=WireLimits(options.max_body_bytes, options.max_redirects),
            user_agent=profile.user_agent,
            language=profile.locale,
            upstream=proxy.url if proxy else None,
        )

    @property
    def has_context(self) -> bool:
        return self._context is not None and self.generation == self._host.generation

    @property
    def has_lasting_pages(self) -> bool:
        """Are pages open in it that stay open between reads?"""
        return self.page_count > self._visits

    @property
    def proxy_hash(self) -> str:
        return self.proxy.hash if self.proxy else ""

    @property
    def wire(self) -> Wire:
        """For what is asked without a page and is no reading: robots.txt, tokens."""
        return self._wire

    async def idle(self, seconds: float) -> None:
        """Until nobody reads through it, but not longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Its cookies are forgotten, its way out is shut."""
        context, self._context = (self._context if self.has_context else None), None
        try:
            await self._wire.close()
            if context is not None:
                await bounded(context.close(), seconds, "closing a browser context")
        finally:
            self._gate.forget(self.session_id)

    async def open_page(self) -> tuple[Page, PageTally]:
        """An empty page in the session's context, and what it will load, counted. `close_page` ends it."""
        context = await self._open_context()
        page = await bounded(context.new_page(), CONTEXT_SECONDS, "opening a page")
        self.page_count += 1
        return page, self._blocker.watch(page)

    async def goto(self, page: Page, url: str, seconds: float) -> Response | None:
        """Load an address. EgressRefused where it leads to a host that is not the site's: the gate has kept it in."""
        self._wire.reach.url(url)
        before = self._gate.traffic(self.session_id).refused
        try:
            response = await bounded(
                page.goto(url, wait_until="domcontentloaded", timeout=seconds * 1000), seconds + 1, f"loading {url}"
            )
        except PlaywrightError as error:
            traffic = self._gate.traffic(self.session_id)
            if NO_TUNNEL in str(error) and traffic.refused > before:
                raise EgressRefused(f"the page leads elsewhere: {traffic.last_refusal}", url=url) from error
            raise
        if response is not None and REFUSED_HEADER in response.headers:
            refusal = self._gate.traffic(self.session_id).last_refusal
            raise EgressRefused(f"the page leads elsewhere: {refusal}", url=url)
        return response

    async def close_page(self, page: Page) -> None:
        self.page_count -= 1
        with contextlib.suppress(Exception):
            await bounded(page.close(), CLOSE_SECONDS, "closing a page")

    async def _open_context(self) -> BrowserContext:
        """The context in the present browser; a browser that opens none is of no use, and is reported."""
        async with self._opening:
            browser, generation = await self._host.browser()
            if self._context is None or self.generation != generation:
                try:
                    self._context = await self._new_context(browser)
                except Exception as error:
                    failure = translate(error, url=self.site.base_url)
                    self._host.report_lost(generation, str(failure))
                    raise ResourceLost(f"the browser opens no context and is being replaced: {failure}") from error
                self.generation = generation
            context = self._context
            # What direct answers have set meanwhile, the page is to send as well.
            held = cookies.of_jar(self._wire.jar)
            if fresh := cookies.news(held, self._known):
                await bounded(context.add_cookies(fresh), CONTEXT_SECONDS, "restoring cookies")
                self._known = {**self._known, **held}
            return context

    async def _new_context(self, browser: Browser) -> BrowserContext:
        way_out = await self._way_out()
        # The program may have been updated since the session began: its client hints would tell.
        self.profile = profile = replace(self.profile, user_agent=user_agent_of(browser.version))
        context = await bounded(
            browser.new_context(
                user_agent=profile.user_agent,
                locale=profile.locale,
                timezone_id=profile.timezone,
                viewport=profile.viewport,
                screen=profile.viewport,
                device_scale_factor=1,
                accept_downloads=False,
                service_workers="block",  # what they ask for, no routing sees
                proxy=way_out,
            ),
            CONTEXT_SECONDS,
            "opening a browser context",
        )
        await bounded(context.route("**/*", self._blocker.route), CONTEXT_SECONDS, "setting up blocking")
        if self._options.has_stealth:
            await bounded(stealth.hide(context), CONTEXT_SECONDS, "setting up stealth")
        self._known = {}
        return context

    async def _way_out(self) -> ProxySettings | None:
        """Through the gate of this worker; a browser elsewhere cannot reach that, and goes to the proxy itself."""
        if self._options.has_gate:
            await self._gate.start()
            upstream = self.proxy.url if self.proxy else None
            self._pass = self._pass or self._gate.register(self.session_id, self.site, upstream)
            return {"server": self._pass.server, "username": self._pass.username, "password": self._pass.password}
        if self.proxy is None:
            return None
        server = f"{self.proxy.scheme}://{self.proxy.host}:{self.proxy.port}"
        return {"server": server, "username": self.proxy.username, "password": self.proxy.password}

    async def _keep_cookies(self, context: BrowserContext, before: cookies.Cookies) -> None:
        """What the visit has earned, also for direct reads."""
        found = await bounded(context.cookies(), CLOSE_SECONDS, "reading cookies")
        self._known = cookies.of_context(found)
        direct = cookies.of_jar(self._wire.jar)
        cookies.fill(self._wire.jar, cookies.merged(visited=self._known, direct=direct, before=before))

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
        async with self._host.visiting():
            return await self.told_of(self._visit(ref, endpoints, looks_wrong, timeout_factor))

    async def _visit(
        self, ref: RefInfo, endpoints: tuple[Endpoint, ...], looks_wrong: LooksWrong, timeout_factor: float
    ) -> Reading:
        page: Page | None = None
        capture = Capture(endpoints, self.site, max_body_bytes=self._options.max_body_bytes)
        timeouts = self._host.patience.timeouts(self.site.key, factor=timeout_factor)
        self._visits += 1
        try:
            page, tally = await self.open_page()
            return await self._read_page(page, tally, capture, ref, looks_wrong=looks_wrong, timeouts=timeouts)
        except Exception as error:
            failure = translate(error, url=ref.url)
            if page is not None:
                failure = await cause_of(failure, page, is_browser_leaving=self._host.is_leaving)
            if page is not None and isinstance(failure, ReadTimeout) and looks_wrong(None):
                attach_evidence(failure, AttemptEvidence(screenshot=await screenshot_of(page)))
            raise failure from error
        finally:
            capture.close()
            if page is not None:
                await self.close_page(page)
            self._visits -= 1

    async def _read_page(
        self,
        page: Page,
        tally: PageTally,
        capture: Capture,
        ref: RefInfo,
        *,
        looks_wrong: LooksWrong,
        timeouts: Timeouts,
    ) -> Reading:
        started, before = time.monotonic(), cookies.of_jar(self._wire.jar)
        crashes: list[Page] = []
        page.on("crash", lambda crashed: crashes.append(crashed))  # noqa: PLW0108 - Playwright marks its handlers
        page.on("response", capture.see)
        report_stage("NAVIGATING")
        document = await self._load(page, ref.url, timeouts)
        if document.status < 400:
            report_stage("INTERCEPTING")
            await capture.wait(timeouts.selector_seconds)
            document = await self._rendered(page, document, timeouts.selector_seconds)
        if crashes:  # what is missing now is not the source's fault
            raise PageCrashed("the page crashed while it was read", url=ref.url)
        documents = {PAGE: document, **await capture.documents()}
        screenshot = await screenshot_of(page) if looks_wrong(document) else b""
        if document.status < 400:
            await self._keep_cookies(page.context, before)
            self.is_warm = True
        reading = _reading(ref, ReadMode.VISIT, documents, capture.requests, started=started)
        return replace(
            reading,
            bytes_in=await tally.bytes_in(),
            requests_made=tally.made.total(),
            requests_blocked=tally.blocked.total(),
            requests_by_type=dict(tally.made),
            blocked_by_type=dict(tally.blocked),
            screenshot=screenshot,
        )

    async def _load(self, page: Page, url: str, timeouts: Timeouts) -> Document:
        limit = timeouts.navigation_seconds
        with self._timed():
            response = await self.goto(page, url, limit)
        if response is None:
            return Document(PAGE, url, 200, "text/html", b"")
        body = await capped_body(response, self._options.max_body_bytes, timeouts.page_seconds)
        if body is None:
            raise Transient("the page is larger than what is read of a page", url=url)
        return answers.document(PAGE, page.url, response.status, response.headers, body)

    async def _rendered(self, page: Page, loaded: Document, seconds: float) -> Document:
        """The page after its script ran; where that cannot be had, as it came over the wire."""
        with contextlib.suppress(ScrapingError, PlaywrightError):
            html = await bounded(page.content(), seconds, "reading the rendered page")
            return Document(PAGE, loaded.url, loaded.status, loaded.content_type, html.encode())
        return loaded

    async def direct(self, ref: RefInfo, requests: tuple[Request, ...], *, timeout_factor: float = 1.0) -> Reading:
        """Ask the endpoints with what the visit has earned, without a page."""
        return await self.told_of(self._direct(ref, requests, timeout_factor))

    async def _direct(self, ref: RefInfo, requests: tuple[Request, ...], timeout_factor: float) -> Reading:
        started = time.monotonic()
        report_stage("INTERCEPTING")
        seconds = self._host.patience.timeouts(self.site.key, factor=timeout_factor).request_seconds
        with self._timed():
            if len(requests) == 1:
                documents = [await self._wire.ask(requests[0], seconds=seconds)]
            else:
                documents = await asyncio.gather(*(self._wire.ask(one, seconds=seconds) for one in requests))
        asked = {request.name: request for request in requests}
        found = {one.name: one for one in documents}
        return _reading(ref, ReadMode.DIRECT, found, asked, started=started)

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        """How long the source takes; one that is given up has taken at least that long."""
        began = time.monotonic()
        try:
            yield
        except (ReadTimeout, PlaywrightTimeout):
            self._host.patience.note(self.site.key, time.monotonic() - began)
            raise
        self._host.patience.note(self.site.key, time.monotonic() - began)

    async def told_of(self, reading: Awaitable[Reading]) -> Reading:
        """While this lasts the session is in use; how it ended is told. Whoever reads in another way calls it too."""
        began = time.monotonic()
        self._in_use += 1
        self._idle.clear()
        try:
            brought = replace(await reading, session_id=self.session_id)
        except ScrapingError as error:
            self.failures += 1
            self._told(self, error, began)
            raise
        else:
            self.successes += is_good(brought)
            self.failures += not is_good(brought)
            self.bytes_in += brought.bytes_in
            self._told(self, brought, began)
            return brought
        finally:
            self.last_used_at = datetime.now(UTC)
            self._in_use -= 1
            if not self._in_use:
                self._idle.set()


def is_good(reading: Reading) -> bool:
    """Did the source answer as if it liked us? What the answers hold, others judge."""
    return all(document.status < 400 for document in reading.documents.values())


def _reading(
    ref: RefInfo, mode: ReadMode, documents: dict[str, Document], requests: dict[str, Request], *, started: float
) -> Reading:
    return Reading(
        ref=ref,
        mode=mode,
        captured_at=datetime.now(UTC),
        documents=documents,
        requests=requests,
        bytes_in=sum(document.wire_bytes or len(document.body) for document in documents.values()),
        requests_made=len(requests),
        duration_ms=round((time.monotonic() - started) * 1000),
    )
