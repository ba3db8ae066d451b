"""The cache of django-ratelimit (settings.CACHES).

Django's default serializer is pickle, with which a writer to Redis could run code in our processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from redis.exceptions import RedisError

from victoryline.lib import availability

MEMORY_ENTRIES = 50_000


class IntegerSerializer:
    """Stores counters; any other content of Redis is read as 0."""

    def dumps(self, value: int) -> int:
        return int(value)

    def loads(self, data: bytes) -> int:
        return int(data) if data.isdigit() else 0


class LimitCache(LocMemCache):
    """Redis (LOCATION), shared by all processes, while it answers; else this memory."""

    def __init__(self, url: str, params: dict[str, Any]) -> None:
        super().__init__("limits", {**params, "OPTIONS": {"MAX_ENTRIES": MEMORY_ENTRIES}})
        options = {"serializer": IntegerSerializer(), **availability.BOUNDED}
        self._redis = RedisCache(url, {**params, "OPTIONS": options}) if url else None
        self._availability = availability.redis(url) if url else None

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return bool(self._call("add", super().add, key, value, timeout, version))

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return self._call("get", super().get, key, default, version)

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        return int(self._call("incr", super().incr, key, delta, version))

    def _call(self, method: str, in_memory: Callable[..., Any], *args: Any) -> Any:
        if self._redis is not None and self._availability is not None and not self._availability.is_away():
            try:
                return getattr(self._redis, method)(*args)
            except (RedisError, OSError) as error:
                self._availability.report(error)
        return in_memory(*args)
