"""The heartbeat thread, which extends leases and writes the worker's row; and the signs of life for the watchdog.

Guards against tasks that wait for a dead worker: a lease lasts a few seconds longer than the heartbeats of its worker.
A thread and not a coroutine, so that a blocked event loop does not cost the worker its tasks; and so that a process
which is stopped or killed sends no heartbeat at all, and loses them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import dramatiq
import psutil
from django.db import close_old_connections, connection
from django.utils import timezone

from scraping import journal
from scraping.browser.host import Replacement
from scraping.browser.memory_guard import MemoryGuard
from scraping.browser.processes import TreeMemory, free_memory_bytes, private_memory_bytes
from scraping.browser.sessions import Sessions
from scraping.models import Worker
from scraping.signals import browser_replaced
from scraping.worker.engine import Engine
from scraping.worker.upkeep import CommandRunner, RequestModeRows, SessionRows, TokenWatch
from scraping.worker.worker_metrics import worker_figures
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.watchdog import Pulse, StallLimits, Watchdog

logger = logging.getLogger(__name__)

# All waits of an attempt together are shorter: a task that takes longer hangs, and its lease is not extended.
LONGEST_TASK_SECONDS = 300.0
DEAD_THREAD_SECONDS = 2.0  # two checks, for a thread that is about to start


class Heartbeat(threading.Thread):
    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        *,
        every_seconds: float,
        memory: MemoryGuard | None = None,
        tokens: TokenWatch | None = None,
        commands: CommandRunner | None = None,
        request_modes: RequestModeRows | None = None,
        renderers: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._engine = engine
        self._sessions = sessions
        self._host = sessions.host
        self._memory = memory
        self._tokens = tokens
        self._commands = commands
        self._request_modes = request_modes
        self._renderers = renderers  # process of each open page's renderer, by match
        self._session_rows = SessionRows(sessions, worker_id=engine.worker_id)
        self._every_seconds = every_seconds
        self.pulse = Pulse()
        self._stopping = threading.Event()
        self._launches: queue.SimpleQueue[Replacement] = queue.SimpleQueue()
        self._process = psutil.Process()
        self._cpu_seconds: dict[int, float] = {}
        self._cpu_percents: dict[int, float] = {}
        self._measured_at = 0.0
        self._peak_bytes = 0
        self._started_at = timezone.now()

    def announce(self, launch: Replacement) -> None:
        """Queues the signal of a replaced browser: the loop thread may not use the database."""
        self._launches.put(launch)

    def stop(self) -> None:
        self._stopping.set()
        self.join(timeout=5)

    def run(self) -> None:
        while True:
            is_last = self._stopping.is_set()
            try:
                close_old_connections()
                if self._engine.disk is not None:
                    self._engine.disk.check()
                if self._memory is not None and not is_last:
                    self._memory.check()
                self.beat(now=timezone.now(), is_last=is_last)
            except Exception as error:  # noqa: BLE001 - without heartbeats the worker would lose every task
                if isinstance(error, DATABASE_AWAY):
                    self._engine.lost_store(error)
                keeper = self._engine.keeper
                if keeper is None or not keeper.away.is_set():  # else the keeper reports the outage
                    logger.warning("Heartbeat not written: %s", error, extra={"action": "heartbeat_failed"})
            self.pulse.beat()
            if is_last:
                connection.close()
                return
            self._stopping.wait(self._every_seconds)

    def beat(self, *, now: datetime, is_last: bool = False) -> None:
        """Sends one heartbeat: leases, the worker's row, counters, duties and queued signals."""
        held = self._engine.held_tasks(longest_seconds=LONGEST_TASK_SECONDS)
        if held:
            until = now + timedelta(seconds=self._engine.policies.lease_seconds)
            journal.extend_leases(held, worker_id=self._engine.worker_id, until=until)
        self._write_row(now, len(held), is_last)
        self._engine.outcomes.flush(now=now)
        self._engine.read_stats.flush(now=now, is_last=is_last)
        self._session_rows.write(now=now, is_last=is_last)
        self._engine.traffic.refresh(now=now)
        if self._request_modes is not None:
            self._request_modes.sync()
        if self._tokens is not None and not is_last:
            self._tokens.check(now=now)
        if self._commands is not None and not is_last:
            self._commands.run_waiting(now=now)
        self._engine.reload_policies()
        while not self._launches.empty():
            launch = self._launches.get()
            browser_replaced.send_robust(
                sender=Worker,
                worker_id=self._engine.worker_id,
                reason=launch.reason,
                seconds=launch.seconds,
                cause=launch.cause.value,
                **launch.as_metadata(),
            )

    def _write_row(self, now: datetime, active_tasks: int, is_last: bool) -> None:
        if self._memory is not None and self._memory.process_count:
            memory, processes, free = self._memory.tree_bytes, self._memory.process_count, self._memory.free_bytes
        else:
            memory, processes, free = *TreeMemory().read(), free_memory_bytes()
        self._peak_bytes = max(self._peak_bytes, memory)
        started = self._host.started_at
        row = {
            "host": socket.gethostname()[:120],
            "pid": os.getpid(),
            "started_at": self._started_at,
            "heartbeat_at": now,
            "stopped_at": now if is_last else None,
            "browser_pid": self._host.pid,
            "browser_started_at": datetime.fromtimestamp(started, UTC) if started else None,
            "browser_launches": self._host.generation,
            "memory_bytes": memory,
            "peak_memory_bytes": self._peak_bytes,
            "free_memory_bytes": free,
            "cpu_percent": self._cpu_percent(now),
            "renderers": self._renderer_figures(),
            "process_count": processes,
            "context_count": self._sessions.context_count,
            "page_count": self._sessions.page_count,
            "active_tasks": active_tasks,
        }
        worker_figures.row = row
        Worker.objects.update_or_create(worker_id=self._engine.worker_id, defaults=row)

    def _cpu_percent(self, now: datetime) -> float:
        """Returns the CPU use of all processes since the last heartbeat; 100 is one core."""
        seconds: dict[int, float] = {}
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            seconds[process.pid] = times.user + times.system
        elapsed = now.timestamp() - self._measured_at
        factor = 100 / elapsed if 0 < elapsed < 3600 else 0.0
        self._cpu_percents = {
            pid: factor * (value - self._cpu_seconds.get(pid, value)) for pid, value in seconds.items()
        }
        self._cpu_seconds, self._measured_at = seconds, now.timestamp()
        return round(sum(self._cpu_percents.values()), 1)

    def _renderer_figures(self) -> dict[str, tuple[int, float]]:
        """Returns memory in bytes and CPU in percent of each open page, by match. Pages of one renderer share them."""
        pids = {key: pid for key, pid in self._renderers().items() if pid in self._cpu_percents}
        pages = Counter(pids.values())
        memory = {pid: private_memory_bytes(pid) for pid in pages}
        return {
            key: (memory[pid] // pages[pid], round(self._cpu_percents[pid] / pages[pid], 2))
            for key, pid in pids.items()
        }


def watch_worker(
    watchdog: Watchdog, worker: dramatiq.Worker, engine: Engine, heartbeat: Heartbeat, stall_limits: StallLimits
) -> None:
    def threads() -> Iterable[tuple[str, threading.Thread]]:
        for name, consumer in list(worker.consumers.items()):
            yield f"the consumer thread of {name}", consumer
        for number, thread in enumerate(list(worker.workers), 1):
            yield f"worker thread {number}", thread

    watchdog.watch(engine.steps, stall_limits.task_seconds)
    watchdog.watch(_alive(threads), DEAD_THREAD_SECONDS)
    watch_thread(watchdog, "the heartbeat", heartbeat)
    watchdog.watch(heartbeat.pulse.reads("the heartbeat"), stall_limits.store_seconds)
    rounds = getattr(worker.broker, "rounds", None)
    if rounds is not None:
        # Reads the journal itself while Redis is unreachable, so it may wait for the database too.
        watchdog.watch(
            lambda: {f"the consumer of {name}": rounds[name] for name in worker.consumers}, stall_limits.store_seconds
        )


def watch_loop(watchdog: Watchdog, loop: asyncio.AbstractEventLoop, stall_limits: StallLimits) -> None:
    """Schedules a callback at every check. A slow loop is fine, it must only run the callback in time."""
    scheduled = done = 0

    def finish() -> None:
        nonlocal done
        done = scheduled

    def read() -> Mapping[str, Hashable]:
        nonlocal scheduled
        if scheduled == done:
            scheduled += 1
            with suppress(RuntimeError):  # closed: the callback will not run
                loop.call_soon_threadsafe(finish)
        return {"the event loop": done}

    watchdog.watch(read, stall_limits.stall_seconds)


def watch_thread(watchdog: Watchdog, name: str, thread: threading.Thread) -> None:
    watchdog.watch(_alive({name: thread}.items), DEAD_THREAD_SECONDS)


def _alive(threads: Callable[[], Iterable[tuple[str, threading.Thread]]]) -> Callable[[], Mapping[str, Hashable]]:
    """Returns a new value for a living thread at every check; that of a dead one stays."""
    checks = itertools.count(1)
    return lambda: {name: next(checks) if thread.is_alive() else 0 for name, thread in threads()}
