"""Availability of the database and of Redis, known without waiting for them.

Guards against an outage that costs every request a timeout, and the process all its threads. A caller that finds the
service unreachable reports it; from then on all callers do without it, and one thread probes every second until it
answers again. A service that is watched is probed all the time.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from victoryline.lib import pg_wait
from victoryline.lib.statements import statement_of

logger = logging.getLogger(__name__)
T = TypeVar("T")

DATABASE_AWAY = (OperationalError, InterfaceError)  # a pool whose connections are all in use raises the first
# A reachable server answers a read at once; readers that have a fallback wait no longer than this.
READ_SECONDS = 2.0
REDIS_TIMEOUT_SECONDS = 0.25
PROBE_KEY = "victoryline:availability"
# One bounded try: a frozen Redis may cost a request a quarter of a second once, not several times as long.
BOUNDED: dict[str, Any] = {
    "socket_timeout": REDIS_TIMEOUT_SECONDS,
    "socket_connect_timeout": REDIS_TIMEOUT_SECONDS,
    "retry": Retry(NoBackoff(), 0),
}


class Availability:
    """`probe` returns when the service answers and raises when it does not.

    `is_searched`: a report starts the probing thread. Otherwise `watch` does, and earlier reports are ignored.
    `meanwhile` completes the log message: what happens until the service is back.
    """

    def __init__(
        self,
        name: str,
        probe: Callable[[], object],
        *,
        meanwhile: str,
        is_searched: bool = True,
        every_seconds: float = 1.0,
        overdue_seconds: float = 3.0,
    ) -> None:
        self.name, self._probe, self._meanwhile, self._is_searched = name, probe, meanwhile, is_searched
        self._every_seconds, self._overdue_seconds = every_seconds, overdue_seconds
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._pid = 0  # process of the thread: threads do not survive a fork
        self._is_watched = False
        self.forget()

    def forget(self) -> None:
        """Resets the state; for tests."""
        self._asked_at: float | None = None  # when the probe that has no answer yet was sent
        self._away_since: float | None = None
        self._error: BaseException | None = None

    def is_away(self) -> bool:
        """Returns True after a report without an answer since, or while a probe is overdue."""
        if self._pid != os.getpid():
            return False
        asked_at = self._asked_at
        is_overdue = asked_at is not None and time.monotonic() - asked_at > self._overdue_seconds
        return self._away_since is not None or is_overdue

    def seconds_away(self) -> float:
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    def reason(self) -> str:
        """Returns the class name of the last error."""
        return type(self._error).__name__ if self._error else "no answer"

    def report(self, error: BaseException) -> None:
        """Records that a caller could not reach the service. Never blocks."""
        if not self._is_searched and self._pid != os.getpid():
            return
        self._mark_away(error)
        self._ensure_thread()
        self._wake.set()

    def watch(self) -> None:
        """Probes once a second from now on, for the life of this process."""
        self._is_watched = True
        self._ensure_thread()

    def _ensure_thread(self) -> None:
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._run, name=f"{self.name}-availability", daemon=True).start()

    def _run(self) -> None:
        """Probing after a report ends when the service answers; the next report starts it again."""
        while True:
            with self._lock:
                if not self._is_watched and self._away_since is None:
                    self._pid = 0
                    return
            self.probe_once()
            if self._away_since is None:
                self._wake.wait(self._every_seconds)  # a report is checked at once
            else:
                time.sleep(self._every_seconds)
            self._wake.clear()

    def probe_once(self) -> bool:
        self._asked_at = time.monotonic()
        try:
            self._probe()
        except Exception as error:  # noqa: BLE001 - any error means that there was no answer
            self._mark_away(error)
            return False
        finally:
            self._asked_at = None
        with self._lock:
            seconds, was_away = self.seconds_away(), self._away_since is not None
            self._away_since, self._error = None, None
        if was_away:
            extra = {"action": f"{self.name.lower()}_back", "seconds": round(seconds, 1)}
            logger.info("%s is back after %.1f s", self.name, seconds, extra=extra)
        return True

    def _mark_away(self, error: BaseException) -> None:
        with self._lock:
            is_news, self._error = self._away_since is None, error  # the latest error is the current reason
            if is_news:
                self._away_since = time.monotonic()
        if is_news:
            extra = {"action": f"{self.name.lower()}_away", **statement_of(error)}
            logger.warning("%s is away (%s): until it is back %s", self.name, error, self._meanwhile, extra=extra)


def first_line(error: BaseException) -> str:
    """Returns the first line of a driver's long message, for the log."""
    return str(error).strip().partition("\n")[0]


def _probe_database() -> None:
    close_old_connections()
    try:
        with pg_wait.within(READ_SECONDS), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()


# Used where `watch` was called (web processes, metrics of workers). Other callers have their own timeouts.
database = Availability(
    "Database",
    _probe_database,
    meanwhile="requests are answered from the last known data where possible",
    is_searched=False,
)


@cache
def redis(url: str) -> Availability:
    """Probes with a write: a Redis without memory still answers reads."""
    probe = partial(redis_client(url).set, PROBE_KEY, 1, ex=60)
    return Availability("Redis", probe, meanwhile="each process limits requests on its own")


@cache
def redis_client(url: str) -> Redis:
    client: Redis = Redis.from_url(url, **BOUNDED)
    return client


def in_redis(work: Callable[[Redis], T], otherwise: T) -> T:
    """Returns what `work` does with the configured Redis; `otherwise` if there is none, or it is away or fails."""
    url = settings.CONFIG.redis_url
    if not url or redis(url).is_away():
        return otherwise
    try:
        return work(redis_client(url))
    except (RedisError, OSError) as error:
        redis(url).report(error)
        return otherwise
