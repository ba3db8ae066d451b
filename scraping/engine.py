"""What a worker process holds while it works: its name, its reader, and the tasks it has in hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from scraping.journal import Claim
from scraping.models import Stage
from scraping.policies import Policies
from scraping.reading.reader import Reader


class Engine:
    """Shared by the task threads and the heartbeat thread of one worker."""

    def __init__(self, *, worker_id: str, reader: Reader, policies: Policies) -> None:
        self.worker_id = worker_id
        self.reader = reader
        self.policies = policies
        self._held: dict[tuple[int, int], Stage] = {}  # by task and fence
        self._since: dict[tuple[int, int], float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[None]:
        """While the body runs, the heartbeat keeps this task's lease alive."""
        with self._lock:
            self._held[claim.task_id, claim.fence] = Stage.INIT
            self._since[claim.task_id, claim.fence] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._held.pop((claim.task_id, claim.fence), None)
                self._since.pop((claim.task_id, claim.fence), None)

    def progress(self, claim: Claim, stage: Stage) -> None:
        with self._lock:
            self._held[claim.task_id, claim.fence] = stage

    def stage_of(self, claim: Claim) -> Stage:
        with self._lock:
            return self._held.get((claim.task_id, claim.fence), Stage.INIT)

    def held_tasks(self, *, longest_seconds: float = float("inf")) -> list[int]:
        """The tasks in hand; of those, the ones that are not held for longer than any honest work takes."""
        oldest = time.monotonic() - longest_seconds
        with self._lock:
            return [key[0] for key in self._held if self._since[key] >= oldest]
