"""The memory guard: measures the worker's whole process tree with every heartbeat and keeps it within its limits.

Guards against the out-of-memory killer of the operating system. Above the soft limit the browser is replaced when its
visits are done; where that does not help, the worker stops in an orderly way and its supervisor starts a new one. Above
the hard limit the browser is killed at once, then the worker.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NoReturn

from prometheus_client import Counter, Gauge

from scraping.browser.health import LaunchCause
from scraping.browser.host import BrowserHost
from scraping.browser.processes import TreeMemory, end_tree, free_memory_bytes
from victoryline.lib.units import MEGABYTE
from victoryline.lib.watchdog import TOO_LARGE_EXIT_CODE, end_children

logger = logging.getLogger(__name__)

WARNING_SHARE = 0.8  # of the soft limit
COLLECT_EVERY_SECONDS = 60.0
REPLACEMENT_SECONDS = 60.0  # beyond draining: a new browser that has not started by then will not start

_limits = Gauge("victoryline_worker_memory_limit_bytes", "Memory above which the guard acts.", ["limit"])
_actions = Counter("victoryline_memory_reliefs", "Actions of the memory guard.", ["relief"])


class MemoryAction(StrEnum):
    NONE = "none"
    WARN = "warn"
    REPLACE_BROWSER = "replace_browser"  # when its visits are done
    STOP_WORKER = "stop_worker"  # in an orderly way; its supervisor starts another
    KILL_BROWSER = "kill_browser"
    KILL_WORKER = "kill_worker"


for _action in MemoryAction:
    _actions.labels(_action.value)  # shown from the start: an increase from nothing is none to Prometheus


@dataclass(frozen=True)
class MemoryLimits:
    soft_bytes: int
    hard_bytes: int
    settle_seconds: float = 30.0  # the time in which memory falls after a browser or worker was replaced
    min_worker_seconds: float = 120.0  # a limit that is too low must not restart workers all the time


# Log level and consequence of an action.
CONSEQUENCES = {
    MemoryAction.WARN: (logging.WARNING, "its browser is replaced at the soft limit"),
    MemoryAction.REPLACE_BROWSER: (logging.WARNING, "its browser is replaced when the visits under way are done"),
    MemoryAction.STOP_WORKER: (
        logging.ERROR,
        "a new browser did not help, so the worker finishes its tasks and is started again",
    ),
    MemoryAction.KILL_BROWSER: (logging.ERROR, "its browser is killed at once"),
    MemoryAction.KILL_WORKER: (logging.CRITICAL, "killing the browser did not help: the worker ends at once"),
}


def memory_action(
    tree_bytes: int,
    limits: MemoryLimits,
    *,
    worker_age_seconds: float,
    since_replaced: float | None,
    since_killed: float | None,
) -> MemoryAction:
    """Returns the next action: first the browser, and where that did not help, the worker.

    `since_replaced`, `since_killed`: seconds since that was done to a browser above the limit; None: not done.
    """
    if tree_bytes > limits.hard_bytes:
        if since_killed is None:
            return MemoryAction.KILL_BROWSER
        # The kernel needs a moment to free the memory; the rest afterwards is the worker's own.
        has_settled = since_killed >= limits.settle_seconds / 3
        return MemoryAction.KILL_WORKER if has_settled else MemoryAction.NONE
    if tree_bytes > limits.soft_bytes:
        if since_replaced is None:
            return MemoryAction.REPLACE_BROWSER
        is_old_enough = worker_age_seconds >= limits.min_worker_seconds
        return (
            MemoryAction.STOP_WORKER if since_replaced >= limits.settle_seconds and is_old_enough else MemoryAction.WARN
        )
    return MemoryAction.WARN if tree_bytes > WARNING_SHARE * limits.soft_bytes else MemoryAction.NONE


class MemoryGuard:
    """Called by the heartbeat thread, also without a database. `on_loop` calls a function on the loop thread."""

    def __init__(
        self,
        host: BrowserHost,
        limits: MemoryLimits,
        *,
        on_loop: Callable[[Callable[[], None]], object],
        min_free_bytes: int = 0,
        stop_worker: Callable[[], None] | None = None,
        kill_worker: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._limits, self._on_loop, self._clock = host, limits, on_loop, clock
        self._min_free_bytes = min_free_bytes
        self._tree = TreeMemory()
        self._stop_worker, self._kill_worker = stop_worker or _stop_self, kill_worker or _kill_self
        self.tree_bytes = self.process_count = self.free_bytes = 0
        self._started = clock()
        self._requested: tuple[float, int] | None = None  # replacement: time of the request, generation to replace
        self._killed_at: float | None = None
        self._is_stopping = False
        self._last = MemoryAction.NONE
        self._collected_at = -COLLECT_EVERY_SECONDS
        _limits.labels("soft").set(limits.soft_bytes)
        _limits.labels("hard").set(limits.hard_bytes)

    @property
    def is_machine_short(self) -> bool:
        """Whether the machine has too little free memory, as of the last check."""
        return 0 < self.free_bytes < self._min_free_bytes

    def check(self) -> MemoryAction:
        self.tree_bytes, self.process_count = self._tree.read()
        self.free_bytes = free_memory_bytes()
        if self.is_machine_short:
            self._collect()
        if self.tree_bytes <= self._limits.soft_bytes:
            self._requested = None
        if self.tree_bytes <= self._limits.hard_bytes:
            self._killed_at = None
        action = memory_action(
            self.tree_bytes,
            self._limits,
            worker_age_seconds=self._clock() - self._started,
            since_replaced=self._since_replaced(),
            since_killed=None if self._killed_at is None else self._clock() - self._killed_at,
        )
        is_known = action is MemoryAction.WARN and self._last is MemoryAction.WARN
        is_known = is_known or (action is MemoryAction.STOP_WORKER and self._is_stopping)
        self._last = action
        if action is not MemoryAction.NONE and not is_known:
            self._act(action)
        return action

    def _since_replaced(self) -> float | None:
        if self._requested is None:
            return None
        requested_at, generation = self._requested
        seconds = self._clock() - requested_at
        is_waiting = self._host.generation == generation and self._host.pid is not None
        if is_waiting and seconds < self._host.recycle_policy.drain_seconds + REPLACEMENT_SECONDS:
            return 0.0  # its visits are not done
        return seconds

    def _act(self, action: MemoryAction) -> None:
        level, consequence = CONSEQUENCES[action]
        logger.log(
            level,
            "The worker and its %d processes hold %d MB (soft limit %d MB, hard limit %d MB): %s. Its tasks are safe "
            "in the journal. If this happens repeatedly, raise MEMORY_SOFT_LIMIT_MB or start more workers",
            self.process_count,
            self.tree_bytes // MEGABYTE,
            self._limits.soft_bytes // MEGABYTE,
            self._limits.hard_bytes // MEGABYTE,
            consequence,
            extra={"action": f"memory_{action.value}", "memory_bytes": self.tree_bytes},
        )
        if action is MemoryAction.WARN:
            return
        _actions.labels(action.value).inc()
        if action is MemoryAction.REPLACE_BROWSER:
            self._collect()
            self._requested = self._clock(), self._host.generation
            reason = f"the worker holds {self.tree_bytes // MEGABYTE} MB"
            self._on_loop(partial(self._host.recycle, LaunchCause.MEMORY, reason))
        elif action is MemoryAction.KILL_BROWSER:
            self._killed_at = self._clock()
            pid = self._host.pid
            if pid is not None:
                end_tree(pid)  # from this thread: the loop may be blocked by the same fault
        elif action is MemoryAction.STOP_WORKER:
            self._is_stopping = True
            self._stop_worker()
        else:
            self._kill_worker()

    def _collect(self) -> None:
        if self._clock() - self._collected_at >= COLLECT_EVERY_SECONDS:
            self._collected_at = self._clock()
            gc.collect()


def _stop_self() -> None:
    os.kill(os.getpid(), signal.SIGTERM)  # handled as a request to stop: see victoryline/engine_process.py


def _kill_self() -> NoReturn:
    end_children()
    os._exit(TOO_LARGE_EXIT_CODE)
