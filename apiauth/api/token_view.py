"""POST /token/generate-token: exchanges an API key for a token."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from apiauth import keys, tokens
from apiauth.api.documents import TokenAnswer, TokenRequest
from apiauth.api.token_limits import TokensThrottle, wrong_key
from victoryline.lib.http.problems import BadParameter, problem_responses
from victoryline.lib.http.views import ApiView


class GenerateToken(ApiView):
    authentication_classes = ()
    permission_classes = (AllowAny,)
    throttle_classes = (TokensThrottle,)

    @extend_schema(
        operation_id="generate_token",
        summary="Get a token for an API key",
        description=(
            "Exchanges an API key for a bearer token, which is good for 24 hours and never longer than its key. An "
            "address may ask 60 times a minute, and be wrong 10 times; then it has to wait. `X-RateLimit-*` have "
            "what is left."
        ),
        tags=["access"],
        auth=[],
        parameters=[OpenApiParameter("X-API-Key", str, OpenApiParameter.HEADER, description="Instead of a body.")],
        request=TokenRequest,
        responses={200: TokenAnswer, **problem_responses(400, 401, 413, 415, 429, 503)},
        examples=[
            OpenApiExample("key", {"api_key": "vl_0123456789ab.<secret>"}, request_only=True),
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
        now, text = timezone.now(), _key_text(request)
        prefix, key = keys.prefix_of(text), keys.verify(text, now)
        request._request.api_key_prefix = prefix  # type: ignore[attr-defined]  # noqa: SLF001  for the access log
        if key is None:
            raise wrong_key(request, prefix)
        request._request.api_consumer = key.consumer_id  # type: ignore[attr-defined]  # noqa: SLF001
        keys.touch(key, now)
        token = tokens.make(key, now)
        answer = TokenAnswer(token=token.text, expires_in=token.lifetime_seconds, expires_at=token.expires_at)
        return Response(answer.model_dump(mode="json"))

    def get_authenticate_header(self, request: Request) -> str:
        return 'ApiKey realm="victoryline"'

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        finished = super().finalize_response(request, response, *args, **kwargs)
        finished.headers["Cache-Control"] = "no-store"
        return finished


def _key_text(request: Request) -> str:
    """Returns the key of the header, else of the body; a body is validated in both cases."""
    sent = TokenRequest(data=request.data)
    sent.is_valid(raise_exception=True)
    text = request.headers.get("X-API-Key") or sent.validated_data.get("api_key")
    if not text:
        raise BadParameter("api_key", "Send the API key as `api_key` in a JSON body, or as the header X-API-Key.")
    return str(text)
