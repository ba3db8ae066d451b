"""How many requests a consumer has left, counted in a sliding window, shared over Redis where there is one.

`limits` and not django-ratelimit: that one raises when Redis is away, even with its FAIL_OPEN, and its fixed windows
let twice the limit through at the edge of two of them.

Guards against a lost Redis taking the API with it: the first failed call turns to a counter in this process's memory,
and no request asks Redis again before a thread of `presence` has found it back. Meanwhile each process counts for
itself, so a consumer may get up to (number of web processes) x its limit; refusing everybody would be worse.
`api_rate_limit_fallback_total` tells.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage, RedisStorage
from limits.storage.base import SlidingWindowCounterSupport
from prometheus_client import Counter
from redis.exceptions import RedisError

from victoryline.lib import presence
from victoryline.lib.http import RateLimit

CLEAR_EVERY_SECONDS = 10.0
fallback_total = Counter("api_rate_limit_fallback_total", "Requests counted in memory because Redis was away.")


@dataclass(frozen=True)
class Window:
    """The counts of this window and the one before, of which the part that is still inside the last minute counts."""

    previous: int
    previous_seconds_left: float
    current: int
    current_seconds_left: float
    length: int

    def used(self) -> int:
        return math.floor(self.previous * self.previous_seconds_left / self.length) + self.current

    def seconds_until_room(self, limit: int) -> float:
        """How long until one more request fits, if none comes in between."""
        if self.used() < limit:
            return 0.0
        if self.current < limit:
            # The weight of the previous window falls evenly; floor() lets us in just below the whole number.
            return max(0.0, self.previous_seconds_left - (limit - self.current) * self.length / self.previous) + 0.01
        until_shift = self.seconds_until_shift()
        return until_shift + self.length * (1 - limit / self.current) + 0.01

    def seconds_until_shift(self) -> float:
        """Counters live for two windows, so this one ends a length before its counter does."""
        return max(0.0, self.current_seconds_left - self.length)


@dataclass(frozen=True)
class Verdict:
    is_allowed: bool
    rate_limit: RateLimit
    retry_after: float


class CalmMemoryStorage(MemoryStorage):
    """Upstream starts a thread at almost every hit to clear old counters away; once in a while is enough.

    The method is upstream's private one. Should it get another name there, all we lose is this calm.
    """

    _clear_again_at = 0.0

    def _MemoryStorage__schedule_expiry(self) -> None:  # noqa: N802
        if time.monotonic() >= self._clear_again_at:
            self._clear_again_at = time.monotonic() + CLEAR_EVERY_SECONDS
            super()._MemoryStorage__schedule_expiry()  # type: ignore[misc]


class Limiter:
    def __init__(self, redis_url: str) -> None:
        self._memory = CalmMemoryStorage()
        self._redis = _redis_storage(redis_url) if redis_url else None
        self._presence = presence.redis(redis_url) if redis_url else None

    def take(self, bucket: str, per_minute: int) -> Verdict:
        """Counts one request, if there is room for it."""
        return self._ask(bucket, per_minute, cost=1)

    def peek(self, bucket: str, per_minute: int) -> Verdict:
        """Tells whether there is room for a request, without counting one."""
        return self._ask(bucket, per_minute, cost=0)

    def _ask(self, bucket: str, per_minute: int, cost: int) -> Verdict:
        if self._redis is not None and self._presence is not None:
            if not self._presence.is_away():
                try:
                    return _ask(self._redis, bucket, per_minute, cost)
                except (RedisError, OSError) as error:
                    self._presence.report(error)
            fallback_total.inc()
        return _ask(self._memory, bucket, per_minute, cost)


def _ask(storage: SlidingWindowCounterSupport, bucket: str, per_minute: int, cost: int) -> Verdict:
    item = RateLimitItemPerMinute(per_minute, namespace="vl")
    key, length = item.key_for(bucket), item.get_expiry()
    has_entered = storage.acquire_sliding_window_entry(key, per_minute, length, cost) if cost else True
    window = Window(*storage.get_sliding_window(key, length), length)
    wait = window.seconds_until_room(per_minute)
    rate_limit = RateLimit(
        limit=per_minute,
        remaining=max(0, per_minute - window.used()),
        reset_at=math.ceil(time.time() + window.seconds_until_shift()),
    )
    return Verdict(is_allowed=has_entered if cost else wait == 0.0, rate_limit=rate_limit, retry_after=wait)


def _redis_storage(url: str) -> RedisStorage:
    return RedisStorage(url, key_prefix="victoryline:limits", **presence.BOUNDED)


@cache
def limiter() -> Limiter:
    """This process's limiter."""
    return Limiter(settings.CONFIG.redis_url)


def tier_limit(tier: str) -> int:
    config = settings.CONFIG
    limit: int = config.rate_limit_premium_per_minute if tier == "premium" else config.rate_limit_standard_per_minute
    return limit
