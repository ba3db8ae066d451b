"""The reading interface of the task threads: one match, many matches, older events, a source's lists."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from datetime import datetime
from functools import partial

from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import AuthExpired, Blocked, Transient
from scraping.payloads import Payload
from scraping.reading.access import TOO_MANY_REQUESTS, SourceAccess, needs_screenshot
from scraping.reading.batches import FALLS_BACK, BatchReader, start_unsupported
from scraping.reading.caches import PayloadCache
from scraping.reading.read_modes import ReadModes, over_budget
from scraping.reading.selectors import SelectorWatch
from scraping.reading.targets import BatchResult, ModeUsed, Observer, RunOnLoop, StartOnLoop, Target
from scraping.reading.tokens import Tokens
from scraping.readings import PAGE, Endpoint, Reading, RefInfo, Request, Site, evidence_from
from scraping.sources.base import Adapter, AsksOutright, ListPlan

__all__ = ["BatchResult", "Reader", "Target"]

MAX_EVENT_PAGES = 500  # a match of five days has 150 pages of twenty events
GONE = (404, 410)
ANY_URL = re.compile("")


class Reader:
    """Called from the worker's task threads; the network is used on the loop thread."""

    def __init__(
        self,
        sessions: Sessions,
        run: RunOnLoop,
        start: StartOnLoop | None = None,
        *,
        observer: Observer | None = None,
        tokens: Tokens | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._run = run
        self._access = SourceAccess(sessions, observer)
        self._modes = ReadModes(self._access, tokens or Tokens(), clock=clock)
        self._batches = BatchReader(self._modes, start or start_unsupported, self.parse)
        self._selectors = SelectorWatch()
        self._payloads = PayloadCache()

    def batches(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[BatchResult]]:
        """Reads many matches, each within its context, and yields their results as they arrive."""
        return self._batches.read(targets, contexts)

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        """Reads the current state of a match. If another mode fails, visits the page within the same attempt."""
        used = ModeUsed()
        try:
            reading = self._run(self._modes.read(target, self._modes.plan(target), used))
            with evidence_from(reading):
                return reading, self.parse(target, reading)
        except FALLS_BACK as error:
            if used.is_visit:
                raise
            reason = self._modes.fall_back(target, error)
        reading = self._run(self._modes.visit(target, reason))
        with evidence_from(reading):
            return reading, self.parse(target, reading)

    def parse(self, target: Target, reading: Reading) -> Payload:
        payload = self._payloads.get(target.ref_id, reading)
        if payload is None:
            try:
                payload = target.adapter.parse(reading)
            except (AuthExpired, Blocked) as error:  # a refusal with status 200
                self._run(self._access.sessions.refused(reading.session_id, error))
                raise
            if payload.integrity.fallback_selectors:
                self._selectors.report(target.site, target.adapter, payload, url=target.ref.url)
            self._payloads.put(target.ref_id, reading, payload)
        if self._observer is not None:
            self._observer.payload(target.site.key, payload)
        return payload

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """Returns the source's event list page by page, newest first, until `is_enough` or the list ends."""
        if not target.adapter.events_endpoint:
            return self._older_pages(target, is_enough)
        plan = self._modes.plan(target)
        if plan.requests:
            return self._older_by_requests(target, plan.requests, is_enough)
        record = plan.record
        if record is None or record.page is None:
            self.scorecard(target)  # caches the request of the list, and the page
            record = self._modes.visits.get(target.ref_id)
        request = record.requests.get(target.adapter.events_endpoint) if record else None
        if request is None:
            raise Transient("the page did not get its list of events", url=target.ref.url)
        payloads: list[Payload] = []
        while record is not None and request is not None and len(payloads) < MAX_EVENT_PAGES:
            older = replace(record, requests={**record.requests, request.name: request})
            reading = self._run(self._modes.direct(target, older))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
            if "events" in payloads[-1].integrity.missing_fields:  # a missing list is not an empty list
                raise Transient("the list of events could not be read", url=request.url)
            if is_enough(payloads[-1]):
                break
            request = target.adapter.older_events(reading, request)
        return payloads

    def _older_by_requests(
        self, target: Target, requests: tuple[Request, ...], is_enough: Callable[[Payload], bool]
    ) -> list[Payload]:
        """Does the same for an adapter that knows its requests without a visit."""
        asked = {request.name: request for request in requests}
        request: Request | None = asked.get(target.adapter.events_endpoint)
        payloads: list[Payload] = []
        while len(payloads) < MAX_EVENT_PAGES:
            if request is not None:
                asked[request.name] = request
            reading = self._run(self._modes.own_requests(target, tuple(asked.values())))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
            if "events" in payloads[-1].integrity.missing_fields:  # a missing list is not an empty list
                raise Transient("the list of events could not be read", url=target.ref.url)
            if is_enough(payloads[-1]):
                break
            request = target.adapter.older_events(reading, request or requests[0])
            if request is None:
                break
        return payloads

    def _older_pages(self, target: Target, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """Does the same where the list is on the page itself, and older events are behind a link."""
        reading, payload = self.scorecard(target)
        payloads, request = [payload], Request(PAGE, target.ref.url)
        while len(payloads) < MAX_EVENT_PAGES:
            if "events" in payloads[-1].integrity.missing_fields:  # a missing list is not an empty list
                raise Transient("the list of events could not be read", url=request.url)
            if is_enough(payloads[-1]):
                break
            older = target.adapter.older_events(reading, request)
            if older is None:
                break
            request = older
            reading = self._run(self._single_document(target, request))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
        return payloads

    def extra_documents(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        """Reads other documents of a match: line-ups, players' figures. Those that the source lacks are left out.

        Uses the source's session; makes a visit first where there is none, or where it is refused.
        """
        if isinstance(target.adapter, AsksOutright) or self._access.sessions.is_warm(target.site.key):
            try:
                return self._run(self._existing_documents(target, requests))
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS:
                    raise
        if target.visits_from is not None:
            raise over_budget(target.visits_from, target.site, "there is no session at the source")
        self._run(self._modes.visit(target, "line-ups and figures need a session"))
        return self._run(self._existing_documents(target, requests))

    async def _existing_documents(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        async def ask(session: Session) -> Reading:
            found = await self._modes.request(session, target.ref, requests, timeout_factor=target.timeout_factor)
            return replace(found, documents={n: one for n, one in found.documents.items() if one.status not in GONE})

        return await self._access.read(
            target.site,
            tuple(Endpoint(request.name, ANY_URL) for request in requests),
            ask,
            urls=tuple(request.url for request in requests),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    async def _single_document(self, target: Target, request: Request) -> Reading:
        return await self._access.read(
            target.site,
            (),
            lambda session: session.direct(target.ref, (request,), timeout_factor=target.timeout_factor),
            urls=(request.url,),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    def match_list(
        self,
        site: Site,
        adapter: Adapter,
        *,
        is_suspect: bool = False,
        timeout_factor: float = 1.0,
        visits_from: datetime | None = None,
    ) -> Reading:
        """Reads the page that lists a source's matches, with the documents that its script requests."""
        plan = adapter.list_plan(site.base_url)
        if not plan.url:
            return self._ask_list(site, plan)
        if visits_from is not None:
            raise over_budget(visits_from, site, "its list of matches is read from its page")
        ref = RefInfo(source_event_id="", url=plan.url)
        wants_screenshot = partial(needs_screenshot, is_suspect=is_suspect)
        return self._run(
            self._access.read(
                site,
                plan.endpoints,
                lambda session: session.visit(
                    ref, plan.endpoints, wants_screenshot=wants_screenshot, timeout_factor=timeout_factor
                ),
                urls=(plan.url,),
                is_last_chance=timeout_factor > 1,
            )
        )

    def round_list(
        self, site: Site, adapter: Adapter, asked: Mapping[str, int], *, visits_from: datetime | None = None
    ) -> Reading:
        """Reads the list of a round's matches."""
        return self.planned_list(site, adapter.round_plan(site.base_url, asked), visits_from=visits_from)

    def planned_list(self, site: Site, plan: ListPlan, *, visits_from: datetime | None = None) -> Reading:
        """Reads a list through the source's session; makes a visit first where there is none."""
        if not plan.url or self._access.sessions.is_warm(site.key):
            try:
                return self._ask_list(site, plan)
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS or not plan.url:
                    raise
        if visits_from is not None:
            raise over_budget(visits_from, site, "there is no session at the source")
        ref = RefInfo(source_event_id="", url=plan.url)
        self._run(self._access.read(site, (), lambda session: session.visit(ref, plan.endpoints), urls=(plan.url,)))
        return self._ask_list(site, plan)

    def _ask_list(self, site: Site, plan: ListPlan) -> Reading:
        ref = RefInfo(source_event_id="", url=plan.requests[0].url)
        required = tuple(Endpoint(request.name, ANY_URL) for request in plan.requests)
        urls = tuple(request.url for request in plan.requests)
        return self._run(
            self._access.read(
                site,
                required,
                lambda session: self._modes.request(session, ref, plan.requests),
                urls=urls,
                uses_browser=False,
            )
        )
