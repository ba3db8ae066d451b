"""A pool of PostgreSQL connections, one per process.

Our own, for a measured reason: a stopped (not dead) PostgreSQL blocks psycopg2 past statement_timeout, keepalives and
tcp_user_timeout, so every wait must go through the wait callback of `pg_wait`; and after a restart of the server a
persistent connection stays broken until it is closed, so idle ones must be checked. No pool library for psycopg2 does
both (fault 13 of the fault tests).

Guards against four things. Too many connections: callers wait, with a limit. Dead ones: an idle connection is checked
before it is lent, and a dead one discards all idle ones. An unreachable server: one caller tries, the others fail at
once, so that a web server does not fill up with waiting threads. Leaks: a connection whose thread ended without
returning it is noticed, and its place is free again; one that is held for a minute is logged with the holder's stack.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg2
from prometheus_client import Counter, Gauge, Histogram
from psycopg2.extensions import STATUS_READY, TRANSACTION_STATUS_IDLE, connection

from victoryline.lib import pg_wait

logger = logging.getLogger(__name__)

LOST_CHECK_SECONDS = 1.0
UPKEEP_SECONDS = 5.0
# A healthy pool lends within a millisecond; the average must stay below 0.1 s, and callers give up after 30 s.
WAIT = Histogram(
    "db_pool_wait_seconds",
    "Time until a caller had a database connection, or was refused one.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30),
)
CONNECTIONS = Gauge("db_pool_connections", "Database connections of this process, in use and idle.", ["state"])
LOST = Counter("db_pool_lost", "Connections that were never given back.")


@dataclass(frozen=True, kw_only=True)
class Limits:
    maximum: int  # lent and idle together
    kept: int  # most idle ones; further ones are closed when they are returned
    minimum: int  # idle ones that are always ready: opened ahead, and kept however long they are idle
    wait_seconds: float
    idle_seconds: float = 600.0
    lifetime_seconds: float = 1800.0
    held_seconds: float = 60.0  # one that is lent for longer is reported
    ping_seconds: float = 2.0  # timeout of the check (SELECT 1) of an idle connection
    trust_seconds: float = 0.5  # a connection that was used within this time is lent again without a check
    retry_seconds: float = 1.0  # between attempts while the server is unreachable; other callers fail at once


class PoolExhausted(psycopg2.OperationalError):
    """All connections stayed in use for as long as a caller may wait."""


class ServerAway(psycopg2.OperationalError):
    """The server could not be reached a moment ago, and another caller is trying again."""


@dataclass(frozen=True)
class _Kept:
    connection: connection
    opened_at: float
    idle_since: float


@dataclass
class _Lent:
    opened_at: float
    lent_at: float
    borrower: threading.Thread = field(default_factory=threading.current_thread)
    is_reported: bool = False


class Pool:
    def __init__(
        self, connect: Callable[[], connection], limits: Limits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connect, self._limits, self._clock = connect, limits, clock
        self._changed = threading.Condition()
        self._idle: list[_Kept] = []  # the last one is lent first, so that the others age and can be closed
        self._lent: dict[weakref.ref[connection], _Lent] = {}
        self._promised = 0  # places of callers that are opening or checking a connection
        # Filled by the garbage collector, at any moment in any thread: it must not wait for the lock.
        self._lost: deque[weakref.ref[connection]] = deque()
        self._away_because = ""
        self._try_at = 0.0
        self._is_trying = False
        self.is_closed = False

    @property
    def in_use(self) -> int:
        return len(self._lent) + self._promised

    @property
    def idle(self) -> int:
        return len(self._idle)

    def take(self) -> connection:
        """Returns a working connection; raises psycopg2.OperationalError if none is available in time."""
        began = self._clock()
        try:
            return self._take(began + self._limits.wait_seconds)
        finally:
            WAIT.observe(self._clock() - began)

    def give(self, taken: connection) -> None:
        """Takes a connection back after a rollback, or closes it."""
        is_reset = self._is_reset(taken)
        with self._changed:
            lent, now, leaving = self._lent.pop(weakref.ref(taken), None), self._clock(), [taken]
            is_young = lent is not None and now - lent.opened_at < self._limits.lifetime_seconds
            if lent and is_young and is_reset and not self.is_closed and len(self._idle) < self._limits.kept:
                self._idle.append(_Kept(taken, lent.opened_at, now))
                leaving = []
            leaving += self._idle_too_long(now)
            self._changed.notify()
        _close(leaving)

    def close(self) -> None:
        """Closes idle connections now, and lent ones when they are returned."""
        with self._changed:
            self.is_closed = True
            leaving = [kept.connection for kept in self._idle]
            self._idle.clear()
        _close(leaving)

    def start_upkeep(self) -> None:
        """Starts the thread that runs `upkeep` until the pool is closed or forgotten."""
        own = weakref.ref(self)

        def run() -> None:
            while (pool := own()) is not None and not pool.is_closed:
                with suppress(psycopg2.Error):  # the server is away: the next caller gets the reason
                    pool.upkeep()
                del pool
                time.sleep(UPKEEP_SECONDS)

        threading.Thread(target=run, name="database pool", daemon=True).start()

    def upkeep(self) -> None:
        """Reports connections that are held for long, and brings the number of idle ones to the minimum."""
        now = self._clock()
        with self._changed:
            self._reclaim_lost()
            late = [one for one in self._lent.values() if now - one.lent_at > self._limits.held_seconds]
            new = [one for one in late if not one.is_reported]
            for one in new:
                one.is_reported = True
            leaving = self._idle_too_long(now)
        _close(leaving)
        for one in new:
            _report_held(one, now - one.lent_at)
        while self._may_open_ahead():
            self._open_ahead()

    def _may_open_ahead(self) -> bool:
        """Returns whether an idle connection is missing, and counts it as promised."""
        with self._changed:
            wanted = len(self._idle) < self._limits.minimum and not self.is_closed and not self._away_because
            if not wanted or len(self._idle) + self.in_use >= self._limits.maximum:
                return False
            self._promised += 1
            return True

    def _open_ahead(self) -> None:
        try:
            opened = self._open()
            with self._changed:
                is_late = self.is_closed
                if not is_late:
                    self._idle.insert(0, _Kept(opened, self._clock(), self._clock()))
            if is_late:
                _close([opened])
        finally:
            with self._changed:
                self._promised -= 1
                self._changed.notify()

    def _idle_too_long(self, now: float) -> list[connection]:
        """Removes idle connections above the minimum that were not used for long, and too old ones; returns them."""
        idle_before, opened_before = now - self._limits.idle_seconds, now - self._limits.lifetime_seconds
        leaving = [kept for kept in self._idle if kept.opened_at <= opened_before]
        rest = [kept for kept in self._idle if kept.opened_at > opened_before]
        while len(rest) > self._limits.minimum and rest[0].idle_since <= idle_before:
            leaving.append(rest.pop(0))
        self._idle = rest
        return [kept.connection for kept in leaving]

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
                    self._lent[weakref.ref(taken, self._lost.append)] = _Lent(opened_at, self._clock())
                return taken
            finally:
                with self._changed:
                    self._promised -= 1
                    self._changed.notify()

    def _wait_for_a_place(self, deadline: float) -> _Kept | None:
        """Returns an idle connection, or None for the right to open one. Counted as promised until it is lent."""
        with self._changed:
            while True:
                self._reclaim_lost()
                if self._idle:
                    self._promised += 1
                    return self._idle.pop()
                if len(self._lent) + self._promised < self._limits.maximum:
                    if self._away_because:
                        if self._is_trying or self._clock() < self._try_at:
                            raise ServerAway(
                                f"The database is away and is tried again every second: {self._away_because}"
                            )
                        self._is_trying = True
                    self._promised += 1
                    return None
                left = deadline - self._clock()
                if left <= 0:
                    raise PoolExhausted(
                        f"All {self._limits.maximum} connections to the database stayed in use for "
                        f"{self._limits.wait_seconds:g} s; a larger DB_CONNECTION_POOL_SIZE allows more"
                    )
                self._changed.wait(min(left, LOST_CHECK_SECONDS))

    def _open(self) -> connection:
        try:
            opened = self._connect()
        except BaseException as error:  # after any error the next caller may try again
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
            with self._changed:  # the server was restarted or frozen: the other idle ones are broken too
                leaving = [kept.connection, *(other.connection for other in self._idle)]
                self._idle.clear()
            _close(leaving)
            return False

    def _is_reset(self, taken: connection) -> bool:
        """Returns True if it is outside of any transaction, after a rollback if needed."""
        try:
            if not taken.closed and taken.status != STATUS_READY:
                with pg_wait.within(self._limits.ping_seconds):
                    taken.rollback()
            return not taken.closed and taken.info.transaction_status == TRANSACTION_STATUS_IDLE
        except psycopg2.Error:
            return False

    def _reclaim_lost(self) -> None:
        while self._lost:
            lost = self._lent.pop(self._lost.popleft(), None)
            if lost is not None:
                LOST.inc()
                logger.warning(
                    "Thread %s never gave its database connection back; the pool has its place again",
                    lost.borrower.name,
                    extra={"action": "connection_lost"},
                )


def _report_held(lent: _Lent, seconds: float) -> None:
    frame = sys._current_frames().get(lent.borrower.ident or 0)  # noqa: SLF001 - the documented way to a thread's stack
    logger.warning(
        "Thread %s has held a database connection for %.0f s without returning it; its stack shows where it is now",
        lent.borrower.name,
        seconds,
        extra={"action": "connection_held", "stack": "".join(traceback.format_stack(frame)) if frame else ""},
    )


def _close(leaving: list[connection]) -> None:
    for one in leaving:
        with suppress(psycopg2.Error):
            one.close()
