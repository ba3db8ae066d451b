"""The pool: lends connections to threads and takes them back.

Guards against four things. Too many connections: callers wait, with a limit. Dead ones: whoever was idle is asked
before it is lent, and one dead means all are suspect. A server that is away: one caller tries, the others are told at
once, so that a web server does not fill up with waiting threads. Leaks: a connection whose thread ended without giving
it back is noticed, and its place is free again.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psycopg2
from psycopg2.extensions import STATUS_READY, TRANSACTION_STATUS_IDLE, connection

from victoryline.lib import pg_wait
from victoryline.pool import metrics
from victoryline.pool.limits import Limits

logger = logging.getLogger(__name__)

LOOK_FOR_LOST_SECONDS = 1.0


class PoolExhausted(psycopg2.OperationalError):
    """All connections stayed in use for as long as a caller may wait."""


class ServerAway(psycopg2.OperationalError):
    """The server could not be reached a moment ago, and somebody else is about to find out whether it is back."""


@dataclass(frozen=True)
class _Kept:
    connection: connection
    opened_at: float
    idle_since: float


@dataclass(frozen=True)
class _Lent:
    opened_at: float
    borrower: str


class Pool:
    def __init__(
        self, connect: Callable[[], connection], limits: Limits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connect, self._limits, self._clock = connect, limits, clock
        self._changed = threading.Condition()
        self._idle: list[_Kept] = []  # the last is lent first, so that the first ones age and can go
        self._lent: dict[weakref.ref[connection], _Lent] = {}
        self._promised = 0  # places of callers who are about to open or to ask a connection
        # Filled by the garbage collector, which may come at any moment in any thread: it must not wait for our lock.
        self._lost: deque[weakref.ref[connection]] = deque()
        self._away_because = ""
        self._try_at = 0.0
        self._is_trying = False
        self._is_closed = False

    @property
    def in_use(self) -> int:
        return len(self._lent) + self._promised

    @property
    def idle(self) -> int:
        return len(self._idle)

    def take(self) -> connection:
        """A connection that works. Raises psycopg2.OperationalError when there is none to be had in time."""
        began = self._clock()
        try:
            return self._take(began + self._limits.wait_seconds)
        finally:
            metrics.WAIT.observe(self._clock() - began)

    def give(self, taken: connection) -> None:
        """Take it back, as good as new, or close it."""
        with self._changed:
            lent = self._lent.get(weakref.ref(taken))
        is_good = lent is not None and self._is_reset(taken)
        with self._changed:
            self._lent.pop(weakref.ref(taken), None)
            now = self._clock()
            if (
                lent is not None
                and is_good
                and not self._is_closed
                and len(self._idle) < self._limits.kept
                and now - lent.opened_at < self._limits.lifetime_seconds
            ):
                self._idle.append(_Kept(taken, lent.opened_at, now))
                leaving = []
            else:
                leaving = [taken]
            leaving += self._retired(now)
            self._changed.notify()
        _close(leaving)

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        with self._changed:
            self._is_closed = True
            leaving = [kept.connection for kept in self._idle]
            self._idle.clear()
        _close(leaving)

    def _take(self, deadline: float) -> connection:
        while True:
            kept = self._wait_for_a_place(deadline)
            try:
                if kept is None:
                    taken, opened_at = self._open(), self._clock()
                elif self._is_alive(kept):
                    taken, opened_at = kept.connection, kept.opened_at
                else:
                    continue
                with self._changed:
                    borrower = threading.current_thread().name
                    self._lent[weakref.ref(taken, self._lost.append)] = _Lent(opened_at, borrower)
                return taken
            finally:
                with self._changed:
                    self._promised -= 1
                    self._changed.notify()

    def _wait_for_a_place(self, deadline: float) -> _Kept | None:
        """An idle connection, or None for the right to open one. Counted as promised until it is lent."""
        with self._changed:
            while True:
                self._reclaim_lost()
                if self._idle:
                    self._promised += 1
                    return self._idle.pop()
                if len(self._lent) + self._promised < self._limits.maximum:
                    self._check_the_gate()
                    self._promised += 1
                    return None
                left = deadline - self._clock()
                if left <= 0:
                    raise PoolExhausted(
                        f"All {self._limits.maximum} connections to the database stayed in use for "
                        f"{self._limits.wait_seconds:g} s; DB_POOL_MAX allows more"
                    )
                self._changed.wait(min(left, LOOK_FOR_LOST_SECONDS))

    def _check_the_gate(self) -> None:
        if not self._away_because:
            return
        if self._is_trying or self._clock() < self._try_at:
            raise ServerAway(f"The database is away and is tried again every second: {self._away_because}")
        self._is_trying = True

    def _open(self) -> connection:
        try:
            opened = self._connect()
        except BaseException as error:  # whatever ends this attempt, the next caller may make another
            with self._changed:
                self._away_because = str(error).strip() or type(error).__name__
                self._try_at, self._is_trying = self._clock() + self._limits.retry_seconds, False
            raise
        with self._changed:
            self._away_because, self._is_trying = "", False
        return opened

    def _is_alive(self, kept: _Kept) -> bool:
        now = self._clock()
        if now - kept.opened_at >= self._limits.lifetime_seconds:
            _close([kept.connection])
            return False
        if now - kept.idle_since < self._limits.trust_seconds and not kept.connection.closed:
            return True
        try:
            with pg_wait.within(self._limits.ping_seconds), kept.connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                return self._is_reset(kept.connection)
        except psycopg2.Error:
            with self._changed:  # the server was restarted, or frozen: the others fared no better
                leaving = [kept.connection, *(other.connection for other in self._idle)]
                self._idle.clear()
            _close(leaving)
            return False

    def _is_reset(self, taken: connection) -> bool:
        """Whether it is outside of any transaction, after a rollback where one is needed."""
        try:
            if not taken.closed and taken.status != STATUS_READY:
                with pg_wait.within(self._limits.ping_seconds):
                    taken.rollback()
            return not taken.closed and taken.info.transaction_status == TRANSACTION_STATUS_IDLE
        except psycopg2.Error:
            return False

    def _retired(self, now: float) -> list[connection]:
        """Those that were idle for too long, taken out. With the lock held."""
        oldest = now - self._limits.idle_seconds
        leaving: list[connection] = []
        while len(self._idle) > self._limits.minimum and self._idle[0].idle_since <= oldest:
            leaving.append(self._idle.pop(0).connection)
        return leaving

    def _reclaim_lost(self) -> None:
        while self._lost:
            lost = self._lent.pop(self._lost.popleft(), None)
            if lost is not None:
                metrics.LOST.inc()
                logger.warning(
                    "Thread %s never gave its database connection back; the pool has its place again",
                    lost.borrower,
                    extra={"action": "connection_lost"},
                )


def _close(leaving: list[connection]) -> None:
    for one in leaving:
        with suppress(psycopg2.Error):
            one.close()
