"""Runs one night: the scheduler's loop, the workers and their heartbeats, on a clock that jumps to the next event.

The code of the system is not replaced, except for its clock (`django.utils.timezone.now`, `time.monotonic`), the
network (`SimulatedReader`) and the processes: each hint that a worker runs is a greenlet, which gives control back
while it waits for a response. A killed worker's greenlets are never resumed, as if the process had ended.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any
from unittest import mock

import dramatiq
from django.conf import settings
from django.utils import timezone
from dramatiq.brokers.stub import StubBroker
from greenlet import getcurrent, greenlet

from benchmarks.night.faults import FaultKind
from benchmarks.night.measures import Recorder, Sample
from benchmarks.night.rules import Rules, Violation
from benchmarks.night.site import Request, SimulatedAdapter, SimulatedReader
from benchmarks.night.world import BEGIN, SHORT_COOLDOWN_SECONDS, WORKERS, Script, World, moment
from scraping import journal
from scraping.configuration import policies
from scraping.models import CommandKind, Worker
from scraping.reading.targets import Target
from scraping.recovery import worker_commands
from scraping.scheduler import due, limits
from scraping.scheduler.loop import SchedulerLoop, load_steps
from scraping.sources import ADAPTERS
from scraping.worker import failures
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from victoryline.lib.hint_broker import QUEUE

TICK_SECONDS = 1.0  # of the scheduler; a real one ticks more often
SAMPLE_SECONDS = 15.0
MONOTONIC_START = 1000.0
EXCLUDED_STEPS = {
    "scraping.scheduler.retention.prune_seldom": "removes files by the machine's clock",
    "victoryline.retention.prune": "removes files by the machine's clock",
    "scraping.scheduler.other_tasks.open_gap_tasks": "simulated sources have no lists of events",
    "scraping.matches.endings.settle_ended_matches": "simulated sources have no lists of events",
    "scraping.scheduler.upkeep.write_match_logs": "writes files, of settled matches only",
    "scraping.scheduler.other_tasks.open_lineup_tasks": "simulated sources have no line-ups",
    "scraping.scheduler.other_tasks.open_submission_tasks": "no submissions in a night",
    "scraping.scheduler.other_tasks.open_final_submission_tasks": "no submissions in a night",
    "scraping.scheduler.upkeep.close_finished_jobs": "no jobs in a night",
}


class SimulatedClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return moment(self.seconds)

    def monotonic(self) -> float:
        return MONOTONIC_START + self.seconds


class SimulatedWorker:
    """A worker process: its engine, and the hints that it runs at the moment."""

    def __init__(self, night: Night, number: int, life: int) -> None:
        self.number = number
        self.reader = SimulatedReader(night)
        self.engine = Engine(worker_id=f"worker-{number}.{life}", reader=self.reader, policies=policies.current())
        self.running: set[greenlet] = set()
        self.is_alive = True
        self._started_at = night.clock.now()

    def beat(self, now: datetime) -> None:
        """Does the work of `scraping.worker.heartbeat` that needs no process."""
        engine = self.engine
        until = now + timedelta(seconds=engine.policies.lease_seconds)
        journal.extend_leases(engine.held_tasks(), worker_id=engine.worker_id, until=until)
        row = {"host": "simulated", "pid": self.number + 1, "started_at": self._started_at, "heartbeat_at": now}
        Worker.objects.update_or_create(worker_id=engine.worker_id, defaults=row)
        engine.outcomes.flush(now=now)
        engine.read_stats.flush(now=now)
        for order in worker_commands.take(engine.worker_id, now=now):
            if order.kind == CommandKind.FRESH_SESSION:
                self.reader.renewed_at[order.source_key] = (now - BEGIN).total_seconds()
            worker_commands.finish(order, outcome="done by the simulated worker", now=now)


@dataclass(frozen=True)
class NightResult:
    script: Script
    world: World
    samples: tuple[Sample, ...]
    figures: dict[str, Any]
    violations: tuple[Violation, ...]

    def document(self) -> dict[str, Any]:
        """Returns the figures and violations as values of JSON."""
        return {
            "seed": self.script.seed,
            "faults": self.script.faults,
            "fault_kinds": dict(sorted(Counter(fault.kind.value for fault in self.world.faults.all).items())),
            **self.figures,
            "violations": [{"t": round(one.t, 1), "rule": one.rule, "detail": one.detail} for one in self.violations],
        }


class Night:
    """Runs on an empty database, which holds the rows of the night afterwards."""

    def __init__(self, script: Script) -> None:
        self.script, self.world, self.clock = script, World(script), SimulatedClock()
        self.rng = random.Random(script.seed + 1_000_003)
        self.recorder, self.rules = Recorder(self), Rules(self)
        self.workers: list[SimulatedWorker] = []
        self._broker = StubBroker()
        self._lives, self._order = count(1), count()
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []

    def run(self) -> NightResult:
        due._given.clear()  # noqa: SLF001 - the scheduler's memory, as after its start
        limits.spacing.clear()
        with self._surroundings():
            for source in self.world.sources:
                source.row().save()
            self._plan()
            while self._events and self._events[0][0] <= self.script.seconds:
                self.clock.seconds, _, act, args = heappop(self._events)
                act(*args)
            self.clock.seconds = self.script.seconds
            figures = self.recorder.figures()
            self.rules.check_end(figures)
        return NightResult(self.script, self.world, tuple(self.recorder.samples), figures, tuple(self.rules.violations))

    def sleep(self, seconds: float) -> None:
        """Called within a worker's flow: gives control back until the time has passed."""
        hub = getcurrent().parent
        assert hub is not None
        hub.switch(seconds)

    def sent(self, request: Request, target: Target | None) -> None:
        """Called for every request that is sent to a source."""
        self.recorder.count_request(request, is_retry=target is not None and target.is_suspect)
        self.rules.check_request(request)

    def in_flight(self, source_key: str) -> int:
        return sum(
            request.source_key == source_key
            for worker in self.workers
            if worker.is_alive
            for request in worker.reader.in_flight
        )

    def _at(self, seconds: float, act: Callable[..., None], *args: Any) -> None:
        heappush(self._events, (seconds, next(self._order), act, args))

    def _every(self, seconds: float, act: Callable[[], None]) -> None:
        act()
        self._at(self.clock.seconds + seconds, self._every, seconds, act)

    def _plan(self) -> None:
        steps = [(path, every) for path, every in settings.SCHEDULER_STEPS if path not in EXCLUDED_STEPS]
        lease = policies.current().lease_seconds
        loaded = load_steps(steps)
        for step in loaded:
            step.run = self.recorder.counted(step.name, step.run)
        loop = SchedulerLoop(loaded, holder="simulated", tick_seconds=TICK_SECONDS, lease_seconds=lease)
        self.workers = [SimulatedWorker(self, number, next(self._lives)) for number in range(WORKERS)]
        for fault in self.world.faults.all:
            if fault.kind is FaultKind.WORKER_KILLED:
                self._at(fault.begin, self._kill, fault.target, fault.end)
        self._every(lease / 4, self._beat)
        self._every(TICK_SECONDS, partial(self._tick, loop))
        self._at(SAMPLE_SECONDS, self._every, SAMPLE_SECONDS, self.recorder.sample)

    def _beat(self) -> None:
        for worker in self.workers:
            if worker.is_alive:
                worker.beat(self.clock.now())

    def _tick(self, loop: SchedulerLoop) -> None:
        if self.world.faults.active(FaultKind.SCHEDULER_LOST, self.clock.seconds) is None:
            loop.tick(now=self.clock.now())
        self._deliver_hints()

    def _deliver_hints(self) -> None:
        """Gives waiting hints to workers with a free thread; a hint that is lost is given to none."""
        queue = self._broker.queues.get(QUEUE)
        is_lost = self.world.faults.active(FaultKind.HINTS_LOST, self.clock.seconds) is not None
        while queue is not None and not queue.empty():
            free = [one for one in self.workers if one.is_alive and len(one.running) < settings.CONFIG.worker_threads]
            if not free and not is_lost:
                return
            message = dramatiq.Message.decode(queue.get_nowait())
            if not is_lost:
                worker = min(free, key=lambda one: len(one.running))
                flow = greenlet(partial(scrape, message.args, worker.engine))
                worker.running.add(flow)
                self._resume(worker, flow)

    def _resume(self, worker: SimulatedWorker, flow: greenlet) -> None:
        if not worker.is_alive:
            return
        seconds = flow.switch()
        if flow.dead:
            worker.running.discard(flow)
            self._at(self.clock.seconds, self._deliver_hints)
        else:
            self._at(self.clock.seconds + seconds, self._resume, worker, flow)

    def _kill(self, number: int, back_at: float) -> None:
        self.workers[number].is_alive = False
        self._at(back_at, self._restart, number)

    def _restart(self, number: int) -> None:
        self.workers[number].is_alive = False  # a second kill may have come before
        self.workers[number] = SimulatedWorker(self, number, next(self._lives))
        self.workers[number].beat(self.clock.now())

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        """Installs the clock, the broker, the adapter, reproducible jitter of retries, and the listeners."""
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(timezone, "now", self.clock.now))
            stack.enter_context(mock.patch.object(time, "monotonic", self.clock.monotonic))
            stack.enter_context(mock.patch.object(dramatiq.broker, "global_broker", self._broker))
            stack.enter_context(mock.patch.object(failures, "_chance", random.Random(self.script.seed)))
            stack.enter_context(mock.patch.dict(ADAPTERS, simulated=SimulatedAdapter(self.world)))
            stack.enter_context(self.recorder.listening())
            stack.enter_context(_collected_errors(self.rules.step_failed))
            if self.script.is_short:
                stack.enter_context(_short_cooldown())
            yield


@contextmanager
def _short_cooldown() -> Iterator[None]:
    """Lets the breaker of a source try again soon enough for a short night."""
    usual = policies.current()
    breaker = replace(usual.source_breaker, timeout_seconds=SHORT_COOLDOWN_SECONDS)
    with mock.patch.object(policies, "current", return_value=replace(usual, source_breaker=breaker)):
        yield


@contextmanager
def _collected_errors(on_failure: Callable[[str], None]) -> Iterator[None]:
    """Silences the log, except that a scheduler step that fails is reported."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if getattr(record, "action", "") == "step_failed":
                on_failure(f"{record.getMessage()}: {record.exc_info[1] if record.exc_info else ''}")

    root = logging.getLogger()
    handlers, disabled = root.handlers, root.manager.disable
    logging.disable(logging.WARNING)
    root.handlers = [Collector()]
    try:
        yield
    finally:
        logging.disable(disabled)
        root.handlers = handlers
