"""What a worker process holds while it works: its name, its reader, and the tasks it has in hand."""

from __future__ import annotations

import threading
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
        self._lock = threading.Lock()

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[None]:
        """While the body runs, the heartbeat keeps this task's lease alive."""
        with self._lock:
            self._held[claim.task_id, claim.fence] = Stage.INIT
        try:
            yield
        finally:
            with self._lock:
                self._held.pop((claim.task_id, claim.fence), None)

    def progress(self, claim: Claim, stage: Stage) -> None:
        with self._lock:
            self._held[claim.task_id, claim.fence] = stage

    def stage_of(self, claim: Claim) -> Stage:
        with self._lock:
            return self._held.get((claim.task_id, claim.fence), Stage.INIT)

    def held_tasks(self) -> list[int]:
        with self._lock:
            return [task_id for task_id, _ in self._held]
