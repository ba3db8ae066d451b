"""What a page may load: nothing that only people look at, and nothing from those who watch them."""

from __future__ import annotations

import contextlib

from playwright.async_api import Route

BLOCKED_TYPES = frozenset({"image", "media", "font", "stylesheet"})


class Blocker:
    """Counts what it lets through and what it does not."""

    def __init__(self) -> None:
        self.requests = 0
        self.blocked = 0

    async def route(self, route: Route) -> None:
        with contextlib.suppress(Exception):  # the page may be gone before its last request is answered
            if route.request.resource_type in BLOCKED_TYPES:
                self.blocked += 1
                await route.abort()
            else:
                self.requests += 1
                await route.continue_()
