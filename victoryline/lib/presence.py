"""Whether a service that we lean on answers, so that a request need not find out by waiting.

Guards against an outage that costs every request a timeout, and the process all its threads with it. Whoever finds the
service away reports it; from then on everybody goes without it, and one thread alone asks every second whether it is
back. A service that is `watched` is asked all the time: one that is frozen is noticed before the requests that wait for
it have used up the threads. The price is a question a second.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db import close_old_connections, connection
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from victoryline.lib import pg_wait

logger = logging.getLogger(__name__)

ASK_EVERY_SECONDS = 1.0
PATIENCE_SECONDS = 3.0
# Any living server answers a read at once, so whoever can do without the answer waits no longer than this for it.
READ_SECONDS = 2.0
REDIS_TIMEOUT_SECONDS = 0.25
# One bounded try: a frozen Redis may cost a request a quarter of a second once, not several times as long.
BOUNDED: dict[str, Any] = {
    "socket_timeout": REDIS_TIMEOUT_SECONDS,
    "socket_connect_timeout": REDIS_TIMEOUT_SECONDS,
    "retry": Retry(NoBackoff(), 0),
}


class Presence:
    """`ask` returns when the service answers and raises when it doesn't."""

    def __init__(
        self,
        name: str,
        ask: Callable[[], None],
        *,
        meanwhile: str,
        is_searched: bool = True,
        every_seconds: float = ASK_EVERY_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`is_searched`: a report alone starts the thread. Else only `watch` does, and until then nothing is away."""
        self.name = name
        self._ask = ask
        self._meanwhile = meanwhile
        self._is_searched = is_searched
        self._every_seconds, self._patience_seconds = every_seconds, patience_seconds
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._pid = 0  # whose thread it is: a thread doesn't survive a fork
        self._is_watched = False
        self._asked_at: float | None = None  # of the question that has no answer yet
        self._away_since: datetime | None = None
        self._error: BaseException | None = None

    def is_away(self) -> bool:
        """Reported away and not heard of since; or it owes an answer for too long."""
        if self._pid != os.getpid():
            return False
        return self._away_since is not None or self._is_overdue()

    def away_since(self) -> datetime | None:
        if not self.is_away():
            return None
        return self._away_since or datetime.now(UTC)

    @property
    def error(self) -> BaseException | None:
        """What was raised when it was found away."""
        return self._error

    def reason(self) -> str:
        """What was raised when it was found away, by its name."""
        return type(self._error).__name__ if self._error else "no answer"

    def report(self, error: BaseException) -> None:
        """Somebody has found the service away. Never blocks."""
        if not self._is_searched and self._pid != os.getpid():
            return
        self._leave(error)
        self._ensure_thread()
        self._wake.set()

    def watch(self) -> None:
        """Ask from now on, once a second, for the life of this process."""
        self._is_watched = True
        self._ensure_thread()

    def forget(self) -> None:
        """For tests: as if it had never been away."""
        self._away_since, self._error, self._asked_at = None, None, None

    def _is_overdue(self) -> bool:
        asked_at = self._asked_at
        return asked_at is not None and time.monotonic() - asked_at > self._patience_seconds

    def _ensure_thread(self) -> None:
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                threading.Thread(target=self._run, name=f"{self.name}-presence", daemon=True).start()

    def _run(self) -> None:
        while self._goes_on():
            self.ask_once()
            if self._away_since is None:
                self._wake.wait(self._every_seconds)  # a report is looked into at once
            else:
                time.sleep(self._every_seconds)
            self._wake.clear()

    def _goes_on(self) -> bool:
        """A search ends when the service is back; the next report starts another."""
        with self._lock:
            if self._is_watched or self._away_since is not None:
                return True
            self._pid = 0
            return False

    def ask_once(self) -> bool:
        self._asked_at = time.monotonic()
        try:
            self._ask()
        except Exception as error:  # noqa: BLE001 - whatever it is, there was no answer
            self._leave(error)
            return False
        finally:
            self._asked_at = None
        self._return()
        return True

    def _leave(self, error: BaseException) -> None:
        with self._lock:
            is_news, self._error = self._away_since is None, error  # of a full one that freezes, the latter counts
            if is_news:
                self._away_since = datetime.now(UTC)
        if is_news:
            logger.warning(
                "%s is away (%s): until it is back %s",
                self.name,
                error,
                self._meanwhile,
                extra={"action": f"{self.name.lower()}_away"},
            )

    def _return(self) -> None:
        with self._lock:
            since, self._away_since, self._error = self._away_since, None, None
        if since is not None:
            seconds = (datetime.now(UTC) - since).total_seconds()
            logger.info(
                "%s is back after %.1f s",
                self.name,
                seconds,
                extra={"action": f"{self.name.lower()}_back", "seconds": round(seconds, 1)},
            )


def _ask_database() -> None:
    close_old_connections()
    try:
        with pg_wait.within(READ_SECONDS), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()


# Only where `watch` was called (the web, the metrics of workers): elsewhere each caller has ways of its own to wait.
database = Presence(
    "Database", _ask_database, meanwhile="what can do without it goes on, from what is known last", is_searched=False
)


@cache
def redis(url: str) -> Presence:
    """Asked by a write: a full Redis answers to everything else, and is of as little use."""
    client = Redis.from_url(url, **BOUNDED)

    def ask() -> None:
        client.set("victoryline:presence", 1, ex=60)

    return Presence("Redis", ask, meanwhile="each process limits requests on its own")
