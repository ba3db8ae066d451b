"""Authentication, permission and throttling of the API, named in settings.REST_FRAMEWORK.

Every request is counted once: against its consumer when its token is valid, else against the caller's address. The
state of the limit is put on Django's request as `rate_limit`; the view or the error page writes it into headers.
"""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apiauth import principals, tokens
from apiauth.limits import Check, Decision, limiter, tier_limit
from apiauth.models import Tier
from apiauth.principals import Principal
from victoryline.lib.http.headers import client_address
from victoryline.lib.http.problems import DatabaseAway, TooManyRequests

BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9._~+/=-]+) *", re.IGNORECASE | re.ASCII)
REALM = 'Bearer realm="victoryline"'
# Answers that cost no quota still cost work: their limit is this many times the tier's.
FREE_FACTOR = 10


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
            _set_rate_limit(request, limiter().peek(*_stranger(request)))
            raise

    def _authenticate(self, request: Request, header: str) -> tuple[Principal, str]:
        sent = BEARER.fullmatch(header)
        if sent is None:
            raise AuthenticationFailed("The Authorization header must read: Bearer <token>.")
        try:
            prefix = tokens.read(sent["token"])
        except tokens.BadTokenError as error:
            raise AuthenticationFailed(str(error)) from error
        principal = principals.find(prefix)
        if principal is not None:
            # Also of a request that is refused next: the access log names its consumer.
            request._request.api_consumer = principal.consumer_pk  # type: ignore[attr-defined]  # noqa: SLF001
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
    config = settings.CONFIG
    return f"address:{client_address(request, config.trusted_proxies)}", config.rate_limit_anonymous_per_minute


def _set_rate_limit(request: Request, decision: Decision) -> None:
    request._request.rate_limit = decision.rate_limit  # type: ignore[attr-defined]  # noqa: SLF001


def _refusal(decision: Decision, tier: str, subject: str) -> TooManyRequests:
    limit = decision.rate_limit.limit
    return TooManyRequests(
        f"{subject} used up the {limit} requests that fit into a minute.",
        retry_after=decision.retry_after,
        limit=limit,
        tier=tier,
    )
