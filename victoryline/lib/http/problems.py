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
NO_SUCH_ADDRESS = "There is nothing at this address. /api/docs lists the addresses."
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
        "The body, the address or a header can't be read, or values in the body are invalid.",
        "Correct the error in `detail`; `invalid`, if present, lists each wrong value. The same request would fail "
        "again.",
    ),
    "bad-parameter": Kind(
        400,
        "A parameter has an invalid value",
        "A parameter of the address is unknown, or its value is invalid.",
        "Correct the parameter named in `parameter`; /api/docs lists all parameters.",
    ),
    "unauthorized": Kind(
        401,
        "A valid token is needed",
        "The token is missing, has expired, was not issued by this service, or its key is revoked.",
        "Get a token with POST /token/generate-token and send it as `Authorization: Bearer <token>`. If the key "
        "itself is refused, ask the operator for another.",
    ),
    "forbidden": Kind(
        403,
        "The token does not allow this",
        "The token is valid, but its key lacks the scope for this.",
        "Ask the operator for a key with the scope that `detail` names.",
    ),
    "not-found": Kind(
        404,
        "There is nothing at this address",
        "The address does not exist, or the id in it is not known (yet).",
        "Check the address and the id; GET /api/v1/matches lists the matches, /api/docs the addresses.",
    ),
    "method-not-allowed": Kind(
        405,
        "The method is not allowed at this address",
        "The address exists, but does not accept this method.",
        "Use one of the methods in the header `Allow`.",
    ),
    "conflict": Kind(
        409,
        "The present state does not allow this",
        "The state of the match doesn't allow it, or the Idempotency-Key was used for another request.",
        "Read the present state first; use a new Idempotency-Key for every new request.",
    ),
    "too-old": Kind(
        410,
        "The requested state is no longer kept",
        "States are kept for some hours; that of this time or sequence was deleted.",
        "Request `oldest_sequence` or later, or read the present state of the match.",
    ),
    "delta-overflow": Kind(
        410,
        "The start of the delta is no longer kept",
        "The state at `since` was deleted, so the changes since then are unknown.",
        "Read the whole match, and continue from its `sequence`.",
    ),
    "payload-too-large": Kind(
        413,
        "The body is too large",
        "The body is larger than the limit of this address; nothing of it was used.",
        "Send less at once, in several requests.",
    ),
    "unsupported-media-type": Kind(
        415,
        "The format of the body is not supported",
        "Only JSON is accepted.",
        "Send JSON, with the header `Content-Type: application/json`.",
    ),
    "too-many-requests": Kind(
        429,
        "The rate limit is reached",
        "The requests of this minute are used up: those of your consumer, or without a valid token those of your "
        "address.",
        "Wait `retry_after` seconds. Use `If-None-Match`: a 304 costs no quota. Other tiers have higher limits.",
    ),
    "internal-error": Kind(
        500,
        "An internal error",
        "An error of the service, which is logged with the request id. Stored data is unchanged.",
        "Try again once; if it persists, report the `request_id`.",
    ),
    "unavailable": Kind(
        503,
        "The answer is not available now",
        "Our database is unreachable, and the requested data is not cached. Nothing is lost.",
        "Wait `retry_after` seconds and try again.",
    ),
    "too-stale": Kind(
        503,
        "The data is older than you accept",
        "The newest data is older than your `max_age`.",
        "Wait `retry_after` seconds and try again, or accept older data with a larger `max_age`.",
    ),
    "insufficient-memory": Kind(
        503,
        "Insufficient memory resources",
        "There is too little memory to watch another match or to begin a job now; it is written down.",
        "Nothing: the watch or the job begins by itself when there is room.",
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
        """`what`: a sentence about this request, with a space at its end."""
        super().__init__(
            "unavailable",
            f"Our database can't be reached at the moment. {what}Nothing is lost; try again in a few seconds.",
            retry_after=RETRY_SECONDS,
        )


class Problem(BaseModel):
    """RFC 9457. Further members depend on the type: `retry_after`, `parameter`, `invalid`, `limit`, `tier`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Identifies the kind of problem; the page at this address explains it.",
        examples=["/problems/not-found"],
    )
    title: str
    status: int
    code: str = Field(description="The kind as a short code, for programs.", examples=["not-found"])
    detail: str = Field(description="The cause of this error.")
    what_to_do: str = Field(description="Advice for problems of this kind.")
    instance: str = Field(description="The path of the request.")
    request_id: str = Field(description="The id of the request in our logs, for support.")


def document(
    request: HttpRequest, status: int, detail: str, *, kind: str = "", extensions: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    code = kind or of_status(status)
    problem = Problem(
        type=f"/problems/{code}",
        title=KINDS[code].title,
        status=status,
        code=code,
        detail=detail,
        what_to_do=KINDS[code].advice,
        instance=request.path,
        request_id=getattr(request, "request_id", ""),
        **(extensions or {}),
    )
    return problem.model_dump()


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
            return "Some values are invalid; `invalid` lists them."
        case exceptions.MethodNotAllowed():
            method = printable(request.method or "", 20)
            return f"This address does not accept {method}; the header `Allow` lists the methods that it accepts."
        case exceptions.UnsupportedMediaType():
            sent = printable(request.META.get("CONTENT_TYPE", ""), 100)
            return f"The body is {sent or 'of no named type'}; only application/json is accepted."
    return str(problem.detail)


def problem_responses(*codes: int) -> dict[tuple[int, str], OpenApiResponse]:
    return {(code, MEDIA_TYPE): OpenApiResponse(Problem, description=KINDS[of_status(code)].title) for code in codes}
