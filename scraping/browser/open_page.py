"""One page that stays open: how it is loaded, asked, and seen to be alive."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import orjson
from playwright.async_api import Page, WebSocket

from scraping.browser import answers
from scraping.browser.blocking import PageTally
from scraping.browser.bounded import bounded
from scraping.browser.capture import capped_body
from scraping.browser.faults import translate
from scraping.browser.options import BrowserOptions
from scraping.browser.session import Session
from scraping.errors import PageCrashed, SchemaBreak
from scraping.readings import PAGE, Document, Extractor, RefInfo, report_stage

QUIET_SECONDS = 10.0  # a page that stood still for so long is loaded again
MOST_PATIENT = 8  # times as long, for a page that has no pulse and was found to be right
ASK_SECONDS = 10.0  # a page that takes longer hangs

# The extractor is put into the page once; a question is then a few bytes, and its answer one string. Asked with the
# whole script and answered with objects, Playwright's driver would take each of them apart, for ten times the CPU.
# A symbol keeps it out of the page's own names. Without a pulse the page's changes are counted.
_INSTALL = """(argument) => {
  const counted = { number: 0 };
  if (!%(has_pulse)s) {
    new MutationObserver((changes) => { counted.number += changes.length; }).observe(
      document, { subtree: true, childList: true, characterData: true, attributes: true });
  }
  const extract = %(script)s;
  const plan = JSON.parse(argument);
  window[Symbol.for("asked")] = () => JSON.stringify(
    { found: extract(plan), changes: counted.number, address: location.href });
}"""
_ASK = '() => { const asked = window[Symbol.for("asked")]; return asked ? asked() : ""; }'


@dataclass(frozen=True)
class Answer:
    found: dict[str, Any]
    pulse: object
    has_pulse: bool  # a field of its own that moves with the clock, and not only when something happens
    address: str


class SocketBytes:
    """What a page is told through its sockets; no request stands for that."""

    def __init__(self) -> None:
        self.number = 0

    def see(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._count)

    def _count(self, payload: str | bytes) -> None:
        self.number += len(payload)


@dataclass
class OpenPage:
    page: Page
    session: Session
    tally: PageTally
    sockets: SocketBytes
    loaded: Document  # how it answered when it was loaded; its markup only where that was an error
    clock: Callable[[], float] = time.monotonic
    read_at: float = 0.0
    moved_at: float = 0.0  # it was seen to be kept fresh, by the clock that never jumps
    fresh_at: datetime = field(default_factory=lambda: datetime.now(UTC))  # the same as a time of day
    patience_seconds: float = QUIET_SECONDS
    is_crashed: bool = False
    _installed: Extractor | None = None
    _address: str = ""  # as it calls itself
    _pulse: object = None
    _bytes_told: int = 0

    @classmethod
    async def load(
        cls, session: Session, ref: RefInfo, options: BrowserOptions, *, factor: float, clock: Callable[[], float]
    ) -> Self:
        page, sockets, seconds = None, SocketBytes(), options.navigation_timeout_seconds * factor
        try:
            page, tally = await session.open_page()
            page.on("websocket", sockets.see)
            report_stage("NAVIGATING")
            response = await session.goto(page, ref.url, seconds)
            loaded = Document(PAGE, ref.url, 200, "text/html", b"")
            if response is not None:
                body = await capped_body(response, options.max_body_bytes, seconds) if response.status >= 300 else b""
                loaded = answers.document(PAGE, page.url, response.status, response.headers, body or b"")
        except Exception as error:
            if page is not None:
                await session.close_page(page)
            raise translate(error, url=ref.url) from error
        kept = cls(page, session, tally, sockets, loaded, clock, read_at=clock(), moved_at=clock())
        page.on("crash", lambda _: setattr(kept, "is_crashed", True))
        return kept

    def is_of(self, session: Session) -> bool:
        """Is it of this session, and in the browser that there is now?"""
        return self.session is session and session.has_context and not self.page.is_closed()

    async def ask(self, extractor: Extractor, *, seconds: float) -> Answer:
        report_stage("INTERCEPTING")
        self.read_at = self.clock()
        try:
            if self.is_crashed:
                raise PageCrashed("an open page crashed", url=self.loaded.url)
            said = await bounded(self._answer(extractor), seconds, "asking an open page")
        except Exception as error:
            if self.is_crashed:
                raise PageCrashed("an open page crashed while it was asked", url=self.loaded.url) from error
            raise translate(error, url=self.loaded.url) from error
        pulse = _value_of(said["found"], extractor.pulse)
        return Answer(said["found"], pulse or said["changes"], bool(pulse), said["address"])

    async def _answer(self, extractor: Extractor) -> dict[str, Any]:
        text = await self.page.evaluate(_ASK) if self._installed == extractor else ""
        if not text:  # new here, or the page has loaded itself again
            script = _INSTALL % {"script": extractor.script, "has_pulse": "true" if extractor.pulse else "false"}
            await self.page.evaluate(script, orjson.dumps(extractor.argument).decode())
            self._installed = extractor
            text = await self.page.evaluate(_ASK)
        try:
            said = orjson.loads(text)
            return {"found": dict(said["found"]), "changes": said["changes"], "address": str(said["address"])}
        except (ValueError, TypeError, KeyError) as error:  # its script may have laid hands on ours
            raise SchemaBreak("an open page does not answer what it was asked", url=self.loaded.url) from error

    def judge(self, answer: Answer) -> str:
        """Why the page must be opened anew; empty where it is where it was, and kept fresh."""
        if self._address and self._address != answer.address:
            return "it went elsewhere"
        now, self._address = self.clock(), answer.address
        if self._pulse != answer.pulse:
            self._pulse, self.moved_at, self.fresh_at = answer.pulse, now, datetime.now(UTC)
        elif not answer.has_pulse:
            self.fresh_at = datetime.now(UTC)  # nothing has happened, and nothing says that it should have
        return "it stands still" if now - self.moved_at > self.patience_seconds else ""

    def learn(self, before: OpenPage | None, answer_before: Answer | None, answer: Answer) -> None:
        """Opened in the place of another: one that stood still and was right all the time deserves more patience."""
        if before is None:
            return
        self.patience_seconds = before.patience_seconds
        if answer_before is not None and not answer.has_pulse and answer.found == answer_before.found:
            self.patience_seconds = min(self.patience_seconds * 2, MOST_PATIENT * QUIET_SECONDS)

    async def cost(self) -> tuple[int, dict[str, int], dict[str, int]]:
        """Since the last time: bytes, requests and blocked requests by type."""
        bytes_in = await self.tally.bytes_in() + self.sockets.number
        fresh, self._bytes_told = bytes_in - self._bytes_told, bytes_in
        made, blocked = dict(self.tally.made), dict(self.tally.blocked)
        self.tally.made.clear()
        self.tally.blocked.clear()
        return fresh, made, blocked


def _value_of(found: dict[str, Any], name: str) -> object:
    fields = found.get("fields")
    hit = fields.get(name) if name and isinstance(fields, dict) else None
    values = hit.get("values") if isinstance(hit, dict) else None
    return values[0] if isinstance(values, list) and values else None
