"""A worker process: Dramatiq's threads and only actor, the loop thread with the browser, and the heartbeat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import dramatiq
from django.db import DatabaseError, InterfaceError, close_old_connections, connection
from django.utils import timezone
from dramatiq.asyncio import EventLoopThread, get_event_loop_thread

from scraping import journal
from scraping.browser.egress.upstream_proxies import ProxyPlan
from scraping.browser.health import HealthMonitor, RecyclePolicy
from scraping.browser.host import BrowserHost, Replacement
from scraping.browser.launcher import BrowserOptions
from scraping.browser.memory_guard import MemoryGuard, MemoryLimits
from scraping.browser.sessions import Sessions
from scraping.configuration import policies
from scraping.documents.publisher import publisher
from scraping.matches.watches import MIN_FREE_MEMORY_MB
from scraping.outage.keeper import OutageKeeper
from scraping.outage.spool import Spool, SpoolLimits
from scraping.reading.reader import Reader
from scraping.reading.tokens import Tokens
from scraping.readings import report_stage
from scraping.recovery.orphans import OrphanSweep
from scraping.stats.read_stats import ReadStats
from scraping.worker.engine import Engine
from scraping.worker.heartbeat import Heartbeat, watch_loop, watch_worker
from scraping.worker.scrape import scrape
from scraping.worker.upkeep import CommandRunner, DiskGuard, RequestModeRows, TokenWatch
from victoryline.configuration import Config
from victoryline.lib.hint_broker import QUEUE
from victoryline.lib.units import MEGABYTE
from victoryline.lib.watchdog import StallLimits, Watchdog

logger = logging.getLogger(__name__)
T = TypeVar("T")
DueHints = Callable[[int, datetime], list[dramatiq.Message[None]]]

HEARTBEATS_PER_LEASE = 5  # four may fail before the lease of a task ends

_engine: Engine | None = None


def run_task(*task_ids: int) -> None:
    """Dramatiq's only actor: runs the tasks that a hint names. The message is never retried, delayed or stored."""
    try:
        # A connection that broke while the thread was idle stays broken until it is closed, health checks or not.
        close_old_connections()
        if _engine is None:
            raise RuntimeError("no worker is running in this process")
        if _engine.takes_work:
            scrape(task_ids, _engine)
    except Exception:  # the tasks are unfinished in the journal; the broker must not retry
        logger.exception(
            "Tasks %s could not be run; they will be hinted again", task_ids, extra={"action": "task_not_run"}
        )
    finally:
        close_old_connections()


def _loop_thread(coroutine: Coroutine[Any, Any, Any]) -> EventLoopThread:
    thread = get_event_loop_thread()
    if thread is None:
        coroutine.close()
        raise RuntimeError("the loop thread is not running")
    if connection.vendor == "postgresql":
        close_old_connections()  # back into the pool: while this thread waits for the network, others can use it
    return thread


def run_on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on this process's loop thread and waits for it."""
    try:
        return _loop_thread(coroutine).run_coroutine(coroutine)
    finally:
        report_stage()  # a task that reads page after page makes progress within one stage


def start_on_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Starts a coroutine on this process's loop thread and does not wait for it."""
    asyncio.run_coroutine_threadsafe(coroutine, _loop_thread(coroutine).loop)


@dataclass(frozen=True)
class WorkerOptions:
    worker_id: str
    config: Config
    browser: BrowserOptions
    stall_limits: StallLimits
    temp_dir: Path


