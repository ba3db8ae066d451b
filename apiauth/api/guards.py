"""What stands before the token endpoint: a limit of attempts by address, and two counts of wrong keys.

By address, so that guessing is hopeless from one place and an honest caller never waits. By prefix, so that guessing at
one key from many places is noticed and slowed too: further wrong secrets get a 429. The right one is let in all the
while, for a stranger must not be able to lock a key's owner out.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from django.conf import settings
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apiauth.rate_limit import Verdict, limiter
from victoryline.lib.http import client_address
from victoryline.lib.problems import TooManyRequests

logger = logging.getLogger(__name__)

FAILURES_PER_MINUTE = 10
FAILURES_OF_A_KEY_PER_MINUTE = 100
TOO_MANY_WRONG = f"Your address has sent {FAILURES_PER_MINUTE} wrong keys within a minute."


class TokensThrottle(BaseThrottle):
    """Counts every attempt, right or wrong; an address that guesses is refused before its key is looked at."""

    def allow_request(self, request: Request, view: Any) -> bool:
        address = _address(request)
        asked = limiter().take(f"token:{address}", settings.CONFIG.rate_limit_tokens_per_minute)
        _tell(request, asked)
        if not asked.is_allowed:
            limit = asked.rate_limit.limit
            raise _refusal(asked, f"Your address has asked for {limit} tokens within a minute; one is good for a day.")
        guessed = limiter().peek(f"guess:{address}", FAILURES_PER_MINUTE)
        if not guessed.is_allowed:
            _tell(request, guessed)
            raise _refusal(guessed, TOO_MANY_WRONG)
        return True


def failure(request: Request, prefix: str) -> Exception:
    """What a wrong key is answered with. `prefix`: of the key that it pretends to be, whether there is one or not."""
    mine = limiter().take(f"guess:{_address(request)}", FAILURES_PER_MINUTE)
    _tell(request, mine)
    if not mine.is_allowed:
        return _refusal(mine, TOO_MANY_WRONG)
    of_key = limiter().take(f"guess-key:{prefix}", FAILURES_OF_A_KEY_PER_MINUTE) if prefix else None
    if of_key is not None and not of_key.is_allowed:
        return _refusal(of_key, "The key is wrong, and this key was tried with too many wrong secrets just now.")
    if of_key is not None and not of_key.rate_limit.remaining:
        _warn(prefix)
    return AuthenticationFailed("The API key is unknown, revoked or expired. Check it, or ask for a new one.")


def _warn(prefix: str) -> None:
    """Once a minute: whoever goes on uses up what comes back, again and again."""
    if limiter().take(f"guess-told:{prefix}", 1).is_allowed:
        logger.warning(
            "Somebody guesses at the key %s: %s wrong secrets within a minute",
            prefix,
            FAILURES_OF_A_KEY_PER_MINUTE,
            extra={"action": "key_guessed", "prefix": prefix},
        )


def _refusal(verdict: Verdict, what: str) -> TooManyRequests:
    seconds = max(1, math.ceil(verdict.retry_after))
    return TooManyRequests(f"{what} Check the key, and try again in {seconds} s.", retry_after=verdict.retry_after)


def _tell(request: Request, verdict: Verdict) -> None:
    """On Django's request, where whoever answers in the view's place finds it too."""
    request._request.rate_limit = verdict.rate_limit  # type: ignore[attr-defined]  # noqa: SLF001


def _address(request: Request) -> str:
    return client_address(request, settings.CONFIG.trusted_proxies)
