"""How many requests a consumer has left, counted in a sliding window, shared over Redis where there is one.

Guards against a lost Redis taking the API with it: the first failed call turns to a counter in this process's memory,
and no request asks Redis again before a thread of `presence` has found it back. Meanwhile each process counts for
itself, so a consumer may get up to (number of web processes) x its limit; refusing everybody would be worse.
`api_rate_limit_fallback_total` tells.
"""

from __future__ import annotations

import math
import time
from functools import cache
from typing import NamedTuple

from django.conf import settings
from prometheus_client import Counter
from redis.exceptions import RedisError

from apiauth.sliding_window import Count, MemoryWindows, Question, RedisWindows
from victoryline.lib import presence
from victoryline.lib.http import RateLimit

fallback_total = Counter("api_rate_limit_fallback_total", "Requests counted in memory because Redis was away.")


class Verdict(NamedTuple):
    is_allowed: bool
    rate_limit: RateLimit
    retry_after: float


class Limiter:
    def __init__(self, redis_url: str) -> None:
        self._memory = MemoryWindows()
        self._redis = RedisWindows(redis_url) if redis_url else None
        self._presence = presence.redis(redis_url) if redis_url else None

    def take(self, bucket: str, per_minute: int) -> Verdict:
        """Counts one request, if there is room for it."""
        return self.ask(Question(bucket, per_minute))[0]

    def peek(self, bucket: str, per_minute: int) -> Verdict:
        """Tells whether there is room for a request, without counting one."""
        return self.ask(Question(bucket, per_minute, is_counted=False))[0]

    def ask(self, *questions: Question) -> list[Verdict]:
        """A verdict for each bucket; all of them cost one round trip."""
        return [
            _verdict(question.limit, count) for question, count in zip(questions, self._counts(questions), strict=True)
        ]

    def _counts(self, questions: tuple[Question, ...]) -> list[Count]:
        if self._redis is not None and self._presence is not None:
            if not self._presence.is_away():
                try:
                    return self._redis.ask(questions)
                except (RedisError, OSError) as error:
                    self._presence.report(error)
            fallback_total.inc()
        return self._memory.ask(questions)


def _verdict(limit: int, count: Count) -> Verdict:
    window = count.window
    rate_limit = RateLimit(
        limit, max(0, limit - window.used()), math.ceil(time.time() + window.length - window.elapsed)
    )
    return Verdict(count.had_room, rate_limit, 0.0 if count.had_room else window.seconds_until_room(limit))


@cache
def limiter() -> Limiter:
    """This process's limiter."""
    return Limiter(settings.CONFIG.redis_url)


def tier_limit(tier: str) -> int:
    config = settings.CONFIG
    limit: int = config.rate_limit_premium_per_minute if tier == "premium" else config.rate_limit_standard_per_minute
    return limit
