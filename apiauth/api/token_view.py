"""POST /token/generate-token: exchanges an API key for a token.

Limits: requests by address, wrong keys by address, wrong keys by prefix. Wrong keys by address make guessing from one
place hopeless. Wrong keys by prefix slow down and report guessing at one key from many places; the right key is still
accepted, so that an attacker can't lock out the owner of a key.
"""

import logging
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import serializers
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from apiauth import keys, tokens
from victoryline.lib.http.headers import NO_STORE
from victoryline.lib.http.open_limits import Usage, address_of, usage_of
from victoryline.lib.http.problems import ApiProblem, BadParameter, problem_responses
from victoryline.lib.http.strict_serializer import StrictSerializer
from victoryline.lib.http.views import ApiView
from victoryline.lib.times import UtcTime

logger = logging.getLogger(__name__)

# From one address.
TOKENS_PER_MINUTE = 60
FAILURES_PER_MINUTE = 10
FAILURES_OF_A_KEY_PER_MINUTE = 100
TOO_MANY_WRONG = f"Your address has sent {FAILURES_PER_MINUTE} wrong keys within a minute."


class TokenRequest(StrictSerializer):
    api_key = serializers.CharField(required=False, max_length=200, help_text="Or send it as the header X-API-Key.")


class TokenAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: str = Field(description="A JWT. Send it as `Authorization: Bearer <token>`.")
    token_type: str = "Bearer"  # noqa: S105  the name of the scheme
    expires_in: int = Field(ge=0, description="Seconds.")
    expires_at: UtcTime


class TokensThrottle(BaseThrottle):
    """Counts every attempt, right or wrong; an address that guesses is refused before its key is verified."""

    def allow_request(self, request: Request, view: Any) -> bool:
        http = request._request  # noqa: SLF001
        attempts = _usage(http, "token", address_of(http), TOKENS_PER_MINUTE)
        if attempts.is_exceeded:
            detail = f"Your address has requested {attempts.limit} tokens within a minute; a token is valid for a day."
            raise _refusal(attempts, detail)
        wrong = usage_of(http, "wrong-key", address_of(http), FAILURES_PER_MINUTE, is_counted=False)
        if wrong.is_used_up:
            http.rate_limit = wrong.rate_limit  # type: ignore[attr-defined]
            raise _refusal(wrong, TOO_MANY_WRONG)
        return True


def wrong_key(request: HttpRequest, prefix: str) -> Exception:
    """Counts a wrong key and returns the refusal. `prefix` is the one that the key claims, known to us or not."""
    by_address = _usage(request, "wrong-key", address_of(request), FAILURES_PER_MINUTE)
    if by_address.is_exceeded:
        return _refusal(by_address, TOO_MANY_WRONG)
    if prefix:
        by_prefix = usage_of(request, "wrong-secret", prefix, FAILURES_OF_A_KEY_PER_MINUTE)
        if by_prefix.is_exceeded:
            return _refusal(
                by_prefix, "The key is wrong, and there were too many attempts with this prefix and wrong secrets."
            )
        if by_prefix.is_used_up:  # once in each window
            logger.warning(
                "Guessing at the key %s: %s wrong secrets within a minute",
                prefix,
                by_prefix.limit,
                extra={"action": "key_guessed", "prefix": prefix},
            )
    return AuthenticationFailed("The API key is unknown, revoked or expired. Check it, or request a new one.")


def _usage(request: HttpRequest, group: str, value: str, per_minute: int) -> Usage:
    """Counts, and puts the state of the limit where the middleware finds it."""
    usage = usage_of(request, group, value, per_minute)
    request.rate_limit = usage.rate_limit  # type: ignore[attr-defined]
    return usage


def _refusal(usage: Usage, detail: str) -> ApiProblem:
    wait = usage.seconds_left
    return ApiProblem("too-many-requests", f"{detail} Check the key, and try again in {wait} s.", retry_after=wait)


class GenerateToken(ApiView):
    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (TokensThrottle,)

    @extend_schema(
        operation_id="generate_token",
        summary="Get a token for an API key",
        description=(
            "Exchanges an API key for a bearer token, which is valid for 24 hours, and never longer than its key. "
            "Limits for an address: 60 requests a minute, 10 of them with wrong keys. The `X-RateLimit-*` headers have "
            "the requests that are left."
        ),
        tags=["access"],
        auth=[],
        parameters=[OpenApiParameter("X-API-Key", str, OpenApiParameter.HEADER, description="Instead of a body.")],
        request=TokenRequest,
        responses={200: TokenAnswer, **problem_responses(400, 401, 413, 415, 429, 503)},
    )
    def post(self, request: Request) -> Response:
        now, http = timezone.now(), request._request  # noqa: SLF001
        sent = TokenRequest(data=request.data)  # validated also if the key is in the header
        sent.is_valid(raise_exception=True)
        text = str(request.headers.get("X-API-Key") or sent.validated_data.get("api_key") or "")
        if not text:
            raise BadParameter("api_key", "Send the API key as `api_key` in a JSON body, or as the header X-API-Key.")
        prefix, key = keys.prefix_in(text), keys.verify(text, now)
        http.api_key_prefix = prefix  # type: ignore[attr-defined]  # for the access log
        if key is None:
            raise wrong_key(http, prefix)
        http.api_consumer = key.consumer_id  # type: ignore[attr-defined]
        keys.touch(key, now)
        token = tokens.make(key, now)
        answer = TokenAnswer(token=token.text, expires_in=token.lifetime_seconds, expires_at=token.expires_at)
        return Response(answer.model_dump(mode="json"), headers=NO_STORE)

    def get_authenticate_header(self, request: Request) -> str:
        return 'ApiKey realm="victoryline"'
