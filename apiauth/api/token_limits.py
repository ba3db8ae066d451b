"""Limits of the token endpoint: requests by address, wrong keys by address, wrong keys by prefix.

Wrong keys by address make guessing from one place hopeless. Wrong keys by prefix slow down and report guessing at one
key from many places; the right key is accepted all the while, so that a stranger can't lock a key's owner out.
"""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from victoryline.lib.http.open_limits import Usage, address_of, usage_of
from victoryline.lib.http.problems import TooManyRequests

logger = logging.getLogger(__name__)

FAILURES_PER_MINUTE = 10
FAILURES_OF_A_KEY_PER_MINUTE = 100
TOO_MANY_WRONG = f"Your address has sent {FAILURES_PER_MINUTE} wrong keys within a minute."


class TokensThrottle(BaseThrottle):
    """Counts every attempt, right or wrong; an address that guesses is refused before its key is verified."""

    def allow_request(self, request: Request, view: Any) -> bool:
        attempts = _usage(request, "token", _address(request), settings.CONFIG.rate_limit_tokens_per_minute)
        _set_headers(request, attempts)
        if attempts.is_exceeded:
            detail = f"Your address has asked for {attempts.limit} tokens within a minute; one is good for a day."
            raise _refusal(attempts, detail)
        wrong = _usage(request, "wrong-key", _address(request), FAILURES_PER_MINUTE, is_counted=False)
        if wrong.is_used_up:
            _set_headers(request, wrong)
            raise _refusal(wrong, TOO_MANY_WRONG)
        return True


def wrong_key(request: Request, prefix: str) -> Exception:
    """Counts a wrong key and returns the refusal. `prefix` is the one that the key claims, known to us or not."""
    by_address = _usage(request, "wrong-key", _address(request), FAILURES_PER_MINUTE)
    _set_headers(request, by_address)
    if by_address.is_exceeded:
        return _refusal(by_address, TOO_MANY_WRONG)
    by_prefix = _usage(request, "wrong-secret", prefix, FAILURES_OF_A_KEY_PER_MINUTE) if prefix else None
    if by_prefix is not None and by_prefix.is_exceeded:
        return _refusal(by_prefix, "The key is wrong, and this key was tried with too many wrong secrets just now.")
    if by_prefix is not None and by_prefix.requests == by_prefix.limit:  # once in each window
        logger.warning(
            "Guessing at the key %s: %s wrong secrets within a minute",
            prefix,
            by_prefix.limit,
            extra={"action": "key_guessed", "prefix": prefix},
        )
    return AuthenticationFailed("The API key is unknown, revoked or expired. Check it, or ask for a new one.")


def _usage(request: Request, group: str, value: str, per_minute: int, *, is_counted: bool = True) -> Usage:
    return usage_of(request._request, group, value, per_minute, is_counted=is_counted)  # noqa: SLF001


def _address(request: Request) -> str:
    return address_of(request._request)  # noqa: SLF001


def _refusal(usage: Usage, detail: str) -> TooManyRequests:
    return TooManyRequests(
        f"{detail} Check the key, and try again in {usage.seconds_left} s.", retry_after=usage.seconds_left
    )


def _set_headers(request: Request, usage: Usage) -> None:
    """On Django's request, where the view and the error pages find it."""
    request._request.rate_limit = usage.rate_limit  # type: ignore[attr-defined]  # noqa: SLF001
