"""Limits requests to open addresses by the caller's address: status page, /status, /metrics, tokens, the admin's login.

django-ratelimit with our own key (it would fail on a list in X-Forwarded-For) and our own cache. Its counters are in
Redis, shared by all processes; while Redis is away each process counts in its memory, and no request waits or fails.
The window is fixed, so up to twice the limit passes at the edge of two windows: enough against a flood or a guesser.
Consumers' tiers need an exact limit, see `apiauth.limits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache
from django.http import HttpRequest, HttpResponseBase
from django_ratelimit.core import get_usage
from redis.exceptions import RedisError

from victoryline.lib import availability
from victoryline.lib.http.error_pages import answer
from victoryline.lib.http.headers import RateLimit, client_address

MEMORY_ENTRIES = 50_000


class OpenAddress(NamedTuple):
    per_minute: int
    method: str = ""  # empty: all methods


# An open status page asks once a second, and a company's visitors share an address. Prometheus asks every 15 s.
OPEN_ADDRESSES = {
    "": OpenAddress(300),
    "/status": OpenAddress(1200),
    "/metrics": OpenAddress(120),
    "/admin/login": OpenAddress(30, "POST"),
}


class Usage(NamedTuple):
    requests: int
    limit: int
    seconds_left: int  # until the window ends

    @property
    def is_exceeded(self) -> bool:
        return self.requests > self.limit

    @property
    def is_used_up(self) -> bool:
        return self.requests >= self.limit

    @property
    def rate_limit(self) -> RateLimit:
        return RateLimit(self.limit, max(0, self.limit - self.requests), int(time.time()) + self.seconds_left)


def usage_of(request: HttpRequest, group: str, value: str, per_minute: int, *, is_counted: bool = True) -> Usage:
    """Counts one request of `value` (an address, a key prefix) in the group, or only reads the count."""
    found = get_usage(
        request, group=group, key=lambda _group, _request: value, rate=f"{per_minute}/m", increment=is_counted
    )
    if found is None:  # the counter expired between two calls of the cache
        return Usage(1, per_minute, 60)
    return Usage(found["count"], found["limit"], max(1, found["time_left"]))


def address_of(request: HttpRequest) -> str:
    return client_address(request, settings.CONFIG.trusted_proxies)


class OpenLimitMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info.rstrip("/")
        limit = OPEN_ADDRESSES.get(path)
        if limit is None or (limit.method and limit.method != request.method):
            return self.get_response(request)
        usage = usage_of(request, f"open:{path}", address_of(request), limit.per_minute)
        if not usage.is_exceeded:
            return self.get_response(request)
        request.rate_limit = usage.rate_limit  # type: ignore[attr-defined]
        response = answer(
            request,
            429,
            f"Your address has sent more than {usage.limit} requests within a minute. "
            f"Try again in {usage.seconds_left} s.",
        )
        response.headers["Retry-After"] = str(usage.seconds_left)
        return response


class IntegerSerializer:
    """Counters are integers. Django's default serializer would unpickle whatever else is found in Redis."""

    def dumps(self, value: int) -> int:
        return int(value)

    def loads(self, data: bytes) -> int:
        return int(data) if data.isdigit() else 0


class LimitCache(LocMemCache):
    """The cache of django-ratelimit: Redis (LOCATION) while it answers, else this process's memory."""

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
