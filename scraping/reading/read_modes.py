"""The modes of a read: a visit, direct requests, an open page. Chooses one for each poll, and a visit where it fails.

A visit records the requests that the page's script makes; later polls repeat them without a page (`direct`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

from scraping.browser.attached_pages import AttachedPages, AttachedRead, PageLimitReached
from scraping.errors import AuthExpired, Blocked, Challenged, Drift, Gone, OverBudget, SchemaBreak, ScrapingError
from scraping.reading.access import CHALLENGE_BYTES, TOO_MANY_REQUESTS, SourceAccess, required_names
from scraping.reading.caches import VisitCache, VisitRecord, derive_requests
from scraping.reading.targets import ReadPlan, Target
from scraping.readings import PAGE, STATIC_PAGE, Extractor, Reading, Request, Site, reporting_wait
from scraping.sources import parsing
from scraping.sources.extract import SCRIPT, plan_of

PAGE_SECONDS = 600.0  # then the page itself is fetched again, for facts that the endpoints do not have
QUIET_PAGE_SECONDS = 90.0
NEEDED_PAGE_SECONDS = 15.0  # at the earliest, where the adapter needs a newer page
PAGE_TYPES = "text/html,application/xhtml+xml"
VISITS_AT_ONCE = 6  # per worker: a page being loaded keeps a core busy
# Errors after which a visit is tried. Only the page itself can say that a match is gone.
FALLS_BACK = (AuthExpired, Blocked, Drift, Gone)


class ReadModes:
    """Plans on the task threads, reads on the loop thread."""

    def __init__(self, access: SourceAccess, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.visits = VisitCache()
        self.open_pages = AttachedPages()
        self._access = access
        self._clock = clock
        self._underivable: set[int] = set()
        self._first_visits: dict[str, asyncio.Lock] = {}  # by source
        self._visit_slots = asyncio.Semaphore(VISITS_AT_ONCE)

    def plan(self, target: Target) -> ReadPlan:
        """Returns the mode of this poll, with the reason if it is a visit."""
        site, adapter = target.site, target.adapter
        if target.is_fresh and target.visits_from is None:
            self.visits.forget(target.ref_id)
            return ReadPlan("the scraper is new")
        if site.read_way == "visit":
            return ReadPlan("the source is always visited")
        if adapter.layout is not None and (site.read_way == "attached" or adapter.prefers_attached):
            return ReadPlan(is_attached=True)
        modes = self._access.modes
        if target.visits_from is None and site.key in modes.refusing and modes.is_visited_only(site.key):
            return ReadPlan("the source refuses requests")
        if requests := adapter.requests(target.ref, site.base_url):
            return ReadPlan(requests=requests)
        if not self._access.sessions.is_warm(site.key):
            return ReadPlan("there is no session at the source", can_wait=True)
        if target.visits_from is None and self._access.sessions.wants_visit(site.key):
            return ReadPlan("the session at the source is due for renewal")
        record = self.visits.get(target.ref_id) or self._derived(target)
        if record is None:
            return ReadPlan("it has not been visited yet", can_wait=site.key not in self.visits.examples)
        return ReadPlan(record=record)

    def _derived(self, target: Target) -> VisitRecord | None:
        """Returns the requests of this match as derived from the match of its source that was visited last."""
        example = self.visits.examples.get(target.site.key)
        if example is None or target.ref_id in self._underivable:
            return None
        example_ref, record = example
        endpoints = target.adapter.endpoints(target.ref)
        requests = derive_requests(target.ref, endpoints, example_ref=example_ref, example=record.requests)
        return VisitRecord(requests, None, float("-inf")) if requests else None

    async def read(self, target: Target, plan: ReadPlan) -> Reading:
        """Reads as planned; visits the page where another mode fails."""
        if plan.can_wait:
            lock = self._first_visits.setdefault(target.site.key, asyncio.Lock())
            async with reporting_wait(lock):
                record = self.plan(target).record
                if record is None:
                    return await self.visit(target, plan.visit_reason)
                plan = ReadPlan(record=record)
        try:
            if plan.is_attached:
                return await self.attached(target)
            if plan.requests:
                return await self.own_requests(target, plan.requests)
            if plan.record is not None:
                return await self._by_record(target, plan.record)
            reason = plan.visit_reason
        except PageLimitReached:
            reason = "the limit of open pages is reached"
        except FALLS_BACK as error:
            reason = self.fall_back(target, error)
        return await self.visit(target, reason)

    def fall_back(self, target: Target, error: ScrapingError) -> str:
        """Returns the reason for a visit after another mode failed. Raises the error where a visit would not help."""
        if error.http_status == TOO_MANY_REQUESTS:  # the source asks for fewer requests, not for others
            raise error
        if target.visits_from is not None:  # the cached requests may work again before a visit is allowed
            raise over_budget(target.visits_from, target.site, str(error)) from error
        if self.visits.get(target.ref_id) is None:
            self._underivable.add(target.ref_id)
        self.visits.forget(target.ref_id)
        return f"{error.error_class.value}: {error}"[:200]

    async def attached(self, target: Target) -> Reading:
        """Reads from the match's open page, and opens it if needed; PageLimitReached where no more may be open."""
        if target.is_fresh or target.visits_from is not None:
            await self.open_pages.discard(target.site.key, target.ref.source_event_id)
        if target.visits_from is not None:  # an open page costs traffic all the time
            raise over_budget(target.visits_from, target.site, "its matches are read off open pages")
        assert target.adapter.layout is not None
        layout = target.adapter.layout.using(target.site.selectors)
        extractor = Extractor(SCRIPT, plan_of(layout), layout.pulse)
        opening, factor = partial(reporting_wait, self._visit_slots), target.timeout_factor
        return await self._access.read(
            target.site,
            lambda session: session.track(
                self.open_pages.read(AttachedRead(session, target.ref, extractor, opening, factor))
            ),
            urls=(target.ref.url,),
            timeout_factor=factor,
        )

    async def own_requests(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        """Makes the requests that the adapter knows without a visit. A page among them may be a bot challenge."""
        reading = await self.ask(target, requests)
        if more := target.adapter.follow_up(reading, target.site.base_url):
            reading = reading.joined(await self.ask(target, more))
        await self._refuse_challenge(target, reading)
        return reading

    async def _by_record(self, target: Target, record: VisitRecord) -> Reading:
        """Requests every endpoint, and now and then the page; in between adds it as it was fetched last."""
        max_age = QUIET_PAGE_SECONDS if target.is_quiet else PAGE_SECONDS
        is_spent = target.visits_from is not None and record.page is not None  # pages cost the most traffic
        age = self._clock() - record.page_at
        if is_spent or age < max_age:
            reading = await self.direct(target, record)
            needed = "" if is_spent or age < NEEDED_PAGE_SECONDS else target.adapter.needed_page(reading)
            return await self._with_page(target, record, needed) if needed else reading
        reading = await self._with_page(target, record, target.ref.url)
        needed = target.adapter.needed_page(reading)
        return await self._with_page(target, record, needed) if needed else reading

    async def _with_page(self, target: Target, record: VisitRecord, url: str) -> Reading:
        """Requests every endpoint and a page of the match, which replaces the cached one."""
        page_request = Request(PAGE, url, headers={"accept": PAGE_TYPES})
        reading = await self.ask(target, (*record.requests.values(), page_request), has_page=record.page is not None)
        page = reading.document(PAGE) or record.page
        if page is None:
            raise SchemaBreak("the page could not be fetched without a browser", url=target.ref.url)
        await self._refuse_challenge(target, reading)
        self.visits.put(target.ref_id, VisitRecord(record.requests, page, self._clock()))
        return reading

    async def direct(self, target: Target, record: VisitRecord) -> Reading:
        """Requests every endpoint, and adds the page as it was fetched last."""
        reading = await self.ask(target, tuple(record.requests.values()), has_page=record.page is not None)
        if record.page is None:
            raise SchemaBreak("the page could not be fetched without a browser", url=target.ref.url)
        return replace(reading, documents={**reading.documents, STATIC_PAGE: record.page})

    async def _refuse_challenge(self, target: Target, reading: Reading) -> None:
        """Raises Challenged if the page is a bot challenge, with any status, and reports it to the session."""
        page = reading.document(PAGE)
        try:
            parsing.raise_if_challenge(page.text()[:CHALLENGE_BYTES] if page else "", target.ref.url)
        except Challenged as error:
            await self._access.sessions.refused(reading.session_id, error)
            raise

    async def ask(self, target: Target, requests: tuple[Request, ...], *, has_page: bool = False) -> Reading:
        """`has_page`: a page is cached, so that a server error of the page is no failure."""
        site, adapter, ref = target.site, target.adapter, target.ref
        return await self._access.request(
            site,
            ref,
            requests,
            required=required_names(adapter.endpoints(ref)),
            public=adapter.public_requests(ref, site.base_url) if site.token_url else (),
            is_ignored=lambda document: has_page and document.name == PAGE and document.status >= 500,
            timeout_factor=target.timeout_factor,
        )

    async def visit(self, target: Target, reason: str) -> Reading:
        """Opens the page, and caches the requests that it makes for direct reads."""
        site, ref = target.site, target.ref
        if target.visits_from is not None:
            raise over_budget(target.visits_from, site, reason)
        await self.open_pages.discard(site.key, ref.source_event_id)
        # On a visit a broken endpoint is no failure: the page itself may hold the same data.
        async with reporting_wait(self._visit_slots):
            reading = await self._access.visit(
                site,
                ref,
                target.adapter.endpoints(ref),
                parse=target.adapter.parse,
                is_suspect=target.is_suspect,
                timeout_factor=target.timeout_factor,
            )
        if site.token_url:
            reading = await self._with_token_documents(target, reading)
        self._cache_visit(target, reading)
        return replace(reading, reason=reason)

    def _cache_visit(self, target: Target, reading: Reading) -> None:
        """Caches the requests if all that are needed were seen; else the next poll is a visit again."""
        needed = required_names(target.adapter.endpoints(target.ref)) | {target.adapter.events_endpoint}
        # An endpoint that was refused only for want of a token counts as seen: a token will come.
        is_seen = reading.requests.get if target.site.token_url else reading.document
        if not all(is_seen(name) for name in needed):
            return
        requests = {name: request for name, request in reading.requests.items() if is_seen(name)}
        record = VisitRecord(requests, reading.documents[PAGE], self._clock())
        self.visits.put(target.ref_id, record)
        self.visits.examples[target.site.key] = target.ref, record
        self._underivable.discard(target.ref_id)

    async def _with_token_documents(self, target: Target, reading: Reading) -> Reading:
        """Repeats with our token the requests that the page was refused; without a token the page has to do."""
        refused = tuple(request for name, request in reading.requests.items() if reading.document(name) is None)
        if not refused:
            return reading
        try:
            found = await self._access.request(target.site, target.ref, refused)
        except ScrapingError:
            return reading
        # Not `joined`: the requests of `found` may carry our token, and those of a visit are cached.
        return replace(reading.with_costs_of(found), documents={**reading.documents, **found.documents})


def over_budget(until: datetime, site: Site, why: str) -> OverBudget:
    return OverBudget(f"{site.key} has used up its traffic of today and is not visited, though {why}", until=until)
