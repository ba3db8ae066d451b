"""Limits consumers by tier and anonymous callers by address: requests a minute in a sliding window, shared over Redis.

A bucket has two counters: of this window and of the previous one, which counts by the part that still lies within the
last minute. A consumer that saves up gets, in any stretch of t seconds up to a window, the limit and what a steady
caller would have got in t seconds more; never two bursts. A window begins with its bucket's first request.

Our own code because of two measurements. django-ratelimit's fixed window let 100 + 100 requests pass within 2 s at the
edge of two windows, and takes two cache calls for each. `limits` (moving window) asks Redis twice for one request, to
count and to read what is left, and starts threads for its counters in memory. Here a request costs one round trip.
The rule is written in Python for memory and in Lua for Redis; tests compare the two.

Guards against a lost Redis that takes the API with it: the first failed call switches to counters in this process's
memory, and no request uses Redis again until a thread of `availability` has reached it. Meanwhile each process
counts for itself, so a consumer may get up to (number of web processes) x its limit; `api_rate_limit_fallback_total`
counts these requests.
"""

import hashlib
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cachetools import TTLCache
from django.conf import settings
from prometheus_client import Counter
from redis import Redis
from redis import exceptions as redis_errors
from redis.connection import ConnectionInterface

from apiauth.models import Consumer, Tier
from victoryline.lib import availability
from victoryline.lib.http.headers import RateLimit

WINDOW_SECONDS = 60.0
MAX_BUCKETS = 50_000
TICK_SECONDS = 0.01  # the resolution of a wait: Redis's clock counts milliseconds
KEY_PREFIX = "victoryline:window:"

fallback_total = Counter("api_rate_limit_fallback_total", "Requests counted in memory because Redis was away.")


class Check(NamedTuple):
    """One bucket to check. Without `is_counted` the bucket is only read."""

    bucket: str
    limit: int
    is_counted: bool = True


class Decision(NamedTuple):
    """The window of a bucket after the request, if that was counted; `is_allowed`: there was room for it."""

    is_allowed: bool
    limit: int
    previous: int
    current: int
    elapsed: float  # seconds since this window began
    length: float

    @property
    def used(self) -> int:
        return int(self.previous * (self.length - self.elapsed) / self.length) + self.current

    @property
    def rate_limit(self) -> RateLimit:
        reset_at = math.ceil(time.time() + self.length - self.elapsed)
        return RateLimit(self.limit, max(0, self.limit - self.used), reset_at)

    @property
    def retry_after(self) -> float:
        """Returns the seconds until one more request fits, if none comes in between."""
        seconds_left = self.length - self.elapsed
        if self.is_allowed:
            return 0.0
        if self.current < self.limit:
            # The previous window's weight falls evenly; rounding down admits just below the whole number.
            return max(0.0, seconds_left - (self.limit - self.current) * self.length / self.previous) + TICK_SECONDS
        return seconds_left + self.length * (1 - self.limit / self.current) + TICK_SECONDS


class Limiter:
    def __init__(self, redis_url: str) -> None:
        self._memory = MemoryWindows()
        self._redis = RedisWindows(redis_url) if redis_url else None
        self._availability = availability.redis(redis_url) if redis_url else None

    def take(self, bucket: str, per_minute: int) -> Decision:
        return self.check(Check(bucket, per_minute))[0]

    def check(self, *checks: Check) -> list[Decision]:
        if self._redis is not None and self._availability is not None:
            if not self._availability.is_away():
                try:
                    return self._redis.check(checks)
                except (redis_errors.RedisError, OSError) as error:
                    self._availability.report(error)
            fallback_total.inc()
        return self._memory.check(checks)


@cache
def limiter() -> Limiter:
    return Limiter(settings.CONFIG.redis_url)


