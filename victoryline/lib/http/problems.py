"""Errors of the API in one shape: RFC 9457 problem documents, each with what happened and what to do next.

`type` is a relative reference such as /problems/not-found, and a page there explains it; `code` is its last segment,
for programs. `problem_kinds` is the table of all kinds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, UnreadablePostError
from drf_spectacular.utils import OpenApiResponse
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import exceptions, status
from rest_framework.response import Response

from victoryline.lib import availability
from victoryline.lib.http import body_limits
from victoryline.lib.http.problem_kinds import KINDS, of_status
from victoryline.lib.redaction import printable

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5


class ApiProblem(exceptions.APIException):
    """A refusal with a problem type of its own and, where it helps, members beyond the standard ones."""

    kind = ""

    def __init__(
        self,
        detail: str,
        *,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        **extensions: Any,
    ) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.headers = headers or {}
        self.extensions = extensions


class BadParameter(ApiProblem):
    status_code = status.HTTP_400_BAD_REQUEST
    kind = "bad-parameter"

    def __init__(self, parameter: str, detail: str) -> None:
        super().__init__(detail, parameter=parameter)


class Conflict(ApiProblem):
    status_code = status.HTTP_409_CONFLICT


class PayloadTooLarge(ApiProblem):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE


class TooManyRequests(ApiProblem):
    status_code = status.HTTP_429_TOO_MANY_REQUESTS


class TooStale(ApiProblem):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    kind = "too-stale"


class NoMemory(ApiProblem):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    kind = "insufficient-memory"


class Unavailable(ApiProblem):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE


class DatabaseAway(ApiProblem):
    status_code = status.HTTP_503_SERVICE_UNAVAILABLE

    @classmethod
    def now(cls, what: str = "") -> DatabaseAway:
        """`what` is a sentence about this request, with a space at its end."""
        return cls(
            f"Our database can't be reached at the moment. {what}Nothing is lost; try again in a few seconds.",
            retry_after=RETRY_SECONDS,
        )


def document(
    request: HttpRequest, status: int, detail: str, *, kind: str = "", extensions: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    code = kind or of_status(status)
    known = KINDS[code if code in KINDS else of_status(status)]
    return {
        "type": f"/problems/{code}",
        "title": known.title,
        "status": status,
        "code": code,
        "detail": detail,
        "what_to_do": known.advice,
        "instance": request.path,
        "request_id": getattr(request, "request_id", ""),
        **(extensions or {}),
    }


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Django REST framework's hook. None lets the error go on to Django, which logs it and answers 500."""
    problem = _as_api_exception(error)
    if problem is None:
        return None
    request: HttpRequest = context["request"]._request  # noqa: SLF001  the only way to the request that middleware knows
    retry_after = _retry_after(problem)
    extensions = dict(getattr(problem, "extensions", {})) | _invalid_fields(problem)
    headers = {**getattr(problem, "headers", {}), "Cache-Control": "no-store"}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
        extensions["retry_after"] = retry_after
    if challenge := getattr(problem, "auth_header", ""):
        headers["WWW-Authenticate"] = challenge
    sentence = _sentence(problem, request)
    body = document(request, problem.status_code, sentence, kind=getattr(problem, "kind", ""), extensions=extensions)
    return Response(body, status=problem.status_code, headers=headers, content_type=MEDIA_TYPE)


def _as_api_exception(error: Exception) -> exceptions.APIException | None:
    match error:
        case exceptions.APIException():
            return error
        case Http404():
            return exceptions.NotFound("There is nothing at this address. The addresses are listed at /api/docs.")
        case PermissionDenied():
            return exceptions.PermissionDenied()
        case RequestDataTooBig():
            return PayloadTooLarge("The body is larger than we read.")
        case _ if body_limits.is_refused(error):
            return Unavailable(body_limits.REFUSAL, retry_after=RETRY_SECONDS)
        case BadRequest() | SuspiciousOperation() | UnreadablePostError():
            return exceptions.ParseError("The request can't be read. Check its address, headers and body.")
        case OperationalError() | InterfaceError():
            availability.database.report(error)
            logger.warning("The database can't be reached: %s", error, extra={"action": "api_store_away"})
            return DatabaseAway.now()
    return None


def _retry_after(problem: exceptions.APIException) -> int | None:
    name = "wait" if isinstance(problem, exceptions.Throttled) else "retry_after"
    wait: float | None = getattr(problem, name, None)
    return None if wait is None else max(1, math.ceil(wait))


def _sentence(problem: exceptions.APIException, request: HttpRequest) -> str:
    match problem:
        case exceptions.NotAuthenticated():
            return "Send a token: `Authorization: Bearer <token>`. POST /token/generate-token gives one for an API key."
        case exceptions.Throttled():
            return f"You have used up your requests for now. Try again in {_retry_after(problem) or 60} s."
        case exceptions.ValidationError():
            return "Some values can't be used; `invalid` names each of them."
        case exceptions.MethodNotAllowed():
            method = printable(request.method or "", 20)
            return f"This address does not take {method}; the header `Allow` says what it takes."
        case exceptions.UnsupportedMediaType():
            sent = printable(request.META.get("CONTENT_TYPE", ""), 100)
            return f"The body is {sent or 'of no named type'}; only application/json is read here."
    return str(problem.detail)


def _invalid_fields(problem: exceptions.APIException) -> dict[str, Any]:
    """{"invalid": {"limit": ["Ensure this value is at most 100."]}} for a failed validation."""
    if isinstance(problem, exceptions.ValidationError):
        return {"invalid": problem.detail if isinstance(problem.detail, dict) else {"body": problem.detail}}
    return {}


class Problem(BaseModel):
    """RFC 9457. Further members depend on the type: `retry_after`, `parameter`, `invalid`, `limit`, `tier`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Names the kind of problem; the page at this address explains it.",
        examples=["/problems/not-found"],
    )
    title: str
    status: int
    code: str = Field(description="The kind as a short code, for programs.", examples=["not-found"])
    detail: str = Field(description="What happened this time.")
    what_to_do: str = Field(description="What helps with problems of this kind.")
    instance: str = Field(description="The path of the request.")
    request_id: str = Field(description="Send this to us when you ask for help.")


def problem_responses(*codes: int) -> dict[tuple[int, str], OpenApiResponse]:
    return {(code, MEDIA_TYPE): OpenApiResponse(Problem, description=KINDS[of_status(code)].title) for code in codes}
