"""Attached reads: pages that update themselves stay open, and a poll only extracts their values.

Guards against open pages with stale content: a page that crashed, hangs, navigated away, belongs to an old browser or
session, or whose scripts have stopped is reopened within the same read. Guards against memory growth: idle pages are
closed, and the number of open pages is limited.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import orjson
from prometheus_client import Counter, Gauge

from scraping.browser.attached_page import EXTRACT_SECONDS, AttachedPage, Extraction
from scraping.browser.session import Session
from scraping.errors import PageCrashed, ScrapingError
from scraping.readings import FIELDS, PAGE, Document, Extractor, Reading, ReadMode, RefInfo, reporting_wait

MAX_PAGES = 60  # of a worker
IDLE_SECONDS = 60.0  # without a read: its match is over, paused, or read by another worker
BUSY_SECONDS = 15.0  # a page that was read since then is not closed for another
SWEEP_SECONDS = 10.0
OPENED_AT_ONCE = 2  # loading a page keeps a core busy, and many pages are opened after a start

_open_pages = Gauge("victoryline_attached_pages", "Pages that stay open for attached reads.")
_opened = Counter("victoryline_attached_openings", "Pages that were opened for attached reads, by cause.", ["cause"])

OpeningSlot = Callable[[], AbstractAsyncContextManager[None]]
PageKey = tuple[str, str]  # site, event id at the source


class PageLimitReached(Exception):  # noqa: N818 - the caller visits the match instead
    """All pages are in use, and no more may be opened."""


@dataclass(frozen=True)
class AttachedRead:
    """A read of a match's page. A page is opened inside `opening_slot`."""

    session: Session
    ref: RefInfo
    extractor: Extractor
    opening_slot: OpeningSlot
    timeout_factor: float = 1.0

    @property
    def key(self) -> PageKey:
        return self.session.site.key, self.ref.source_event_id


@dataclass
class AttachedPages:
    """The open pages of a worker; lives on the loop thread."""

    limit: int = MAX_PAGES
    clock: Callable[[], float] = time.monotonic
    pages: dict[PageKey, AttachedPage] = field(default_factory=dict)
    _locks: dict[PageKey, asyncio.Lock] = field(default_factory=dict)
    _opening: int = 0
    _openings: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(OPENED_AT_ONCE))
    _sweeping: asyncio.Task[None] | None = None

    async def read(self, read: AttachedRead) -> Reading:
        """Returns the current values of the match's page. PageLimitReached where no page may be opened for it."""
        started = self.clock()
        async with self._locks.setdefault(read.key, asyncio.Lock()):
            page = self.pages.get(read.key)
            extraction, cause = await self._extract(page, read)
            if page is None or cause:
                page, extraction = await self._reopen(read, page, extraction, cause)
            return await self._reading(read.ref, page, extraction, started)

    def renderer_pids(self) -> dict[str, int]:
        """Returns the renderer's process of each open page where it is known, by match. Called by the heartbeat too."""
        pages = tuple(self.pages.items())
        return {f"{site}_{event}": page.renderer.pid for (site, event), page in pages if page.renderer.pid}

    async def discard(self, site_key: str, source_event_id: str) -> None:
        """Closes the page of a match whose values could not be used; the next read opens it again."""
        await self._close((site_key, source_event_id))

    async def close_all(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        await asyncio.gather(*(self._close(key) for key in tuple(self.pages)))

    async def _extract(self, page: AttachedPage | None, read: AttachedRead) -> tuple[Extraction | None, str]:
        """Returns the extraction, and why the page must be opened (again); empty where it need not."""
        if page is None:
            return None, "it was not open"
        try:
            if not page.belongs_to(read.session):
                return None, "its browser or session is gone"
            extraction = await page.extract(read.extractor, seconds=EXTRACT_SECONDS * read.timeout_factor)
        except PageCrashed as error:  # the browser is replaced only if faults repeat
            read.session.host.report_fault(read.session.generation, str(error))
            return None, "it crashed"
        except ScrapingError:
            return None, "it does not respond"
        return extraction, page.reopen_cause(extraction)

    async def _reopen(
        self, read: AttachedRead, before: AttachedPage | None, extraction_before: Extraction | None, cause: str
    ) -> tuple[AttachedPage, Extraction | None]:
        """Opens the page, in place of the old one if there was one, and extracts. An error now fails the read."""
        await self._close(read.key)
        self._opening += 1
        try:
            await self._make_room()
            async with reporting_wait(self._openings), read.opening_slot(), read.session.host.visiting():
                page = await AttachedPage.load(read.session, read.ref, factor=read.timeout_factor, clock=self.clock)
        finally:
            self._opening -= 1
        self.pages[read.key] = page
        _open_pages.set(len(self.pages))
        _opened.labels(cause).inc()
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.ensure_future(self._sweep_regularly())
        extraction: Extraction | None = None
        try:
            if page.loaded.status < 300:
                # Longer, because a page is busy after loading.
                seconds = read.session.host.options.timeouts.page_seconds * read.timeout_factor
                extraction = await page.extract(read.extractor, seconds=seconds)
                page.inherit(before, extraction_before, extraction)
                page.reopen_cause(extraction)
        finally:
            if extraction is None:
                await self._close(read.key)
        return page, extraction

    async def _reading(
        self, ref: RefInfo, page: AttachedPage, extraction: Extraction | None, started: float
    ) -> Reading:
        documents = {PAGE: page.loaded}
        if extraction is not None:
            body = orjson.dumps(extraction.found)
            documents = {FIELDS: Document(FIELDS, page.loaded.url, 200, "application/json", body)}
        bytes_in, made, blocked = await page.new_traffic()
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
        """Closes the least recently read page where the limit is reached; PageLimitReached where all are in use."""
        while self.pages and len(self.pages) + self._opening > self.limit:
            key, oldest = min(self.pages.items(), key=lambda pair: pair[1].read_at)
            if self.clock() - oldest.read_at < BUSY_SECONDS:
                raise PageLimitReached
            await self._close(key)
        if self._opening > self.limit:
            raise PageLimitReached

    async def _sweep_regularly(self) -> None:
        while self.pages:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        for key, page in tuple(self.pages.items()):
            if self.clock() - page.read_at > IDLE_SECONDS:
                await self._close(key)

    async def _close(self, key: PageKey) -> None:
        page = self.pages.pop(key, None)
        _open_pages.set(len(self.pages))
        lock = self._locks.get(key)
        if lock is not None and not lock.locked():
            del self._locks[key]
        if page is not None:
            with contextlib.suppress(Exception):
                await page.session.close_page(page.page)
