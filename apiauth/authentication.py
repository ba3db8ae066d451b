"""Authentication, permission and throttling of the API (settings.REST_FRAMEWORK): the consumer behind a token.

Every request is counted once: against its consumer when its token is valid, else against the caller's address. The
state of the limit is put on Django's request as `rate_limit`; the middleware writes it into headers.

A token is valid for a day; its key may be revoked in a minute. So each request checks whether the key is still valid.
The result is cached in this process's memory, not in Redis: it costs no round trip, cannot fail, and is at most
CACHE_SECONDS old, which is the longest that a revoked key can go on working.

While the database is away, the last known state of a key is valid for AWAY_SECONDS, unless Redis has a note that the
key was revoked (`revoked`). Without Redis, a key that was revoked in the last seconds before an outage may work that
much longer: the price for not refusing every consumer.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
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
from apiauth.limits import Check, Decision, limiter, tier_limit
from apiauth.models import ApiKey, Tier
from apiauth.signals import consumer_changed, key_revoked, key_rotated
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http.headers import client_address
from victoryline.lib.http.problems import ApiProblem, DatabaseAway

CACHE_SECONDS = 3.0
AWAY_SECONDS = 600.0
CACHE_ENTRIES = 10_000


@dataclass(frozen=True)
class Principal:
    """The consumer and key behind a request. Django REST framework's `request.user`."""

    consumer_pk: int
    consumer_id: str
    name: str
    tier: str
    scopes: frozenset[str]
    key_prefix: str
    is_active: bool
    expires_at: datetime | None
    requests_per_minute: int | None = None  # for the tier custom
    is_authenticated: bool = True

    def is_admitted(self, now: datetime) -> bool:
        return self.is_active and (self.expires_at is None or now < self.expires_at)


# By key prefix: time of the read, and the principal. FIFO: a hit changes nothing, so that reading needs no lock.
_cache: FIFOCache[str, tuple[float, Principal | None]] = FIFOCache(CACHE_ENTRIES)
_lock = threading.Lock()


def find(prefix: str) -> Principal | None:
    """Returns the principal of the key with this prefix; None when there is no such key."""
    known, now = _cache.get(prefix), time.monotonic()
    if known and now - known[0] < CACHE_SECONDS:
        return known[1]
    if not availability.database.is_away():
        try:
            with pg_wait.within(availability.READ_SECONDS):
                principal = _load(prefix)
            with _lock:
                _cache[prefix] = (now, principal)
            return principal
        except DATABASE_AWAY as error:
            availability.database.report(error)
    if not known or now - known[0] >= AWAY_SECONDS:
        raise DatabaseAway("Your token can't be checked without it. ")
    principal = known[1]
    if principal is not None and principal.is_active and revoked.is_noted(prefix):
        return replace(principal, is_active=False)
    return principal


def _load(prefix: str) -> Principal | None:
    key = ApiKey.objects.select_related("consumer").filter(prefix=prefix).first()
    if key is None:
        return None
    return Principal(
        consumer_pk=key.consumer_id,
        consumer_id=str(key.consumer.consumer_id),
        name=key.consumer.name,
        tier=key.consumer.tier,
        scopes=frozenset(key.scopes),
        key_prefix=key.prefix,
        is_active=key.revoked_at is None and key.consumer.is_active,
        expires_at=key.expires_at,
        requests_per_minute=key.consumer.requests_per_minute,
    )


@receiver((key_revoked, key_rotated))
def forget(prefix: str = "", **_: object) -> None:
    """Evicts one key, or all of them without a prefix: the next request reads it again."""
    forget_all_of([prefix] if prefix else list(_cache))


@receiver(consumer_changed)
def forget_all_of(prefixes: Iterable[str] = (), **_: object) -> None:
    """Evicts all keys of a consumer whose tier or access has changed."""
    with _lock:
        for prefix in prefixes:
            _cache.pop(prefix, None)


BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9._~+/=-]+) *", re.IGNORECASE | re.ASCII)
REALM = 'Bearer realm="victoryline"'
# Answers that cost no quota still cost work: their limit is this many times the tier's.
FREE_FACTOR = 10
STRANGERS_PER_MINUTE = 60  # requests without a valid token from one address


class BearerAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[Principal, str] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None  # the throttle counts it
        try:
            return self._authenticate(request, header)
        except AuthenticationFailed:
            count_stranger(request)
            raise
        except DatabaseAway:
            # The token may be valid, so nothing is counted; the answer shows the address's limit.
            _set_rate_limit(request, limiter().check(Check(*_stranger(request), is_counted=False))[0])
            raise

    def _authenticate(self, request: Request, header: str) -> tuple[Principal, str]:
        sent = BEARER.fullmatch(header)
        if sent is None:
            raise AuthenticationFailed("The Authorization header must read: Bearer <token>.")
        try:
            prefix = tokens.read(sent["token"])
        except tokens.BadTokenError as error:
            raise AuthenticationFailed(str(error)) from error
        principal = find(prefix)
        if principal is not None:
            # Also of a request that is refused next: the access log names its consumer.
            http: Any = request._request  # noqa: SLF001
            http.api_consumer, http.api_key_prefix = principal.consumer_pk, prefix
        if principal is None or not principal.is_admitted(timezone.now()):
            raise AuthenticationFailed(
                "The key behind this token is revoked or expired, or your access was ended. Ask for a new key."
            )
        return principal, prefix

    def authenticate_header(self, request: Request) -> str:
        return f'{REALM}, error="invalid_token"' if request.headers.get("Authorization") else REALM


class HasScope(BasePermission):
    """Requires the scope that the view names as its `required_scope`: "read" by default, none where that is empty."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.user, Principal):
            return False
        scope = getattr(view, "required_scope", "read")
        self.message = f'This needs a key with the scope "{scope}"; yours doesn\'t have it.'
        return not scope or scope in request.user.scopes


class TierThrottle(BaseThrottle):
    """Counts the request against its consumer's tier. A 304 costs nothing, nor does a view without `costs_quota`."""

    def allow_request(self, request: Request, view: Any) -> bool:
        principal = request.user
        if not isinstance(principal, Principal):
            count_stranger(request)
            return True
        limit, bucket = limit_of(principal), principal.consumer_id
        if self._is_free(request, view, bucket, limit):
            return True
        decision = limiter().take(bucket, limit)
        _set_rate_limit(request, decision)
        if not decision.is_allowed:
            raise _refusal(decision, principal.tier, "You have")
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


def limit_of(principal: Principal) -> int:
    """Returns the consumer's requests a minute."""
    custom = principal.requests_per_minute if principal.tier == Tier.CUSTOM else None
    return custom or tier_limit(principal.tier)


def count_stranger(request: Request) -> None:
    """Counts a request without a valid token against its address; beyond the limit no token is verified."""
    decision = limiter().take(*_stranger(request))
    _set_rate_limit(request, decision)
    if not decision.is_allowed:
        raise _refusal(decision, "anonymous", "Your address has, without a valid token,")


def _stranger(request: Request) -> tuple[str, int]:
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
