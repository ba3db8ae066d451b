"""The scheduler's loop: holds the leader's lease and runs each step of SCHEDULER_STEPS when it is due.

A step is a function that takes the time and returns how many things it found to do. A step that fails is logged and
does not keep the others from running.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import close_old_connections
from django.utils import timezone
from django.utils.module_loading import import_string

from scraping.scheduler import clock
from scraping.scheduler.leader import Leadership
from victoryline.lib.availability import DATABASE_AWAY, first_line
from victoryline.lib.statements import statement_of
from victoryline.lib.watchdog import Pulse

logger = logging.getLogger(__name__)

SETTLING_SECONDS = 15.0
WATCHDOG_SECONDS = 5.0  # steps that run this seldom judge by ages; more frequent ones do the work
LOG_EVERY_SECONDS = 60.0
# PostgreSQL's codes for a conflict with another writer: serialization, deadlock, lock not available, cancelled.
CONTENTION = frozenset({"40001", "40P01", "55P03", "57014"})

StepFunction = Callable[[datetime], int]


@dataclass
class Step:
    name: str
    run: StepFunction
    every_seconds: float
    due_at: float = field(default=0.0)  # monotonic


def load_steps(table: Sequence[tuple[str, float]]) -> list[Step]:
    """Imports the steps of a table of (dotted path, seconds). Rare steps first run a little after the start."""
    settled_at = time.monotonic() + SETTLING_SECONDS
    return [
        Step(path.rpartition(".")[2], import_string(path), every, settled_at if every >= SETTLING_SECONDS else 0.0)
        for path, every in table
    ]


class SchedulerLoop:
    """Runs in a thread of its own, or as a whole process; `stop` ends it within one tick."""

    def __init__(self, steps: Sequence[Step], *, holder: str, tick_seconds: float, lease_seconds: float) -> None:
        self._steps = steps
        self._tick_seconds = tick_seconds
        self.pulse = Pulse()
        self._stopping = threading.Event()
        self._leadership = Leadership(holder, lease_seconds=lease_seconds)
        self._clock_jumps = clock.ClockJumps()
        self._set_back_seconds = 0.0  # by which the times in the database are still ahead of the clock
        self._log_at = 0.0

    @property
    def is_leading(self) -> bool:
        return self._leadership.is_held

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            try:
                close_old_connections()
                now = timezone.now()
                self.check_clock(now, time.monotonic())
                self.tick(now=now)
            except Exception as error:  # noqa: BLE001 - no pool, no connection, no answer: the loop survives them all
                self._leadership.check_at_once()
                if time.monotonic() >= self._log_at:  # once a minute, however long the outage lasts
                    self._log_at = time.monotonic() + LOG_EVERY_SECONDS
                    logger.error(  # noqa: TRY400 - its stack explains nothing
                        "The scheduler cannot reach the database: %s. Tasks wait in it safely and go on when it is "
                        "back",
                        first_line(error),
                        extra={"action": "tick_failed", **statement_of(error)},
                    )
                self._delay_watchdogs()
                self._stopping.wait(1.0)
            self.pulse.beat()
            self._stopping.wait(max(0.0, self._tick_seconds - (time.monotonic() - started)))
        self._leadership.release()
        close_old_connections()

    def _delay_watchdogs(self) -> None:
        """After an outage everything seems old: watchdogs wait until the other steps have caught up."""
        for step in self._steps:
            if step.every_seconds >= WATCHDOG_SECONDS:
                step.due_at = time.monotonic() + SETTLING_SECONDS

    def check_clock(self, now: datetime, monotonic: float) -> None:
        """Handles a machine clock that was set: everything would seem old, or planned for much later.

        The leader shifts the times in the database; if that fails it is tried again with the next tick.
        """
        jump = self._clock_jumps.seconds_since_last(now, monotonic)
        if jump:
            self._delay_watchdogs()
            self._set_back_seconds = max(0.0, self._set_back_seconds - jump) if self._leadership.is_held else 0.0
        if jump > 0:
            logger.warning("The clock was set forward %.0f s", jump, extra={"action": "clock_set_forward"})
        if self._set_back_seconds:
            clock.shift_times(self._set_back_seconds, now=now)
            self._set_back_seconds = 0.0

    def tick(self, *, now: datetime) -> int:
        """Runs the steps that are due; returns how much they found. Does nothing where another scheduler leads."""
        if not self._leadership.hold(now):
            return 0
        found = 0
        for step in self._steps:
            if time.monotonic() >= step.due_at:
                step.due_at = time.monotonic() + step.every_seconds
                found += self._run_step(step, now)
                self.pulse.beat()  # many slow steps are a slow tick, not a stalled loop
        return found

    @staticmethod
    def _run_step(step: Step, now: datetime) -> int:
        try:
            return step.run(now)
        except DATABASE_AWAY as error:
            if getattr(error.__cause__, "pgcode", None) not in CONTENTION:  # the database is away: all steps would fail
                raise
            logger.warning(
                "Step %s met another writer and is done again: %s",
                step.name,
                first_line(error),
                extra={"action": "step_put_off", "step": step.name, **statement_of(error)},
            )
            return 0
        except Exception:
            logger.exception("Scheduler step %s failed", step.name, extra={"action": "step_failed", "step": step.name})
            return 0
