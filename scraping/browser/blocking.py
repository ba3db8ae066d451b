"""What a page may load: nothing that only people look at, and nothing from those who watch them.

Saves the bytes that a source's budget is for. It guards little: a redirect is never asked about here. What a page may
reach at all is decided below it, where its traffic leaves the worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import weakref
from collections import Counter
from urllib.parse import urlsplit

from playwright.async_api import Page, Request, Response, Route

from scraping.browser import trackers
from scraping.readings import Site

BLOCKED_TYPES = frozenset({"image", "media", "font", "stylesheet"})
# What a script fetches instead of the page: it looks like data and is none. Documents and scripts go by their type.
BLOCKED_PATHS = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|ico|woff2?|ttf|otf|eot|mp4|webm|m4s|m3u8|mpd|ts|mp3|aac|pbf|mvt)$"
    r"|/tiles?/(?:\w+/)?\d+/\d+/\d+",
    re.IGNORECASE,
)
SIZE_SECONDS = 0.5


def is_blocked(resource_type: str, url: str, site: Site, *, own_hosts_only: bool = False) -> bool:
    """Is this request left out, by what it is for and where it goes?

    `own_hosts_only` where nothing below the page looks at that; else what a page may reach is decided there.
    """
    if resource_type in BLOCKED_TYPES:
        return True
    parts = urlsplit(url)
    if resource_type not in ("document", "script") and BLOCKED_PATHS.search(parts.path):
        return True
    host = (parts.hostname or "").lower()
    return host not in site.hosts and (own_hosts_only or trackers.is_known(host))


class PageTally:
    """What one page asked for, what of it was let through, and about how many bytes came back."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        self._bytes = 0
        self._sizes: set[asyncio.Task[None]] = set()

    def see(self, response: Response) -> None:
        """As long as it says it is; one that does not say is measured once it is there."""
        length = response.headers.get("content-length", "")
        if length.isascii() and length.isdigit():
            self._bytes += int(length[:12])
            return
        task = asyncio.ensure_future(self._measure(response.request))
        self._sizes.add(task)
        task.add_done_callback(self._sizes.discard)

    async def _measure(self, request: Request) -> None:
        with contextlib.suppress(Exception):  # the page may be gone first; the figure is an estimate
            self._bytes += (await request.sizes())["responseBodySize"]

    async def bytes_in(self) -> int:
        """An estimate; what still comes in after half a second is left out of it."""
        if self._sizes:
            _, late = await asyncio.wait(tuple(self._sizes), timeout=SIZE_SECONDS)
            for task in late:
                task.cancel()
        return self._bytes


class Blocker:
    """Routes the requests of one context, and counts them page by page: visits in one session overlap."""

    def __init__(self, site: Site, *, own_hosts_only: bool = False) -> None:
        self._site = site
        self._own_hosts_only = own_hosts_only
        self._tallies: weakref.WeakKeyDictionary[Page, PageTally] = weakref.WeakKeyDictionary()

    def watch(self, page: Page) -> PageTally:
        tally = self._tallies[page] = PageTally()
        page.on("response", tally.see)
        return tally

    async def route(self, route: Route) -> None:
        request = route.request
        blocked = is_blocked(request.resource_type, request.url, self._site, own_hosts_only=self._own_hosts_only)
        tally = self._tally_of(request)
        if tally is not None:
            (tally.blocked if blocked else tally.made)[request.resource_type] += 1
        with contextlib.suppress(Exception):  # the page may be gone before its last request is answered
            await (route.abort() if blocked else route.continue_())

    def _tally_of(self, request: Request) -> PageTally | None:
        """None for what no watched page asked for, such as a window that a page opened."""
        with contextlib.suppress(Exception):
            return self._tallies.get(request.frame.page)
        return None
