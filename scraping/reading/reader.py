"""The reading interface of the task threads: one match, many matches, older events, a source's lists."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextvars import Context
from dataclasses import replace
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Any

from cachetools import TTLCache
from prometheus_client import Counter

from scraping.browser.sessions import Sessions
from scraping.errors import AuthExpired, Blocked, ResourceLost, Transient
from scraping.payloads import Payload
from scraping.reading.access import TOO_MANY_REQUESTS, SourceAccess, required_names
from scraping.reading.caches import PayloadCache
from scraping.reading.read_modes import FALLS_BACK, ReadModes, over_budget
from scraping.reading.request_modes import RequestModes
from scraping.reading.targets import BatchResult, Observer, ReadPlan, RunOnLoop, Target
from scraping.reading.tokens import Tokens
from scraping.readings import PAGE, Reading, ReadMode, RefInfo, Request, Site, evidence_from, note_content
from scraping.sources.base import Adapter, ListPlan

__all__ = ["BatchResult", "Reader", "Target"]

logger = logging.getLogger(__name__)

MAX_EVENT_PAGES = 500  # a match of five days has 150 pages of twenty events
GONE = (404, 410)
REPORT_FALLBACKS_SECONDS = 600.0
Arrival = tuple[int, Reading | None, Exception | None]  # number of the target, reading or error
ReadingLater = Coroutine[Any, Any, Reading]

_fallbacks = Counter(
    "victoryline_selector_fallbacks",
    "Readings in which a field was not found by its best selector, but by another.",
    ["source", "field"],
)
_reported_fallbacks: TTLCache[tuple[str, str], bool] = TTLCache(1000, REPORT_FALLBACKS_SECONDS)
_report_lock = threading.Lock()


class Reader:
    """Called from the worker's task threads; the network is used on the loop thread."""

    def __init__(
        self,
        sessions: Sessions,
        run: RunOnLoop,
        start: Callable[[Coroutine[Any, Any, None]], object] | None = None,
        *,
        observer: Observer | None = None,
        tokens: Tokens | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._run = run
        self._start = start or run
        self._access = SourceAccess(sessions, tokens or Tokens(), observer)
        self._modes = ReadModes(self._access, clock=clock)
        self._payloads = PayloadCache()
        self._running: set[asyncio.Task[None]] = set()  # the loop holds tasks only weakly

    def renderer_pids(self) -> dict[str, int]:
        """Returns the renderer's process of each page that stays open, by match."""
        return self._modes.open_pages.renderer_pids()

    @property
    def request_modes(self) -> RequestModes:
        return self._access.modes

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        """Reads the current state of a match. If another mode fails, visits the page within the same attempt."""
        reading = self._run(self._modes.read(target, self._modes.plan(target)))
        try:
            with evidence_from(reading):
                return reading, self.parse(target, reading)
        except FALLS_BACK as error:
            if reading.mode is ReadMode.VISIT:
                raise
            reason = self._modes.fall_back(target, error)
        reading = self._run(self._modes.visit(target, reason))
        with evidence_from(reading):
            return reading, self.parse(target, reading)

    def batches(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[BatchResult]]:
        """Reads many matches, each within its context as `scorecard` does."""
        arrivals: SimpleQueue[Arrival] = SimpleQueue()
        plans = [self._modes.plan(target) for target in targets]
        self._start(self._read_all(targets, plans, contexts, arrivals))
        waiting = len(targets)
        while waiting:
            batch = []
            for number, reading, error in (arrivals.get(), *(arrivals.get() for _ in range(arrivals.qsize()))):
                target, context = targets[number], contexts[number]
                result = context.run(self._parsed, number, target, reading, error)
                if isinstance(result, BatchResult):
                    batch.append(result)
                else:
                    context.run(self._start, self._read_one(number, target, ReadPlan(result), arrivals))
            waiting -= len(batch)
            if batch:
                yield batch

    def _parsed(
        self, number: int, target: Target, reading: Reading | None, error: Exception | None
    ) -> BatchResult | str:
        """Returns the result; or the reason for a visit where the response of another mode could not be parsed."""
        if reading is None:
            return BatchResult(number, None, None, error)
        try:
            with evidence_from(reading):
                return BatchResult(number, reading, self.parse(target, reading), None)
        except Exception as failure:  # noqa: BLE001 - a failure concerns its own task only
            if isinstance(failure, FALLS_BACK) and reading.mode is not ReadMode.VISIT:
                try:
                    return self._modes.fall_back(target, failure)
                except Exception as refusal:  # noqa: BLE001 - as above
                    failure = refusal
            return BatchResult(number, reading, None, failure)

    async def _read_all(
        self,
        targets: Sequence[Target],
        plans: Sequence[ReadPlan],
        contexts: Sequence[Context],
        arrivals: SimpleQueue[Arrival],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number, (target, plan, context) in enumerate(zip(targets, plans, contexts, strict=True)):
            reading = self._read_one(number, target, plan, arrivals)
            # A copy: the task thread continues in the context itself.
            task = loop.create_task(reading, context=context.copy())
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _read_one(self, number: int, target: Target, plan: ReadPlan, arrivals: SimpleQueue[Arrival]) -> None:
        try:
            arrivals.put((number, await self._modes.read(target, plan), None))
        except BaseException as error:
            failure = error if isinstance(error, Exception) else ResourceLost("the worker is stopping")
            arrivals.put((number, None, failure))
            if not isinstance(error, Exception):
                raise

    def parse(self, target: Target, reading: Reading) -> Payload:
        payload = self._payloads.get(target.ref_id, reading)
        if payload is None:
            try:
                payload = target.adapter.parse(reading)
            except (AuthExpired, Blocked) as error:  # a refusal with status 200
                self._run(self._access.sessions.refused(reading.session_id, error))
                raise
            for fallback in payload.integrity.fallback_selectors:
                _report_fallback(target, fallback)
            self._payloads.put(target.ref_id, reading, payload)
        note_content(payload.payload_schema, payload.integrity)
        if self._observer is not None:
            self._observer.payload(target.site.key, payload)
        return payload

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """Returns the source's event list page by page, newest first, until `is_enough` or the list ends."""
        request, ask = self._event_list(target)
        payloads: list[Payload] = []
        while len(payloads) < MAX_EVENT_PAGES:
            reading = self._run(ask(request))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
            if payloads[-1].lacks_events:
                raise Transient("the list of events could not be read", url=request.url)
            older = None if is_enough(payloads[-1]) else target.adapter.older_events(reading, request)
            if older is None:
                break
            request = older
        return payloads

    def _event_list(self, target: Target) -> tuple[Request, Callable[[Request], ReadingLater]]:
        """Returns the request for the newest events, and a function that reads the match with such a request."""
        name, modes = target.adapter.events_endpoint, self._modes
        if not name:  # the list is on the page itself, and older events are behind a link
            self.scorecard(target)  # the session gets the cookies of the page
            return Request(PAGE, target.ref.url), lambda request: modes.ask(target, (request,))
        plan = modes.plan(target)
        if plan.requests:  # the adapter knows its requests without a visit
            asked = {request.name: request for request in plan.requests}
            newest = asked.get(name, plan.requests[0])
            return newest, lambda request: modes.own_requests(target, tuple({**asked, request.name: request}.values()))
        record = plan.record
        if record is None or record.page is None:
            self.scorecard(target)  # caches the request of the list, and the page
            record = modes.visits.get(target.ref_id)
        if record is None or name not in record.requests:
            raise Transient("the page did not get its list of events", url=target.ref.url)
        found = record
        return found.requests[name], lambda request: modes.direct(
            target, replace(found, requests={**found.requests, request.name: request})
        )

    def extra_documents(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        """Reads other documents of a match: line-ups, players' figures. Those that the source lacks are left out."""
        return self._with_session(
            target.site,
            lambda: self._access.request(
                target.site,
                target.ref,
                requests,
                required=[request.name for request in requests],
                is_ignored=lambda document: document.status in GONE,
                timeout_factor=target.timeout_factor,
            ),
            lambda: self._modes.visit(target, "line-ups and figures need a session"),
            needs_session=not target.adapter.requests(target.ref, target.site.base_url),
            visits_from=target.visits_from,
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
            return self.planned_list(site, plan)
        if visits_from is not None:
            raise over_budget(visits_from, site, "its list of matches is read from its page")
        visit = self._access.visit(
            site,
            RefInfo(source_event_id="", url=plan.url),
            plan.endpoints,
            required=required_names(plan.endpoints),
            parse=lambda reading: adapter.parse_list(reading, site.base_url),
            is_suspect=is_suspect,
            timeout_factor=timeout_factor,
        )
        return self._run(visit)

    def planned_list(self, site: Site, plan: ListPlan, *, visits_from: datetime | None = None) -> Reading:
        """Reads a list through the source's session."""
        names = [request.name for request in plan.requests]
        ref = RefInfo(source_event_id="", url=plan.requests[0].url)
        ask = partial(self._access.request, site, ref, plan.requests, required=names)
        if not plan.url:
            return self._run(ask())
        visit = partial(self._access.visit, site, RefInfo("", plan.url), plan.endpoints)
        return self._with_session(site, ask, visit, needs_session=True, visits_from=visits_from)

    def _with_session(
        self,
        site: Site,
        ask: Callable[[], ReadingLater],
        visit: Callable[[], ReadingLater],
        *,
        needs_session: bool,
        visits_from: datetime | None,
    ) -> Reading:
        """Makes requests through the source's session; makes a visit first where there is none, or it is refused."""
        if not needs_session or self._access.sessions.is_warm(site.key):
            try:
                return self._run(ask())
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS:
                    raise
        if visits_from is not None:
            raise over_budget(visits_from, site, "there is no session at the source")
        self._run(visit())
        return self._run(ask())


def _report_fallback(target: Target, fallback: str) -> None:
    """Counts a field that was found by another than its best selector ("score#2"); logs it once in ten minutes."""
    site, layout = target.site, target.adapter.layout
    field, _, number = fallback.partition("#")
    _fallbacks.labels(site.key, field).inc()
    with _report_lock:
        if layout is None or (site.key, fallback) in _reported_fallbacks:
            return
        _reported_fallbacks[site.key, fallback] = True
    selectors, found = layout.using(site.selectors).named()[field], int(number) - 1
    logger.warning(
        "Selector %s of %s found nothing at %s; %s did. Nothing is lost: put a better one first in its selectors",
        ", ".join(selectors[:found]), field, target.ref.url, selectors[found],
        extra={"action": "selector_failed", "source": site.key, "url": target.ref.url, "field": field,
               "selector": selectors[0]},
    )  # fmt: skip
