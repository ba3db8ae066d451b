"""Authentication, permission and throttling of the API, named in settings.REST_FRAMEWORK.

Every request is counted once: against its consumer when its token is good, else against the caller's address. Where the
caller stands is put on Django's request as `rate_limit`; the view, or whoever answers in its place, tells it.
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
from apiauth.models import Tier
from apiauth.principals import Principal
from apiauth.rate_limit import Verdict, limiter, tier_limit
from apiauth.sliding_window import Question
from victoryline.lib.http import client_address
from victoryline.lib.problems import StoreAway, TooManyRequests

BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9._~+/=-]+) *", re.IGNORECASE | re.ASCII)
REALM = 'Bearer realm="victoryline"'
# Answers that are free of quota are not free of work: they have a limit too, so many times the tier's.
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
        except StoreAway:
            # The token may be good. Nobody knows, so it costs nothing; only the answer says where the address stands.
            _tell(request, limiter().peek(*_stranger(request)))
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
            # Before the door: the access log shows who knocked, let in or not.
            request._request.api_consumer = principal.consumer_pk  # type: ignore[attr-defined]  # noqa: SLF001
        if principal is None or not principal.may_enter(timezone.now()):
            raise AuthenticationFailed(
                "The key behind this token is revoked or expired, or your access was ended. Ask for a new key."
            )
        return principal, prefix

    def authenticate_header(self, request: Request) -> str:
        return f'{REALM}, error="invalid_token"' if request.headers.get("Authorization") else REALM


class HasScope(BasePermission):
    """The caller's key must allow what the view names as its `required_scope`: "read" where it doesn't say, nothing
    where that is empty."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.user, Principal):
            return False
        scope = getattr(view, "required_scope", "read")
        self.message = f'This needs a key with the scope "{scope}"; yours doesn\'t have it.'
        return not scope or scope in request.user.scopes


class TierThrottle(BaseThrottle):
    """Counts the request against its consumer's tier. Answers of 304 cost nothing, nor does what a view gives away."""

    def allow_request(self, request: Request, view: Any) -> bool:
        principal = request.user
        if not isinstance(principal, Principal):
            count_stranger(request)
            return True
        limit, bucket = limit_of(principal), principal.consumer_id
        if self._is_free(request, view, bucket, limit):
            return True
        verdict = limiter().take(bucket, limit)
        _tell(request, verdict)
        if not verdict.is_allowed:
            raise _refusal(verdict, principal.tier, "You have")
        return True

    def _is_free(self, request: Request, view: Any, bucket: str, limit: int) -> bool:
        """Finding out whether anything changed is the work itself, so the limit of free answers is asked first."""
        is_given_away = not getattr(view, "costs_quota", True)
        if not is_given_away and ("HTTP_IF_NONE_MATCH" not in request.META or not hasattr(view, "is_unchanged")):
            return False
        free, paid = limiter().ask(
            Question(f"free:{bucket}", limit * FREE_FACTOR), Question(bucket, limit, is_counted=False)
        )
        _tell(request, paid)  # before the view looks: also a mistake of ours says where the caller stands
        return free.is_allowed and (is_given_away or view.is_unchanged(request))


def limit_of(principal: Principal) -> int:
    """Requests a minute."""
    custom = principal.requests_per_minute if principal.tier == Tier.CUSTOM else None
    return custom or tier_limit(principal.tier)


def count_stranger(request: Request) -> None:
    """Without a valid token it is the address that has a limit; beyond it nobody is told whether a token is good."""
    verdict = limiter().take(*_stranger(request))
    _tell(request, verdict)
    if not verdict.is_allowed:
        raise _refusal(verdict, "anonymous", "Your address has, without a valid token,")


def _stranger(request: Request) -> tuple[str, int]:
    config = settings.CONFIG
    return f"address:{client_address(request, config.trusted_proxies)}", config.rate_limit_anonymous_per_minute


def _tell(request: Request, verdict: Verdict) -> None:
    request._request.rate_limit = verdict.rate_limit  # type: ignore[attr-defined]  # noqa: SLF001


def _refusal(verdict: Verdict, tier: str, who: str) -> TooManyRequests:
    limit = verdict.rate_limit.limit
    return TooManyRequests(
        f"{who} used up the {limit} requests that fit into a minute.",
        retry_after=verdict.retry_after,
        limit=limit,
        tier=tier,
    )
