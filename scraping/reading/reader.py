"""What the task threads ask for: a match now, many matches at once, its older events, the lists of a source."""

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
from scraping.payloads import Payload, Status
from scraping.reading.guard import Guard, looks_wrong
from scraping.reading.parsed import Parsed
from scraping.reading.selectors import SelectorWatch
from scraping.reading.target import Brought, Observer, RunOnLoop, StartOnLoop, Target, Way
from scraping.reading.tokens import Tokens
from scraping.reading.waves import FALLS_BACK, Waves, unable
from scraping.reading.ways import TOO_MANY_REQUESTS, Ways, over_budget
from scraping.readings import PAGE, Endpoint, Reading, ReadMode, RefInfo, Request, Site, evidence_from
from scraping.sources.base import Adapter, AsksOutright, ListPlan

__all__ = ["Brought", "Reader", "Target"]

MAX_EVENT_PAGES = 500  # a match of five days has 150 of twenty; only a list without an end has more
GONE = (404, 410)
EVERYTHING = re.compile("")


class Reader:
    """Called from the worker's task threads; only the waiting for the network happens on the loop thread."""

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
        self._clock = clock
        self._guard = Guard(sessions, observer)
        self._ways = Ways(self._guard, tokens or Tokens(), clock=clock)
        self._waves = Waves(self._ways, start or unable, self.parse)
        self._selectors = SelectorWatch()
        self._parsed = Parsed()

    @property
    def tokens(self) -> Tokens:
        return self._ways.tokens

    def waves(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[Brought]]:
        """Many matches at once, each within its context; what has come meanwhile is handed out together."""
        return self._waves.read(targets, contexts)

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        """The match now. Whatever is wrong with the short way is made good by one visit within the same attempt."""
        way = Way()
        try:
            reading = self._run(self._ways.read(target, self._ways.plan(target), way))
            with evidence_from(reading):
                return reading, self.parse(target, reading)
        except FALLS_BACK as error:
            if not way.is_short:
                raise
            reason = self._ways.fall_back(target, error)
        reading = self._run(self._ways.visit(target, reason))
        with evidence_from(reading):
            return reading, self.parse(target, reading)

    def parse(self, target: Target, reading: Reading) -> Payload:
        if reading.same_as is not None:
            payload = reading.same_as.model_copy(update={"captured_at": reading.captured_at})
        elif (known := self._parsed.recall(target.ref_id, reading)) is not None:
            payload = known
        else:
            try:
                payload = target.adapter.parse(reading)
            except (AuthExpired, Blocked) as error:  # a refusal that looked like an answer
                self._run(self._guard.sessions.refused(reading.session_id, error))
                raise
            self._selectors.note(target.site, target.adapter, payload, url=target.ref.url)
            self._remember(target, reading, payload)
        if self._observer is not None:
            self._observer.payload(target.site.key, payload)
        return payload

    def _remember(self, target: Target, reading: Reading, payload: Payload) -> None:
        """What these answers meant, for the next time that nothing has changed. Before and after play time counts."""
        self._parsed.remember(target.ref_id, reading, payload)
        visited = self._ways.memory.get(target.ref_id)
        pulses = [endpoint.name for endpoint in target.adapter.endpoints(target.ref) if endpoint.is_pulse]
        if visited is None or not pulses or reading.mode is not ReadMode.DIRECT:
            return
        is_live = payload.state.status is Status.LIVE and not payload.is_partial_state
        last = {name: one for name in pulses if (one := reading.document(name)) is not None}
        self._ways.memory.put(
            target.ref_id, replace(visited, last=last, last_at=self._clock(), payload=payload if is_live else None)
        )

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """The source's list of events, page after page back in time, until `is_enough` or the list ends."""
        if not target.adapter.events_endpoint:
            return self._older_pages(target, is_enough)
        plan = self._ways.plan(target)
        if plan.outright:
            return self._older_answers(target, plan.outright, is_enough)
        visited = plan.visited
        if visited is None or visited.page is None:
            self.scorecard(target)  # teaches how the list is asked for, and brings the page along
            visited = self._ways.memory.get(target.ref_id)
        request = visited.requests.get(target.adapter.events_endpoint) if visited else None
        if request is None:
            raise Transient("the page did not get its list of events", url=target.ref.url)
        payloads: list[Payload] = []
        while visited is not None and request is not None and len(payloads) < MAX_EVENT_PAGES:
            asking = replace(visited, requests={**visited.requests, request.name: request})
            reading = self._run(self._ways.all_of(target, asking))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
            if "events" in payloads[-1].integrity.missing_fields:  # no list is not an empty list
                raise Transient("the list of events could not be read", url=request.url)
            if is_enough(payloads[-1]):
                break
            request = target.adapter.older_events(reading, request)
        return payloads

    def _older_answers(
        self, target: Target, requests: tuple[Request, ...], is_enough: Callable[[Payload], bool]
    ) -> list[Payload]:
        """The same where the adapter knows by itself what to ask."""
        asked = {request.name: request for request in requests}
        request: Request | None = asked.get(target.adapter.events_endpoint)
        payloads: list[Payload] = []
        while len(payloads) < MAX_EVENT_PAGES:
            if request is not None:
                asked[request.name] = request
            reading = self._run(self._ways.outright(target, tuple(asked.values())))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
            if "events" in payloads[-1].integrity.missing_fields:  # no list is not an empty list
                raise Transient("the list of events could not be read", url=target.ref.url)
            if is_enough(payloads[-1]):
                break
            request = target.adapter.older_events(reading, request or requests[0])
            if request is None:
                break
        return payloads

    def _older_pages(self, target: Target, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """The same where the list is on the page itself, and older events behind a link."""
        reading, payload = self.scorecard(target)
        payloads, request = [payload], Request(PAGE, target.ref.url)
        while len(payloads) < MAX_EVENT_PAGES:
            if "events" in payloads[-1].integrity.missing_fields:  # no list is not an empty list
                raise Transient("the list of events could not be read", url=request.url)
            if is_enough(payloads[-1]):
                break
            older = target.adapter.older_events(reading, request)
            if older is None:
                break
            request = older
            reading = self._run(self._asked(target, request))
            with evidence_from(reading):
                payloads.append(target.adapter.parse(reading))
        return payloads

    def besides(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        """Something else about a match: its line-ups, its players' figures. What the source does not have is left out.

        Asked through the source's session; a visit earns that where there is none, or where it is refused.
        """
        if isinstance(target.adapter, AsksOutright) or self._guard.sessions.is_warm(target.site.key):
            try:
                return self._run(self._asked_besides(target, requests))
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS:
                    raise
        if target.visits_from is not None:
            raise over_budget(target.visits_from, target.site, "there is no session at the source")
        self._run(self._ways.visit(target, "what is asked besides the score wants a session"))
        return self._run(self._asked_besides(target, requests))

    async def _asked_besides(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        async def ask(session: Session) -> Reading:
            found = await self.tokens.direct(session, target.ref, requests, timeout_factor=target.timeout_factor)
            return replace(found, documents={n: one for n, one in found.documents.items() if one.status not in GONE})

        return await self._guard.read(
            target.site,
            tuple(Endpoint(request.name, EVERYTHING) for request in requests),
            ask,
            urls=tuple(request.url for request in requests),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    async def _asked(self, target: Target, request: Request) -> Reading:
        return await self._guard.read(
            target.site,
            (),
            lambda session: session.direct(target.ref, (request,), timeout_factor=target.timeout_factor),
            urls=(request.url,),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    def listing(
        self,
        site: Site,
        adapter: Adapter,
        *,
        is_suspect: bool = False,
        timeout_factor: float = 1.0,
        visits_from: datetime | None = None,
    ) -> Reading:
        """The page that lists a source's matches, with what its script asked for."""
        plan = adapter.list_plan(site.base_url)
        if not plan.url:
            return self._ask_list(site, plan)
        if visits_from is not None:
            raise over_budget(visits_from, site, "its list of matches is read from its page")
        ref = RefInfo(source_event_id="", url=plan.url)
        wrong = partial(looks_wrong, is_suspect=is_suspect)
        return self._run(
            self._guard.read(
                site,
                plan.endpoints,
                lambda session: session.visit(ref, plan.endpoints, looks_wrong=wrong, timeout_factor=timeout_factor),
                urls=(plan.url,),
                is_last_chance=timeout_factor > 1,
            )
        )

    def round_list(
        self, site: Site, adapter: Adapter, asked: Mapping[str, int], *, visits_from: datetime | None = None
    ) -> Reading:
        """The list of a round's matches, through the source's session; a visit earns that where there is none."""
        return self.planned_list(site, adapter.round_plan(site.base_url, asked), visits_from=visits_from)

    def planned_list(self, site: Site, plan: ListPlan, *, visits_from: datetime | None = None) -> Reading:
        """Any list that is asked through the source's session: a round, the fixtures of a day."""
        if not plan.url or self._guard.sessions.is_warm(site.key):
            try:
                return self._ask_list(site, plan)
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS or not plan.url:
                    raise
        if visits_from is not None:
            raise over_budget(visits_from, site, "there is no session at the source")
        ref = RefInfo(source_event_id="", url=plan.url)
        self._run(self._guard.read(site, (), lambda session: session.visit(ref, plan.endpoints), urls=(plan.url,)))
        return self._ask_list(site, plan)

    def _ask_list(self, site: Site, plan: ListPlan) -> Reading:
        ref = RefInfo(source_event_id="", url=plan.requests[0].url)
        required = tuple(Endpoint(request.name, EVERYTHING) for request in plan.requests)
        urls = tuple(request.url for request in plan.requests)
        return self._run(
            self._guard.read(
                site,
                required,
                lambda session: self.tokens.direct(session, ref, plan.requests),
                urls=urls,
                uses_browser=False,
            )
        )
