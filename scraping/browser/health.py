"""Browser health: recycles a browser before it fails and reports one that hangs.

Guards against long-lived browsers: memory that only grows, pages that crash, a browser that stops responding while no
visit is under way. A worn browser is replaced when its visits are done; a hung one is reported lost at once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from scraping.browser.playwright_calls import translate_error
from scraping.errors import ResourceLost

if TYPE_CHECKING:
    from scraping.browser.host import BrowserHost

logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0


class LaunchCause(StrEnum):
    """Why a browser was started; the label of the metric."""

    FIRST = "first"
    DIED = "died"
    HUNG = "hung"
    FAULTS = "faults"
    PAGES = "pages"
    AGE = "age"
    MEMORY = "memory"
    ORDER = "order"  # an operator's command


@dataclass(frozen=True)
class RecyclePolicy:
    """The limits of a browser's life. Beyond one of them the browser is replaced."""

    max_pages: int = 500
    max_age_seconds: float = 6 * 3600.0
    max_faults: int = 2
    fault_window_seconds: float = 60.0
    hung_seconds: float = 30.0
    drain_seconds: float = 20.0


@dataclass(frozen=True)
class BrowserUsage:
    pages: int
    age_seconds: float
    recent_faults: int  # within the policy's window


@dataclass(frozen=True)
class RecycleReason:
    cause: LaunchCause
    text: str


def recycle_reason(usage: BrowserUsage, policy: RecyclePolicy) -> RecycleReason | None:
    """Returns why the browser must be replaced; None where it need not. Faults come before pages and age."""
    if usage.recent_faults >= policy.max_faults:
        text = f"{usage.recent_faults} faults of its own within {policy.fault_window_seconds:.0f} s"
        return RecycleReason(LaunchCause.FAULTS, text)
    if usage.pages >= policy.max_pages:
        return RecycleReason(LaunchCause.PAGES, f"it has opened {usage.pages} pages")
    if usage.age_seconds >= policy.max_age_seconds:
        return RecycleReason(LaunchCause.AGE, f"it has run for {usage.age_seconds / 3600:.1f} h")
    return None


class HealthMonitor:
    """Checks the browser every few seconds on the loop thread, from `start` to `stop`.

    Waiting time is counted in intervals of its own, not by the clock: after a pause of the whole process (SIGSTOP, a
    sleeping laptop) a browser is not taken for hung.
    """

    def __init__(self, host: BrowserHost, *, every_seconds: float = CHECK_SECONDS) -> None:
        self._host = host
        self._every_seconds = every_seconds
        self._task: asyncio.Task[None] | None = None
        self._ping: asyncio.Task[None] | None = None
        self._pinged = 0  # the generation that the ping was sent to
        self._waited_seconds = 0.0

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        for task in (self._task, self._ping):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self.check()
            except Exception:
                logger.exception("The browser's health check failed; it is repeated", extra={"action": "care"})
                await asyncio.sleep(self._every_seconds)

    async def check(self) -> None:
        """Checks once, which takes `every_seconds`."""
        host = self._host
        usage = host.usage
        if usage is None:
            self._reset()
            await asyncio.sleep(self._every_seconds)
            return
        reason = recycle_reason(usage, host.recycle_policy)
        if reason is not None:
            host.recycle(reason.cause, reason.text)
        await self._check_ping()

    async def _check_ping(self) -> None:
        """Reports a browser that has not responded for `hung_seconds`, or whose driver died."""
        host = self._host
        if self._ping is None or self._pinged != host.generation:
            self._reset()
            self._pinged, self._ping = host.generation, asyncio.ensure_future(host.ping())
        ping = self._ping
        await asyncio.wait({ping}, timeout=self._every_seconds)
        if not ping.done():
            self._waited_seconds += self._every_seconds
            if self._waited_seconds >= host.recycle_policy.hung_seconds:
                reason = f"the browser has not responded for {self._waited_seconds:.0f} s"
                host.report_lost(self._pinged, reason, LaunchCause.HUNG)
                self._reset()
            return
        generation, error = self._pinged, None if ping.cancelled() else ping.exception()
        self._reset()
        if isinstance(error, Exception):
            failure = translate_error(error, url="")
            if isinstance(failure, ResourceLost):  # the driver died: otherwise only the next visit would notice
                host.report_lost(generation, str(failure))
                return
            logger.warning("The ping to the browser failed: %s", failure, extra={"action": "browser_not_asked"})
        await asyncio.sleep(self._every_seconds)

    def _reset(self) -> None:
        if self._ping is not None and not self._ping.done():
            self._ping.cancel()
        self._ping, self._waited_seconds = None, 0.0
