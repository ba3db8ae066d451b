"""Request blocking: pages load no images, fonts, styles, media, trackers, maps or videos, to save bytes.

It is no protection, because Playwright does not route redirects; the forward proxy enforces the hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import weakref
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Page, Request, Response, Route, WebSocket

from scraping.readings import Site

BLOCKED_TYPES = frozenset({"image", "media", "font", "stylesheet"})
# Media that a script fetches, which Chromium reports as data. Documents and scripts are judged by their type.
BLOCKED_PATHS = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|ico|woff2?|ttf|otf|eot|mp4|webm|m4s|m3u8|mpd|ts|mp3|aac|pbf|mvt)$"
    r"|/tiles?/(?:\w+/)?\d+/\d+/\d+",
    re.IGNORECASE,
)
SIZE_SECONDS = 0.5
# Blocked hosts, with all of their subdomains. A source that needs one lists it among its own hosts.
_HOST_LINES = Path(__file__).with_name("blocked_hosts.txt").read_text().splitlines()
BLOCKED_HOSTS = frozenset(line for line in _HOST_LINES if not line.startswith("#"))


def is_blocked(resource_type: str, url: str, site: Site, *, own_hosts_only: bool = False) -> bool:
    """Whether a request is blocked by its type or host.

    `own_hosts_only`: blocks every host but the site's own; for a browser that cannot use the forward proxy.
    """
    if resource_type in BLOCKED_TYPES:
        return True
    parts = urlsplit(url)
    if resource_type not in ("document", "script") and BLOCKED_PATHS.search(parts.path):
        return True
    host = (parts.hostname or "").lower()
    return host not in site.hosts and (own_hosts_only or is_blocked_host(host))


def is_blocked_host(host: str) -> bool:
    labels = host.lower().rstrip(".").split(".")
    return any(".".join(labels[start:]) in BLOCKED_HOSTS for start in range(len(labels) - 1))


class PageTraffic:
    """Requests of one page by type, made and blocked, and the estimated bytes received."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        self._bytes = 0
        self._sizes: set[asyncio.Task[None]] = set()

    def on_response(self, response: Response) -> None:
        """Adds the Content-Length; a response without one is measured when it is complete."""
        length = response.headers.get("content-length", "")
        if length.isascii() and length.isdigit():
            self._bytes += int(length[:12])
            return
        task = asyncio.ensure_future(self._measure(response.request))
        self._sizes.add(task)
        task.add_done_callback(self._sizes.discard)

    def on_websocket(self, socket: WebSocket) -> None:
        """Adds the bytes that the page receives through a web socket, which are not among its requests."""
        socket.on("framereceived", self._add_frame)

    def _add_frame(self, payload: str | bytes) -> None:
        self._bytes += len(payload)

    async def _measure(self, request: Request) -> None:
        with contextlib.suppress(Exception):  # the page may be closed before; the figure is an estimate
            self._bytes += (await request.sizes())["responseBodySize"]

    async def bytes_in(self) -> int:
        """Returns the estimate; responses that take longer than half a second more are left out."""
        if self._sizes:
            _, late = await asyncio.wait(tuple(self._sizes), timeout=SIZE_SECONDS)
            for task in late:
                task.cancel()
        return self._bytes


class RequestBlocker:
    """Routes the requests of one context and counts them by page, because visits in one session overlap."""

    def __init__(self, site: Site, *, own_hosts_only: bool = False) -> None:
        self._site = site
        self._own_hosts_only = own_hosts_only
        self._traffic: weakref.WeakKeyDictionary[Page, PageTraffic] = weakref.WeakKeyDictionary()

    def watch(self, page: Page) -> PageTraffic:
        traffic = self._traffic[page] = PageTraffic()
        page.on("response", traffic.on_response)
        page.on("websocket", traffic.on_websocket)
        return traffic

    async def route(self, route: Route) -> None:
        request = route.request
        blocked = is_blocked(request.resource_type, request.url, self._site, own_hosts_only=self._own_hosts_only)
        with contextlib.suppress(Exception):  # it belongs to no watched page, such as that of a popup
            traffic = self._traffic[request.frame.page]
            (traffic.blocked if blocked else traffic.made)[request.resource_type] += 1
        with contextlib.suppress(Exception):  # the page may be closed before its last request is routed
            await (route.abort() if blocked else route.continue_())
