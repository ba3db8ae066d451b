"""One poll's reading: direct where a visit has shown how, else a visit; from direct back to a visit when it fails.

A browser visit earns cookies and shows the page's JSON endpoints; asking those again costs milliseconds where a visit
costs hundreds. So a visit is made for a match's first poll, when the direct way is refused or broken, and now and then
to refresh what only the page says.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from scraping.browser.attached import AttachedPages, NoRoom, Question
from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import (
    AuthExpired,
    Blocked,
    Drift,
    Gone,
    NoToken,
    OverBudget,
    PageCrashed,
    ReadTimeout,
    ResourceLost,
    SchemaBreak,
    ScrapingError,
    Transient,
)
from scraping.payloads import Payload, Status
from scraping.reading import learning
from scraping.reading.memory import Visited, VisitMemory
from scraping.reading.robots import Robots
from scraping.reading.selectors import SelectorWatch, extractor_of, is_attached
from scraping.reading.tokens import Tokens, with_costs_of
from scraping.reading.verdict import error_for
from scraping.readings import PAGE, STATIC_PAGE, Document, Endpoint, Reading, ReadMode, RefInfo, Request, Site
from scraping.resilience.decide import RULES
from scraping.sights import shown
from scraping.sources import challenge
from scraping.sources.base import Adapter, HasPublicEndpoints, ListPlan
from scraping.sources.challenge import is_challenge
from scraping.stages import reached

PAGE_SECONDS = 600.0  # after so long the page itself is looked at again, for what the endpoints do not say
QUIET_PAGE_SECONDS = 90.0
WHOLE_SECONDS = 20.0  # so long one answer may stand for all of a source's; then everything is asked again
PAGE_TYPES = "text/html,application/xhtml+xml"
MAX_EVENT_PAGES = 60
FORBIDDEN, TOO_MANY_REQUESTS = 403, 429
EVERYTHING = re.compile("")
WAITING_TOLD_SECONDS = 5.0
VISITS_AT_ONCE = 6  # of a worker: a page being loaded keeps a core busy
CHALLENGE_BYTES = 200_000  # a page that asks whether we are human is a small one

T = TypeVar("T")


# What a visit may make good. Only the page itself can say that a match is gone.
FALLS_BACK = (AuthExpired, Blocked, Drift, Gone)


class RunOnLoop(Protocol):
    """Runs a coroutine on the loop thread and waits for it."""

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


class Observer(Protocol):
    """Is told what every reading cost and how complete it was, whatever becomes of it. Called on any thread."""

    def reading(self, source: str, reading: Reading) -> None: ...
    def payload(self, source: str, payload: Payload) -> None: ...


class StartOnLoop(Protocol):
    """Starts a coroutine on the loop thread and does not wait for it."""

    def __call__(self, coroutine: Coroutine[Any, Any, None]) -> object: ...


def _unable(coroutine: Coroutine[Any, Any, None]) -> object:
    coroutine.close()
    raise RuntimeError("this reader reads one match at a time")


@dataclass(frozen=True)
class Brought:
    """What became of one of many targets: a reading with its payload, or an error."""

    number: int
    reading: Reading | None
    payload: Payload | None
    error: Exception | None


@dataclass
class _Way:
    """Which way a reading took in the end: a short one that fails may be made good by a visit, a visit may not."""

    is_short: bool = False


@dataclass(frozen=True)
class _Arrived:
    number: int
    way: _Way
    reading: Reading | None
    error: Exception | None = None


@dataclass(frozen=True)
class Target:
    """What is to be read: a match at a source."""

    ref_id: int
    site: Site
    ref: RefInfo
    adapter: Adapter
    is_suspect: bool = False  # its task has failed before: a visit brings a picture along
    is_fresh: bool = False  # begins anew: what earlier visits taught does not count
    is_quiet: bool = False  # nothing has moved for a while; the page may say what the endpoints do not: the result
    timeout_factor: float = 1.0
    visits_from: datetime | None = None  # the source's traffic of today is used up: no page is opened before then


@dataclass(frozen=True)
class Plan:
    """How a match is read now: as it was visited before, off its open page, or (neither) by a visit, and why."""

    visited: Visited | None
    reason: str
    is_attached: bool = False
    can_wait: bool = False  # another match's visit may spare it its own


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
        self.tokens = tokens or Tokens()
        self._observer = observer
        self._sessions = sessions
        self._run = run
        self._start = start or _unable
        self._memory = VisitMemory()
        self._underivable: set[int] = set()
        self._learning: dict[str, asyncio.Lock] = {}
        self._open_pages = AttachedPages(sessions.host)
        self._selectors = SelectorWatch()
        self._robots = Robots()
        self._clock = clock
        self._under_way: set[asyncio.Task[None]] = set()  # the loop itself holds tasks only weakly
        self._visiting = asyncio.Semaphore(VISITS_AT_ONCE)

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        """The match now. Whatever is wrong with the short way is made good by one visit within the same attempt."""
        way = _Way()
        try:
            reading = self._run(self._read(target, self.plan(target), way))
            with shown(reading):
                return reading, self._parse(target, reading)
        except FALLS_BACK as error:
            if not way.is_short:
                raise
            reason = self.fall_back(target, error)
        reading = self._visit(target, reason)
        with shown(reading):
            return reading, self._parse(target, reading)

    def _parse(self, target: Target, reading: Reading) -> Payload:
        if reading.same_as is not None:
            payload = reading.same_as.model_copy(update={"captured_at": reading.captured_at})
        else:
            try:
                payload = target.adapter.parse(reading)
            except (AuthExpired, Blocked) as error:  # a refusal that looked like an answer
                self._run(self._sessions.refused(reading.session_id, error))
                raise
            self._selectors.note(target.site, target.adapter, payload, url=target.ref.url)
            self._remember(target, reading, payload)
        if self._observer is not None:
            self._observer.payload(target.site.key, payload)
        return payload

    def _remember(self, target: Target, reading: Reading, payload: Payload) -> None:
        """What these answers meant, for the next time that nothing has changed. Before and after play time counts."""
        visited = self._memory.get(target.ref_id)
        pulses = [endpoint.name for endpoint in target.adapter.endpoints(target.ref) if endpoint.is_pulse]
        if visited is None or not pulses or reading.mode is not ReadMode.DIRECT:
            return
        is_live = payload.state.status is Status.LIVE and not payload.is_partial_state
        last = {name: one for name in pulses if (one := reading.document(name)) is not None}
        self._memory.put(
            target.ref_id, replace(visited, last=last, last_at=self._clock(), payload=payload if is_live else None)
        )

    def waves(self, targets: Sequence[Target], contexts: Sequence[Context]) -> Iterator[list[Brought]]:
        """Many matches at once, each within its context; what has come meanwhile is handed out together.

        Nobody waits for the slowest: a wave is what is there. Each is read as `scorecard` reads it.
        """
        arrived: SimpleQueue[_Arrived] = SimpleQueue()
        plans = [self.plan(target) for target in targets]
        self._start(self._read_each(targets, plans, contexts, arrived))
        waiting = len(targets)
        while waiting:
            wave = []
            for one in self._take_all(arrived):
                target, context = targets[one.number], contexts[one.number]
                outcome = context.run(self._parsed, target, one)
                if isinstance(outcome, str):  # the direct way did not work: why the page is visited now
                    context.run(self._start, self._read_one(one.number, target, Plan(None, outcome), arrived))
                else:
                    wave.append(Brought(one.number, *outcome))
            waiting -= len(wave)
            if wave:
                yield wave

    @staticmethod
    def _take_all(arrived: SimpleQueue[_Arrived]) -> list[_Arrived]:
        found = [arrived.get()]
        with suppress(Empty):
            while True:
                found.append(arrived.get_nowait())
        return found

    def _parsed(self, target: Target, one: _Arrived) -> tuple[Reading | None, Payload | None, Exception | None] | str:
        try:
            if one.reading is None:
                assert one.error is not None
                raise one.error
            with shown(one.reading):
                return one.reading, self._parse(target, one.reading), None
        except FALLS_BACK as error:
            if one.way.is_short:
                try:
                    return self.fall_back(target, error)
                except ScrapingError as refusal:
                    return one.reading, None, refusal
            return one.reading, None, error
        except Exception as error:  # noqa: BLE001 - every failure belongs to its own task, not to its neighbours'
            return one.reading, None, error

    async def _read_each(
        self,
        targets: Sequence[Target],
        plans: Sequence[Plan],
        contexts: Sequence[Context],
        arrived: SimpleQueue[_Arrived],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number, (target, plan, context) in enumerate(zip(targets, plans, contexts, strict=True)):
            reading = self._read_one(number, target, plan, arrived)
            # A copy: whoever asked goes on in the context itself, on another thread.
            self._under_way.add(task := loop.create_task(reading, context=context.copy()))
            task.add_done_callback(self._under_way.discard)

    async def _read_one(self, number: int, target: Target, plan: Plan, arrived: SimpleQueue[_Arrived]) -> None:
        way = _Way()
        try:
            arrived.put(_Arrived(number, way, await self._read(target, plan, way)))
        except BaseException as error:
            told = error if isinstance(error, Exception) else ResourceLost("the worker is stopping")
            arrived.put(_Arrived(number, way, None, told))
            if not isinstance(error, Exception):
                raise

    def plan(self, target: Target) -> Plan:
        """Which way this poll takes, and why."""
        if target.is_fresh and target.visits_from is None:
            self._memory.forget(target.ref_id)
            return Plan(None, "it begins anew")
        if target.site.read_way == "visit":
            return Plan(None, "the source is always visited")
        if is_attached(target.site, target.adapter):
            return Plan(None, "", is_attached=True)
        if not self._sessions.is_warm(target.site.key):
            return Plan(None, "there is no session at the source", can_wait=True)
        if target.visits_from is None and self._sessions.wants_visit(target.site.key):
            return Plan(None, "the session at the source has had its time")
        visited = self._memory.get(target.ref_id) or self._derived(target)
        if visited is None:
            return Plan(None, "it has not been visited yet", can_wait=self._memory.example(target.site.key) is None)
        return Plan(visited, "")

    def _derived(self, target: Target) -> Visited | None:
        """How this match would be asked, going by the last one that was visited."""
        example = self._memory.example(target.site.key)
        if example is None or target.ref_id in self._underivable:
            return None
        like, visited = example
        endpoints = target.adapter.endpoints(target.ref)
        requests = learning.requests_for(target.ref, endpoints, like=like, asked=visited.requests)
        return Visited(requests, None, float("-inf")) if requests else None

    def fall_back(self, target: Target, error: ScrapingError) -> str:
        """The direct way does not work: why the page is visited now. Raises the error where it would not help."""
        if error.http_status == TOO_MANY_REQUESTS:  # another way of asking is not what it asked for
            raise error
        if target.visits_from is not None:  # what is remembered may work again before a visit may be made
            raise _over_budget(target.visits_from, target.site, str(error)) from error
        if self._memory.get(target.ref_id) is None:
            self._underivable.add(target.ref_id)  # what other matches taught does not hold for this one
        self._memory.forget(target.ref_id)
        return f"{error.error_class.value}: {error}"[:200]

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """The source's list of events, page after page back in time, until `is_enough` or the list ends."""
        if not target.adapter.events_endpoint:
            return self._older_pages(target, is_enough)
        visited = self.plan(target).visited
        if visited is None or visited.page is None:
            self.scorecard(target)  # teaches how the list is asked for, and brings the page along
            visited = self._memory.get(target.ref_id)
        request = visited.requests.get(target.adapter.events_endpoint) if visited else None
        if request is None:
            raise Transient("the page did not get its list of events", url=target.ref.url)
        payloads: list[Payload] = []
        while visited is not None and request is not None and len(payloads) < MAX_EVENT_PAGES:
            asking = replace(visited, requests={**visited.requests, request.name: request})
            reading = self._run(self._all_of(target, asking))
            with shown(reading):
                payloads.append(target.adapter.parse(reading))
            if "events" in payloads[-1].integrity.missing_fields:  # no list is not an empty list
                raise Transient("the list of events could not be read", url=request.url)
            if is_enough(payloads[-1]):
                break
            request = target.adapter.older_events(reading, request)
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
            with shown(reading):
                payloads.append(target.adapter.parse(reading))
        return payloads

    async def _asked(self, target: Target, request: Request) -> Reading:
        return await self._guarded(
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
        if visits_from is not None:
            raise _over_budget(visits_from, site, "its list of matches is read from its page")
        plan = adapter.list_plan(site.base_url)
        ref = RefInfo(source_event_id="", url=plan.url)
        wrong = partial(looks_wrong, is_suspect=is_suspect)
        return self._run(
            self._guarded(
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
        plan = adapter.round_plan(site.base_url, asked)
        if self._sessions.is_warm(site.key):
            try:
                return self._ask_list(site, plan)
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS:
                    raise
        if visits_from is not None:
            raise _over_budget(visits_from, site, "there is no session at the source")
        ref = RefInfo(source_event_id="", url=plan.url)
        self._run(self._guarded(site, (), lambda session: session.visit(ref, plan.endpoints), urls=(plan.url,)))
        return self._ask_list(site, plan)

    def _ask_list(self, site: Site, plan: ListPlan) -> Reading:
        ref = RefInfo(source_event_id="", url=plan.requests[0].url)
        required = tuple(Endpoint(request.name, EVERYTHING) for request in plan.requests)
        urls = tuple(request.url for request in plan.requests)
        return self._run(
            self._guarded(
                site,
                required,
                lambda session: self.tokens.direct(session, ref, plan.requests),
                urls=urls,
                uses_browser=False,
            )
        )

    async def _read(self, target: Target, plan: Plan, way: _Way) -> Reading:
        """As planned. Where nothing is known of a source, one match is visited, and the others ask as it did."""
        if plan.is_attached:
            way.is_short = True
            return await self._attached(target)
        visited = plan.visited
        if plan.can_wait:
            lock = self._learning.setdefault(target.site.key, asyncio.Lock())
            async with _patiently(lock):
                visited = self.plan(target).visited
                if visited is None:
                    return await self._visited(target, plan.reason)
        if visited is None:
            return await self._visited(target, plan.reason)
        way.is_short = True
        return await self._direct(target, visited)

    async def _attached(self, target: Target) -> Reading:
        """Off the match's open page, which is opened where it is not; a visit where no more pages may be open."""
        if target.is_fresh or target.visits_from is not None:
            await self._open_pages.discard(target.site.key, target.ref.source_event_id)
        if target.visits_from is not None:  # a page that is open costs traffic all the time
            raise _over_budget(target.visits_from, target.site, "its matches are read off open pages")
        extractor = extractor_of(target.site, target.adapter)
        turn, factor = partial(self._opening, target), target.timeout_factor
        try:
            return await self._guarded(
                target.site,
                (),
                lambda session: session.told_of(
                    self._open_pages.read(Question(session, target.ref, extractor, turn, factor))
                ),
                urls=(target.ref.url,),
                is_last_chance=factor > 1,
            )
        except NoRoom:
            return await self._visited(target, "as many pages are open as may be")

    @asynccontextmanager
    async def _opening(self, target: Target) -> AsyncIterator[None]:
        if target.visits_from is not None:
            raise _over_budget(target.visits_from, target.site, "its page is not open")
        async with self._turn():
            yield

    async def _direct(self, target: Target, visited: Visited) -> Reading:
        """The endpoints; and now and then the page itself, which is fetched without a browser as well.

        Where one answer tells whether anything has changed, it is asked first, and mostly alone.
        """
        if self._needs_page(target, visited):
            return await self._direct_with_page(target, visited)
        pulse = self._pulse(target, visited)
        if pulse is None:
            return await self._all_of(target, visited)
        reading = await self._ask(target, visited, (pulse,))
        answer = reading.document(pulse.name)
        if answer is not None and answer.body == visited.last[pulse.name].body:
            return replace(reading, same_as=visited.payload)
        others = tuple(one for one in visited.requests.values() if one is not pulse)
        reading = _together(reading, await self._ask(target, visited, others)) if others else reading
        return _with_known_page(reading, target, visited)

    async def _all_of(self, target: Target, visited: Visited) -> Reading:
        """Every endpoint, now; with the page as it was seen last."""
        reading = await self._ask(target, visited, tuple(visited.requests.values()))
        return _with_known_page(reading, target, visited)

    def _needs_page(self, target: Target, visited: Visited) -> bool:
        if target.visits_from is not None and visited.page is not None:  # pages are what costs most
            return False
        return self._clock() - visited.at >= (QUIET_PAGE_SECONDS if target.is_quiet else PAGE_SECONDS)

    def _pulse(self, target: Target, visited: Visited) -> Request | None:
        """The request whose answer tells whether anything is new, where the last answers are still good enough."""
        if visited.payload is None or self._clock() - visited.last_at >= WHOLE_SECONDS:
            return None
        names = [endpoint.name for endpoint in target.adapter.endpoints(target.ref) if endpoint.is_pulse]
        return visited.requests.get(names[0]) if names and names[0] in visited.last else None

    async def _direct_with_page(self, target: Target, visited: Visited) -> Reading:
        page_request = Request(PAGE, target.ref.url, headers={"accept": PAGE_TYPES})
        reading = await self._ask(target, visited, (*visited.requests.values(), page_request))
        page = reading.document(PAGE) or visited.page
        if page is None:
            raise SchemaBreak("the page could not be had without a browser", url=target.ref.url)
        try:
            challenge.raise_if_challenge(page.text()[:CHALLENGE_BYTES], target.ref.url)
        except Blocked as error:
            await self._sessions.refused(reading.session_id, error)
            raise
        self._memory.put(target.ref_id, Visited(visited.requests, page, self._clock()))
        return reading

    async def _ask(self, target: Target, visited: Visited, requests: tuple[Request, ...]) -> Reading:
        async def ask(session: Session) -> Reading:
            found = await self.tokens.direct(
                session, target.ref, requests, public=_public(target), timeout_factor=target.timeout_factor
            )
            return found if visited.page is None else _without_ailing_page(found)

        return await self._guarded(
            target.site,
            target.adapter.endpoints(target.ref),
            ask,
            urls=tuple(request.url for request in requests),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    def _visit(self, target: Target, reason: str) -> Reading:
        return self._run(self._visited(target, reason))

    async def _visited(self, target: Target, reason: str) -> Reading:
        """Open the page; what it teaches is remembered for direct reads."""
        if target.visits_from is not None:
            raise _over_budget(target.visits_from, target.site, reason)
        await self._open_pages.discard(target.site.key, target.ref.source_event_id)  # what it showed was of no use
        endpoints = target.adapter.endpoints(target.ref)
        wrong = partial(looks_wrong, is_suspect=target.is_suspect)
        # On a visit a broken endpoint is no failure: the page itself may hold the same data.
        async with self._turn():
            reading = await self._guarded(
                target.site,
                (),
                lambda session: session.visit(
                    target.ref, endpoints, looks_wrong=wrong, timeout_factor=target.timeout_factor
                ),
                urls=(target.ref.url,),
                is_last_chance=target.timeout_factor > 1,
            )
        if target.site.token_url:
            reading = await self._opened(target, reading)
        wanted = {endpoint.name for endpoint in endpoints if endpoint.is_required} | {target.adapter.events_endpoint}
        # An endpoint that was only closed for want of a token is known as well: there will be one.
        is_known = reading.requests.get if target.site.token_url else reading.document
        if all(is_known(name) for name in wanted):  # else the next poll is a visit again
            asked = {name: request for name, request in reading.requests.items() if is_known(name)}
            page = reading.documents[PAGE]
            visited = Visited(asked, page, self._clock())
            self._memory.put(target.ref_id, visited)
            self._memory.teach(target.site.key, target.ref, visited)
            self._underivable.discard(target.ref_id)
        return replace(reading, reason=reason)

    async def _opened(self, target: Target, reading: Reading) -> Reading:
        """What the page itself was refused, asked again with our token; where there is none, the page has to do."""
        closed = tuple(request for name, request in reading.requests.items() if reading.document(name) is None)
        if not closed:
            return reading
        try:
            session = await self._sessions.get(target.site)
            found = await self.tokens.direct(session, target.ref, closed)
        except ScrapingError:
            return reading
        if self._observer is not None:
            self._observer.reading(target.site.key, found)
        found = checked(found, ())
        return replace(with_costs_of(found, reading), documents={**reading.documents, **found.documents})

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Visits take turns. Whoever waits says now and then that it does: it does not hang."""
        async with _patiently(self._visiting):
            yield

    async def _guarded(
        self,
        site: Site,
        required: tuple[Endpoint, ...],
        read: Callable[[Session], Awaitable[Reading]],
        *,
        urls: tuple[str, ...],
        is_last_chance: bool = False,
        uses_browser: bool = True,
    ) -> Reading:
        """Read through the source's session. A lost or hung browser gets replaced, a refused session forgotten.

        `urls`: what is asked for, and must be allowed by the site's robots.txt.
        `is_last_chance`: the same session ran out of time before; if it does so again, another one is tried.
        """
        session = await self._sessions.get(site, is_visit=uses_browser)
        await self._robots.check(session.wire, site, *urls)
        reached("BROWSER_READY")
        try:
            reading = await read(session)
            if site.selectors:
                reading = replace(reading, selectors=site.selectors)
            if self._observer is not None:
                self._observer.reading(site.key, reading)
            with shown(reading):
                return checked(reading, required)
        except PageCrashed as error:  # the browser lives on, unless this comes too often
            self._sessions.host.report_fault(session.generation, str(error))
            raise
        except ResourceLost as error:
            self._sessions.host.report_lost(session.generation, str(error))
            raise
        except ReadTimeout as error:
            if uses_browser and not await self._sessions.host.probe():
                raise ResourceLost("the browser hung and is being replaced") from None
            if is_last_chance:
                self._sessions.drop(session, cause=error)
            raise
        except ScrapingError as error:
            if RULES[error.error_class].rotates_session and not isinstance(error, NoToken):
                self._sessions.drop(session, cause=error)
            raise


def _public(target: Target) -> tuple[Request, ...]:
    """What to ask where a token is wanted and there is none."""
    if not target.site.token_url or not isinstance(target.adapter, HasPublicEndpoints):
        return ()
    return target.adapter.public_requests(target.ref, target.site.base_url)


def _over_budget(until: datetime, site: Site, why: str) -> OverBudget:
    return OverBudget(f"{site.key} has used up its traffic of today and is not visited, though {why}", until=until)


def _with_known_page(reading: Reading, target: Target, visited: Visited) -> Reading:
    if visited.page is None:
        raise SchemaBreak("the page could not be had without a browser", url=target.ref.url)
    return replace(reading, documents={**reading.documents, STATIC_PAGE: visited.page})


def _together(pulse: Reading, rest: Reading) -> Reading:
    """Two readings of one match, one right after the other; as old as the older."""
    return replace(
        pulse,
        documents={**pulse.documents, **rest.documents},
        requests={**pulse.requests, **rest.requests},
        bytes_in=pulse.bytes_in + rest.bytes_in,
        requests_made=pulse.requests_made + rest.requests_made,
        duration_ms=pulse.duration_ms + rest.duration_ms,
    )


def _without_ailing_page(reading: Reading) -> Reading:
    """A server in trouble with its pages is no reason to do without its answers."""
    page = reading.document(PAGE)
    if page is None or page.status < 500:
        return reading
    return replace(reading, documents={name: one for name, one in reading.documents.items() if name != PAGE})


@asynccontextmanager
async def _patiently(turn: asyncio.Lock | asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold it. Whoever waits says now and then that it does: it does not hang."""
    while True:
        try:
            await asyncio.wait_for(turn.acquire(), WAITING_TOLD_SECONDS)
            break
        except TimeoutError:
            reached("INIT")
    try:
        yield
    finally:
        turn.release()


def looks_wrong(page: Document | None, *, is_suspect: bool) -> bool:
    """Is a picture of it worth its milliseconds? Not of every page: most are never looked at again."""
    if is_suspect or page is None:
        return is_suspect
    if page.status == FORBIDDEN:
        return True
    return len(page.body) < CHALLENGE_BYTES and is_challenge(page.text())


def checked(reading: Reading, endpoints: tuple[Endpoint, ...]) -> Reading:
    """Raise for the page or a required document that came with an error; leave out any other such document."""
    needed = {PAGE} | {endpoint.name for endpoint in endpoints if endpoint.is_required}
    errors: dict[str, ScrapingError] = {
        name: error for name, document in reading.documents.items() if (error := error_for(document)) is not None
    }
    for name in needed & errors.keys():
        raise errors[name]
    return replace(reading, documents={name: one for name, one in reading.documents.items() if name not in errors})
