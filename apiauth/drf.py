"""Authentication, permission and throttling of the API, named in settings.REST_FRAMEWORK."""

from __future__ import annotations

import re
from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apiauth import principals, tokens
from apiauth.principals import Principal
from apiauth.rate_limit import Verdict, limiter, tier_limit
from victoryline.lib.http import Revalidated

BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9._~+/=-]+) *", re.IGNORECASE | re.ASCII)
REALM = 'Bearer realm="victoryline"'
# Answers of 304 are free of quota but not of work: they have a limit too, so many times the tier's.
FREE_FACTOR = 10


class BearerAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[Principal, str] | None:
        header = request.headers.get("Authorization", "")
        if not header:
            return None
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
            raise AuthenticationFailed("The key behind this token is revoked or expired. Ask for a new key.")
        return principal, prefix

    def authenticate_header(self, request: Request) -> str:
        return f'{REALM}, error="invalid_token"' if request.headers.get("Authorization") else REALM


class HasScope(BasePermission):
    """The caller's key must allow what the view names as its `required_scope` ("read" where it names none)."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.user, Principal):
            return False
        scope = getattr(view, "required_scope", "read")
        self.message = f'This needs a key with the scope "{scope}"; yours doesn\'t have it.'
        return scope in request.user.scopes


class TierThrottle(BaseThrottle):
    """Counts the request against its consumer's tier; an answer of 304 costs nothing."""

    verdict: Verdict | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        principal = request.user
        if not isinstance(principal, Principal):
            return True
        limit, bucket = tier_limit(principal.tier), principal.consumer_id
        free = self._take_free(request, view, bucket, limit)
        if free is not None:
            self.verdict = free
            request.rate_limit = limiter().peek(bucket, limit).rate_limit  # type: ignore[attr-defined]
        else:
            self.verdict = limiter().take(bucket, limit)
            request.rate_limit = self.verdict.rate_limit  # type: ignore[attr-defined]
        return self.verdict.is_allowed

    def _take_free(self, request: Request, view: Any, bucket: str, limit: int) -> Verdict | None:
        """The verdict on an answer of 304; None when the request has to be paid for.

        Finding out whether anything changed is the work itself, so the limit of free answers is asked before that.
        """
        if not isinstance(view, Revalidated) or not request.headers.get("If-None-Match"):
            return None
        free = limiter().take(f"free:{bucket}", limit * FREE_FACTOR)
        return free if free.is_allowed and view.is_unchanged(request) else None

    def wait(self) -> float | None:
        return self.verdict.retry_after if self.verdict else None
