"""One page that stays open: loads it, extracts values from it, and decides when it must be opened again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import orjson
from playwright.async_api import CDPSession, Page

from scraping.browser.blocking import PageTraffic
from scraping.browser.playwright_calls import translate_error, with_timeout
from scraping.browser.session import Session
from scraping.browser.visit import limited_body
from scraping.errors import PageCrashed, ReadTimeout, SchemaBreak
from scraping.readings import PAGE, Document, Extractor, RefInfo, report_stage

UNCHANGED_SECONDS = 10.0  # a page without a change for this long is loaded again
MAX_UNCHANGED_FACTOR = 8  # for a page without a pulse whose content was found to be current
EXTRACT_SECONDS = 10.0  # a page that takes longer hangs
WATCH_SECONDS = 5.0

# Installed in the page once: sending the script and returning objects each time would cost ten times the CPU in
# Playwright's driver. A symbol keeps the function out of the page's own names.
_INSTALL = """(argument) => {
  const extract = %s;
  const plan = JSON.parse(argument);
  window[Symbol.for("extract")] = () => JSON.stringify({ found: extract(plan), address: location.href });
}"""
_EXTRACT = '() => { const extract = window[Symbol.for("extract")]; return extract ? extract() : ""; }'


@dataclass(frozen=True)
class Extraction:
    found: dict[str, Any]
    pulse: object  # of the field that changes with time, also while nothing happens; None: it is not on the page
    address: str


class RendererWatch:
    """Finds the process of a page's renderer: Chromium puts its id in front of those of its requests ("1985.2")."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self._session: CDPSession | None = None
        self._detaching: asyncio.Future[None] | None = None

    async def start(self, page: Page) -> None:
        """Never raises: the process is known for statistics only."""
        with contextlib.suppress(Exception):
            opened = page.context.new_cdp_session(page)
            self._session = session = await with_timeout(opened, WATCH_SECONDS, "opening a DevTools session")
            session.on("Network.requestWillBeSent", self._note)
            await with_timeout(session.send("Network.enable"), WATCH_SECONDS, "enabling network events")

    def _note(self, event: dict[str, Any]) -> None:
        head, dot, _ = str(event.get("requestId", "")).partition(".")
        if self.pid is None and dot and head.isdigit():  # requests of the browser process have no dot
            self.pid = int(head)
            self._detaching = asyncio.ensure_future(self._detach())

    async def _detach(self) -> None:
        with contextlib.suppress(Exception):
            if self._session is not None:
                await with_timeout(self._session.detach(), WATCH_SECONDS, "closing a DevTools session")


