"""Looks after the browser every few seconds: does it still answer, is it worn?

Guards against a browser that hangs while nobody notices: a visit would find out when its own time is over, and direct
reads never would. Time counts only while the caretaker itself gets to look: a process that was stopped (SIGSTOP, a
sleeping laptop) finds the answer when it wakes up.
"""

from __future__ import annotations

import asyncio
import logging

from scraping.browser.care import Cause, judge
from scraping.browser.faults import translate
from scraping.browser.host import BrowserHost
from scraping.errors import ResourceLost

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0


class Caretaker:
    """Lives on the loop thread: `start` it there. It ends with the loop's other tasks."""

    def __init__(self, host: BrowserHost, *, every_seconds: float = LOOK_SECONDS) -> None:
        self._host = host
        self._every_seconds = every_seconds
        self._task: asyncio.Task[None] | None = None
        self._ping: asyncio.Task[None] | None = None
        self._pinged = 0  # the generation that was asked
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
                await self.look()
            except Exception:
                logger.exception("The browser could not be looked at; it is tried again", extra={"action": "care"})
                await asyncio.sleep(self._every_seconds)

    async def look(self) -> None:
        """One look, which takes `every_seconds`."""
        host = self._host
        condition = host.condition
        if condition is None:
            self._forget()
            await asyncio.sleep(self._every_seconds)
            return
        worn = judge(condition, host.care)
        if worn is not None:
            host.recycle(worn.cause, worn.reason)
        await self._listen()

    async def _listen(self) -> None:
        """A browser that does not answer for too long is hung, and is reported."""
        host = self._host
        if self._ping is None or self._pinged != host.generation:
            self._forget()
            self._pinged, self._ping = host.generation, asyncio.ensure_future(host.ping())
        ping = self._ping
        await asyncio.wait({ping}, timeout=self._every_seconds)
        if not ping.done():
            self._waited_seconds += self._every_seconds
            if self._waited_seconds >= host.care.hung_seconds:
                reason = f"the browser has not answered for {self._waited_seconds:.0f} s"
                host.report_lost(self._pinged, reason, Cause.HUNG)
                self._forget()
            return
        generation, error = self._pinged, None if ping.cancelled() else ping.exception()
        self._forget()
        if isinstance(error, Exception):
            failure = translate(error, url="")
            if isinstance(failure, ResourceLost):  # the driver died: nobody else would notice before the next visit
                host.report_lost(generation, str(failure))
                return
            logger.warning("The browser could not be asked: %s", failure, extra={"action": "browser_not_asked"})
        await asyncio.sleep(self._every_seconds)

    def _forget(self) -> None:
        if self._ping is not None and not self._ping.done():
            self._ping.cancel()
        self._ping, self._waited_seconds = None, 0.0
