"""One id per request: in its answer, log lines, problem document and access log row.

Every refusal and failure has one log line with the id: this one or, where requests are traced, that of the trace.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from victoryline.lib.logs import bound

logger = logging.getLogger("victoryline.requests")

HEADER = "X-Request-Id"
_random = random.Random()  # noqa: S311  an id must be unique, not secret
# A client's own id is accepted if it is harmless in a log line, a header and a column.
SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request_id_of(request)
        with bound(request_id=request_id):
            response = self.get_response(request)
            if response.status_code >= 400 and not getattr(request, "is_traced", False):
                _log_refusal(request, response)
        response.headers[HEADER] = request_id
        return response


def is_our_failure(response: HttpResponseBase) -> bool:
    """Returns True for a 5xx, except a refusal because of the client's own `max_age`."""
    return response.status_code >= 500 and "X-Data-State" not in response.headers


def _log_refusal(request: HttpRequest, response: HttpResponseBase) -> None:
    status = response.status_code
    consumer: int | None = getattr(request, "api_consumer", None)
    method, path = printable(request.method or "", 8), printable(request.path, 200)
    logger.log(
        logging.WARNING if is_our_failure(response) else logging.INFO,
        "%s %s was answered with %d",
        method,
        path,
        status,
        extra={
            "action": "request_refused" if status < 500 else "request_failed",
            "request_id": request_id_of(request),
            "method": method,
            "path": path,
            "status": status,
            **({} if consumer is None else {"consumer_id": consumer}),
        },
    )


def printable(text: str, length: int) -> str:
    """Returns outside text cut and without characters that break a log line or a column (NUL, lone surrogates)."""
    readable = "".join(char if char.isprintable() else "?" for char in text[:length])
    return readable.encode(errors="replace").decode()


def request_id_of(request: HttpRequest) -> str:
    """Returns the request's id, created at the first call."""
    known: str | None = getattr(request, "request_id", None)
    if known is None:
        offered = request.headers.get(HEADER, "")
        known = offered if SANE.fullmatch(offered) else f"{_random.getrandbits(128):032x}"
        request.request_id = known  # type: ignore[attr-defined]
    return known