def limit_of(consumer: Consumer) -> int:
    if consumer.tier == Tier.CUSTOM and consumer.requests_per_minute:
        return consumer.requests_per_minute
    is_premium, config = consumer.tier == Tier.PREMIUM, settings.CONFIG
    return int(config.rate_limit_premium_per_minute if is_premium else config.rate_limit_standard_per_minute)


class MemoryWindows:
    """The counters of this process; beyond MAX_BUCKETS those that counted longest ago are evicted."""

    def __init__(self, length: float = WINDOW_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._length, self._clock = length, clock
        self._lock = threading.Lock()
        # By bucket: start of the window, its count, the previous count.
        self._buckets: TTLCache[str, tuple[float, int, int]] = TTLCache(MAX_BUCKETS, 2 * length, timer=clock)

    def check(self, checks: Sequence[Check]) -> list[Decision]:
        now = self._clock()
        with self._lock:
            return [self._check(*check, now) for check in checks]

    def _check(self, bucket: str, limit: int, is_counted: bool, now: float) -> Decision:
        start, current, previous = self._buckets.get(bucket, (now, 0, 0))
        if now - start >= 2 * self._length:
            start, current, previous = now, 0, 0
        elif now - start >= self._length:
            start, current, previous = start + self._length, 0, current
        decision = Decision(True, limit, previous, current, now - start, self._length)
        if decision.used >= limit:
            return decision._replace(is_allowed=False)
        if is_counted:
            decision = decision._replace(current=current + 1)
            self._buckets[bucket] = (start, decision.current, previous)
        return decision


SCRIPT = Path(__file__).with_suffix(".lua").read_text()


class RedisWindows:
    """The counters that all processes share: one round trip for all checks of a request.

    Each thread sends over a connection of its own: redis-py's client and pool cost twice as much as the script itself,
    on every request. Raises RedisError or OSError when Redis can't answer, also when it is full. After a restart or a
    flush of its scripts, a thread's next request costs a second call.
    """

    def __init__(self, url: str, length: float = WINDOW_SECONDS) -> None:
        self._length = length
        self._length_ms = str(round(length * 1000))
        self._client = Redis.from_url(url, **availability.BOUNDED)
        self._sha = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()
        self._threads = threading.local()

    def check(self, checks: Sequence[Check]) -> list[Decision]:
        args = [str(len(checks)), *(KEY_PREFIX + each.bucket for each in checks), self._length_ms]
        for _, limit, is_counted in checks:
            args += (str(limit), "1" if is_counted else "0")
        result = self._run(args)
        return [
            Decision(result[at] == 1, check.limit, result[at + 1], result[at + 2], result[at + 3] / 1000, self._length)
            for at, check in zip(range(0, len(result), 4), checks, strict=True)
        ]

    def _run(self, args: list[str]) -> list[int]:
        connection = self._connection()
        try:
            return _call(connection, "EVALSHA", self._sha, *args)
        except redis_errors.NoScriptError:
            return _call(connection, "EVAL", SCRIPT, *args)
        except redis_errors.ConnectionError:  # not TimeoutError: a frozen Redis is not asked twice
            connection.disconnect()  # type: ignore[no-untyped-call]
            return _call(connection, "EVAL", SCRIPT, *args)  # restarted, so it has no script either

    def _connection(self) -> ConnectionInterface:
        """Returns this thread's connection; a forked process makes its own."""
        kept: tuple[int, ConnectionInterface] | None = getattr(self._threads, "kept", None)
        if kept is None or kept[0] != os.getpid():
            kept = self._threads.kept = (os.getpid(), self._client.connection_pool.make_connection())
        return kept[1]


def _call(connection: ConnectionInterface, *parts: str) -> list[int]:
    packed = "".join([f"*{len(parts)}\r\n", *(f"${len(part.encode())}\r\n{part}\r\n" for part in parts)])
    connection.send_packed_command([packed.encode()], check_health=False)  # type: ignore[no-untyped-call]
    result: list[int] = connection.read_response()
    return result
