"""One Playwright and one Chromium, kept alive: whoever asks for the browser gets one that works.

Guards against a browser or driver that dies, hangs or wears out: it is replaced as a whole, under a lock. One that is
dead or hung is cut off at once; one that is only worn waits until the visits under way are done, while new ones wait
for its successor. `generation` tells callers whether what they hold is still of this browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Playwright, async_playwright
from prometheus_client import Counter

from scraping.browser import cleanup
from scraping.browser.bounded import bounded
from scraping.browser.care import CarePolicy, Cause, Condition
from scraping.browser.launching import Launched, launch
from scraping.browser.options import BrowserOptions
from scraping.browser.patience import Patience
from scraping.browser.processes import browser_pid, end_tree, kill
from scraping.errors import ResourceLost
from scraping.readings import report_stage

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 3.0
PROBE_SECONDS = 5.0
WAITING_TOLD_SECONDS = 5.0
ONE_FAULT_SECONDS = 1.0  # pages that share a process die together

_launches = Counter("victoryline_browser_launches", "Browsers that were started, by why.", ["cause"])


@dataclass(frozen=True)
class Replacement:
    """A browser was started in the place of another (or as the first)."""

    reason: str
    seconds: float
    launches: int
    cause: Cause = Cause.DIED


@dataclass
class _Running:
    """The browser of one generation, and what it has behind it."""

    playwright: Playwright
    launched: Launched | None = None
    belongings: cleanup.Belongings | None = None
    started: float = 0.0  # monotonic
    pages: int = 0
    pulse: CDPSession | None = None


class BrowserHost:
    """Lives on the loop thread; not safe to be touched from another, but for `pid`, `started_at` and `generation`."""

    def __init__(
        self,
        options: BrowserOptions,
        on_launch: Callable[[Replacement], None] | None = None,
        *,
        care: CarePolicy | None = None,
        own_temp_dir: Path | None = None,
        has_adaptive_timeouts: bool = True,
    ) -> None:
        self.options = options
        self.care = care or CarePolicy()
        self.patience = Patience(options, is_adaptive=has_adaptive_timeouts)
        self.generation = 0
        self.started_at: float | None = None
        self.pid: int | None = None
        self.visits = 0  # under way
        self._on_launch = on_launch or (lambda _: None)
        self._own_temp_dir = own_temp_dir  # this process's alone: whatever browsers leave in it may go
        self._running: _Running | None = None
        self._lock = asyncio.Lock()
        self._broken: tuple[Cause, str] | None = (Cause.FIRST, "first start")
        self._is_stopping = False
        self._faults: deque[float] = deque(maxlen=10)
        self._may_visit = asyncio.Event()
        self._may_visit.set()
        self._visits_changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # For those who read

    async def browser(self) -> tuple[Browser, int]:
        """A browser that works, and its generation; started where there is none."""
        async with self._lock:
            await self._ensure_browser()
            assert self._running is not None
            assert self._running.launched is not None
            return self._running.launched.browser, self.generation

    @contextlib.asynccontextmanager
    async def visiting(self) -> AsyncIterator[None]:
        """A page is opened and closed within; a worn browser waits for it. Waits itself while one is being replaced."""
        while not self._may_visit.is_set():  # not for ever: draining, closing and starting all have their ends
            report_stage("INIT")  # whoever waits here does not hang
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAITING_TOLD_SECONDS):
                    await self._may_visit.wait()
        self.visits += 1
        if self._running is not None:
            self._running.pages += 1
        try:
            yield
        finally:
            self.visits -= 1
            self._visits_changed.set()

    # For those who find something wrong

    def report_lost(self, generation: int, reason: str, cause: Cause = Cause.DIED) -> None:
        """Somebody found this generation's browser dead or hung; a new one is started at once, not at the next poll."""
        if generation != self.generation or self._is_stopping or self._broken is not None:
            return
        self._broken = cause, reason
        self._start(self._replace_now())

    def report_fault(self, generation: int, reason: str) -> None:
        """A page crashed, say, and the browser lives on. The second time within a minute it is replaced."""
        now = time.monotonic()
        if generation != self.generation or (self._faults and now - self._faults[-1] < ONE_FAULT_SECONDS):
            return
        self._faults.append(now)
        logger.warning(
            "Chromium had a fault: %s. It is replaced if that happens again within %.0f s",
            reason,
            self.care.fault_window_seconds,
            extra={"action": "browser_fault", "generation": generation},
        )

    def recycle(self, cause: Cause, reason: str) -> None:
        """Replace the browser when the visits under way are done. Nothing where it is being replaced already."""
        if self._running is None or self._broken is not None or self._is_stopping or not self._may_visit.is_set():
            return
        self._may_visit.clear()
        self._start(self._drain_and_replace(self.generation, cause, reason))

    @property
    def condition(self) -> Condition | None:
        """What the present browser has behind it; None where there is none that works."""
        running = self._running
        if running is None or running.launched is None or self._broken is not None:
            return None
        now = time.monotonic()
        faults = sum(now - at <= self.care.fault_window_seconds for at in self._faults)
        return Condition(running.pages, now - running.started, faults)

    @property
    def is_leaving(self) -> bool:
        """The present browser is being closed, or is dead: what it says now is not about the source."""
        return self._broken is not None or self._is_stopping

    async def ping(self) -> None:
        """Return when the browser has answered. Without an end of its own: whoever asks counts the time."""
        running = self._running
        if running is None or running.launched is None:
            return
        if running.pulse is None:
            running.pulse = await running.launched.browser.new_browser_cdp_session()
        await running.pulse.send("Browser.getVersion")

    async def probe(self) -> bool:
        """Does the browser still open pages? One that does not is reported lost."""
        generation, running = self.generation, self._running
        if running is None or running.launched is None or self._broken is not None:
            return False
        try:
            page = await bounded(running.launched.browser.new_page(), PROBE_SECONDS, "opening an empty page")
            await bounded(page.close(), CLOSE_SECONDS, "closing an empty page")
        except Exception as error:  # noqa: BLE001 - whatever it says, this browser does not work
            self.report_lost(generation, f"the browser does not answer: {error}", Cause.HUNG)
            return False
        return True

    def begin_stop(self) -> None:
        """No other browser is started from here on."""
        self._is_stopping = True
        self._may_visit.set()  # whoever waits is told so
        self._visits_changed.set()

    async def stop(self) -> None:
        """Close everything; what does not close in time is ended."""
        self.begin_stop()
        async with self._lock:
            await self._close_old(is_polite=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # How it is replaced

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        # In a context of its own: the log lines of a new browser are not about the task that found the old one dead.
        task = asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace_now(self) -> None:
        with contextlib.suppress(ResourceLost):  # the next poll tries again, and reports
            async with self._lock:
                await self._ensure_browser()

    async def _drain_and_replace(self, generation: int, cause: Cause, reason: str) -> None:
        try:
            await self._drained()
            async with self._lock:
                if self.generation == generation and self._broken is None:  # else it has died meanwhile
                    self._broken = cause, reason
            await self._replace_now()
        finally:
            self._may_visit.set()

    async def _drained(self) -> None:
        """Until no visit is under way, but not for ever: what is left then is lost and made up for by the next poll."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.care.drain_seconds):
                while self.visits and not self._is_stopping:
                    self._visits_changed.clear()
                    await self._visits_changed.wait()

    async def _ensure_browser(self) -> None:
        launched = self._running.launched if self._running is not None else None
        if launched is not None and self._broken is None and launched.browser.is_connected():
            return
        if self._is_stopping:
            raise ResourceLost("the worker is stopping")
        cause, reason = self._broken or (Cause.DIED, "the browser has gone away")
        began = time.monotonic()
        await self._close_old(is_polite=cause not in (Cause.DIED, Cause.HUNG))
        try:
            await self._launch()
        except Exception as error:
            await self._close_old(is_polite=False)
            self._broken = Cause.DIED, "the last launch failed"
            raise ResourceLost(f"Chromium could not be started: {error}") from error
        self._broken = None
        self._faults.clear()
        _launches.labels(cause.value).inc()
        self._on_launch(Replacement(reason, time.monotonic() - began, self.generation, cause))

    async def _launch(self) -> None:
        seconds = self.options.launch_timeout_seconds
        playwright = await bounded(async_playwright().start(), seconds, "starting the browser's driver")
        running = self._running = _Running(playwright)
        running.launched = await launch(playwright, self.options)
        running.started = time.monotonic()
        self.generation += 1
        generation = self.generation
        running.launched.browser.on("disconnected", lambda _: self.report_lost(generation, "Chromium died"))
        self.started_at = time.time()
        self.pid = running.launched.pid
        if self.pid is not None:
            running.belongings = await asyncio.to_thread(cleanup.belongings_of, self.pid)

    async def _close_old(self, *, is_polite: bool) -> None:
        """Everything of the old browser: politely, or by its process tree first. Never waits long, never raises."""
        running, self._running, pid, self.pid = self._running, None, self.pid, None
        if running is None:
            return
        # All that looks at processes waits for the kernel, and runs beside the loop: direct reads go on meanwhile.
        own = running.belongings
        remains = await asyncio.to_thread(own.remains) if own is not None else cleanup.Remains([], 0)
        if not is_polite:
            await asyncio.to_thread(_end, pid, remains, self.options.owner)
        if running.launched is not None:
            with contextlib.suppress(Exception):
                await running.launched.close()
        with contextlib.suppress(Exception):
            await bounded(running.playwright.stop(), CLOSE_SECONDS, "stopping the driver")
        if own is not None:
            # Which folders are left over is seen before the next browser makes its own.
            folders = await asyncio.to_thread(cleanup.leftover_folders, self._own_temp_dir, own)
            polite = cleanup.POLITE_SECONDS if is_polite else 0.0
            self._start(_clean_up(remains, folders, polite_seconds=polite))


async def _clean_up(remains: cleanup.Remains, folders: list[Path], *, polite_seconds: float) -> None:
    with contextlib.suppress(Exception):
        await asyncio.to_thread(cleanup.clean_up, remains, folders, polite_seconds=polite_seconds)


def _end(pid: int | None, remains: cleanup.Remains, owner: str) -> None:
    """The whole of a browser that no longer helps anybody, its driver included."""
    kill(remains.processes)
    # A launch that was given up may have left a browser whose number nobody has noted yet.
    pid = pid or browser_pid(owner)
    if pid is not None:
        end_tree(pid)
