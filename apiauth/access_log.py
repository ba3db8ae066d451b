"""Records every request to a protected address and for a token: consumer, address, time, status, age of the data.

The middleware is outside of everything that may answer in a view's place (a limit, a wrong host, an error, an unknown
address), so that every answer is recorded. Authentication names the caller on Django's request, admitted or not:
`api_consumer` (primary key), `api_key_prefix`.

Guards against a log that slows or breaks the API: a request only appends a tuple to a bounded queue, which a thread
stores every second. Rows and hourly sums are one transaction: a record is in both or in neither. While the database is
away records wait, up to MAX_WAITING; beyond that the oldest are dropped, counted and reported. The end of the process
writes what is queued, or reports it as dropped; a process that is killed loses at most the last second's records.
"""

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing import util as multiprocessing_util

import jwt
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter

from apiauth import access_records, keys
from apiauth.access_records import LONGEST_PATH, AccessRecord
from apiauth.tokens import MAX_TOKEN_LENGTH
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY

logger = logging.getLogger(__name__)

LOGGED_PREFIXES = ("/api/", "/cricket-data", "/token")
OPEN = ("/api/schema", "/api/docs")
BATCH = 500
FLUSH_SECONDS = 1.0
MAX_WAITING = 10_000
# For each database call at the end of a process, which is killed a few seconds later.
LAST_SECONDS = 2.0
dropped_total = Counter("api_access_log_dropped_total", "Access-log rows that could not be kept.")


class AccessLogMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path
        if not path.startswith(LOGGED_PREFIXES) or path.rstrip("/") in OPEN:
            return self.get_response(request)
        began = time.perf_counter()
        response = self.get_response(request)
        seconds = time.perf_counter() - began
        found, headers, status = request.resolver_match, response.headers, response.status_code
        prefix = getattr(request, "api_key_prefix", "") or (_claimed_prefix(request) if status >= 400 else "")
        record = AccessRecord(  # by position, which takes half the time of passing names
            time.time(),
            getattr(request, "api_consumer", None),
            prefix,
            request.method or "",
            path[:LONGEST_PATH],
            (found.url_name or "") if found else "",
            status,
            headers.get("X-Data-Age-Seconds"),
            headers.get("X-Data-State") or "",
            seconds,
            getattr(request, "request_id", ""),
        )
        if settings.ACCESS_LOG_IS_SYNCHRONOUS:
            access_records.insert([record])
        else:
            writer.write(record)
        return response


def _claimed_prefix(request: HttpRequest) -> str:
    """Reads the prefix from the key or token without verifying it: it may help to find its owner."""
    if key := request.headers.get("X-API-Key", ""):
        return keys.prefix_in(key)
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or len(token) > MAX_TOKEN_LENGTH:
        return ""
    try:
        claims = jwt.decode(token.strip(), options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):
        return ""
    return keys.prefix_in(str(claims.get("key", "")))


class AccessWriter:
    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._waiting: deque[AccessRecord] = deque()
        self._max_waiting = max_waiting
        self._wake = threading.Event()
        self._flushing = threading.Lock()
        self._starting = threading.Lock()
        self._pid = 0
        self._stored = 0
        self._dropped_unreported = 0

    def write(self, record: AccessRecord) -> None:
        """Queues a record. Never blocks and never raises."""
        waiting = self._waiting
        if len(waiting) >= self._max_waiting:
            try:
                waiting.popleft()
                self._drop(1)
            except IndexError:  # the thread was quicker: there is room
                pass
        waiting.append(record)
        if len(waiting) == BATCH:  # beyond it the thread is awake, or there is no database to write to
            self._wake.set()
        if self._pid != os.getpid():
            self._start()

    def flush(self) -> int:
        """Stores queued records and returns their number; keeps them while the database is away."""
        with self._flushing:
            before = self._stored
            self._flush()
            stored = self._stored - before
        self._report_drops()
        return stored

    def _flush(self) -> None:
        while batch := [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]:
            try:
                self._store(batch)
            except DATABASE_AWAY as error:
                self._waiting.extendleft(reversed(batch))
                availability.database.report(error)
                break
            except Exception:
                self._drop(len(batch))  # a bug of ours; the thread logs it
                raise

    def _store(self, batch: list[AccessRecord]) -> None:
        """Empties `batch`, or leaves in it what isn't stored because the database went away."""
        if self._is_stored(batch):
            batch.clear()
        while batch:  # one bad row must not take its neighbours with it
            # A consumer that was deleted a moment ago becomes NULL, as in the rows that are stored already.
            if not self._is_stored([batch[0]]) and not self._is_stored([batch[0]._replace(consumer=None)]):
                self._drop(1)
            del batch[0]

    def _is_stored(self, batch: list[AccessRecord]) -> bool:
        try:
            self._store_together(batch)
        except DATABASE_AWAY:
            raise
        except DatabaseError:
            return False
        return True

    def _store_together(self, batch: list[AccessRecord]) -> None:
        with transaction.atomic():
            access_records.store(batch)
        self._stored += len(batch)

    def _drop(self, count: int) -> None:
        dropped_total.inc(count)
        self._dropped_unreported += count

    def _report_drops(self) -> None:
        if self._dropped_unreported:
            count, self._dropped_unreported = self._dropped_unreported, 0
            logger.error("Access-log rows were dropped", extra={"action": "access_log_dropped", "dropped_count": count})

    def _start(self) -> None:
        """Starts the thread once a process, on its first record: a thread doesn't survive a fork."""
        with self._starting:
            if self._pid == os.getpid():
                return
            self._pid = os.getpid()
        threading.Thread(target=self._run, name="access-log", daemon=True).start()
        atexit.register(self._last_flush)
        # Children of multiprocessing may end without atexit's handlers; this one they do run.
        multiprocessing_util.Finalize(self, self._last_flush, exitpriority=10)

    def _run(self) -> None:
        while True:
            self._wake.wait(FLUSH_SECONDS)
            self._wake.clear()
            if self._waiting and not availability.database.is_away():
                self._flush_and_disconnect(self.flush)

    def _flush_and_disconnect(self, flush: Callable[[], object]) -> None:
        """Returns the connection to the pool: the next record may be long in coming."""
        try:
            flush()
        except Exception:
            logger.exception("Access log could not be written", extra={"action": "access_log_failed"})
        finally:
            connection.close()

    def _last_flush(self) -> None:
        """Writes what is queued at the end of the process, within seconds; the rest is counted as dropped."""
        has_lock = self._flushing.acquire(timeout=LAST_SECONDS)
        try:
            # Waiting for a database that is away would only delay the end of the process.
            if has_lock and self._waiting and not availability.database.is_away():
                with pg_wait.within(LAST_SECONDS):
                    self._flush_and_disconnect(self._flush)
        finally:
            if has_lock:
                self._flushing.release()
            self._drop(len(self._waiting))
            self._waiting.clear()
            self._report_drops()


writer = AccessWriter()
