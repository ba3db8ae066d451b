"""The scheduler's loop: hold the lease, do each step when it is due, never die of one of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import DatabaseError, InterfaceError, close_old_connections
from django.utils import timezone
from django.utils.module_loading import import_string

from scraping.scheduler import clock, leader
from victoryline.lib.store import STORE_AWAY, first_line
from victoryline.lib.watchdog import Pulse

logger = logging.getLogger(__name__)

SETTLING_SECONDS = 15.0
WATCHDOG_SECONDS = 5.0  # what is done so seldom judges; what is done more often works
TELL_EVERY_SECONDS = 60.0

StepFunction = Callable[[datetime], int]


@dataclass
class Step:
    name: str
    run: StepFunction
    every_seconds: float
    due_at: float = field(default=0.0)  # monotonic


def load_steps(table: Sequence[tuple[str, float]]) -> list[Step]:
    """The steps of a table. Rare ones have their first turn a little later: at a start, old data is no news."""
    settled_at = time.monotonic() + SETTLING_SECONDS
    return [
        Step(path.rpartition(".")[2], import_string(path), every, settled_at if every >= SETTLING_SECONDS else 0.0)
        for path, every in table
    ]


class SchedulerLoop:
    """Runs in a thread of its own, or as a whole process; `stop` ends it within one tick."""

    def __init__(self, steps: Sequence[Step], *, holder: str, tick_seconds: float, lease_seconds: float) -> None:
        self._steps = steps
        self._holder = holder
        self._tick_seconds = tick_seconds
        self._lease_seconds = lease_seconds
        self.pulse = Pulse()
        self._stopping = threading.Event()
        self._is_leader = False
        self._jumps = clock.Jumps()
        self._set_back_seconds = 0.0  # by which the database is still ahead of the clock
        self._renew_at = 0.0
        self._tell_at = 0.0

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                close_old_connections()
                now = timezone.now()
                self.mind_the_clock(now, time.monotonic())
                self.tick(now=now)
            except Exception as error:  # noqa: BLE001 - no pool, no connection, no answer: the loop outlives them all
                self._renew_at = 0.0
                self._tell(error)
                self._settle()
                self._stopping.wait(1.0)
            self.pulse.beat()
            self._stopping.wait(max(0.0, self._tick_seconds - (time.monotonic() - started)))
        self._let_go()

    def _tell(self, error: Exception) -> None:
        """Once a minute: an outage is one piece of news, not one every second."""
        if time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + TELL_EVERY_SECONDS
            logger.error(
                "The scheduler cannot reach the database: %s. Tasks wait in it safely and go on when it is back",
                first_line(error),
                extra={"action": "tick_failed"},
            )

    def _settle(self) -> None:
        """After an outage everything looks old: watchdogs wait a little, until the others have had their say."""
        for step in self._steps:
            if step.every_seconds >= WATCHDOG_SECONDS:
                step.due_at = time.monotonic() + SETTLING_SECONDS

    def mind_the_clock(self, now: datetime, monotonic: float) -> None:
        """A clock that was set makes everything look old, or planned for much later.

        The leader mends it, for all; while the database is away it is still to be done.
        """
        jump = self._jumps.look(now, monotonic)
        if jump:
            self._settle()
            self._set_back_seconds = max(0.0, self._set_back_seconds - jump) if self._is_leader else 0.0
        if jump > 0:
            logger.warning("The clock was set forward %.0f s", jump, extra={"action": "clock_set_forward"})
        if self._set_back_seconds:
            clock.set_back(self._set_back_seconds, now=now)
            self._set_back_seconds = 0.0

    def tick(self, *, now: datetime) -> int:
        """One round: how much all due steps found to do. Does nothing where another scheduler leads."""
        if not self._hold(now):
            return 0
        found = 0
        for step in self._steps:
            if self._is_due(step):
                found += self._do(step, now)
                self.pulse.beat()  # many slow steps are a slow round, not a stalled one
        return found

    def _hold(self, now: datetime) -> bool:
        """Renew the lease when a third of it has gone by; in between it is known to be ours."""
        if time.monotonic() < self._renew_at:
            return self._is_leader
        was_leader = self._is_leader
        self._is_leader = leader.hold(self._holder, seconds=self._lease_seconds, now=now)
        self._renew_at = time.monotonic() + (self._lease_seconds / 3 if self._is_leader else 1.0)
        if self._is_leader != was_leader:
            words = "leads" if self._is_leader else "stands by"
            logger.info("Scheduler %s %s", self._holder, words, extra={"action": "leadership_changed"})
        return self._is_leader

    @staticmethod
    def _is_due(step: Step) -> bool:
        if time.monotonic() < step.due_at:
            return False
        step.due_at = time.monotonic() + step.every_seconds
        return True

    @staticmethod
    def _do(step: Step, now: datetime) -> int:
        try:
            return step.run(now)
        except STORE_AWAY as error:
            if not _is_contention(error):  # the database is away: no other step would fare better
                raise
            logger.warning(
                "Step %s met another writer and is done again: %s",
                step.name,
                first_line(error),
                extra={"action": "step_put_off", "step": step.name},
            )
            return 0
        except Exception:  # one broken step must not cost the others their turn
            logger.exception("Scheduler step %s failed", step.name, extra={"action": "step_failed", "step": step.name})
            return 0

    def _let_go(self) -> None:
        if self._is_leader:
            try:
                leader.let_go(self._holder, now=timezone.now())
            except (DatabaseError, InterfaceError):
                logger.warning("The scheduler's lease was not given back; it runs out", extra={"action": "lease_kept"})
        close_old_connections()


# PostgreSQL's words for: you were in somebody's way. (serialization, deadlock, lock not available, cancelled)
CONTENTION = frozenset({"40001", "40P01", "55P03", "57014"})


def _is_contention(error: Exception) -> bool:
    return getattr(error.__cause__, "pgcode", None) in CONTENTION
