"""Writes the access log behind the requests' backs: a bounded queue, and a thread that stores it every second.

Guards against the log slowing or breaking the API: a request only appends to a queue. Rows and the sums by the hour are
one transaction: an attempt is in both or in neither. While the database is away rows wait, up to MAX_WAITING; beyond
that the oldest are dropped, counted and reported, because an API that stops to protect its log serves nobody. A process
that ends meanwhile leaves them on disk for the next one; one that is killed loses at most the last second's rows.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from multiprocessing import util as multiprocessing_util

from django.db import DatabaseError, connection, transaction
from prometheus_client import Counter

from apiauth import access_leftovers, attempts
from apiauth.attempts import Attempt
from victoryline.lib import pg_wait, presence
from victoryline.lib.store import STORE_AWAY

logger = logging.getLogger(__name__)

BATCH = 500
FLUSH_SECONDS = 1.0
MAX_WAITING = 10_000
TELL_EVERY_SECONDS = 60.0
# At the end of a process, for each answer of the database. Whoever ends us kills us a few seconds later.
LAST_SECONDS = 2.0
dropped_total = Counter("api_access_log_dropped_total", "Access-log rows that could not be kept.")


class AccessWriter:
    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._waiting: deque[Attempt] = deque()
        self._in_hand: list[Attempt] = []  # on its way into the database
        self._max_waiting = max_waiting
        self._wake = threading.Event()
        self._flushing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._pid = 0
        self._stored = 0
        self._dropped_unreported = 0
        self._tell_again_at = 0.0
        self._has_taken_up = False

    def write(self, attempt: Attempt) -> None:
        """Never blocks and never raises."""
        waiting = self._waiting
        if len(waiting) >= self._max_waiting:
            self._drop_oldest()
        waiting.append(attempt)
        if len(waiting) == BATCH:  # beyond it the thread is awake, or there is no database to write to
            self._wake.set()
        if self._pid != os.getpid():
            self._start()

    def write_at_once(self, attempt: Attempt) -> None:
        """For tests: the row alone, in the transaction of whoever asks."""
        attempts.insert([attempt])

    def forget(self) -> None:
        """For tests: what waits is nobody's, nor what others left behind."""
        self._waiting.clear()
        self._has_taken_up = True
        self._dropped_unreported = 0

    def flush(self) -> int:
        """Stores what waits and returns how many rows that were; keeps them while the database is away."""
        with self._flushing:
            before = self._stored
            self._flush()
            stored = self._stored - before
        self._report_drops()
        return stored

    def _flush(self) -> None:
        while batch := [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]:
            self._in_hand = batch
            try:
                self._store(batch)
            except STORE_AWAY as error:
                self._waiting.extendleft(reversed(batch))
                self._in_hand = []
                presence.database.report(error)
                self._tell_that_it_waits(error)
                break
            except Exception:
                self._in_hand = []
                self._drop(len(batch))  # a mistake of ours, which the thread tells: not without a number
                raise

    def _store(self, batch: list[Attempt]) -> None:
        """Empties `batch`, or leaves in it what isn't stored because the database went away."""
        try:
            self._store_together(batch)
            batch.clear()
        except STORE_AWAY:
            raise
        except DatabaseError:
            # One bad row must not take its neighbours with it.
            while batch:
                self._store_one(batch[0])
                del batch[0]

    def _store_one(self, attempt: Attempt) -> None:
        # A consumer who was deleted a moment ago is nobody now, as in the rows that are there already.
        for candidate in (attempt, attempt._replace(consumer=None)):
            try:
                self._store_together([candidate])
                return
            except STORE_AWAY:
                raise
            except DatabaseError:
                continue
        self._drop(1)

    def _store_together(self, batch: list[Attempt]) -> None:
        with transaction.atomic():
            attempts.store(batch)
        self._stored += len(batch)

    def _drop_oldest(self) -> None:
        try:
            self._waiting.popleft()
        except IndexError:  # the thread was quicker: there is room
            return
        self._drop(1)

    def _drop(self, count: int) -> None:
        dropped_total.inc(count)
        self._dropped_unreported += count

    def _report_drops(self) -> None:
        if self._dropped_unreported:
            count, self._dropped_unreported = self._dropped_unreported, 0
            logger.error("Access-log rows were dropped", extra={"action": "access_log_dropped", "dropped_count": count})

    def _tell_that_it_waits(self, error: Exception) -> None:
        if time.monotonic() >= self._tell_again_at:
            self._tell_again_at = time.monotonic() + TELL_EVERY_SECONDS
            logger.warning(
                "Access log waits for the database, %d rows so far: %s",
                len(self._waiting),
                error,
                extra={"action": "access_log_waits", "waiting": len(self._waiting)},
            )

    def _start(self) -> None:
        """Once a process, on its first row: a thread doesn't survive a fork."""
        with self._starting:
            if self._pid == os.getpid():
                return
            self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()
        atexit.register(self._last_flush)
        # Children of multiprocessing may leave without running atexit's handlers; this one they do run.
        multiprocessing_util.Finalize(self, self._last_flush, exitpriority=10)

    def _run(self) -> None:
        while True:
            self._wake.wait(FLUSH_SECONDS)
            self._wake.clear()
            if presence.database.is_away() or (self._has_taken_up and not self._waiting):
                continue
            try:
                self._write_what_waits()
            except Exception:
                logger.exception("Access log could not be written", extra={"action": "access_log_failed"})

    def _write_what_waits(self) -> None:
        try:
            self.take_up()
            self.flush()
        finally:
            connection.close()  # back into the pool: the next row may be long in coming

    def take_up(self) -> None:
        """Once a process: what others had to leave behind. While the database is away it is left where it is."""
        if self._has_taken_up:
            return
        try:
            count = access_leftovers.take_up(self._store)
        except STORE_AWAY as error:
            presence.database.report(error)
            return
        self._has_taken_up = True
        if count:
            logger.info(
                "Access log took up %d rows that an earlier process could not write",
                count,
                extra={"action": "access_log_taken_up", "taken_up": count},
            )

    def _last_flush(self) -> None:
        """Nothing is lost: what can't be written now is left on disk, also what the thread has in hand."""
        is_ours = self._flushing.acquire(timeout=LAST_SECONDS)
        try:
            # Waiting for a database that is away would only make the end of the process late.
            if is_ours and self._waiting and not presence.database.is_away():
                self._flush_for_the_last_time()
            left = [*self._in_hand, *self._waiting]
            self._in_hand = []
            self._waiting.clear()
            self._drop(len(left) - access_leftovers.keep(left))
            self._report_drops()
        finally:
            if is_ours:
                self._flushing.release()

    def _flush_for_the_last_time(self) -> None:
        try:
            with pg_wait.within(LAST_SECONDS):
                self._flush()
        except Exception:
            logger.exception("Access log could not be written", extra={"action": "access_log_failed"})
        finally:
            connection.close()


writer = AccessWriter()