@dataclass
class AttachedPage:
    page: Page
    session: Session
    traffic: PageTraffic
    loaded: Document  # the response when it was loaded; with its body only where that was an error
    clock: Callable[[], float] = time.monotonic
    read_at: float = 0.0
    changed_at: float = 0.0  # last change of its pulse, monotonic
    # Time up to which the content is known to be current.
    fresh_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    max_unchanged_seconds: float = UNCHANGED_SECONDS
    is_crashed: bool = False
    renderer: RendererWatch = field(default_factory=RendererWatch)
    _installed: Extractor | None = None
    _address: str = ""  # location.href
    _pulse: object = ""
    _bytes_reported: int = 0

    @classmethod
    async def load(cls, session: Session, ref: RefInfo, *, factor: float, clock: Callable[[], float]) -> Self:
        page, options, renderer = None, session.host.options, RendererWatch()
        seconds = options.timeouts.navigation_seconds * factor
        try:
            page, traffic = await session.open_page()
            await renderer.start(page)
            report_stage("NAVIGATING")
            response = await session.goto(page, ref.url, seconds)
            loaded = Document(PAGE, ref.url, 200, "text/html", b"")
            if response is not None:
                body = await limited_body(response, options.max_body_bytes, seconds) if response.status >= 300 else b""
                loaded = Document.from_response(PAGE, page.url, response.status, response.headers, body or b"")
        except Exception as error:
            failure = translate_error(error, url=ref.url)
            if page is not None:
                if isinstance(failure, ReadTimeout):
                    session.retire_context(page)
                await session.close_page(page)
            raise failure from error
        kept = cls(page, session, traffic, loaded, clock, read_at=clock(), changed_at=clock(), renderer=renderer)
        page.on("crash", lambda _: setattr(kept, "is_crashed", True))
        return kept

    def belongs_to(self, session: Session) -> bool:
        """Whether it is open in this session and in the current browser."""
        return self.session is session and session.is_open and not self.page.is_closed()

    async def extract(self, extractor: Extractor, *, seconds: float) -> Extraction:
        report_stage("INTERCEPTING")
        self.read_at = self.clock()
        try:
            if self.is_crashed:  # it would not respond
                raise PageCrashed("an open page crashed", url=self.loaded.url)
            return await with_timeout(self._evaluate(extractor), seconds, "extracting from an open page")
        except Exception as error:
            if self.is_crashed:
                raise PageCrashed("an open page crashed", url=self.loaded.url) from error
            failure = translate_error(error, url=self.loaded.url)
            if isinstance(failure, ReadTimeout):
                self.session.retire_context(self.page)
            raise failure from error

    async def _evaluate(self, extractor: Extractor) -> Extraction:
        text = await self.page.evaluate(_EXTRACT) if self._installed == extractor else ""
        if not text:  # not installed, or the page has reloaded itself
            await self.page.evaluate(_INSTALL % extractor.script, orjson.dumps(extractor.argument).decode())
            self._installed = extractor
            text = await self.page.evaluate(_EXTRACT)
        try:
            result = orjson.loads(text)
            found = dict(result["found"])
            return Extraction(found, _value_of(found, extractor.pulse) or None, str(result["address"]))
        except (ValueError, TypeError, KeyError) as error:  # its scripts may have changed ours
            raise SchemaBreak("an open page returned no extraction", url=self.loaded.url) from error

    def reopen_cause(self, extraction: Extraction) -> str:
        """Returns why the page must be opened again; empty for a page at the same address with current content."""
        if self._address and self._address != extraction.address:
            return "it navigated away"
        now, self._address = self.clock(), extraction.address
        if self._pulse != extraction.pulse:
            self._pulse, self.changed_at, self.fresh_at = extraction.pulse, now, datetime.now(UTC)
        elif extraction.pulse is None:
            self.fresh_at = datetime.now(UTC)  # without a pulse, unchanged content counts as current
        return "it has not changed" if now - self.changed_at > self.max_unchanged_seconds else ""

    def inherit(
        self, before: AttachedPage | None, extraction_before: Extraction | None, extraction: Extraction
    ) -> None:
        """Takes over the interval of the page it replaces; doubles it where that page was unchanged and current."""
        if before is None:
            return
        self.max_unchanged_seconds = before.max_unchanged_seconds
        if extraction_before is not None and extraction.pulse is None and extraction.found == extraction_before.found:
            self.max_unchanged_seconds = min(self.max_unchanged_seconds * 2, MAX_UNCHANGED_FACTOR * UNCHANGED_SECONDS)

    async def new_traffic(self) -> tuple[int, dict[str, int], dict[str, int]]:
        """Returns bytes, requests and blocked requests by type since the last call."""
        bytes_in = await self.traffic.bytes_in()
        fresh, self._bytes_reported = bytes_in - self._bytes_reported, bytes_in
        made, blocked = dict(self.traffic.made), dict(self.traffic.blocked)
        self.traffic.made.clear()
        self.traffic.blocked.clear()
        return fresh, made, blocked


def _value_of(found: dict[str, Any], name: str) -> object:
    fields = found.get("fields")
    hit = fields.get(name) if name and isinstance(fields, dict) else None
    values = hit.get("values") if isinstance(hit, dict) else None
    return values[0] if isinstance(values, list) and values else None
