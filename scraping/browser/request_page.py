"""In-page reads: requests are made by `fetch` inside an open page, so that TLS, HTTP version, headers and cookies are
those of Chromium itself.

For sources that refuse every client whose connection is not a browser's. The page belongs to the source's origin, but has
no content of the source: its scripts could replace `fetch`. Many requests share one call into the page, which returns the
responses that have arrived, so that none waits for the slowest: 550 requests a second instead of 100 with a call each.
Every response has the limits of a direct read: time, bytes, and the hosts that the forward proxy allows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from playwright.async_api import Page, Route
from yarl import URL

from scraping.browser.playwright_calls import translate_error, with_timeout
from scraping.browser.request_trace import traced
from scraping.errors import PageCrashed, ReadTimeout, ResourceLost, ScrapingError, Transient
from scraping.readings import Document, Request

if TYPE_CHECKING:
    from scraping.browser.session import Session

OPEN_SECONDS = 10.0
EXCHANGE_SECONDS = 10.0  # a page that takes longer for one call hangs
WAIT_MS = 20  # of a call for the first response: requests that begin meanwhile are sent with the next call
EMPTY_PAGE = "<!doctype html><title></title>"
_INSTALL = Path(__file__).with_name("request_page.js").read_text()
_EXCHANGE = 'argument => window[Symbol.for("exchange")](argument)'
# Headers that Chromium sets by itself; a script that sets them is ignored at best.
_BROWSER_HEADERS = frozenset({"accept-language", "dnt", "origin", "priority", "referer", "user-agent"})
_BROWSER_HEADER_PREFIXES = ("sec-", "proxy-")

Waiting = tuple[Request, asyncio.Future[Document]]


@dataclass(frozen=True)
class Limits:
    max_body_bytes: int
    follows_redirects: bool  # False where no forward proxy checks the hosts that they lead to


class RequestPage:
    """The page of one session; lives on the loop thread. Opened by the first request, and again where it was lost."""

    def __init__(self, session: Session) -> None:
        self._session = session
        options = session.host.options
        self._limits = Limits(options.max_body_bytes, follows_redirects=options.has_forward_proxy)
        self._page: Page | None = None
        self._is_crashed = False
        self._numbers = count()
        self._unsent: list[dict[str, Any]] = []
        self._waiting: dict[int, Waiting] = {}
        self._exchanging: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._page is not None

    async def fetch(self, request: Request, *, seconds: float) -> Document:
        """Returns the response, within the limits; every error is a ScrapingError."""
        trace, source = self._session.host.options.trace, self._session.site.key
        return await traced(trace, source, request, self._fetch(request, seconds))

    async def _fetch(self, request: Request, seconds: float) -> Document:
        self._session.client.rules.check_url(request.url)
        number, future = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = request, future
        self._unsent.append(_as_argument(number, request, seconds))
        if self._exchanging is None or self._exchanging.done():
            self._exchanging = asyncio.ensure_future(self._exchange_all())
        try:
            # The page ends the request in time; this ends the wait for a page that does not respond.
            document: Document = await with_timeout(
                future, seconds + OPEN_SECONDS + EXCHANGE_SECONDS, f"requesting {URL(request.url).path} in a page"
            )
        finally:
            self._waiting.pop(number, None)
        return document

    async def close(self) -> None:
        if self._exchanging is not None:
            self._exchanging.cancel()
        self._fail_all(ResourceLost("the session was closed"))
        await self._discard()

    async def _exchange_all(self) -> None:
        """Sends requests and takes responses until none is waited for."""
        try:
            while self._waiting:
                page = await self._opened()
                sent, self._unsent = self._unsent, []
                argument = orjson.dumps({"requests": sent, "waitMs": WAIT_MS}).decode()
                text = await with_timeout(page.evaluate(_EXCHANGE, argument), EXCHANGE_SECONDS, "requesting in a page")
                for result in orjson.loads(text):
                    self._finish(result)
        except Exception as error:  # noqa: BLE001 - every request that waits gets it
            try:
                failure = translate_error(error, url=self._session.site.base_url)
            except Exception as unknown:  # noqa: BLE001 - as above
                failure = ResourceLost(f"the page for requests failed: {unknown}")
            self._fail_all(failure)
            if isinstance(failure, ReadTimeout) and self._page is not None:
                self._session.retire_context(self._page)
            await self._discard()

    async def _opened(self) -> Page:
        """Returns the page, in the current browser."""
        if self._page is not None and not self._is_crashed and self._session.is_open and not self._page.is_closed():
            return self._page
        await self._discard()
        address = str(URL(self._session.site.base_url).origin() / "")
        page, _ = await self._session.open_page()
        self._page, self._is_crashed = page, False
        page.on("crash", self._on_crash)
        await with_timeout(page.route(address, _serve_empty), OPEN_SECONDS, "preparing a page")
        await self._session.goto(page, address, OPEN_SECONDS)
        await with_timeout(page.unroute(address), OPEN_SECONDS, "preparing a page")
        limits = orjson.dumps(
            {"maxBytes": self._limits.max_body_bytes, "redirect": "follow" if self._limits.follows_redirects else "error"}
        ).decode()
        await with_timeout(page.evaluate(_INSTALL, limits), OPEN_SECONDS, "preparing a page")
        return page

    def _on_crash(self, _: Page) -> None:
        self._is_crashed = True  # it would not respond
        self._fail_all(PageCrashed("the page for requests crashed", url=self._session.site.base_url))

    def _finish(self, result: dict[str, Any]) -> None:
        request, future = self._waiting.get(result["number"], (None, None))
        if request is None or future is None or future.done():  # its reader has given up
            return
        try:
            future.set_result(_document(request, result, self._limits.max_body_bytes))
        except ScrapingError as error:
            future.set_exception(error)

    def _fail_all(self, failure: ScrapingError) -> None:
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(failure)
        self._unsent.clear()

    async def _discard(self) -> None:
        page, self._page = self._page, None
        if page is not None:
            await self._session.close_page(page)


async def _serve_empty(route: Route) -> None:
    await route.fulfill(status=200, content_type="text/html", body=EMPTY_PAGE)


def _as_argument(number: int, request: Request, seconds: float) -> dict[str, Any]:
    headers = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in _BROWSER_HEADERS and not name.lower().startswith(_BROWSER_HEADER_PREFIXES)
    }
    return {
        "number": number,
        "url": request.url,
        "method": request.method,
        "headers": headers,
        "body": None if request.body is None else request.body.decode(),
        "referrer": next((value for name, value in request.headers.items() if name.lower() == "referer"), ""),
        "milliseconds": round(seconds * 1000),
    }


def _document(request: Request, result: dict[str, Any], max_bytes: int) -> Document:
    path = URL(request.url).path
    match result.get("error"):
        case "size":
            raise Transient(f"the body is larger than {max_bytes} bytes: the rest was not read", url=request.url)
        case "time":
            raise ReadTimeout(f"requesting {path} in a page took too long", url=request.url)
        case str(problem):
            raise Transient(f"requesting {path} in a page failed: {problem}", url=request.url)
    body, headers = str(result["body"]).encode(errors="replace"), result["headers"]
    if not body and result["status"] == 200:
        raise Transient(f"{path} responded with an empty body", http_status=200, url=request.url)
    length = headers.get("content-length", "")
    wire_bytes = int(length[:12]) if length.isascii() and length.isdigit() else len(body)
    return Document.from_response(request.name, request.url, result["status"], headers, body, wire_bytes=wire_bytes)
