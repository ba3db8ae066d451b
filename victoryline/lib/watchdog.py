"""Ends this process when something in it has stalled, so that its supervisor starts a new one.

Guards against hangs that no timeout reaches: a thread that hangs in a system call, an event loop that runs no
callbacks, a consumer that has died in an otherwise healthy process. It uses no database, no loop and no lock that work
could hold. The process ends at once; the journal knows which tasks it was running.

Time counts only while the watchdog itself runs: after a SIGSTOP or a suspended machine nothing counts as stalled.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import psutil

logger = logging.getLogger(__name__)

STALLED_EXIT_CODE = 75  # EX_TEMPFAIL: start me again
TOO_LARGE_EXIT_CODE = 76  # the same, by the memory guard
LOG_SECONDS = 2.0
FRAMES_SHOWN, STACKS_LENGTH = 12, 15_000

Read = Callable[[], Mapping[str, Hashable]]  # returns values by name


class Pulse:
    """Counts the completed rounds of a loop, failed ones included. The loop beats, the watchdog reads."""

    def __init__(self) -> None:
        self.rounds = 0

    def beat(self) -> None:
        self.rounds += 1

    def reads(self, name: str) -> Read:
        return lambda: {name: self.rounds}


@dataclass(frozen=True)
class StallLimits:
    task_seconds: float  # for a task without progress; longer than any single wait in it
    stall_seconds: float  # for loops that use no database
    store_seconds: float  # for loops that use the database: while it is unreachable, their rounds are long


class Watchdog(threading.Thread):
    """Checks the values registered with `watch`, once started."""

    def __init__(self, *, every_seconds: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._every_seconds, self._clock = every_seconds, clock
        # Each with its limit, and the values seen with the time since when they are the same.
        self._signs: list[tuple[Read, float, dict[str, tuple[Hashable, float]]]] = []
        self._checked_at = clock()
        self._awake = 0.0
        self._end_at: float | None = None

    def watch(self, read: Read, limit_seconds: float) -> None:
        """Watches values that must keep changing: the same value for longer than `limit_seconds` means a stall."""
        # A new list: the thread may be in the middle of the old one.
        self._signs = [*self._signs, (read, limit_seconds, {})]

    def end_within(self, seconds: float) -> None:
        """Sets the deadline of a stopping process; signs are no longer checked."""
        self._end_at = self._awake + seconds

    def run(self) -> None:
        while not (reason := self.check()):
            time.sleep(self._every_seconds)
        replace_process(reason)

    def check(self) -> str:
        """Returns a description of what has stalled; empty if nothing has."""
        now = self._clock()
        # A longer gap than two checks means that the whole process was stopped or starved.
        self._awake += min(now - self._checked_at, 2 * self._every_seconds)
        self._checked_at = now
        if self._end_at is not None:
            return "the stop took longer than it may" if self._awake >= self._end_at else ""
        return "; ".join(stalled for sign in self._signs for stalled in self._stalled(*sign))

    def _stalled(self, read: Read, limit_seconds: float, seen: dict[str, tuple[Hashable, float]]) -> Iterator[str]:
        try:
            values = dict(read())
        except Exception:
            logger.exception("The watchdog could not read a sign and tries again", extra={"action": "watchdog_failed"})
            return
        for name in seen.keys() - values.keys():
            del seen[name]
        for name, value in values.items():
            if name not in seen or seen[name][0] != value:
                seen[name] = (value, self._awake)
            elif self._awake - seen[name][1] >= limit_seconds:
                yield f"{name} has not moved for {self._awake - seen[name][1]:.0f} s"


def replace_process(reason: str) -> NoReturn:
    """Logs the reason, kills the children and ends this process. No cleanup: it could hang as well."""
    logging_thread = threading.Thread(target=_log_stall, args=(reason,), daemon=True)
    logging_thread.start()
    logging_thread.join(LOG_SECONDS)  # the stalled thread may hold the lock of the log
    end_children()
    os._exit(STALLED_EXIT_CODE)


def end_children() -> None:
    """Kills all descendants: the driver, Chromium and its processes."""
    with suppress(psutil.Error):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                process.kill()


def _log_stall(reason: str) -> None:
    logger.critical(
        "This process has stalled and is replaced: %s. Its tasks are safe in the journal and go to others",
        reason,
        extra={"action": "process_stalled", "stacks": stacks()},
    )
    for handler in logging.getLogger().handlers:
        handler.flush()


def stacks() -> str:
    """Returns the innermost frames of every thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"--- {names.get(ident, ident)}\n" + "".join(traceback.format_stack(frame)[-FRAMES_SHOWN:])
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - the documented way to other threads' stacks
        if ident != threading.get_ident()
    ]
    return "".join(parts)[:STACKS_LENGTH]
