"""Errors of the API in one shape: RFC 9457 problem documents, each with what happened and what to do next.

`type` is a relative reference such as /problems/not-found, and a page there explains it; `code` is its last segment,
for programs. `KINDS` is the table of all kinds: for answers, the pages at /problems/ and the docs.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, UnreadablePostError
from drf_spectacular.utils import OpenApiResponse
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import exceptions
from rest_framework.response import Response

from victoryline.lib import availability
from victoryline.lib.http import body_limits
from victoryline.lib.redaction import printable

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5
NO_SUCH_ADDRESS = "There is nothing at this address. The addresses are listed at /api/docs."
UNREADABLE = "The request can't be read. Check its address, headers and body."


class Kind(NamedTuple):
    """`advice` says what the client can do. The first kind of a status is its default."""

    status: int
    title: str
    meaning: str
    advice: str


KINDS: dict[str, Kind] = {
    "bad-request": Kind(
        400,
        "The request is not understood",
        "The body, the address or a header can't be read, or values in the body can't be used.",
        "Mend what `detail` names; where there is `invalid`, it names each wrong value. The same request fails again.",
    ),
    "bad-parameter": Kind(
        400,
        "A parameter has a value that can't be used",
        "A parameter of the address is unknown, or its value is not one that it takes.",
        "Mend the parameter that `parameter` names; /api/docs lists those there are.",
    ),
    "unauthorized": Kind(
        401,
        "A valid token is needed",
        "There was no token, or it has expired, is not one of ours, or its key is revoked.",
        "Get a token with POST /token/generate-token and send it as `Authorization: Bearer <token>`. If the key "
        "itself is refused, ask the operator for another.",
    ),
    "forbidden": Kind(
        403,
        "The token does not allow this",
        "We know who you are; your key has no scope for this.",
        "Ask the operator for a key with the scope that `detail` names.",
    ),
    "not-found": Kind(
        404,
        "There is no such thing here",
        "Nothing lives at this address, or what it names is not known (yet).",
        "Check the address and the id; GET /api/v1/matches lists the matches, /api/docs the addresses.",
    ),
    "method-not-allowed": Kind(
        405,
        "This address does not take that method",
        "The address exists, the method is not for it.",
        "Use one of the methods in the header `Allow`.",
    ),
    "conflict": Kind(
        409,
        "The present state does not allow this",
        "The match is in a state that doesn't allow it, or an Idempotency-Key was used for something else.",
        "Read the present state again, then decide; for something new use a new Idempotency-Key.",
    ),
    "too-old": Kind(
        410,
        "What you ask for is older than what we keep",
        "The state of the match at that time, or with that number, is no longer kept.",
        "Ask for `oldest_sequence` or later, or read the match as it is now.",
    ),
    "delta-overflow": Kind(
        410,
        "The difference reaches further back than what we keep",
        "The state of the match that you have is no longer kept, so we can't say what has changed since.",
        "Read the match whole, and go on from the `sequence` in it.",
    ),
    "payload-too-large": Kind(
        413,
        "The body is too large",
        "The body is larger than this address takes; nothing of it was used.",
        "Send less at once, in several requests.",
    ),
    "unsupported-media-type": Kind(
        415,
        "The body is in a format that is not read here",
        "Bodies are read as JSON and as nothing else.",
        "Send JSON, with the header `Content-Type: application/json`.",
    ),
    "too-many-requests": Kind(
        429,
        "The limit of requests is reached",
        "You, or without a valid token your address, have used up the requests of this minute.",
        "Wait `retry_after` seconds. Ask with `If-None-Match`: answers of 304 are free. Another tier has more.",
    ),
    "internal-error": Kind(
        500,
        "Something went wrong on our side",
        "A mistake of ours, which is logged under the request id. What is stored is as it was.",
        "Try again once; if it stays, tell us the `request_id`.",
    ),
    "unavailable": Kind(
        503,
        "The answer is not available now",
        "Our database is away and we don't know this without it. Nothing is lost.",
        "Wait `retry_after` seconds and ask again.",
    ),
    "too-stale": Kind(
        503,
        "The data is older than you accept",
        "The newest data that we have is older than your `max_age`.",
        "Wait `retry_after` seconds and ask again, or accept older data with a larger `max_age`.",
    ),
    "insufficient-memory": Kind(
        503,
        "Insufficient memory resources",
        "There is too little memory to watch another match now; the wish is noted.",
        "Nothing: the watch begins by itself when there is room.",
    ),
}

_DEFAULT_CODES = {kind.status: code for code, kind in reversed(KINDS.items())}


def of_status(status: int) -> str:
    """Returns the default code of a status."""
    return _DEFAULT_CODES.get(status) or ("internal-error" if status >= 500 else "bad-request")


class ApiProblem(exceptions.APIException):
    """A refusal of one of the KINDS with, where it helps, members beyond the standard ones."""

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        **extensions: Any,
    ) -> None:
        super().__init__(detail)
        self.kind, self.status_code = kind, KINDS[kind].status
        self.headers, self.extensions = dict(headers or {}), extensions
        if retry_after is not None:
            seconds = max(1, math.ceil(retry_after))
            self.headers["Retry-After"] = str(seconds)
            self.extensions["retry_after"] = seconds


class BadParameter(ApiProblem):
    def __init__(self, parameter: str, detail: str) -> None:
        super().__init__("bad-parameter", detail, parameter=parameter)


class DatabaseAway(ApiProblem):
    def __init__(self, what: str = "") -> None:
        """`what` is a sentence about this request, with a space at its end."""
        super().__init__(
            "unavailable",
            f"Our database can't be reached at the moment. {what}Nothing is lost; try again in a few seconds.",
            retry_after=RETRY_SECONDS,
        )


def document(
    request: HttpRequest, status: int, detail: str, *, kind: str = "", extensions: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    code = kind or of_status(status)
    return {
        "type": f"/problems/{code}",
        "title": KINDS[code].title,
        "status": status,
        "code": code,
        "detail": detail,
        "what_to_do": KINDS[code].advice,
        "instance": request.path,
        "request_id": getattr(request, "request_id", ""),
        **(extensions or {}),
    }


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Django REST framework's hook. None lets the error go on to Django: `error_pages` answers in the same shape."""
    problem = _as_api_exception(error)
    if problem is None:
        return None
    request: HttpRequest = context["request"]._request  # noqa: SLF001  the only way to the request that middleware knows
    headers = {**getattr(problem, "headers", {}), "Cache-Control": "no-store"}
    extensions = dict(getattr(problem, "extensions", {}))
    if isinstance(problem, exceptions.ValidationError):
        extensions["invalid"] = problem.detail if isinstance(problem.detail, dict) else {"body": problem.detail}
    if challenge := getattr(problem, "auth_header", ""):
        headers["WWW-Authenticate"] = challenge
    sentence, kind = _sentence(problem, request), getattr(problem, "kind", "")
    body = document(request, problem.status_code, sentence, kind=kind, extensions=extensions)
    return Response(body, status=problem.status_code, headers=headers, content_type=MEDIA_TYPE)


def _as_api_exception(error: Exception) -> exceptions.APIException | None:
    match error:
        case exceptions.APIException():
            return error
        case _ if body_limits.is_refused(error):
            return ApiProblem("unavailable", body_limits.REFUSAL, retry_after=RETRY_SECONDS)
        case UnreadablePostError():
            return exceptions.ParseError(UNREADABLE)
        case OperationalError() | InterfaceError():
            availability.database.report(error)
            logger.warning("The database can't be reached: %s", error, extra={"action": "api_store_away"})
            return DatabaseAway()
    return None


def _sentence(problem: exceptions.APIException, request: HttpRequest) -> str:
    match problem:
        case exceptions.NotAuthenticated():
            return "Send a token: `Authorization: Bearer <token>`. POST /token/generate-token gives one for an API key."
        case exceptions.ValidationError():
            return "Some values can't be used; `invalid` names each of them."
        case exceptions.MethodNotAllowed():
            method = printable(request.method or "", 20)
            return f"This address does not take {method}; the header `Allow` says what it takes."
        case exceptions.UnsupportedMediaType():
            sent = printable(request.META.get("CONTENT_TYPE", ""), 100)
            return f"The body is {sent or 'of no named type'}; only application/json is read here."
    return str(problem.detail)


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
