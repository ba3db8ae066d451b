"""One Playwright and one Chromium, kept alive: whoever asks for the browser gets one that works.

Guards against a browser or driver that dies, or hangs: it is replaced as a whole, under a lock, and everything that
belonged to the old one is forgotten. `generation` tells callers whether what they hold is still of this browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable
from dataclasses import dataclass

from playwright.async_api import Browser, Playwright, async_playwright

from scraping.browser.bounded import bounded
from scraping.browser.options import BrowserOptions
from scraping.browser.processes import browser_pid, end_tree
from scraping.errors import ResourceLost

CLOSE_SECONDS = 3.0
PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class Replacement:
    """A browser was started in the place of another (or as the first)."""

    reason: str
    seconds: float
    launches: int


class BrowserHost:
    """Lives on the loop thread; not safe to be touched from another."""

    def __init__(self, options: BrowserOptions, on_launch: Callable[[Replacement], None] | None = None) -> None:
        self.options = options
        self.generation = 0
        self.started_at: float | None = None
        self.pid: int | None = None
        self._on_launch = on_launch or (lambda _: None)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._lock = asyncio.Lock()
        self._broken_because = "first start"
        self._is_stopping = False
        self._relaunch: asyncio.Task[None] | None = None

    async def browser(self) -> tuple[Browser, int]:
        """A browser that works, and its generation; started where there is none."""
        async with self._lock:
            await self._ensure_browser()
            assert self._browser is not None
            return self._browser, self.generation

    def report_lost(self, generation: int, reason: str) -> None:
        """Somebody found this generation's browser dead; a new one is started at once, not at the next poll."""
        if generation != self.generation or self._is_stopping or self._broken_because:
            return
        self._broken_because = reason
        # In a context of its own: the log lines of a new browser are not about the task that found the old one dead.
        self._relaunch = asyncio.get_running_loop().create_task(self._replace_now(), context=contextvars.Context())

    async def probe(self) -> bool:
        """Does the browser still answer? A hung one is reported lost."""
        generation, browser = self.generation, self._browser
        if browser is None:
            return False
        try:
            page = await bounded(browser.new_page(), PROBE_SECONDS, "opening an empty page")
            await bounded(page.close(), CLOSE_SECONDS, "closing an empty page")
        except Exception as error:  # noqa: BLE001 - whatever it says, this browser does not work
            self.report_lost(generation, f"the browser does not answer: {error}")
            return False
        return True

    async def stop(self) -> None:
        """Close everything; what does not close in time is ended."""
        self._is_stopping = True
        async with self._lock:
            await self._close_old()

    async def _replace_now(self) -> None:
        with contextlib.suppress(ResourceLost):  # the next poll tries again, and reports
            async with self._lock:
                await self._ensure_browser()

    async def _ensure_browser(self) -> None:
        if self._browser is not None and not self._broken_because and self._browser.is_connected():
            return
        if self._is_stopping:
            raise ResourceLost("the worker is stopping")
        reason = self._broken_because or "the browser has gone away"
        started = time.monotonic()
        await self._close_old()
        try:
            await self._launch()
        except Exception as error:
            await self._close_old()
            self._broken_because = "the last launch failed"
            raise ResourceLost(f"Chromium could not be started: {error}") from error
        self._broken_because = ""
        self._on_launch(Replacement(reason, time.monotonic() - started, self.generation))

    async def _launch(self) -> None:
        options = self.options
        self._playwright = await bounded(
            async_playwright().start(), options.launch_timeout_seconds, "starting the browser's driver"
        )
        self._browser = await bounded(
            self._playwright.chromium.launch(
                executable_path=options.executable,
                headless=options.headless,
                args=options.arguments(),
                chromium_sandbox=options.has_sandbox,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=options.launch_timeout_seconds * 1000,
            ),
            options.launch_timeout_seconds + 1,
            "starting Chromium",
        )
        self.generation += 1
        generation = self.generation
        self._browser.on("disconnected", lambda _: self.report_lost(generation, "Chromium died"))
        self.started_at = time.time()
        self.pid = browser_pid(options.owner)

    async def _close_old(self) -> None:
        """Everything of the old browser: first politely, then by its process tree. Never waits long, never raises."""
        browser, playwright = self._browser, self._playwright
        # A launch that was given up may have left a browser whose number nobody has noted yet.
        pid = self.pid or (browser_pid(self.options.owner) if playwright is not None else None)
        self._browser = self._playwright = None
        self.pid = None
        if browser is not None:
            with contextlib.suppress(Exception):
                await bounded(browser.close(), CLOSE_SECONDS, "closing Chromium")
        if playwright is not None:
            with contextlib.suppress(Exception):
                await bounded(playwright.stop(), CLOSE_SECONDS, "stopping the driver")
        if pid is not None:
            end_tree(pid)
