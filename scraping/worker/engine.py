"""What a worker process holds while it works: its name, its reader, and the tasks it has in hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from scraping.configuration import policies as steering
from scraping.configuration.policies import Policies
from scraping.errors import NotStored
from scraping.journal import Claim
from scraping.models import Stage
from scraping.outage.keeper import OutageKeeper
from scraping.reading.reader import Reader
from scraping.recovery.outcomes import Outcomes
from scraping.stats.tallies import Tallies
from scraping.stats.traffic import Traffic
from scraping.worker.disk import DiskGuard
from scraping.worker.unchanged import LastTold


class Engine:
    """Shared by the task threads and the heartbeat thread of one worker."""

    def __init__(
        self,
        *,
        worker_id: str,
        reader: Reader,
        policies: Policies,
        keeper: OutageKeeper | None = None,
        disk: DiskGuard | None = None,
        tallies: Tallies | None = None,
    ) -> None:
        self.worker_id = worker_id
        self.keeper = keeper
        self.disk = disk
        self.reader = reader
        self.policies = policies
        self._configured = steering.current()
        self.outcomes = Outcomes()
        self.tallies = tallies or Tallies()
        self.traffic = Traffic()
        self.told = LastTold()
        self._held: dict[tuple[int, int], Stage] = {}  # by task and fence
        self._since: dict[tuple[int, int], float] = {}
        self._moves: dict[tuple[int, int], int] = {}
        self._mine = threading.local()
        self._lock = threading.Lock()

    def take_configuration(self) -> bool:
        """As it is now, where its file has changed. Asked for by a match that begins anew; True if it had changed."""
        steering.reload()
        if steering.current() is self._configured:
            return False
        self.policies = self._configured = steering.current()
        return True

    @property
    def takes_work(self) -> bool:
        """Not while the database is away: what a hint asks for stays in the journal. Not on a full disk either."""
        is_full = self.disk is not None and self.disk.is_short
        return not (is_full or (self.keeper is not None and self.keeper.is_away))

    def lost_store(self, error: Exception) -> None:
        """The database is away. A reading that it did not take is kept."""
        if self.keeper is None:
            return
        if isinstance(error, NotStored):
            self.keeper.not_stored(error.match, error.payload)
        self.keeper.lost(error)

    def let_go(self, ref_id: int) -> None:
        """The source is to be left alone with this match: also while the database is away."""
        if self.keeper is not None:
            self.keeper.holdings.forget(ref_id)

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[None]:
        """While the body runs, the heartbeat keeps this task's lease alive."""
        self.take(claim)
        self._mine.key = claim.task_id, claim.fence
        try:
            yield
        finally:
            self._mine.key = None
            self.release(claim)

    def take(self, claim: Claim) -> None:
        key = claim.task_id, claim.fence
        with self._lock:
            self._held[key], self._since[key], self._moves[key] = Stage.INIT, time.monotonic(), 0

    def release(self, claim: Claim) -> None:
        """The task is in nobody's hands any more; once is as good as twice."""
        key = claim.task_id, claim.fence
        with self._lock:
            for table in (self._moves, self._held, self._since):
                table.pop(key, None)

    def progress(self, claim: Claim, stage: Stage) -> None:
        """This task has got further. Told late, of one that was let go meanwhile, it changes nothing."""
        key = claim.task_id, claim.fence
        with self._lock:
            if key in self._held:
                self._held[key] = stage
                self._moves[key] += 1

    def moved(self) -> None:
        """The one task of this thread has got a step further."""
        key = getattr(self._mine, "key", None)
        if key in self._moves:
            self._moves[key] += 1

    def moves(self) -> dict[str, int]:
        """How far each task in hand has got. Takes no lock: the watchdog asks, and must not wait for anybody."""
        return {f"task {task_id} (fence {fence})": moves for (task_id, fence), moves in self._moves.copy().items()}

    def stage_of(self, claim: Claim) -> Stage:
        with self._lock:
            return self._held.get((claim.task_id, claim.fence), Stage.INIT)

    def held_tasks(self, *, longest_seconds: float = float("inf")) -> list[int]:
        """The tasks in hand; of those, the ones that are not held for longer than any honest work takes."""
        oldest = time.monotonic() - longest_seconds
        with self._lock:
            return [key[0] for key in self._held if self._since[key] >= oldest]
