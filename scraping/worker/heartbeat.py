"""The heartbeat: a thread of its own that keeps the leases of tasks in hand and writes the worker's row.

A thread and not a coroutine, so that a blocked event loop does not cost the worker its tasks; and so that a process
which is stopped or killed falls silent as a whole, and loses them.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import threading
from datetime import UTC, datetime, timedelta

import psutil
from django.db import close_old_connections, connection
from django.utils import timezone

from scraping import journal
from scraping.browser.host import Replacement
from scraping.browser.memory_guard import MemoryGuard
from scraping.browser.processes import TreeMemory, free_memory_bytes
from scraping.browser.sessions import Sessions
from scraping.models import Worker
from scraping.signals import browser_replaced
from scraping.worker.commands import Orders
from scraping.worker.engine import Engine
from scraping.worker.proxy_log import ProxyLog
from scraping.worker.token_watch import TokenWatch
from victoryline.lib.database_errors import DATABASE_AWAY
from victoryline.lib.watchdog import Pulse

logger = logging.getLogger(__name__)

# Every wait of an attempt is bounded, all of them together are shorter: what takes longer hangs, and loses its lease.
LONGEST_TASK_SECONDS = 300.0


class Heartbeat(threading.Thread):
    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        *,
        every_seconds: float,
        memory: MemoryGuard | None = None,
        tokens: TokenWatch | None = None,
        orders: Orders | None = None,
    ) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._engine = engine
        self._sessions = sessions
        self._host = sessions.host
        self._memory = memory
        self._tokens = tokens
        self._orders = orders
        self._proxy_log = ProxyLog(sessions, worker_id=engine.worker_id)
        self._every_seconds = every_seconds
        self.pulse = Pulse()
        self._stopping = threading.Event()
        self._launches: queue.SimpleQueue[Replacement] = queue.SimpleQueue()
        self._process = psutil.Process()
        self._cpu_seconds: dict[int, float] = {}
        self._measured_at = 0.0
        self._peak_bytes = 0
        self._started_at = timezone.now()

    def announce(self, launch: Replacement) -> None:
        """A browser was replaced; told from here, because nobody may use the database on the loop thread."""
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
                    self._engine.disk.look()
                if self._memory is not None and not is_last:
                    self._memory.look()
                self.beat(now=timezone.now(), is_last=is_last)
            except Exception as error:  # noqa: BLE001 - a heartbeat that stops for good would cost the worker every task
                self._tell(error)
            self.pulse.beat()
            if is_last:
                connection.close()
                return
            self._stopping.wait(self._every_seconds)

    def _tell(self, error: Exception) -> None:
        if isinstance(error, DATABASE_AWAY):
            self._engine.lost_store(error)
        if self._engine.keeper is None or not self._engine.keeper.is_away:  # it tells of an outage itself
            logger.warning("Heartbeat not written: %s", error, extra={"action": "heartbeat_failed"})

    def beat(self, *, now: datetime, is_last: bool = False) -> None:
        """One heartbeat: leases, the worker's row, and news that waited to be told."""
        held = self._engine.held_tasks(longest_seconds=LONGEST_TASK_SECONDS)
        if held:
            until = now + timedelta(seconds=self._engine.policies.lease_seconds)
            journal.extend_leases(held, worker_id=self._engine.worker_id, until=until)
        self._write_row(now, len(held), is_last)
        self._engine.outcomes.flush(now=now)
        self._engine.tallies.flush(now=now, is_last=is_last)
        self._proxy_log.write(now=now, is_last=is_last)
        self._engine.traffic.refresh(now=now)
        if self._tokens is not None and not is_last:
            self._tokens.look(now=now)
        if self._orders is not None and not is_last:
            self._orders.look(now=now)
        self._engine.take_configuration()
        while not self._launches.empty():
            launch = self._launches.get()
            browser_replaced.send_robust(
                sender=Worker,
                worker_id=self._engine.worker_id,
                reason=launch.reason,
                seconds=launch.seconds,
                cause=launch.cause.value,
            )

    def _write_row(self, now: datetime, active_tasks: int, is_last: bool) -> None:
        memory, processes, free = self._measured()
        self._peak_bytes = max(self._peak_bytes, memory)
        started = self._host.started_at
        Worker.objects.update_or_create(
            worker_id=self._engine.worker_id,
            defaults={
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
                "process_count": processes,
                "context_count": self._sessions.context_count,
                "page_count": self._sessions.page_count,
                "active_tasks": active_tasks,
            },
        )

    def _measured(self) -> tuple[int, int, int]:
        """The memory of the worker's tree, its processes, and what the machine has left."""
        if self._memory is not None and self._memory.process_count:
            return self._memory.tree_bytes, self._memory.process_count, self._memory.free_bytes
        return *TreeMemory().read(), free_memory_bytes()

    def _cpu_percent(self, now: datetime) -> float:
        """Of the whole tree since the last beat; 100 is one core."""
        seconds: dict[int, float] = {}
        for process in [self._process, *self._process.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            seconds[process.pid] = times.user + times.system
        spent = sum(value - self._cpu_seconds.get(pid, value) for pid, value in seconds.items())
        elapsed = now.timestamp() - self._measured_at
        self._cpu_seconds, self._measured_at = seconds, now.timestamp()
        return round(100 * spent / elapsed, 1) if 0 < elapsed < 3600 else 0.0
