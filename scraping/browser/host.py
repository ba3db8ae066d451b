"""The browser host: keeps one Playwright and one Chromium running and replaces them when they fail.

Guards against a browser or driver that dies, hangs or wears out: both are replaced together, under a lock. A dead or
hung browser is ended at once. A worn one is replaced when the visits under way are done, while new visits wait for the
next browser. Callers compare `generation` to learn whether their context belongs to the current browser.
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

import psutil
from playwright.async_api import Browser, Playwright, async_playwright
from prometheus_client import Counter

from scraping.browser.health import RECYCLE_REASONS, BrowserUsage, LaunchCause, RecyclePolicy
from scraping.browser.launcher import CLOSE_SECONDS, BrowserOptions, Launched, launch
from scraping.browser.playwright_calls import with_timeout
from scraping.browser.processes import POLITE_SECONDS, browser_pid, clean_up, end_tree, kill, tree_size
from scraping.errors import ResourceLost
from scraping.policies.timeouts import AdaptiveTimeouts
from scraping.readings import WAIT_REPORT_SECONDS, report_stage

logger = logging.getLogger(__name__)

PROBE_SECONDS = 5.0
ONE_FAULT_SECONDS = 1.0  # pages that share a renderer crash together and count once

_recycles = Counter("scraper_recycles", "Browsers that were replaced, by reason.", ["reason"])
for _reason in RECYCLE_REASONS.values():
    _recycles.labels(_reason)  # shown from the start


@dataclass(frozen=True)
class Replacement:
    """A browser was started: the first one, or in place of another."""

    reason: str
    seconds: float
    launches: int
    cause: LaunchCause = LaunchCause.DIED
    pids_before: int = 0  # processes of the old browser; 0: there was none, or all of them had died
    pids_after: int = 0
    uptime_seconds: float = 0.0  # of the old browser
    pages: int = 0  # that it had opened

    def as_metadata(self) -> dict[str, float]:
        """Returns the figures that the audit keeps of a recovery (SO-6)."""
        return {
            "pids_before": self.pids_before,
            "pids_after": self.pids_after,
            "browser_uptime_hours": round(self.uptime_seconds / 3600, 2),
            "task_count": self.pages,
        }


class BrowserHost:
    """Lives on the loop thread. Others may read `pid`, `started_at`, `generation` and `last_replacement` only."""

    def __init__(
        self,
        options: BrowserOptions,
        on_launch: Callable[[Replacement], None] | None = None,
        *,
        recycle_policy: RecyclePolicy | None = None,
        own_temp_dir: Path | None = None,
        has_adaptive_timeouts: bool = True,
    ) -> None:
        self.options = options
        self.recycle_policy = recycle_policy or RecyclePolicy()
        self.timeouts = AdaptiveTimeouts(options.timeouts, is_adaptive=has_adaptive_timeouts)
        self.generation = 0
        self.started_at: float | None = None
        self.pid: int | None = None
        self.visits = 0  # under way
        self.last_replacement: Replacement | None = None
        self._on_launch = on_launch or (lambda _: None)
        self._own_temp_dir = own_temp_dir  # of this process alone: leftovers in it may be removed
        self._playwright: Playwright | None = None
        self._launched: Launched | None = None
        self._lock = asyncio.Lock()
        self._broken: tuple[LaunchCause, str] | None = (LaunchCause.FIRST, "first start")
        self._is_stopping = False
        self._faults: deque[float] = deque(maxlen=10)
        self._may_visit = asyncio.Event()
        self._may_visit.set()
        self._visits_changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def browser(self) -> tuple[Browser, int]:
        """Returns the browser and its generation; starts one where none is running."""
        async with self._lock:
            return (await self._ensure_browser()).browser, self.generation

    @contextlib.asynccontextmanager
    async def visiting(self) -> AsyncIterator[None]:
        """Encloses a visit: a worn browser is not replaced meanwhile. Waits while a browser is being replaced."""
        while not self._may_visit.is_set():  # bounded, because draining, closing and starting have timeouts
            report_stage("INIT")  # shows the watchdog that the task waits and does not hang
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_REPORT_SECONDS):
                    await self._may_visit.wait()
        self.visits += 1
        if self._launched is not None:
            self._launched.pages += 1
        try:
            yield
        finally:
            self.visits -= 1
            self._visits_changed.set()

    def report_lost(self, generation: int, reason: str, cause: LaunchCause = LaunchCause.DIED) -> None:
        """Replaces a dead or hung browser at once, without waiting for the next poll."""
        if generation != self.generation or self._is_stopping or self._broken is not None:
            return
        self._broken = cause, reason
        self._start(self._replace_now())

    def report_fault(self, generation: int, reason: str) -> None:
        """Counts a fault that the browser survived, such as a crashed page. `RecyclePolicy.max_faults` replace it."""
        now = time.monotonic()
        if generation != self.generation or (self._faults and now - self._faults[-1] < ONE_FAULT_SECONDS):
            return
        self._faults.append(now)
        logger.warning(
            "Chromium had a fault: %s. It is replaced if another one follows within %.0f s",
            reason,
            self.recycle_policy.fault_window_seconds,
            extra={"action": "browser_fault", "generation": generation},
        )

    def recycle(self, cause: LaunchCause, reason: str) -> None:
        """Replaces the browser when the visits under way are done, unless it is being replaced already."""
        if self._launched is None or self._broken is not None or self._is_stopping or not self._may_visit.is_set():
            return
        self._may_visit.clear()
        self._start(self._drain_and_replace(self.generation, cause, reason))

    @property
    def usage(self) -> BrowserUsage | None:
        """Pages, age and faults of the current browser; None where none is running."""
        launched = self._launched
        if launched is None or self._broken is not None:
            return None
        now = time.monotonic()
        faults = sum(now - at <= self.recycle_policy.fault_window_seconds for at in self._faults)
        return BrowserUsage(launched.pages, now - launched.started, faults)

    @property
    def is_leaving(self) -> bool:
        """Whether the current browser is being closed or is dead: its errors now do not concern the source."""
        return self._broken is not None or self._is_stopping

    async def ping(self) -> None:
        """Returns when the browser has responded. Has no timeout; the caller measures the time."""
        if self._launched is not None:
            await self._launched.ping()

    async def probe(self) -> bool:
        """Whether the browser can open a page. One that cannot is reported lost."""
        generation, launched = self.generation, self._launched
        if launched is None or self._broken is not None:
            return False
        try:
            page = await with_timeout(launched.browser.new_page(), PROBE_SECONDS, "opening an empty page")
            await with_timeout(page.close(), CLOSE_SECONDS, "closing an empty page")
        except Exception as error:  # noqa: BLE001 - any error means that the browser does not work
            self.report_lost(generation, f"the browser does not respond: {error}", LaunchCause.HUNG)
            return False
        return True

    def begin_stop(self) -> None:
        """Prevents the start of another browser."""
        self._is_stopping = True
        self._may_visit.set()  # waiting visits continue and fail
        self._visits_changed.set()

    async def stop(self) -> None:
        """Closes the browser; kills it where it does not close in time."""
        self.begin_stop()
        async with self._lock:
            await self._close_old(is_polite=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        # In a new context: the log lines of a new browser must not carry the task that found the old one dead.
        task = asyncio.get_running_loop().create_task(coroutine, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace_now(self) -> None:
        with contextlib.suppress(ResourceLost):  # the next poll tries again, and reports
            async with self._lock:
                await self._ensure_browser()

    async def _drain_and_replace(self, generation: int, cause: LaunchCause, reason: str) -> None:
        """Waits until no visit is under way, at most `drain_seconds`; the next poll repeats unfinished visits."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.recycle_policy.drain_seconds):
                    while self.visits and not self._is_stopping:
                        self._visits_changed.clear()
                        await self._visits_changed.wait()
            async with self._lock:
                if self.generation == generation and self._broken is None:  # otherwise it has died meanwhile
                    self._broken = cause, reason
            await self._replace_now()
        finally:
            self._may_visit.set()

    async def _ensure_browser(self) -> Launched:
        launched = old = self._launched
        if launched is not None and self._broken is None and launched.browser.is_connected():
            return launched
        if self._is_stopping:
            raise ResourceLost("the worker is stopping")
        cause, reason = self._broken or (LaunchCause.DIED, "the browser has gone away")
        began = time.monotonic()
        pids_before = await self._close_old(is_polite=cause not in (LaunchCause.DIED, LaunchCause.HUNG))
        try:
            seconds = self.options.launch_timeout_seconds
            self._playwright = await with_timeout(async_playwright().start(), seconds, "starting the browser's driver")
            launched = self._launched = await launch(self._playwright, self.options)
        except Exception as error:
            await self._close_old(is_polite=False)
            self._broken = LaunchCause.DIED, "the last launch failed"
            raise ResourceLost(f"Chromium could not be started: {error}") from error
        self.generation += 1
        generation = self.generation
        launched.browser.on("disconnected", lambda _: self.report_lost(generation, "Chromium died"))
        self.started_at, self.pid = time.time(), launched.pid
        self._broken = None
        self._faults.clear()
        if reason_label := RECYCLE_REASONS.get(cause):
            _recycles.labels(reason_label).inc()
        self.last_replacement = Replacement(
            reason,
            time.monotonic() - began,
            self.generation,
            cause,
            pids_before=pids_before,
            pids_after=await asyncio.to_thread(tree_size, launched.pid),
            uptime_seconds=began - old.started if old is not None else 0.0,
            pages=old.pages if old is not None else 0,
        )
        self._on_launch(self.last_replacement)
        return launched

    async def _close_old(self, *, is_polite: bool) -> int:
        """Closes or kills the old browser; returns how many of its processes were alive. Bounded, never raises."""
        playwright, launched, pid = self._playwright, self._launched, self.pid
        self._playwright = self._launched = self.pid = None
        if playwright is None:
            return 0
        # Calls that inspect processes block, so they run in threads: direct reads continue meanwhile.
        resources = launched.resources if launched is not None else None
        alive = await asyncio.to_thread(resources.live_processes) if resources is not None else []
        if not is_polite:
            await asyncio.to_thread(_kill_all, pid, alive, self.options.owner)
        if launched is not None:
            await launched.close()
        with contextlib.suppress(Exception):
            await with_timeout(playwright.stop(), CLOSE_SECONDS, "stopping the driver")
        if resources is not None:
            # Listed before the next browser makes folders of its own.
            folders = await asyncio.to_thread(resources.leftover_folders, self._own_temp_dir)
            polite_seconds = POLITE_SECONDS if is_polite else 0.0
            self._start(asyncio.to_thread(clean_up, alive, folders, polite_seconds=polite_seconds))
        return len(alive)


def _kill_all(pid: int | None, alive: list[psutil.Process], owner: str) -> None:
    """Kills all processes of a browser, its driver included."""
    kill(alive)
    # An aborted launch may have left a browser whose pid is not known yet.
    pid = pid or browser_pid(owner)
    if pid is not None:
        end_tree(pid)
