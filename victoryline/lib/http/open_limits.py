"""Limits requests to open addresses by the caller's address: status page, /status, /metrics, tokens, the admin's login.

Guards the API against floods and guessed keys at the addresses that need no token. django-ratelimit with our own key
(it would fail on a list in X-Forwarded-For) and cache (`victoryline.lib.caches`). Its window is fixed, so up to twice
the limit passes at the edge of two; consumers' tiers need an exact limit, see `apiauth.limits`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django_ratelimit.core import get_usage

from victoryline.lib.http.error_pages import answer
from victoryline.lib.http.headers import RateLimit, client_address

LOGIN, MATCH = "/admin/login", "/match/"
# Requests a minute. An open status page asks once a second, and a company's visitors share an address. Prometheus asks
# every 15 s.
OPEN_ADDRESSES = {"": 300, "/status": 1200, MATCH: 600, "/metrics": 120, LOGIN: 30}


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
        path = MATCH if path.startswith(MATCH) else path
        limit = OPEN_ADDRESSES.get(path)
        if limit is None or (path == LOGIN and request.method != "POST"):
            return self.get_response(request)
        usage = usage_of(request, f"open:{path}", address_of(request), limit)
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


def login_is_locked(request: HttpRequest, *_: Any) -> HttpResponseBase:
    """Answers a login of a locked name or address (AXES_LOCKOUT_CALLABLE). Each further one begins the time anew."""
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    response = answer(
        request,
        429,
        f"Too many logins have failed with this name or from this address. Try again in {seconds // 60} minutes; an "
        "administrator can end the lock before.",
    )
    response.headers["Retry-After"] = str(seconds)
    return response
