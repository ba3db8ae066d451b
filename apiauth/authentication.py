"""Authentication, permission and throttling of the API (settings.REST_FRAMEWORK): `request.user` is the API key.

Every request is counted once: against its consumer when its token is valid, else against the caller's address. The
state of the limit is put on Django's request as `rate_limit`; the middleware writes it into headers.

A token is valid for a day; its key may be revoked in a minute. So each request checks whether the key is still valid.
The result is cached in this process's memory, not in Redis: it costs no round trip, cannot fail, and is at most
CACHE_SECONDS old, which is the longest that a revoked key can go on working.

While the database is away, the last known state of a key is valid for AWAY_SECONDS, unless Redis has a note that the
key was revoked (`revoked`). Without Redis, a key that was revoked in the last seconds before an outage may work that
much longer: the price for not refusing every consumer.
"""

import re
import threading
import time
from collections.abc import Iterable
from copy import copy
from typing import Any

from cachetools import FIFOCache
from django.conf import settings
from django.dispatch import receiver
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apiauth import revoked, tokens
from apiauth.limits import Check, Decision, limit_of, limiter
from apiauth.models import ApiKey
from apiauth.signals import consumer_changed, key_revoked, key_rotated
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http.headers import client_address
from victoryline.lib.http.problems import ApiProblem, DatabaseAway

CACHE_SECONDS = 3.0
AWAY_SECONDS = 600.0
CACHE_ENTRIES = 10_000


# By key prefix: time of the read, and the key. FIFO: a hit changes nothing, so that reading needs no lock.
_cache: FIFOCache[str, tuple[float, ApiKey | None]] = FIFOCache(CACHE_ENTRIES)
_lock = threading.Lock()


def find(prefix: str) -> ApiKey | None:
    """Returns the key with this prefix and its consumer, valid or not, for reading only: requests share it."""
    known, now = _cache.get(prefix), time.monotonic()
    if known and now - known[0] < CACHE_SECONDS:
        return known[1]
    if not availability.database.is_away():
        try:
            with pg_wait.within(availability.READ_SECONDS):
                key = ApiKey.objects.select_related("consumer").filter(prefix=prefix).first()
            with _lock:
                _cache[prefix] = (now, key)
            return key
        except DATABASE_AWAY as error:
            availability.database.report(error)
    if not known or now - known[0] >= AWAY_SECONDS:
        raise DatabaseAway("Your token can't be checked without it. ")
    key = known[1]
    if key is not None and revoked.is_noted(prefix):
        key = copy(key)
        key.revoked_at = key.revoked_at or timezone.now()
    return key


@receiver((key_revoked, key_rotated))
def forget(prefix: str = "", **_: object) -> None:
    """Evicts one key, or all of them without a prefix: the next request reads it again."""
    forget_all_of([prefix] if prefix else list(_cache))


@receiver(consumer_changed)
def forget_all_of(prefixes: Iterable[str] = (), **_: object) -> None:
    with _lock:
        for prefix in prefixes:
            _cache.pop(prefix, None)


BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9._~+/=-]+) *", re.IGNORECASE | re.ASCII)
REALM = 'Bearer realm="victoryline"'
# Answers that cost no quota still cost work: their limit is this many times the tier's.
FREE_FACTOR = 10
STRANGERS_PER_MINUTE = 60  # requests without a valid token from one address


class BearerAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[ApiKey, str] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None  # the throttle counts it
        try:
            return self._authenticate(request, header)
        except AuthenticationFailed:
            count_anonymous(request)
            raise
        except DatabaseAway:
            # The token may be valid, so nothing is counted; the answer shows the address's limit.
            _set_rate_limit(request, limiter().check(Check(*_anonymous(request), is_counted=False))[0])
            raise

    def _authenticate(self, request: Request, header: str) -> tuple[ApiKey, str]:
        sent = BEARER.fullmatch(header)
        if sent is None:
            raise AuthenticationFailed("The Authorization header must read: Bearer <token>.")
        try:
            prefix = tokens.read(sent["token"])
        except tokens.BadTokenError as error:
            raise AuthenticationFailed(str(error)) from error
        key = find(prefix)
        if key is not None:
            # Also of a request that is refused next: the access log names its consumer.
            http: Any = request._request  # noqa: SLF001
            http.api_consumer, http.api_key_prefix = key.consumer_id, prefix
        if key is None or not key.is_usable(timezone.now()):
            raise AuthenticationFailed(
                "The key behind this token is revoked or expired, or your access was ended. Ask for a new key."
            )
        return key, prefix

    def authenticate_header(self, request: Request) -> str:
        return f'{REALM}, error="invalid_token"' if request.headers.get("Authorization") else REALM


def key_of(request: Request) -> ApiKey | None:
    """Returns the key of an authenticated request."""
    user: Any = request.user
    return user if isinstance(user, ApiKey) else None


class HasScope(BasePermission):
    """Requires the scope that the view names as its `required_scope`: "read" by default, none where that is empty."""

    def has_permission(self, request: Request, view: Any) -> bool:
        key = key_of(request)
        if key is None:
            return False
        scope = getattr(view, "required_scope", "read")
        self.message = f'This needs a key with the scope "{scope}"; yours doesn\'t have it.'
        return not scope or scope in key.scopes


class TierThrottle(BaseThrottle):
    """Counts the request against its consumer's tier. A 304 costs nothing, nor does a view without `costs_quota`."""

    def allow_request(self, request: Request, view: Any) -> bool:
        key = key_of(request)
        if key is None:
            count_anonymous(request)
            return True
        limit, bucket = limit_of(key.consumer), str(key.consumer.consumer_id)
        if self._is_free(request, view, bucket, limit):
            return True
        decision = limiter().take(bucket, limit)
        _set_rate_limit(request, decision)
        if not decision.is_allowed:
            raise _refusal(decision, key.consumer.tier, "You have")
        return True

    def _is_free(self, request: Request, view: Any, bucket: str, limit: int) -> bool:
        """Checks the limit of free answers first: finding out whether a document changed is most of the work."""
        is_free_view = not getattr(view, "costs_quota", True)
        if not is_free_view and ("HTTP_IF_NONE_MATCH" not in request.META or not hasattr(view, "is_unchanged")):
            return False
        free, paid = limiter().check(
            Check(f"free:{bucket}", limit * FREE_FACTOR), Check(bucket, limit, is_counted=False)
        )
        _set_rate_limit(request, paid)  # before the view runs: a 500 has the headers, too
        return free.is_allowed and (is_free_view or view.is_unchanged(request))


def count_anonymous(request: Request) -> None:
    """Counts a request without a valid token against its address; beyond the limit no token is verified."""
    decision = limiter().take(*_anonymous(request))
    _set_rate_limit(request, decision)
    if not decision.is_allowed:
        raise _refusal(decision, "anonymous", "Your address has, without a valid token,")


def _anonymous(request: Request) -> tuple[str, int]:
    return f"address:{client_address(request, settings.CONFIG.trusted_proxies)}", STRANGERS_PER_MINUTE


def _set_rate_limit(request: Request, decision: Decision) -> None:
    request._request.rate_limit = decision.rate_limit  # type: ignore[attr-defined]  # noqa: SLF001


def _refusal(decision: Decision, tier: str, subject: str) -> ApiProblem:
    limit = decision.rate_limit.limit
    return ApiProblem(
        "too-many-requests",
        f"{subject} used up the {limit} requests that fit into a minute.",
        retry_after=decision.retry_after,
        limit=limit,
        tier=tier,
    )
