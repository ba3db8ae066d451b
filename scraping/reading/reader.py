"""One poll's reading: direct where a visit has shown how, else a visit; from direct back to a visit when it fails.

A browser visit earns cookies and shows the page's JSON endpoints; asking those again costs milliseconds where a visit
costs hundreds. So a visit is made for a match's first poll, when the direct way is refused or broken, and now and then
to refresh what only the page says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from scraping.browser.session import Session
from scraping.browser.sessions import Sessions
from scraping.errors import AuthExpired, Blocked, Drift, Gone, ReadTimeout, ResourceLost, ScrapingError, Transient
from scraping.payloads import Payload
from scraping.reading.memory import Visited, VisitMemory
from scraping.reading.verdict import error_for
from scraping.readings import PAGE, STATIC_PAGE, Document, Endpoint, Reading, RefInfo, Site
from scraping.resilience.decide import RULES
from scraping.sights import shown
from scraping.sources.base import Adapter, ListPlan
from scraping.sources.challenge import is_challenge
from scraping.stages import reached

REVISIT_SECONDS = 600.0
QUIET_REVISIT_SECONDS = 90.0
MAX_EVENT_PAGES = 60
FORBIDDEN, TOO_MANY_REQUESTS = 403, 429
EVERYTHING = re.compile("")
CHALLENGE_BYTES = 200_000  # a page that asks whether we are human is a small one

T = TypeVar("T")


# What a visit may make good. Only the page itself can say that a match is gone.
FALLS_BACK = (AuthExpired, Blocked, Drift, Gone)


class RunOnLoop(Protocol):
    """Runs a coroutine on the loop thread and waits for it."""

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


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


@dataclass(frozen=True)
class Plan:
    """How a match is read now: as it was visited before, or (None) by a visit, and why."""

    visited: Visited | None
    reason: str


class Reader:
    """Called from the worker's task threads; only the waiting for the network happens on the loop thread."""

    def __init__(self, sessions: Sessions, run: RunOnLoop, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._sessions = sessions
        self._run = run
        self._memory = VisitMemory()
        self._clock = clock

    def scorecard(self, target: Target) -> tuple[Reading, Payload]:
        """The match now. Whatever is wrong with the direct way is made good by one visit within the same attempt."""
        plan = self.plan(target)
        reason = plan.reason
        if plan.visited is not None:
            try:
                reading = self._run(self._direct(target, plan.visited))
                with shown(reading):
                    return reading, target.adapter.parse(reading)
            except FALLS_BACK as error:
                reason = self.fall_back(target, error)
        reading = self._visit(target, reason)
        with shown(reading):
            return reading, target.adapter.parse(reading)

    def plan(self, target: Target) -> Plan:
        """Which way this poll takes, and why."""
        if target.is_fresh:
            self._memory.forget(target.ref_id)
        visited = self._memory.get(target.ref_id)
        if target.site.read_way == "visit":
            return Plan(None, "the source is always visited")
        if visited is None:
            return Plan(None, "it has not been visited yet")
        if not self._sessions.is_warm(target.site.key):
            return Plan(None, "there is no session at the source")
        seconds = QUIET_REVISIT_SECONDS if target.is_quiet else REVISIT_SECONDS
        if self._clock() - visited.at >= seconds:
            return Plan(None, f"the last visit was {seconds:.0f} s ago")
        return Plan(visited, "")

    def fall_back(self, target: Target, error: ScrapingError) -> str:
        """The direct way does not work: why the page is visited now. Raises the error where it would not help."""
        if error.http_status == TOO_MANY_REQUESTS:  # another way of asking is not what it asked for
            raise error
        self._memory.forget(target.ref_id)
        return f"{error.error_class.value}: {error}"[:200]

    def older_events(self, target: Target, *, is_enough: Callable[[Payload], bool]) -> list[Payload]:
        """The source's list of events, page after page back in time, until `is_enough` or the list ends."""
        visited = self.plan(target).visited
        if visited is None:
            self._visit(target, "its list of events is read")
            visited = self._memory.get(target.ref_id)
        request = visited.requests.get(target.adapter.events_endpoint) if visited else None
        if request is None:
            raise Transient("the page did not get its list of events", url=target.ref.url)
        payloads: list[Payload] = []
        while visited is not None and request is not None and len(payloads) < MAX_EVENT_PAGES:
            asking = replace(visited, requests={**visited.requests, request.name: request})
            reading = self._run(self._direct(target, asking))
            with shown(reading):
                payloads.append(target.adapter.parse(reading))
            if "events" in payloads[-1].integrity.missing_fields:  # no list is not an empty list
                raise Transient("the list of events could not be read", url=request.url)
            if is_enough(payloads[-1]):
                break
            request = target.adapter.older_events(reading, request)
        return payloads

    def listing(
        self,
        site: Site,
        adapter: Adapter,
        *,
        is_suspect: bool = False,
        timeout_factor: float = 1.0,
    ) -> Reading:
        """The page that lists a source's matches, with what its script asked for."""
        plan = adapter.list_plan(site.base_url)
        ref = RefInfo(source_event_id="", url=plan.url)
        wrong = partial(looks_wrong, is_suspect=is_suspect)
        return self._run(
            self._guarded(
                site,
                plan.endpoints,
                lambda session: session.visit(ref, plan.endpoints, looks_wrong=wrong, timeout_factor=timeout_factor),
                is_last_chance=timeout_factor > 1,
            )
        )

    def round_list(self, site: Site, adapter: Adapter, asked: Mapping[str, int]) -> Reading:
        """The list of a round's matches, through the source's session; a visit earns that where there is none."""
        plan = adapter.round_plan(site.base_url, asked)
        if self._sessions.is_warm(site.key):
            try:
                return self._ask_list(site, plan)
            except (AuthExpired, Blocked) as error:
                if error.http_status == TOO_MANY_REQUESTS:
                    raise
        ref = RefInfo(source_event_id="", url=plan.url)
        self._run(self._guarded(site, (), lambda session: session.visit(ref, plan.endpoints)))
        return self._ask_list(site, plan)

    def _ask_list(self, site: Site, plan: ListPlan) -> Reading:
        ref = RefInfo(source_event_id="", url=plan.requests[0].url)
        required = tuple(Endpoint(request.name, EVERYTHING) for request in plan.requests)
        return self._run(
            self._guarded(site, required, lambda session: session.direct(ref, plan.requests), uses_browser=False)
        )

    async def _direct(self, target: Target, visited: Visited) -> Reading:
        requests = tuple(visited.requests.values())
        reading = await self._guarded(
            target.site,
            target.adapter.endpoints(target.ref),
            lambda session: session.direct(target.ref, requests, timeout_factor=target.timeout_factor),
            is_last_chance=target.timeout_factor > 1,
            uses_browser=False,
        )
        return replace(reading, documents={**reading.documents, STATIC_PAGE: visited.page})

    def _visit(self, target: Target, reason: str) -> Reading:
        return self._run(self._visited(target, reason))

    async def _visited(self, target: Target, reason: str) -> Reading:
        """Open the page; what it teaches is remembered for direct reads."""
        endpoints = target.adapter.endpoints(target.ref)
        wrong = partial(looks_wrong, is_suspect=target.is_suspect)
        # On a visit a broken endpoint is no failure: the page itself may hold the same data.
        reading = await self._guarded(
            target.site,
            (),
            lambda session: session.visit(
                target.ref, endpoints, looks_wrong=wrong, timeout_factor=target.timeout_factor
            ),
            is_last_chance=target.timeout_factor > 1,
        )
        wanted = {endpoint.name for endpoint in endpoints if endpoint.is_required} | {target.adapter.events_endpoint}
        if all(reading.document(name) for name in wanted):  # else the next poll is a visit again
            asked = {name: request for name, request in reading.requests.items() if reading.document(name)}
            page = reading.documents[PAGE]
            self._memory.put(target.ref_id, Visited(asked, page, self._clock()))
        return replace(reading, reason=reason)

    async def _guarded(
        self,
        site: Site,
        required: tuple[Endpoint, ...],
        read: Callable[[Session], Awaitable[Reading]],
        *,
        is_last_chance: bool = False,
        uses_browser: bool = True,
    ) -> Reading:
        """Read through the source's session. A lost or hung browser gets replaced, a refused session forgotten.

        `is_last_chance`: the same session ran out of time before; if it does so again, another one is tried.
        """
        session = await self._sessions.get(site)
        reached("BROWSER_READY")
        try:
            reading = await read(session)
            with shown(reading):
                return checked(reading, required)
        except ResourceLost as error:
            self._sessions.host.report_lost(session.generation, str(error))
            raise
        except ReadTimeout:
            if uses_browser and not await self._sessions.host.probe():
                raise ResourceLost("the browser hung and is being replaced") from None
            if is_last_chance:
                self._sessions.drop(session)
            raise
        except ScrapingError as error:
            if RULES[error.error_class].rotates_session:
                self._sessions.drop(session)
            raise


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
