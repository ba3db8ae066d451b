"""The memory guard: measures the worker's whole process tree with every heartbeat, and keeps it within its limits.

Guards against the machine's own way of dealing with a process that grows, which is to kill something. Past the soft
limit the browser is replaced when its visits are done; where that did not help, the worker stops in good order and its
supervisor starts a fresh one. Past the hard limit nobody is waited for.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from prometheus_client import Counter, Gauge

from scraping.browser.care import MEGABYTE, Cause, MemoryLimits, MemorySeen, Relief, judge_memory
from scraping.browser.host import BrowserHost
from scraping.browser.processes import TreeMemory, end_tree, free_memory_bytes
from victoryline.lib.watchdog import TOO_LARGE_EXIT_CODE, end_children

logger = logging.getLogger(__name__)

COLLECT_EVERY_SECONDS = 60.0
GIVE_UP_WAITING_SECONDS = 60.0  # beyond draining: by then a new browser is there, or there will be none

_tree = Gauge("victoryline_worker_tree_memory_bytes", "Memory of this worker and all of its processes.")
_soft = Gauge("victoryline_worker_memory_soft_limit_bytes", "Where this worker's browser is replaced.")
_reliefs = Counter("victoryline_memory_reliefs", "What was done about memory.", ["relief"])

OnLoop = Callable[[Callable[[], None]], object]


class MemoryGuard:
    """Called by the heartbeat thread, also while the database is away; `on_loop` calls something on the loop thread."""

    def __init__(
        self,
        host: BrowserHost,
        limits: MemoryLimits,
        *,
        on_loop: OnLoop,
        min_free_bytes: int = 0,
        measure: Callable[[], tuple[int, int]] | None = None,
        stop_worker: Callable[[], None] | None = None,
        kill_worker: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._limits, self._on_loop, self._clock = host, limits, on_loop, clock
        self._min_free_bytes = min_free_bytes
        self._measure = measure or TreeMemory().read
        self._stop_worker, self._kill_worker = stop_worker or _stop_self, kill_worker or _kill_self
        self.tree_bytes = self.process_count = self.free_bytes = self.peak_bytes = 0
        self._started = clock()
        self._asked: tuple[float, int] | None = None  # for a new browser: when, and which generation was to go
        self._killed_at: float | None = None
        self._is_stopping = False
        self._last = Relief.NONE
        self._collected_at = -COLLECT_EVERY_SECONDS
        _soft.set(limits.soft_bytes)

    def look(self) -> Relief:
        """Measure, and do what is to be done."""
        self.tree_bytes, self.process_count = self._measure()
        self.peak_bytes = max(self.peak_bytes, self.tree_bytes)
        self.free_bytes = free_memory_bytes()
        _tree.set(self.tree_bytes)
        if self.free_bytes < self._min_free_bytes:
            self._collect()
        if self.tree_bytes <= self._limits.soft_bytes:
            self._asked = None
        if self.tree_bytes <= self._limits.hard_bytes:
            self._killed_at = None
        relief = judge_memory(
            MemorySeen(self.tree_bytes, self._clock() - self._started, self._since_replaced(), self._since_killed()),
            self._limits,
        )
        self._act(relief)
        return relief

    def _since_replaced(self) -> float | None:
        if self._asked is None:
            return None
        asked_at, generation = self._asked
        seconds = self._clock() - asked_at
        is_waiting = self._host.generation == generation and self._host.pid is not None
        if is_waiting and seconds < self._host.care.drain_seconds + GIVE_UP_WAITING_SECONDS:
            return 0.0  # its visits are not done yet
        return seconds

    def _since_killed(self) -> float | None:
        return None if self._killed_at is None else self._clock() - self._killed_at

    def _act(self, relief: Relief) -> None:
        if relief in (Relief.NONE, Relief.WARN):
            if relief is Relief.WARN and self._last is not Relief.WARN:
                self._tell(logging.WARNING, "its browser is replaced at the soft limit", relief)
            self._last = relief
            return
        if relief is Relief.STOP_WORKER and self._is_stopping:
            return
        self._last = relief
        _reliefs.labels(relief.value).inc()
        if relief is Relief.REPLACE_BROWSER:
            self._replace_browser()
        elif relief is Relief.KILL_BROWSER:
            self._kill_browser()
        elif relief is Relief.STOP_WORKER:
            self._is_stopping = True
            self._tell(
                logging.ERROR,
                "a new browser did not help, so that the worker finishes what it has in hand and is started again",
                relief,
            )
            self._stop_worker()
        else:
            self._tell(logging.CRITICAL, "killing the browser did not help: the worker ends at once", relief)
            self._kill_worker()

    def _replace_browser(self) -> None:
        self._tell(
            logging.WARNING, "its browser is replaced when the visits under way are done", Relief.REPLACE_BROWSER
        )
        self._collect()
        self._asked = self._clock(), self._host.generation
        reason = f"the worker holds {self.tree_bytes // MEGABYTE} MB"
        self._on_loop(partial(self._host.recycle, Cause.MEMORY, reason))

    def _kill_browser(self) -> None:
        self._tell(logging.ERROR, "its browser is killed at once", Relief.KILL_BROWSER)
        self._killed_at = self._clock()
        pid = self._host.pid
        if pid is not None:
            # From this thread: what has eaten the memory may well keep the loop busy too.
            end_tree(pid)

    def _collect(self) -> None:
        if self._clock() - self._collected_at >= COLLECT_EVERY_SECONDS:
            self._collected_at = self._clock()
            gc.collect()

    def _tell(self, level: int, what: str, relief: Relief) -> None:
        limits = self._limits
        logger.log(
            level,
            "The worker and its %d processes hold %d MB (soft limit %d MB, hard limit %d MB): %s. Its tasks are safe "
            "in the journal. If this comes again and again, raise MEMORY_SOFT_LIMIT_MB or start more workers",
            self.process_count,
            self.tree_bytes // MEGABYTE,
            limits.soft_bytes // MEGABYTE,
            limits.hard_bytes // MEGABYTE,
            what,
            extra={"action": f"memory_{relief.value}", "memory_bytes": self.tree_bytes},
        )


def _stop_self() -> None:
    os.kill(os.getpid(), signal.SIGTERM)  # as if somebody had asked for it: see victoryline/engine_process.py


def _kill_self() -> NoReturn:
    end_children()
    os._exit(TOO_LARGE_EXIT_CODE)
