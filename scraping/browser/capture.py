"""Interception: the answers to a page's own requests that we want, and a picture of the page."""

from __future__ import annotations

import asyncio
import contextlib

from playwright.async_api import Page, Response
from playwright.async_api import Request as PageRequest

from scraping.browser import answers
from scraping.browser.bounded import bounded
from scraping.readings import Document, Endpoint, Request, Site

SCREENSHOT_SECONDS = 2.0
SCREENSHOT_QUALITY = 60
OPTIONAL_SECONDS = 0.5  # how long an endpoint that is welcome, but not required, is waited for
KEPT_HEADERS = frozenset({"content-type", "accept", "x-requested-with", "authorization", "referer", "user-agent"})


class Capture:
    """The answers to a page's own requests that match the endpoints we want."""

    def __init__(self, endpoints: tuple[Endpoint, ...], site: Site) -> None:
        self._endpoints = endpoints
        self._site = site
        self._bodies: dict[str, asyncio.Task[Document | None]] = {}
        self.requests: dict[str, Request] = {}
        self._seen = asyncio.Event()

    def see(self, response: Response) -> None:
        request = response.request
        for endpoint in self._endpoints:
            if request.method == endpoint.method and endpoint.pattern.search(response.url):
                self._bodies[endpoint.name] = asyncio.ensure_future(_body(endpoint.name, response))
                self.requests[endpoint.name] = _as_request(endpoint.name, request)
                self._seen.set()

    async def wait(self, seconds: float) -> None:
        """Until the page has asked every required endpoint, and a moment longer for the others."""
        await self._wait_for({endpoint.name for endpoint in self._endpoints if endpoint.is_required}, seconds)
        await self._wait_for({endpoint.name for endpoint in self._endpoints}, OPTIONAL_SECONDS)

    async def _wait_for(self, names: set[str], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not names <= self._bodies.keys():
                    self._seen.clear()
                    await self._seen.wait()

    async def documents(self) -> dict[str, Document]:
        # Bodies must be awaited before the page goes: they vanish with it.
        found = {name: await task for name, task in self._bodies.items()}
        return {name: document for name, document in found.items() if document is not None}


async def _body(name: str, response: Response) -> Document | None:
    with contextlib.suppress(Exception):
        body = await bounded(response.body(), 10.0, f"reading {name}")
        return answers.document(name, response.url, response.status, response.headers, body)
    return None


def _as_request(name: str, request: PageRequest) -> Request:
    """How the page asked, so that it can be asked again."""
    headers = {key: value for key, value in request.headers.items() if key in KEPT_HEADERS}
    return Request(name, request.url, request.method, request.post_data_buffer, headers)


async def screenshot_of(page: Page) -> bytes:
    """What a person would see, without what stands in its fields; nothing where that cannot be had in time."""
    with contextlib.suppress(Exception):
        return await bounded(
            page.screenshot(
                type="jpeg",
                quality=SCREENSHOT_QUALITY,
                scale="css",
                timeout=SCREENSHOT_SECONDS * 1000,
                mask=[page.locator("input, textarea, select")],
            ),
            SCREENSHOT_SECONDS + 0.5,
            "taking a screenshot",
        )
    return b""
