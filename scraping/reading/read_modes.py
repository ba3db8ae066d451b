"""The modes in which a match is read: direct requests, its open page (attached), or a visit.

A visit earns cookies and shows the page's JSON endpoints; requesting those again costs milliseconds where a visit costs
hundreds. So a visit is made for the first match of a source, and whenever a cheaper mode is refused or broken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from scraping.browser.attached_pages import AttachedPages, AttachedRead, PageLimitReached
from scraping.browser.session import Session
from scraping.errors import AuthExpired, Blocked, OverBudget, SchemaBreak, ScrapingError
from scraping.reading.access import (
    CHALLENGE_BYTES,
    TOO_MANY_REQUESTS,
    SourceAccess,
    needs_screenshot,
    reporting_wait,
    without_failed_documents,
)
from scraping.reading.caches import VisitCache, VisitRecord, derive_requests
from scraping.reading.selectors import extractor_of, is_attached
from scraping.reading.targets import ModeUsed, ReadPlan, Target
from scraping.reading.tokens import Tokens
from scraping.readings import PAGE, STATIC_PAGE, Document, Reading, RefInfo, Request, Site
from scraping.sources import parsing
from scraping.sources.base import AsksOutright, FollowsUp, HasPublicEndpoints

PAGE_SECONDS = 600.0  # then the page itself is fetched again, for facts that the endpoints do not have
QUIET_PAGE_SECONDS = 90.0
PAGE_TYPES = "text/html,application/xhtml+xml"
REFUSED_SECONDS = 60.0  # a source that refused the adapter's own requests is visited for this long
VISITS_AT_ONCE = 6  # per worker: a page being loaded keeps a core busy


class ReadModes:
    """Plans on the task threads, reads on the loop thread."""

    def __init__(self, access: SourceAccess, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.visits = VisitCache()
        self.open_pages = AttachedPages(access.sessions.host)
        self.tokens = tokens
        self._access = access
        self._clock = clock
        self._underivable: set[int] = set()
        self._refused_at: dict[str, float] = {}
        self._first_visits: dict[str, asyncio.Lock] = {}  # by source
        self._visit_slots = asyncio.Semaphore(VISITS_AT_ONCE)

    def plan(self, target: Target) -> ReadPlan:
        """Returns the mode of this poll, with the reason if it is a visit."""
        if target.is_fresh and target.visits_from is None:
            self.visits.forget(target.ref_id)
            return ReadPlan("the scraper is new")
        if target.site.read_way == "visit":
            return ReadPlan("the source is always visited")
        if target.adapter.layout is not None and is_attached(target.site, target.adapter):
            return ReadPlan(is_attached=True)
        if isinstance(target.adapter, AsksOutright):
            return self._plan_own_requests(target, target.adapter)
        if not self._access.sessions.is_warm(target.site.key):
            return ReadPlan("there is no session at the source", can_wait=True)
        if target.visits_from is None and self._access.sessions.wants_visit(target.site.key):
            return ReadPlan("the session at the source is due for renewal")
        record = self.visits.get(target.ref_id) or self._derived(target)
        if record is None:
            has_example = self.visits.example(target.site.key) is not None
            return ReadPlan("it has not been visited yet", can_wait=not has_example)
        return ReadPlan(record=record)

    def _plan_own_requests(self, target: Target, adapter: AsksOutright) -> ReadPlan:
        refused_at = self._refused_at.get(target.site.key)
        if refused_at is not None and self._clock() - refused_at < REFUSED_SECONDS and target.visits_from is None:
            return ReadPlan("the source refused requests without a page")
        return ReadPlan(requests=adapter.requests(target.ref, target.site.base_url))

    def _derived(self, target: Target) -> VisitRecord | None:
        """Returns the requests of this match as derived from the match of its source that was visited last."""
        example = self.visits.example(target.site.key)
        if example is None or target.ref_id in self._underivable:
            return None
        example_ref, record = example
        endpoints = target.adapter.endpoints(target.ref)
        requests = derive_requests(target.ref, endpoints, example_ref=example_ref, example=record.requests)
        return VisitRecord(requests, None, float("-inf")) if requests else None

    def fall_back(self, target: Target, error: ScrapingError) -> str:
        """Returns the reason for a visit after another mode failed. Raises the error where a visit would not help."""
        if error.http_status == TOO_MANY_REQUESTS:  # the source asks for fewer requests, not for others
            raise error
        if target.visits_from is not None:  # the cached requests may work again before a visit is allowed
            raise over_budget(target.visits_from, target.site, str(error)) from error
        if isinstance(error, Blocked | AuthExpired):
            self._refused_at[target.site.key] = self._clock()
        if self.visits.get(target.ref_id) is None:
            self._underivable.add(target.ref_id)
        self.visits.forget(target.ref_id)
        return f"{error.error_class.value}: {error}"[:200]

    async def read(self, target: Target, plan: ReadPlan, used: ModeUsed) -> Reading:
        """Reads as planned. Of a source without any record one match is visited, the others derive their requests."""
        used.is_visit = False
        if plan.is_attached:
            return await self.attached(target)
        if plan.requests:
            return await self.own_requests(target, plan.requests)
        record = plan.record
        if plan.can_wait:
            lock = self._first_visits.setdefault(target.site.key, asyncio.Lock())
            async with reporting_wait(lock):
                record = self.plan(target).record
                if record is None:
                    used.is_visit = True
                    return await self.visit(target, plan.visit_reason)
        if record is None:
            used.is_visit = True
            return await self.visit(target, plan.visit_reason)
        if self._needs_page(target, record):
            return await self._direct_with_page(target, record)
        return await self.direct(target, record)

    async def attached(self, target: Target) -> Reading:
        """Reads from the match's open page, and opens it if needed; a visit where no more pages may be open."""
        if target.is_fresh or target.visits_from is not None:
            await self.open_pages.discard(target.site.key, target.ref.source_event_id)
        if target.visits_from is not None:  # an open page costs traffic all the time
            raise over_budget(target.visits_from, target.site, "its matches are read off open pages")
        extractor = extractor_of(target.site, target.adapter)
        opening, factor = partial(self._opening, target), target.timeout_factor
        try:
            return await self._access.read(
                target.site,
                (),
                lambda session: session.track(
                    self.open_pages.read(AttachedRead(session, target.ref, extractor, opening, factor))
                ),
                urls=(target.ref.url,),
                is_last_chance=factor > 1,
            )
        except PageLimitReached:
            return await self.visit(target, "the limit of open pages is reached")

    @asynccontextmanager
    async def _opening(self, target: Target) -> AsyncIterator[None]:
        if target.visits_from is not None:
            raise over_budget(target.visits_from, target.site, "its page is not open")
        async with reporting_wait(self._visit_slots):
            yield

    async def own_requests(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        """Makes the requests that the adapter knows without a visit. A page among them may be a bot challenge."""
        reading = await self._ask(target, requests)
        if isinstance(target.adapter, FollowsUp):
            more = target.adapter.follow_up(reading, target.site.base_url)
            reading = reading.joined(await self._ask(target, more)) if more else reading
        page = reading.document(PAGE)
        if page is not None:
            await self._refuse_challenge(target, reading, page)
        return reading

    async def direct(self, target: Target, record: VisitRecord) -> Reading:
        """Requests every endpoint, and adds the page as it was fetched last."""
        reading = await self._ask(target, tuple(record.requests.values()), has_page=record.page is not None)
        if record.page is None:
            raise SchemaBreak("the page could not be fetched without a browser", url=target.ref.url)
        return replace(reading, documents={**reading.documents, STATIC_PAGE: record.page})

    def _needs_page(self, target: Target, record: VisitRecord) -> bool:
        if target.visits_from is not None and record.page is not None:  # pages cost the most traffic
            return False
        return self._clock() - record.page_at >= (QUIET_PAGE_SECONDS if target.is_quiet else PAGE_SECONDS)

    async def _direct_with_page(self, target: Target, record: VisitRecord) -> Reading:
        page_request = Request(PAGE, target.ref.url, headers={"accept": PAGE_TYPES})
        requests = (*record.requests.values(), page_request)
        reading = await self._ask(target, requests, has_page=record.page is not None)
        page = reading.document(PAGE) or record.page
        if page is None:
            raise SchemaBreak("the page could not be fetched without a browser", url=target.ref.url)
        await self._refuse_challenge(target, reading, page)
        self.visits.put(target.ref_id, VisitRecord(record.requests, page, self._clock()))
        return reading

    async def _refuse_challenge(self, target: Target, reading: Reading, page: Document) -> None:
        """Raises Blocked for a bot challenge, whatever its status, and reports it to the session."""
        try:
            parsing.raise_if_challenge(page.text()[:CHALLENGE_BYTES], target.ref.url)
        except Blocked as error:
            await self._access.sessions.refused(reading.session_id, error)
            raise

    async def _ask(self, target: Target, requests: tuple[Request, ...], *, has_page: bool = False) -> Reading:
        """`has_page`: a page is cached, so that a page that can't be fetched now is no failure."""

        async def ask(session: Session) -> Reading:
            found = await self.request(
                session, target.ref, requests, public=_public(target), timeout_factor=target.timeout_factor
            )
            return _without_broken_page(found) if has_page else found

        return await self._access.read(
            target.site,
            target.adapter.endpoints(target.ref),
            ask,
            urls=tuple(request.url for request in requests),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    async def request(
        self,
        session: Session,
        ref: RefInfo,
        requests: tuple[Request, ...],
        *,
        public: tuple[Request, ...] = (),
        timeout_factor: float = 1.0,
    ) -> Reading:
        """Makes the requests through the session, with the source's token if it needs one."""
        if not session.site.token_url:
            return await session.direct(ref, requests, timeout_factor=timeout_factor)
        return await self.tokens.direct(session, ref, requests, public=public, timeout_factor=timeout_factor)

    async def visit(self, target: Target, reason: str) -> Reading:
        """Opens the page, and caches the requests that it makes for direct reads."""
        if target.visits_from is not None:
            raise over_budget(target.visits_from, target.site, reason)
        await self.open_pages.discard(target.site.key, target.ref.source_event_id)
        endpoints = target.adapter.endpoints(target.ref)
        wants_screenshot = partial(needs_screenshot, is_suspect=target.is_suspect)
        # On a visit a broken endpoint is no failure: the page itself may hold the same data.
        async with reporting_wait(self._visit_slots):
            reading = await self._access.read(
                target.site,
                (),
                lambda session: session.visit(
                    target.ref, endpoints, wants_screenshot=wants_screenshot, timeout_factor=target.timeout_factor
                ),
                urls=(target.ref.url,),
                is_last_chance=target.timeout_factor > 1,
            )
        if target.site.token_url:
            reading = await self._with_token_documents(target, reading)
        self._cache_visit(target, reading)
        return replace(reading, reason=reason)

    def _cache_visit(self, target: Target, reading: Reading) -> None:
        """Caches the requests if all that are needed were seen; else the next poll is a visit again."""
        endpoints = target.adapter.endpoints(target.ref)
        needed = {endpoint.name for endpoint in endpoints if endpoint.is_required} | {target.adapter.events_endpoint}
        # An endpoint that was refused only for want of a token counts as seen: a token will come.
        is_seen = reading.requests.get if target.site.token_url else reading.document
        if not all(is_seen(name) for name in needed):
            return
        requests = {name: request for name, request in reading.requests.items() if is_seen(name)}
        record = VisitRecord(requests, reading.documents[PAGE], self._clock())
        self.visits.put(target.ref_id, record)
        self.visits.set_example(target.site.key, target.ref, record)
        self._underivable.discard(target.ref_id)

    async def _with_token_documents(self, target: Target, reading: Reading) -> Reading:
        """Repeats with our token the requests that the page was refused; without a token the page has to do."""
        refused = tuple(request for name, request in reading.requests.items() if reading.document(name) is None)
        if not refused:
            return reading
        try:
            session = await self._access.sessions.get(target.site)
            found = await self.tokens.direct(session, target.ref, refused)
        except ScrapingError:
            return reading
        self._access.observe(target.site, found)
        found = without_failed_documents(found, ())
        return replace(reading.with_costs_of(found), documents={**reading.documents, **found.documents})


def over_budget(until: datetime, site: Site, why: str) -> OverBudget:
    return OverBudget(f"{site.key} has used up its traffic of today and is not visited, though {why}", until=until)


def _public(target: Target) -> tuple[Request, ...]:
    """Returns the requests that need no token, for a source whose token is missing."""
    if not target.site.token_url or not isinstance(target.adapter, HasPublicEndpoints):
        return ()
    return target.adapter.public_requests(target.ref, target.site.base_url)


def _without_broken_page(reading: Reading) -> Reading:
    """Leaves out a page with a server error: the answers of the endpoints are still good."""
    page = reading.document(PAGE)
    if page is None or page.status < 500:
        return reading
    return replace(reading, documents={name: one for name, one in reading.documents.items() if name != PAGE})
