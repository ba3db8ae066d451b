"""A worker process: Dramatiq's threads, the loop thread with the browser, and the heartbeat."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import dramatiq
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.utils import timezone
from dramatiq.asyncio import get_event_loop_thread

from scraping import journal
from scraping.browser.host import BrowserHost, Replacement
from scraping.browser.options import BrowserOptions
from scraping.engine import Engine
from scraping.heartbeat import Heartbeat
from scraping.policies import Policies
from scraping.reading.reader import Reader

logger = logging.getLogger(__name__)
T = TypeVar("T")

_engine: Engine | None = None


def current_engine() -> Engine:
    """The engine of this process; only a worker has one."""
    if _engine is None:
        raise RuntimeError("no worker is running in this process")
    return _engine


def run_on_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this process's loop thread and wait for it."""
    thread = get_event_loop_thread()
    if thread is None:
        coroutine.close()
        raise RuntimeError("the loop thread is not running")
    return thread.run_coroutine(coroutine)


@dataclass(frozen=True)
class WorkerOptions:
    worker_id: str
    threads: int
    heartbeat_seconds: float
    browser: BrowserOptions
    policies: Policies


class EngineParts(dramatiq.Middleware):
    """The parts that live as long as Dramatiq's worker: browser host, engine, heartbeat.

    Added after Dramatiq's AsyncIO, so that the loop runs before these start and until these have stopped.
    """

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._host: BrowserHost | None = None
        self._heartbeat: Heartbeat | None = None

    def before_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        global _engine  # noqa: PLW0603 - a worker process has exactly one engine
        options = self._options
        self._host = run_on_loop(self._make_host())
        _engine = Engine(worker_id=options.worker_id, reader=Reader(self._host, run_on_loop), policies=options.policies)
        self._heartbeat = Heartbeat(_engine, self._host, every_seconds=options.heartbeat_seconds)
        self._heartbeat.start()

    def after_worker_shutdown(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:
        global _engine
        engine, _engine = _engine, None
        if engine is not None:
            self._give_back(engine)
        if self._host is not None:
            run_on_loop(self._host.stop())
            run_on_loop(_cancel_others())
        if self._heartbeat is not None:
            self._heartbeat.stop()

    async def _make_host(self) -> BrowserHost:
        return BrowserHost(self._options.browser, self._tell_launch)

    def _give_back(self, engine: Engine) -> None:
        """Unfinished tasks go back into the journal; if that fails, their leases run out instead."""
        try:
            journal.release(engine.held_tasks(), worker_id=engine.worker_id, now=timezone.now())
        except (DatabaseError, InterfaceError) as error:
            logger.warning("Tasks in hand were not given back: %s", error, extra={"action": "release_failed"})

    def _tell_launch(self, launch: Replacement) -> None:
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


async def _cancel_others() -> None:
    """End what is still waiting on the loop, so that it stops without complaint."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class WorkerProcess:
    """Dramatiq's worker with our parts around it."""

    def __init__(self, broker: dramatiq.Broker, options: WorkerOptions) -> None:
        self._options = options
        broker.add_middleware(EngineParts(options))
        self._dramatiq = dramatiq.Worker(broker, worker_threads=options.threads, worker_timeout=100)

    def start(self) -> None:
        self._dramatiq.start()
        logger.info("Worker %s is ready", self._options.worker_id, extra={"action": "worker_started"})

    def stop(self, *, timeout_seconds: float) -> None:
        """Finish or give back what is in hand, close the browser, end the threads."""
        logger.info("Worker %s is stopping", self._options.worker_id, extra={"action": "worker_stopping"})
        self._dramatiq.stop(timeout=int(timeout_seconds * 1000))
        close_old_connections()
