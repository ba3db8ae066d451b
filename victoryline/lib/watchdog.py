"""The watchdog: replaces this process when something in it has stopped moving.

Guards against what no timeout reaches: a thread that hangs in a system call, an event loop that runs no callbacks, a
consumer that has died in a process that looks healthy. It uses no database, no loop and no lock that work could hold.
The process ends at once; whoever supervises it starts a whole one, and the journal knows what was in hand.

Time counts only while the watchdog itself gets to look: a process that was stopped (SIGSTOP, a sleeping laptop) finds
everything as old as it was, and not hours older.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import psutil

logger = logging.getLogger(__name__)

STALLED_EXIT_CODE = 75  # EX_TEMPFAIL: start me again
TOO_LARGE_EXIT_CODE = 76  # the same, by the memory guard
LOOK_SECONDS = 1.0
LAST_WORDS_SECONDS = 2.0
FRAMES_SHOWN, STACKS_LENGTH = 12, 15_000


class Pulse:
    """The rounds that a loop has completed, good or bad ones. The loop beats, the watchdog reads."""

    def __init__(self) -> None:
        self.rounds = 0

    def beat(self) -> None:
        self.rounds += 1

    def reads(self, name: str) -> Callable[[], Mapping[str, Hashable]]:
        return lambda: {name: self.rounds}


@dataclass(frozen=True)
class Sign:
    """Things that must keep changing: `read` gives a value for each that is there, by its name.

    One whose value stays the same for longer than `limit_seconds` has stalled, unless there is an `excuse`.
    """

    read: Callable[[], Mapping[str, Hashable]]
    limit_seconds: float
    excuse: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Patience:
    task_seconds: float
    """Without progress, longer than any single wait of a task."""
    stall_seconds: float
    """For what uses no database."""
    store_seconds: float
    """For what does: a database that is away makes its rounds long before they fail."""


@dataclass
class _Seen:
    value: Hashable
    at: float


class Watchdog(threading.Thread):
    """Give it signs with `watch`, then `start` it."""

    def __init__(
        self,
        *,
        replace: Callable[[str], object] | None = None,
        every_seconds: float = LOOK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._replace = replace or replace_process
        self._every_seconds, self._clock = every_seconds, clock
        self._signs: list[Sign] = []
        self._seen: dict[tuple[int, str], _Seen] = {}
        self._looked_at = clock()
        self._awake = 0.0
        self._end_at: float | None = None
        self._stopping = threading.Event()

    def watch(self, sign: Sign) -> None:
        self._signs = [*self._signs, sign]  # a new list: the thread may be in the middle of the old one

    def end_within(self, seconds: float) -> None:
        """The process is stopping: signs no longer count, but it must be gone by then."""
        self._end_at = self._awake + seconds

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.wait(self._every_seconds):
            if reason := self.look():
                self._replace(reason)

    def look(self) -> str:
        """What has stalled, in words; empty while all is well."""
        now = self._clock()
        # More than two looks' time can't have been ours: we were stopped, or starved, and so was everybody else.
        self._awake += min(now - self._looked_at, 2 * self._every_seconds)
        self._looked_at = now
        if self._end_at is not None:
            return "the stop took longer than it may" if self._awake >= self._end_at else ""
        return "; ".join(filter(None, (self._judge(number, sign) for number, sign in enumerate(self._signs))))

    def _judge(self, number: int, sign: Sign) -> str:
        try:
            values = dict(sign.read())
        except Exception:
            logger.exception("The watchdog could not look; it looks again", extra={"action": "watchdog_failed"})
            return ""
        for gone in [key for key in self._seen if key[0] == number and key[1] not in values]:
            del self._seen[gone]
        stalled = []
        for name, value in values.items():
            seen = self._seen.get((number, name))
            if seen is None or seen.value != value:
                self._seen[number, name] = _Seen(value, self._awake)
            elif self._awake - seen.at >= sign.limit_seconds:
                if sign.excuse():
                    seen.at = self._awake
                else:
                    stalled.append(f"{name} has not moved for {self._awake - seen.at:.0f} s")
        return "; ".join(stalled)


def replace_process(reason: str) -> NoReturn:
    """Say why, end what this process has started, and end it. Nothing is cleaned up: whatever hangs would hang that."""
    last_words = threading.Thread(target=_tell, args=(reason,), daemon=True)
    last_words.start()
    last_words.join(LAST_WORDS_SECONDS)  # a thread may hang with the lock of the log in its hands
    end_children()
    os._exit(STALLED_EXIT_CODE)


def end_children() -> None:
    """The driver, Chromium and all of its processes: nobody else would miss them."""
    with suppress(psutil.Error):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                process.kill()


def _tell(reason: str) -> None:
    logger.critical(
        "This process has stalled and is replaced: %s. Its tasks are safe in the journal and go to others",
        reason,
        extra={"action": "process_stalled", "stacks": stacks()},
    )


def stacks() -> str:
    """Where every thread is, the innermost frames of each."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"--- {names.get(ident, ident)}\n" + "".join(traceback.format_stack(frame)[-FRAMES_SHOWN:])
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - the documented way to other threads' stacks
        if ident != threading.get_ident()
    ]
    return "".join(parts)[:STACKS_LENGTH]
