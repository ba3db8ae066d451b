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
    """The cause of a browser start."""

    FIRST = "first"
    DIED = "died"
    HUNG = "hung"
    FAULTS = "faults"
    PAGES = "pages"
    AGE = "age"
    MEMORY = "memory"
    COMMAND = "command"  # of an operator


RECYCLE_REASONS = {
    LaunchCause.AGE: "uptime",
    LaunchCause.PAGES: "task_count",
    LaunchCause.MEMORY: "memory",
    LaunchCause.DIED: "fault",
    LaunchCause.HUNG: "fault",
    LaunchCause.FAULTS: "fault",
    LaunchCause.COMMAND: "manual",
}


@dataclass(frozen=True)
class RecyclePolicy:
    """The limits of a browser's life. Beyond one of them the browser is replaced."""

    max_pages: int = 1000
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


def recycle_reason(usage: BrowserUsage, policy: RecyclePolicy) -> tuple[LaunchCause, str] | None:
    """Returns why the browser must be replaced; None where it need not. Faults come before pages and age."""
    if usage.recent_faults >= policy.max_faults:
        text = f"{usage.recent_faults} faults of its own within {policy.fault_window_seconds:.0f} s"
        return LaunchCause.FAULTS, text
    if usage.pages >= policy.max_pages:
        return LaunchCause.PAGES, f"it has opened {usage.pages} pages"
    if usage.age_seconds >= policy.max_age_seconds:
        return LaunchCause.AGE, f"it has run for {usage.age_seconds / 3600:.1f} h"
    return None


class HealthMonitor:
    """Checks the browser every few seconds on the loop thread, from `start` to `stop`.

    Waiting time is counted in intervals, not by the clock: after a pause of the whole process no browser is hung.
    """

    def __init__(self, host: BrowserHost, *, every_seconds: float = CHECK_SECONDS) -> None:
        self._host = host
        self._every_seconds = every_seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                usage = self._host.usage
                if usage is not None:
                    reason = recycle_reason(usage, self._host.recycle_policy)
                    if reason is not None:
                        self._host.recycle(*reason)
                    await self._ping()
            except Exception:
                logger.exception(
                    "The browser's health check failed; it is repeated", extra={"action": "browser_check_failed"}
                )
            await asyncio.sleep(self._every_seconds)

    async def _ping(self) -> None:
        """Reports a browser that has not responded for `hung_seconds`, or whose driver died."""
        host, waited = self._host, 0.0
        generation, ping = host.generation, asyncio.ensure_future(host.ping())
        try:
            while host.generation == generation:
                await asyncio.wait({ping}, timeout=self._every_seconds)
                if ping.done():
                    ping.result()
                    return
                waited += self._every_seconds
                if waited >= host.recycle_policy.hung_seconds:
                    reason = f"the browser has not responded for {waited:.0f} s"
                    host.report_lost(generation, reason, LaunchCause.HUNG)
                    return
        except Exception as error:  # noqa: BLE001 - `translate_error` raises unknown ones
            failure = translate_error(error, url="")
            if isinstance(failure, ResourceLost):  # the driver died: otherwise only the next visit would notice
                host.report_lost(generation, str(failure))
            else:
                logger.warning("The ping to the browser failed: %s", failure, extra={"action": "browser_ping_failed"})
        finally:
            ping.cancel()
