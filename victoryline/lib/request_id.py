"""One id for a request: on its answer, in its log lines, in its problem document, in the access log."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from victoryline.lib.logs import bound

HEADER = "X-Request-Id"
# A caller's own id is welcome when it can do no harm in a log line, a header or a column.
SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request_id_of(request)
        with bound(request_id=request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response


def request_id_of(request: HttpRequest) -> str:
    """The request's id; made on first sight and the same ever after."""
    known: str | None = getattr(request, "request_id", None)
    if known is None:
        offered = request.headers.get(HEADER, "")
        known = offered if SANE.fullmatch(offered) else uuid.uuid4().hex
        request.request_id = known  # type: ignore[attr-defined]
    return known