class EngineParts(dramatiq.Middleware):
    """The parts that live as long as Dramatiq's worker: browser host, engine, heartbeat.

    Added after Dramatiq's AsyncIO, so that the loop runs before these start and until these have stopped.
    """

    def __init__(self, options: WorkerOptions, watchdog: Watchdog) -> None:
        self._options = options
        self._watchdog = watchdog
        self._sessions: Sessions | None = None
        self._heartbeat: Heartbeat | None = None
        self._orphans: OrphanSweep | None = None

    def before_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        global _engine  # noqa: PLW0603 - a worker process has exactly one engine
        options, worker_id, config = self._options, self._options.worker_id, self._options.config
        self._sessions = sessions = run_on_loop(self._make_sessions())
        loop_thread = get_event_loop_thread()
        assert loop_thread is not None
        loop = loop_thread.loop
        read_stats = ReadStats()
        tokens = Tokens(dict(pair.split("=", 1) for pair in config.source_credentials.split()))
        reader = Reader(sessions, run_on_loop, start_on_loop, observer=read_stats, tokens=tokens)
        spool_limits = SpoolLimits(config.max_queue_size, config.max_queue_size_mb * MEGABYTE)
        keeper = OutageKeeper(
            worker_id=worker_id,
            reader=reader,
            policies=policies.current(),
            spool=Spool(config.var_dir / "spool", name=worker_id, limits=spool_limits),
            threads=config.worker_threads,
            running_tasks=lambda: _engine.held_tasks() if _engine else [],
        )
        _engine = Engine(
            worker_id=worker_id,
            reader=reader,
            policies=policies.current(),
            keeper=keeper,
            disk=DiskGuard(config.var_dir, worker_id=worker_id),
            read_stats=read_stats,
            log_unchanged_every=config.log_unchanged_every,
        )
        keeper.start()
        memory = MemoryGuard(
            sessions.host,
            MemoryLimits(config.memory_soft_limit_mb * MEGABYTE, config.memory_hard_limit_mb * MEGABYTE),
            on_loop=loop.call_soon_threadsafe,
            min_free_bytes=MIN_FREE_MEMORY_MB * MEGABYTE,
        )
        self._heartbeat = Heartbeat(
            _engine,
            sessions,
            every_seconds=policies.current().lease_seconds / HEARTBEATS_PER_LEASE,
            memory=memory,
            tokens=TokenWatch(tokens, worker_id=worker_id),
            commands=CommandRunner(sessions, worker_id=worker_id, on_loop=loop.call_soon_threadsafe),
            request_modes=RequestModeRows(reader.request_modes, on_loop=loop.call_soon_threadsafe),
            renderers=reader.renderer_pids,
        )
        self._heartbeat.start()
        self._orphans = OrphanSweep(is_memory_short=lambda: memory.is_machine_short)
        self._orphans.start()
        publisher.start()
        watch_worker(self._watchdog, worker, _engine, self._heartbeat, options.stall_limits)
        watch_loop(self._watchdog, loop, options.stall_limits)

    def after_worker_shutdown(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        global _engine
        engine, _engine = _engine, None
        if engine is not None:
            try:
                journal.release(engine.held_tasks(), worker_id=engine.worker_id, now=timezone.now())
            except (DatabaseError, InterfaceError) as error:  # their leases expire instead
                logger.warning("Tasks were not returned to the journal: %s", error, extra={"action": "release_failed"})
            if engine.keeper is not None:
                engine.keeper.stop()
        if self._sessions is not None:
            run_on_loop(self._sessions.stop())
            run_on_loop(_cancel_others())
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._orphans is not None:
            self._orphans.stop()
        publisher.stop()

    async def _make_sessions(self) -> Sessions:
        config = self._options.config
        policy = RecyclePolicy(max_age_seconds=config.scraper_max_lifetime_hours * 3600.0)
        host = BrowserHost(
            self._options.browser,
            self._report_launch,
            recycle_policy=policy,
            own_temp_dir=self._options.temp_dir,
            has_adaptive_timeouts=config.enable_adaptive_timeouts,
        )
        HealthMonitor(host).start()
        return Sessions(host, ProxyPlan.of(config))

    def _report_launch(self, launch: Replacement) -> None:
        level = logging.INFO if launch.launches == 1 else logging.WARNING
        logger.log(
            level,
            "Chromium started in %.1f s (%s)",
            launch.seconds,
            launch.reason,
            extra={"action": "browser_started", "launches": launch.launches},
        )
        if launch.launches > 1 and self._heartbeat is not None:
            self._heartbeat.announce(launch)


def hints_from_journal(due_hints: DueHints, limit: int) -> list[dramatiq.Message[Any]]:
    """Returns hints for due tasks from the journal. The broker's consumer calls it while Redis is unreachable."""
    if _engine is None or not _engine.takes_work:
        return []
    try:
        close_old_connections()
        return list(due_hints(limit, timezone.now()))
    except Exception as error:  # noqa: BLE001 - the database is unreachable too; the next database call reports it
        logger.debug("The journal could not be read for hints: %s", error)
        return []
    finally:
        close_old_connections()


async def _cancel_others() -> None:
    """Cancels what still waits on the loop, so that it stops without warnings."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class WorkerProcess:
    def __init__(
        self, broker: dramatiq.Broker, options: WorkerOptions, watchdog: Watchdog, *, due_hints: DueHints
    ) -> None:
        self._options = options
        broker.add_middleware(EngineParts(options, watchdog))
        dramatiq.actor(broker=broker, queue_name=QUEUE)(run_task)
        if hasattr(broker, "own_hints"):  # the Redis broker; the in-process broker is always reachable
            broker.own_hints = partial(hints_from_journal, due_hints)
        self._dramatiq = dramatiq.Worker(broker, worker_threads=options.config.worker_threads, worker_timeout=100)

    def start(self) -> None:
        self._dramatiq.start()
        logger.info("Worker %s is ready", self._options.worker_id, extra={"action": "worker_started"})

    def stop(self, *, timeout_seconds: float) -> None:
        """Finishes or returns running tasks, closes the browser, ends the threads."""
        logger.info("Worker %s is stopping", self._options.worker_id, extra={"action": "worker_stopping"})
        self._dramatiq.stop(timeout=int(timeout_seconds * 1000))
        close_old_connections()
