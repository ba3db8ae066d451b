"""An API key in, a token for a day out."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from apiauth import keys, tokens
from apiauth.api.documents import TokenAnswer, TokenRequest
from apiauth.models import ApiKey
from apiauth.rate_limit import limiter
from victoryline.lib.http import client_address
from victoryline.lib.problem_docs import problem_responses
from victoryline.lib.problems import BadParameter
from victoryline.lib.times import as_utc_iso
from victoryline.lib.views import ApiView

FAILURES_PER_MINUTE = 10


class GenerateToken(ApiView):
    """Wrong keys are counted by the caller's address, so that guessing is hopeless and an honest caller never waits."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = ()

    @extend_schema(
        operation_id="generate_token",
        summary="Get a token for an API key",
        description="Exchanges an API key for a bearer token. After 10 wrong keys in a minute the address has to wait.",
        tags=["access"],
        auth=[],
        parameters=[OpenApiParameter("X-API-Key", str, OpenApiParameter.HEADER, description="Instead of a body.")],
        request=TokenRequest,
        responses={200: TokenAnswer, **problem_responses(400, 401, 413, 415, 429)},
        examples=[
            OpenApiExample("key", {"api_key": "vl_0123456789ab_<secret>"}, request_only=True),
            OpenApiExample(
                "token",
                {
                    "token": "eyJhbGciOi...",
                    "token_type": "Bearer",
                    "expires_in": 86400,
                    "expires_at": "2026-01-02T10:30:45.000Z",
                },
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        now = timezone.now()
        self._refuse_when_guessing(request)
        key = keys.verify(_key_text(request), now)
        if key is None:
            raise self._failure(request)
        request._request.api_consumer = key.consumer_id  # type: ignore[attr-defined]  # noqa: SLF001  for the access log
        keys.touch(key, now)
        return Response(_answer(key, now), headers={"Cache-Control": "no-store"})

    def get_authenticate_header(self, request: Request) -> str:
        return 'ApiKey realm="victoryline"'

    def _refuse_when_guessing(self, request: Request) -> None:
        verdict = limiter().peek(_bucket(request), FAILURES_PER_MINUTE)
        request.rate_limit = verdict.rate_limit  # type: ignore[attr-defined]
        if not verdict.is_allowed:
            raise Throttled(wait=verdict.retry_after)

    def _failure(self, request: Request) -> Exception:
        verdict = limiter().take(_bucket(request), FAILURES_PER_MINUTE)
        request.rate_limit = verdict.rate_limit  # type: ignore[attr-defined]
        if not verdict.is_allowed:
            return Throttled(wait=verdict.retry_after)
        return AuthenticationFailed("The API key is unknown, revoked or expired. Check it, or ask for a new one.")


def _bucket(request: Request) -> str:
    return f"guess:{client_address(request, settings.CONFIG.trusted_proxies)}"


def _key_text(request: Request) -> str:
    if header := request.headers.get("X-API-Key"):
        return header
    sent = TokenRequest(data=request.data)
    sent.is_valid(raise_exception=True)
    if "api_key" not in sent.validated_data:
        raise BadParameter("api_key", "Send the API key as `api_key` in a JSON body, or as the header X-API-Key.")
    return str(sent.validated_data["api_key"])


def _answer(key: ApiKey, now: datetime) -> dict[str, object]:
    token = tokens.make(key, now)
    return {
        "token": token.text,
        "token_type": "Bearer",
        "expires_in": token.lifetime_seconds,
        "expires_at": as_utc_iso(token.expires_at),
    }
