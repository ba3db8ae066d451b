"""Notes every request to a protected address and for a token: who, what, when, the answer, how old its data was."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from apiauth.access_writer import writer
from apiauth.models import AccessLog
from victoryline.lib.request_id import printable, request_id_of

LOGGED_PREFIXES = ("/api/v1/", "/api/scrape", "/cricket-data", "/token/")


class AccessLogMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith(LOGGED_PREFIXES):
            return self.get_response(request)
        began = time.perf_counter()
        response = self.get_response(request)
        row = _row(request, response, time.perf_counter() - began)
        if settings.ACCESS_LOG_IS_SYNCHRONOUS:
            row.save()
        else:
            writer.write(row)
        return response


def _row(request: HttpRequest, response: HttpResponseBase, seconds: float) -> AccessLog:
    return AccessLog(
        consumer_id=getattr(request, "api_consumer", None),
        timestamp=timezone.now(),
        method=printable(request.method or "", 8),
        endpoint=printable(request.path, 200),
        response_status=response.status_code,
        data_age_seconds=_number(response.headers.get("X-Data-Age-Seconds")),
        duration_ms=round(seconds * 1000),
        request_id=request_id_of(request),
    )


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
