"""Briefs that are built ahead of the question, while there are questions.

Guards a probe that asks every few seconds against paying for the answer itself: with 300 scrapers a document takes tens
of milliseconds, and each time it would be the probe that waits for it. One thread a process builds what was asked for
within the last minute, at most once a second and in at most a tenth of the time; when nobody asks any more it ends, and
so does its connection to the database. It only ever makes answers quicker: without it, or when it is stuck, whoever
asks builds the answer, as before.
"""

from __future__ import annotations

import atexit
import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import close_old_connections, connections

from monitoring.brief import Brief

logger = logging.getLogger(__name__)

WANTED_SECONDS = 60.0
MOST_SECONDS_APART = 2.0
SHARE_OF_TIME = 10  # building may take one part of so many
# Processes that share their answers are out of step by this much, so that one builds and the others find it done.
OUT_OF_STEP_SECONDS = 0.3
STOP_SECONDS = 1.0
T = TypeVar("T")


class Keeper:
    """The thread, which runs while one of its briefs is wanted. Off until `switch_on`: not every process serves."""

    def __init__(self, *, wanted_seconds: float = WANTED_SECONDS) -> None:
        self._wanted_seconds = wanted_seconds
        self._asked_at: dict[WarmBrief[Any], float] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_on = False

    def switch_on(self) -> None:
        """For the life of a process that answers requests."""
        self._stopping.clear()
        self.is_on = True
        atexit.register(self.stop)

    def stop(self) -> None:
        self.is_on = False
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join(STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def want(self, brief: WarmBrief[Any]) -> None:
        """Somebody has asked for it. Costs nothing while the thread runs."""
        if not self.is_on:
            return
        with self._lock:
            self._asked_at[brief] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="keep-warm", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            while (due := self._next()) is not None:
                brief, seconds = due
                if not self._stopping.wait(seconds):
                    self._refresh(brief)
        finally:
            connections.close_all()

    def _next(self) -> tuple[WarmBrief[Any], float] | None:
        """What is due first, and in how long. None: nothing is wanted, and the thread is no more."""
        with self._lock:
            limit = time.monotonic() - self._wanted_seconds
            self._asked_at = {brief: at for brief, at in self._asked_at.items() if at > limit}
            if not self._asked_at or self._stopping.is_set():
                self._thread = None
                return None
            return min(((brief, brief.due_in_seconds) for brief in self._asked_at), key=lambda due: due[1])

    def _refresh(self, brief: WarmBrief[Any]) -> None:
        """A bug in a builder must not end the thread; whoever asks meets it too, and says so."""
        close_old_connections()
        try:
            brief.refresh()
        except Exception:
            logger.exception("An answer could not be built ahead", extra={"action": "keep_warm_failed"})
            self._stopping.wait(MOST_SECONDS_APART)
        finally:
            close_old_connections()


keeper = Keeper()


class WarmBrief(Brief[T]):
    """A brief that is built ahead while it is wanted. Who asks waits only for the first, or for one that is overdue."""

    def __init__(
        self,
        build: Callable[[], T],
        *,
        seconds: float = 1.0,
        at_most_seconds: float = 4.0,
        age_of: Callable[[T], float] | None = None,
        keeper: Keeper = keeper,
    ) -> None:
        super().__init__(build, seconds=seconds, at_most_seconds=at_most_seconds, age_of=age_of)
        self._keeper = keeper
        self._step_seconds = random.uniform(0, OUT_OF_STEP_SECONDS)  # noqa: S311 - not a secret

    def get(self) -> T:
        self._keeper.want(self)
        return super().get()

    @property
    def due_in_seconds(self) -> float:
        apart = min(MOST_SECONDS_APART, max(self._seconds, SHARE_OF_TIME * self.took_seconds))
        return max(0.0, apart + self._step_seconds - self.age_seconds)

    def _is_on_its_way(self) -> bool:
        return self._keeper.is_running or super()._is_on_its_way()
