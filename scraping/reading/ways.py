"""Three ways to read a match: direct where a visit has shown how, attached to its open page, or by a visit.

A visit earns cookies and shows the page's JSON endpoints; asking those again costs milliseconds where a visit costs
hundreds. So one is made for the first match of a source, and whenever a shorter way is refused or broken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from scraping.browser.attached import AttachedPages, NoRoom, Question
from scraping.browser.session import Session
from scraping.errors import AuthExpired, Blocked, OverBudget, SchemaBreak, ScrapingError
from scraping.reading import learning
from scraping.reading.guard import CHALLENGE_BYTES, Guard, checked, looks_wrong
from scraping.reading.memory import Visited, VisitMemory
from scraping.reading.selectors import extractor_of, is_attached
from scraping.reading.target import Plan, Target, Way
from scraping.reading.tokens import Tokens, with_costs_of
from scraping.readings import PAGE, STATIC_PAGE, Document, Reading, Request, Site, report_stage
from scraping.sources import challenge
from scraping.sources.base import AsksOutright, FollowsUp, HasPublicEndpoints

PAGE_SECONDS = 600.0  # after so long the page itself is looked at again, for what the endpoints do not say
QUIET_PAGE_SECONDS = 90.0
WHOLE_SECONDS = 20.0  # so long one answer may stand for all of a source's; then everything is asked again
PAGE_TYPES = "text/html,application/xhtml+xml"
TOO_MANY_REQUESTS = 429
WAITING_TOLD_SECONDS = 5.0
REFUSED_SECONDS = 60.0  # so long a source that refused to be asked outright is visited instead
VISITS_AT_ONCE = 6  # of a worker: a page being loaded keeps a core busy


class Ways:
    """Planned on the task threads, walked on the loop thread."""

    def __init__(self, guard: Guard, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.memory = VisitMemory()
        self.open_pages = AttachedPages(guard.sessions.host)
        self._guard = guard
        self.tokens = tokens
        self._clock = clock
        self._underivable: set[int] = set()
        self._refused_at: dict[str, float] = {}
        self._learning: dict[str, asyncio.Lock] = {}
        self._visiting = asyncio.Semaphore(VISITS_AT_ONCE)

    def plan(self, target: Target) -> Plan:
        """Which way this poll takes, and why."""
        if target.is_fresh and target.visits_from is None:
            self.memory.forget(target.ref_id)
            return Plan(None, "it begins anew")
        if target.site.read_way == "visit":
            return Plan(None, "the source is always visited")
        if is_attached(target.site, target.adapter):
            return Plan(None, "", is_attached=True)
        if isinstance(target.adapter, AsksOutright):
            return self._outright_plan(target, target.adapter)
        if not self._guard.sessions.is_warm(target.site.key):
            return Plan(None, "there is no session at the source", can_wait=True)
        if target.visits_from is None and self._guard.sessions.wants_visit(target.site.key):
            return Plan(None, "the session at the source has had its time")
        visited = self.memory.get(target.ref_id) or self._derived(target)
        if visited is None:
            return Plan(None, "it has not been visited yet", can_wait=self.memory.example(target.site.key) is None)
        return Plan(visited, "")

    def _outright_plan(self, target: Target, adapter: AsksOutright) -> Plan:
        refused_at = self._refused_at.get(target.site.key)
        if refused_at is not None and self._clock() - refused_at < REFUSED_SECONDS and target.visits_from is None:
            return Plan(None, "the source refused to be asked without a page")
        return Plan(None, "", outright=adapter.requests(target.ref, target.site.base_url))

    def _derived(self, target: Target) -> Visited | None:
        """How this match would be asked, going by the last one that was visited."""
        example = self.memory.example(target.site.key)
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
            raise over_budget(target.visits_from, target.site, str(error)) from error
        if isinstance(error, Blocked | AuthExpired):
            self._refused_at[target.site.key] = self._clock()
        if self.memory.get(target.ref_id) is None:
            self._underivable.add(target.ref_id)  # what other matches taught does not hold for this one
        self.memory.forget(target.ref_id)
        return f"{error.error_class.value}: {error}"[:200]

    async def read(self, target: Target, plan: Plan, way: Way) -> Reading:
        """As planned. Where nothing is known of a source, one match is visited, and the others ask as it did."""
        if plan.is_attached:
            way.is_short = True
            return await self._attached(target)
        if plan.outright:
            way.is_short = True
            return await self.outright(target, plan.outright)
        visited = plan.visited
        if plan.can_wait:
            lock = self._learning.setdefault(target.site.key, asyncio.Lock())
            async with _patiently(lock):
                visited = self.plan(target).visited
                if visited is None:
                    return await self.visit(target, plan.reason)
        if visited is None:
            return await self.visit(target, plan.reason)
        way.is_short = True
        return await self._direct(target, visited)

    async def _attached(self, target: Target) -> Reading:
        """Off the match's open page, which is opened where it is not; a visit where no more pages may be open."""
        if target.is_fresh or target.visits_from is not None:
            await self.open_pages.discard(target.site.key, target.ref.source_event_id)
        if target.visits_from is not None:  # a page that is open costs traffic all the time
            raise over_budget(target.visits_from, target.site, "its matches are read off open pages")
        extractor = extractor_of(target.site, target.adapter)
        turn, factor = partial(self._opening, target), target.timeout_factor
        try:
            return await self._guard.read(
                target.site,
                (),
                lambda session: session.told_of(
                    self.open_pages.read(Question(session, target.ref, extractor, turn, factor))
                ),
                urls=(target.ref.url,),
                is_last_chance=factor > 1,
            )
        except NoRoom:
            return await self.visit(target, "as many pages are open as may be")

    @asynccontextmanager
    async def _opening(self, target: Target) -> AsyncIterator[None]:
        if target.visits_from is not None:
            raise over_budget(target.visits_from, target.site, "its page is not open")
        async with self.turn():
            yield

    async def _direct(self, target: Target, visited: Visited) -> Reading:
        """The endpoints; and now and then the page itself, which is fetched without a browser as well.

        Where one answer tells whether anything has changed, it is asked first, and mostly alone.
        """
        if self._needs_page(target, visited):
            return await self._direct_with_page(target, visited)
        pulse = self._pulse(target, visited)
        if pulse is None:
            return await self.all_of(target, visited)
        reading = await self._ask(target, (pulse,), has_page=visited.page is not None)
        answer = reading.document(pulse.name)
        if answer is not None and answer.body == visited.last[pulse.name].body:
            return replace(reading, same_as=visited.payload)
        others = tuple(one for one in visited.requests.values() if one is not pulse)
        if others:
            rest = await self._ask(target, others, has_page=visited.page is not None)
            reading = _together(reading, rest)
        return _with_known_page(reading, target, visited)

    async def outright(self, target: Target, requests: tuple[Request, ...]) -> Reading:
        """What an adapter knows to ask by itself. A page among it may be a question whether we are human."""
        reading = await self._ask(target, requests)
        if isinstance(target.adapter, FollowsUp):
            more = target.adapter.follow_up(reading, target.site.base_url)
            reading = _together(reading, await self._ask(target, more)) if more else reading
        page = reading.document(PAGE)
        if page is not None:
            await self._refuse_challenge(target, reading, page)
        return reading

    async def _refuse_challenge(self, target: Target, reading: Reading, page: Document) -> None:
        """A page that asks whether we are human is a refusal, whatever its status says; its session hears of it."""
        try:
            challenge.raise_if_challenge(page.text()[:CHALLENGE_BYTES], target.ref.url)
        except Blocked as error:
            await self._guard.sessions.refused(reading.session_id, error)
            raise

    async def all_of(self, target: Target, visited: Visited) -> Reading:
        """Every endpoint, now; with the page as it was seen last."""
        reading = await self._ask(target, tuple(visited.requests.values()), has_page=visited.page is not None)
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
        requests = (*visited.requests.values(), page_request)
        reading = await self._ask(target, requests, has_page=visited.page is not None)
        page = reading.document(PAGE) or visited.page
        if page is None:
            raise SchemaBreak("the page could not be had without a browser", url=target.ref.url)
        await self._refuse_challenge(target, reading, page)
        self.memory.put(target.ref_id, Visited(visited.requests, page, self._clock()))
        return reading

    async def _ask(self, target: Target, requests: tuple[Request, ...], *, has_page: bool = False) -> Reading:
        """`has_page`: it is known from before, so that one which cannot be had now is no failure."""

        async def ask(session: Session) -> Reading:
            found = await self.tokens.direct(
                session, target.ref, requests, public=_public(target), timeout_factor=target.timeout_factor
            )
            return _without_ailing_page(found) if has_page else found

        return await self._guard.read(
            target.site,
            target.adapter.endpoints(target.ref),
            ask,
            urls=tuple(request.url for request in requests),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )

    async def visit(self, target: Target, reason: str) -> Reading:
        """Open the page; what it teaches is remembered for direct reads."""
        if target.visits_from is not None:
            raise over_budget(target.visits_from, target.site, reason)
        await self.open_pages.discard(target.site.key, target.ref.source_event_id)  # what it showed was of no use
        endpoints = target.adapter.endpoints(target.ref)
        wrong = partial(looks_wrong, is_suspect=target.is_suspect)
        # On a visit a broken endpoint is no failure: the page itself may hold the same data.
        async with self.turn():
            reading = await self._guard.read(
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
            self.memory.put(target.ref_id, visited)
            self.memory.teach(target.site.key, target.ref, visited)
            self._underivable.discard(target.ref_id)
        return replace(reading, reason=reason)

    async def _opened(self, target: Target, reading: Reading) -> Reading:
        """What the page itself was refused, asked again with our token; where there is none, the page has to do."""
        closed = tuple(request for name, request in reading.requests.items() if reading.document(name) is None)
        if not closed:
            return reading
        try:
            session = await self._guard.sessions.get(target.site)
            found = await self.tokens.direct(session, target.ref, closed)
        except ScrapingError:
            return reading
        self._guard.observe(target.site, found)
        found = checked(found, ())
        return replace(with_costs_of(found, reading), documents={**reading.documents, **found.documents})

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Visits take turns. Whoever waits says now and then that it does: it does not hang."""
        async with _patiently(self._visiting):
            yield


def _public(target: Target) -> tuple[Request, ...]:
    """What to ask where a token is wanted and there is none."""
    if not target.site.token_url or not isinstance(target.adapter, HasPublicEndpoints):
        return ()
    return target.adapter.public_requests(target.ref, target.site.base_url)


def over_budget(until: datetime, site: Site, why: str) -> OverBudget:
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
            report_stage("INIT")
    try:
        yield
    finally:
        turn.release()
