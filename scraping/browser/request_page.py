"""In-page reads: requests are made by `fetch` inside an open page, for sources that accept only a browser's connection.

The page belongs to the source's origin, but has no content of the source: its scripts could replace `fetch`. Many
requests share one call into the page, which returns the responses that have arrived. Every response has the limits of
a direct read: time, bytes, and the hosts that the forward proxy allows.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from playwright.async_api import Page, Route
from playwright.async_api import Request as PageRequest
from yarl import URL

from scraping.browser.direct_client import traced
from scraping.browser.playwright_calls import translate_error, with_timeout
from scraping.errors import EgressRefused, PageCrashed, ReadTimeout, ResourceLost, ScrapingError, Transient
from scraping.readings import Document, Request

if TYPE_CHECKING:
    from scraping.browser.session import Session

OPEN_SECONDS = 10.0
EXCHANGE_SECONDS = 10.0  # a page that takes longer for one call hangs
WAIT_MS = 20  # of a call for the first response: requests that begin meanwhile are sent with the next call
REFUSAL_SECONDS = 0.5  # until the event of a refused connection, after the page's response
MAX_REFUSALS = 100  # that are remembered until their responses arrive
EMPTY_PAGE = "<!doctype html><title></title>"
CONNECTION_REFUSED = "ERR_SOCKS_CONNECTION_FAILED"  # Chromium's error where the forward proxy refused or found no host
_INSTALL = Path(__file__).with_name("request_page.js").read_text()
_EXCHANGE = 'argument => window[Symbol.for("exchange")](argument)'
# Headers that Chromium sets by itself; a script that sets them is ignored at best.
_BROWSER_HEADERS = frozenset({"accept-language", "dnt", "origin", "priority", "referer", "user-agent"})
_BROWSER_HEADER_PREFIXES = ("sec-", "proxy-")


@dataclass(frozen=True)
class Waiting:
    """A request whose response has not arrived."""

    request: Request
    may_be_empty: bool
    response: asyncio.Future[Document]
    refused_before: int  # connections by the forward proxy


class RequestPage:
    """The page of one session; lives on the loop thread. Opened by the first request, and again where it was lost."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._max_bytes = session.host.options.max_body_bytes
        self.page: Page | None = None
        self._is_crashed = self._is_closed = False
        self._numbers = count()
        self._unsent: list[dict[str, Any]] = []
        self._waiting: dict[int, Waiting] = {}
        self._refused: set[str] = set()  # addresses of requests for which Chromium got no connection
        self._exchanging: asyncio.Task[None] | None = None

    async def fetch(self, request: Request, *, seconds: float, may_be_empty: bool = False) -> Document:
        """Returns the response, within the limits; every error is a ScrapingError."""
        trace, source = self._session.host.options.trace, self._session.site.key
        return await traced(trace, source, request, self._fetch(request, seconds, may_be_empty))

    async def _fetch(self, request: Request, seconds: float, may_be_empty: bool) -> Document:
        self._session.client.rules.check_url(request.url)
        if self._is_closed:
            raise PageCrashed("the session was closed", url=request.url)
        number, future = next(self._numbers), asyncio.get_running_loop().create_future()
        refused = self._session.forward_proxy.traffic.refused
        self._waiting[number] = Waiting(request, may_be_empty, future, refused)
        self._unsent.append(_as_argument(number, request, seconds))
        if self._exchanging is None or self._exchanging.done():
            self._exchanging = asyncio.ensure_future(self._exchange_all())
        try:
            document: Document = await future
        finally:
            self._waiting.pop(number, None)
        return document

    async def close(self) -> None:
        self._is_closed = True
        if self._exchanging is not None:
            self._exchanging.cancel()
        self._fail(PageCrashed("the session was closed"), with_unsent=True)
        await self._discard()

    async def _exchange_all(self) -> None:
        """Sends requests and takes responses until none is waited for. The page ends every request in time."""
        while self._waiting:
            page = None
            try:
                page = await self._opened()
                await self._exchange(page)
            except Exception as error:  # noqa: BLE001 - the requests get it
                self._fail(self._failure(error), with_unsent=page is None)
                if self.page is not None:
                    self._session.retire_context(self.page)
                await self._discard()

    async def _exchange(self, page: Page) -> None:
        sent, self._unsent = self._unsent, []
        argument = orjson.dumps({"requests": sent, "waitMs": WAIT_MS}).decode()
        text = await with_timeout(page.evaluate(_EXCHANGE, argument), EXCHANGE_SECONDS, "requesting in a page")
        for result in orjson.loads(text):
            self._finish(result)

    def _failure(self, error: Exception) -> ScrapingError:
        """Returns the error of the requests that wait. The page is ours: none of its faults is one of the source."""
        try:
            failure = translate_error(error, url=self._session.site.base_url)
        except Exception as unknown:  # noqa: BLE001 - raised here, it would reach no request
            return ResourceLost(f"the page for requests failed: {unknown}")
        return PageCrashed(f"the page for requests: {failure}") if isinstance(failure, Transient) else failure

    async def _opened(self) -> Page:
        """Returns the page, in the current context of the current browser."""
        if self.page is not None and self._is_usable(self.page):
            return self.page
        self._fail(PageCrashed("the page for requests was lost"))  # nothing would finish those under way
        await self._discard()
        options = self._session.host.options
        address = str(URL(self._session.site.base_url).origin() / "")
        page, _ = await self._session.open_page()
        self.page, self._is_crashed = page, False
        page.on("crash", self._on_crash)
        page.on("requestfailed", self._on_failed)
        await with_timeout(page.route(address, _serve_empty), OPEN_SECONDS, "preparing a page")
        await self._session.goto(page, address, OPEN_SECONDS)
        await with_timeout(page.unroute(address), OPEN_SECONDS, "preparing a page")
        # Without the forward proxy nothing checks the hosts of redirects.
        redirect = "follow" if options.has_forward_proxy else "error"
        limits = orjson.dumps({"maxBytes": self._max_bytes, "redirect": redirect}).decode()
        await with_timeout(page.evaluate(_INSTALL, limits), OPEN_SECONDS, "preparing a page")
        return page

    def _is_usable(self, page: Page) -> bool:
        """Returns False for a lost page, and for one in a retired context as soon as it has no requests under way."""
        if self._is_crashed or page.is_closed() or not self._session.is_open:
            return False
        return self._session.is_current(page) or len(self._waiting) > len(self._unsent)

    def _on_crash(self, _: Page) -> None:
        self._is_crashed = True  # it would not respond
        self._fail(PageCrashed("the page for requests crashed", url=self._session.site.base_url))

    def _on_failed(self, request: PageRequest) -> None:
        """Notes a request that got no connection, perhaps after a redirect: the script in the page cannot see why."""
        if CONNECTION_REFUSED not in (request.failure or "") or len(self._refused) >= MAX_REFUSALS:
            return
        while request.redirected_from is not None:
            request = request.redirected_from
        self._refused.add(request.url)

    def _finish(self, result: dict[str, Any], *, is_late: bool = False) -> None:
        waiting = self._waiting.get(result["number"])
        if waiting is None:  # its reader has given up
            return
        if not is_late and self._may_be_refused(waiting, result):
            loop = asyncio.get_running_loop()
            loop.call_later(REFUSAL_SECONDS, partial(self._finish, result, is_late=True))
            return
        del self._waiting[result["number"]]
        if waiting.response.done():
            return
        try:
            waiting.response.set_result(self._document(waiting, result))
        except Exception as error:  # noqa: BLE001 - also a bug: nothing else would end the wait for this response
            waiting.response.set_exception(error)

    def _may_be_refused(self, waiting: Waiting, result: dict[str, Any]) -> bool:
        """Returns whether a request may have failed for a refusal of which Chromium's event has not yet arrived."""
        is_network_error = result.get("error", "size") not in ("size", "time")
        has_refused = self._session.forward_proxy.traffic.refused > waiting.refused_before
        return is_network_error and has_refused and waiting.request.url not in self._refused

    def _document(self, waiting: Waiting, result: dict[str, Any]) -> Document:
        request = waiting.request
        path, proxy = URL(request.url).path, self._session.forward_proxy
        is_refused = request.url in self._refused and proxy.traffic.refused > waiting.refused_before
        self._refused.discard(request.url)
        match result.get("error"):
            case "size":
                problem = f"the body is larger than {self._max_bytes} bytes: the rest was not read"
                raise Transient(problem, http_status=result["status"], url=request.url)
            case "time":
                raise ReadTimeout(f"requesting {path} in a page took too long", url=request.url)
            case str() if is_refused:
                raise EgressRefused(f"{path} leads elsewhere: {proxy.traffic.last_refusal}", url=request.url)
            case str(problem):
                raise Transient(f"requesting {path} in a page failed: {problem}", url=request.url)
        status, headers = result["status"], result["headers"]
        body = str(result["body"]).encode(errors="replace")
        if not body and status == 200 and not waiting.may_be_empty:
            raise Transient(f"{path} responded with an empty body", http_status=200, url=request.url)
        length = headers.get("content-length", "")
        # A response without a body, as with status 204, may state any length.
        wire_bytes = min(int(length[:12]), self._max_bytes) if length.isascii() and length.isdigit() else len(body)
        proxy.credit(wire_bytes)
        return Document.from_response(request.name, request.url, status, headers, body, wire_bytes=wire_bytes)

    def _fail(self, failure: ScrapingError, *, with_unsent: bool = False) -> None:
        """Fails the requests under way. Those that the lost page has not got are sent by the next one."""
        if with_unsent:
            self._unsent.clear()
        self._refused.clear()
        for number in self._waiting.keys() - {one["number"] for one in self._unsent}:
            response = self._waiting.pop(number).response
            if not response.done():
                response.set_exception(failure)

    async def _discard(self) -> None:
        page, self.page = self.page, None
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
