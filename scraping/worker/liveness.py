"""The signs by which the watchdog knows that a worker moves: tasks, Dramatiq's threads, event loop, heartbeat."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from threading import Thread

import dramatiq

from scraping.worker.engine import Engine
from scraping.worker.heartbeat import Heartbeat
from victoryline.lib.watchdog import Sign, StallLimits, Watchdog

DEAD_AFTER_SECONDS = 2.0  # a thread does not come back; the second look is for one that is about to start


def watch_worker(
    watchdog: Watchdog, worker: dramatiq.Worker, engine: Engine, heartbeat: Heartbeat, stall_limits: StallLimits
) -> None:
    watchdog.watch(Sign(engine.moves, stall_limits.task_seconds))
    watchdog.watch(Sign(_alive(lambda: _dramatiq_threads(worker)), DEAD_AFTER_SECONDS))
    watchdog.watch(Sign(_alive({"the heartbeat": heartbeat}.items), DEAD_AFTER_SECONDS))
    watchdog.watch(Sign(heartbeat.pulse.reads("the heartbeat"), stall_limits.store_seconds))
    rounds = getattr(worker.broker, "rounds", None)
    if rounds is not None:
        # Asks the journal itself while Redis is away, so that it may wait for the database too.
        watchdog.watch(Sign(lambda: {f"the consumer of {name}": rounds[name] for name in worker.consumers},
                            stall_limits.store_seconds))  # fmt: skip


def watch_loop(watchdog: Watchdog, loop: asyncio.AbstractEventLoop, stall_limits: StallLimits) -> None:
    watchdog.watch(Sign(_LoopSign(loop).read, stall_limits.stall_seconds))


def watch_thread(watchdog: Watchdog, name: str, thread: Thread) -> None:
    watchdog.watch(Sign(_alive({name: thread}.items), DEAD_AFTER_SECONDS))


class _LoopSign:
    """A callback at every look. The loop may be as slow as it likes, it must only get round to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asked = self._answered = 0

    def read(self) -> Mapping[str, Hashable]:
        if self._asked == self._answered:
            self._asked += 1
            with suppress(RuntimeError):  # closed: it will not answer
                self._loop.call_soon_threadsafe(self._answer)
        return {"the event loop": self._answered}

    def _answer(self) -> None:
        self._answered = self._asked


def _dramatiq_threads(worker: dramatiq.Worker) -> Iterable[tuple[str, Thread]]:
    for name, consumer in list(worker.consumers.items()):
        yield f"the consumer thread of {name}", consumer
    for number, thread in enumerate(list(worker.workers), 1):
        yield f"worker thread {number}", thread


def _alive(threads: Callable[[], Iterable[tuple[str, Thread]]]) -> Callable[[], Mapping[str, Hashable]]:
    """A living thread always has another value; a dead one's stays."""
    looks = itertools.count(1)
    return lambda: {name: next(looks) if thread.is_alive() else 0 for name, thread in threads()}
