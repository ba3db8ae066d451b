"""Attached reads: pages that update themselves stay open, and a poll only asks what they show.

Guards against pages that are open and yet say nothing true: one that crashed, hangs, went elsewhere, belongs to a
browser or session that is gone, or whose script has stopped. Each of these is opened anew, within the same read. What
nobody asks any more is closed, and there are never more than so many: an open page costs memory all the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import orjson
from prometheus_client import Counter, Gauge

from scraping.browser.host import BrowserHost
from scraping.browser.open_page import ASK_SECONDS, Answer, OpenPage
from scraping.browser.session import Session
from scraping.errors import PageCrashed, ScrapingError
from scraping.readings import FIELDS, PAGE, Document, Extractor, Reading, ReadMode, RefInfo, report_stage

MAX_PAGES = 60  # of a worker
IDLE_SECONDS = 60.0  # nobody asked: its match is over, paused, or read by another worker
BUSY_SECONDS = 15.0  # a page that was asked since then does not give way to another
SWEEP_SECONDS = 10.0
OPENED_AT_ONCE = 2  # a page that is loaded keeps a core busy, and here many come together after a start
WAITING_TOLD_SECONDS = 5.0

_open_pages = Gauge("victoryline_attached_pages", "Pages that stay open to be asked.")
_opened = Counter("victoryline_attached_openings", "Pages that were opened to stay, by why.", ["cause"])

Turn = Callable[[], AbstractAsyncContextManager[None]]
Key = tuple[str, str]


class NoRoom(Exception):  # noqa: N818 - it is what happens
    """Every open page is in use, and another would be one too many: this match is visited instead."""


@dataclass(frozen=True)
class Question:
    """What is to be read off the page of a match. Openings wait in `turn` for theirs."""

    session: Session
    ref: RefInfo
    extractor: Extractor
    turn: Turn
    timeout_factor: float = 1.0

    @property
    def key(self) -> Key:
        return self.session.site.key, self.ref.source_event_id


@dataclass
class AttachedPages:
    """The open pages of a worker; lives on the loop thread."""

    host: BrowserHost
    limit: int = MAX_PAGES
    clock: Callable[[], float] = time.monotonic
    _pages: dict[Key, OpenPage] = field(default_factory=dict)
    _locks: dict[Key, asyncio.Lock] = field(default_factory=dict)
    _opening: int = 0
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OPENED_AT_ONCE))
    _next_sweep: asyncio.TimerHandle | None = None
    _sweeping: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        return len(self._pages)

    async def read(self, question: Question) -> Reading:
        """What the match's page shows now. NoRoom where another page would be one too many."""
        started = self.clock()
        async with self._locks.setdefault(question.key, asyncio.Lock()):
            page = self._pages.get(question.key)
            answer, cause = await self._asked(page, question)
            if page is None or cause:
                page, answer = await self._renewed(question, page, answer, cause)
            return await self._reading(question.ref, page, answer, started)

    async def discard(self, site_key: str, source_event_id: str) -> None:
        """What it showed could not be used: the next read opens it anew."""
        await self._close((site_key, source_event_id))

    async def close_all(self) -> None:
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        await asyncio.gather(*(self._close(key) for key in tuple(self._pages)))

    async def _asked(self, page: OpenPage | None, question: Question) -> tuple[Answer | None, str]:
        """The page's answer, and why it must be opened (anew); empty where it need not."""
        if page is None:
            return None, "it was not open"
        try:
            if not page.is_of(question.session):
                return None, "its browser or session is gone"
            answer = await page.ask(question.extractor, seconds=ASK_SECONDS * question.timeout_factor)
        except PageCrashed as error:  # the browser lives on, unless this comes too often
            self.host.report_fault(question.session.generation, str(error))
            return None, "it crashed"
        except ScrapingError:
            return None, "it does not answer"
        return answer, page.judge(answer)

    async def _renewed(
        self, question: Question, before: OpenPage | None, answer_before: Answer | None, cause: str
    ) -> tuple[OpenPage, Answer | None]:
        """Open the page, in the place of another where there was one, and ask it. What fails now, fails the read."""
        await self._close(question.key)
        page = await self._open(question)
        _opened.labels(cause).inc()
        answer: Answer | None = None
        try:
            if page.loaded.status < 300:
                # One that has just been loaded is still busy with itself.
                seconds = self.host.options.page_timeout_seconds * question.timeout_factor
                answer = await page.ask(question.extractor, seconds=seconds)
                page.learn(before, answer_before, answer)
                page.judge(answer)
        finally:
            if answer is None:
                await self._close(question.key)
        return page, answer

    async def _open(self, question: Question) -> OpenPage:
        self._opening += 1
        try:
            await self._make_room()
            async with self._place(), question.turn(), self.host.visiting():
                page = await OpenPage.load(
                    question.session,
                    question.ref,
                    self.host.options,
                    factor=question.timeout_factor,
                    clock=self.clock,
                )
        finally:
            self._opening -= 1
        self._pages[question.key] = page
        _open_pages.set(len(self._pages))
        self._sweep_later()
        return page

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Few are opened at a time. Whoever waits says now and then that it does: it does not hang."""
        while True:
            try:
                await asyncio.wait_for(self._places.acquire(), WAITING_TOLD_SECONDS)
                break
            except TimeoutError:
                report_stage("INIT")
        try:
            yield
        finally:
            self._places.release()

    async def _reading(self, ref: RefInfo, page: OpenPage, answer: Answer | None, started: float) -> Reading:
        documents = {PAGE: page.loaded}
        if answer is not None:
            body = orjson.dumps(answer.found)
            documents = {FIELDS: Document(FIELDS, page.loaded.url, 200, "application/json", body)}
        bytes_in, made, blocked = await page.cost()
        return Reading(
            ref=ref,
            mode=ReadMode.ATTACHED,
            captured_at=page.fresh_at,
            documents=documents,
            bytes_in=bytes_in,
            requests_made=sum(made.values()),
            requests_blocked=sum(blocked.values()),
            requests_by_type=made,
            blocked_by_type=blocked,
            duration_ms=round((self.clock() - started) * 1000),
        )

    async def _make_room(self) -> None:
        """The page that was not asked for the longest time goes, unless all of them are in use."""
        while self._pages and len(self._pages) + self._opening > self.limit:
            key, oldest = min(self._pages.items(), key=lambda pair: pair[1].read_at)
            if self.clock() - oldest.read_at < BUSY_SECONDS:
                raise NoRoom
            await self._close(key)
        if self._opening > self.limit:
            raise NoRoom

    def _sweep_later(self) -> None:
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        if self._pages:
            self._next_sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._start_sweep)

    def _start_sweep(self) -> None:
        self._sweeping = asyncio.ensure_future(self.sweep())

    async def sweep(self) -> None:
        """Close what nobody asks any more."""
        for key, page in tuple(self._pages.items()):
            if self.clock() - page.read_at > IDLE_SECONDS:
                await self._close(key)
        self._sweep_later()

    async def _close(self, key: Key) -> None:
        page = self._pages.pop(key, None)
        _open_pages.set(len(self._pages))
        lock = self._locks.get(key)
        if lock is not None and not lock.locked():
            del self._locks[key]
        if page is not None:
            with contextlib.suppress(Exception):
                await page.session.close_page(page.page)
