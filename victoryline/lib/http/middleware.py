"""The project's own middleware: request ids, problem documents, and a chain in which API requests skip page middleware.

Each request has one id: in its answer, log lines, problem document and access log row.

Sessions, messages, logins, form tokens and static files cost an API request more than its answer did. Two middlewares
enclose them in settings.MIDDLEWARE: at `ApiShortcut` a request to the API leaves the chain and goes on at
`ApiShortcutEnd`, behind all of them. What it still needs of the skipped ones (a checked Host, the length, a security
policy, two metrics) is done here.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django_prometheus.middleware import Metrics, PrometheusAfterMiddleware
from structlog.contextvars import bound_contextvars

from victoryline.lib import availability
from victoryline.lib.http.compression import compress
from victoryline.lib.http.error_pages import CONSOLE_PREFIX, answer, is_for_programs
from victoryline.lib.http.headers import RateLimit
from victoryline.lib.http.request_log import log_request

Handler = Callable[[HttpRequest], HttpResponseBase]

REQUEST_ID = "X-Request-Id"
# A client's own id is accepted if it is harmless in a log line, a header and a column.
ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_random = random.Random()  # noqa: S311  an id must be unique, not secret

OF_THE_BODY = ("Content-Length", "Content-Encoding", "Content-Type", "ETag", "Last-Modified")
API = ("/api/v1/", "/api/scrape", "/cricket-data", "/token/")
# A JSON answer loads nothing and must not be framed.
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}
_being_built = threading.local()  # Django builds the middleware chain from its end, in one thread


class RequestIdMiddleware:
    """Sets `request.request_id`: the client's own, else a random one. Logs the request, if it is to be logged."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        offered = request.headers.get(REQUEST_ID, "")
        request_id = offered if ACCEPTED_ID.fullmatch(offered) else f"{_random.getrandbits(128):032x}"
        request.request_id = request_id  # type: ignore[attr-defined]
        began = time.perf_counter()
        with bound_contextvars(request_id=request_id):
            response = self.get_response(request)
            if response.status_code >= 400 or settings.CONFIG.request_trace in ("slow", "all"):
                log_request(request, response, time.perf_counter() - began)
        response.headers[REQUEST_ID] = request_id
        return response


class ResponseMiddleware:
    """Adds a problem document to error answers without one, such as Django's own 405, and rate-limit headers."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code >= 400:
            response = _with_problem(request, response)
        rate_limit: RateLimit | None = getattr(request, "rate_limit", None)
        if rate_limit is not None:
            for name, value in zip(RATE_LIMIT, rate_limit, strict=True):
                response.headers[name] = str(value)
        return response


def _with_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.streaming or not is_for_programs(request):
        return response
    if not response.headers.get("Content-Type", "").startswith("text/"):
        return response
    problem = answer(request, response.status_code)
    for name, value in response.headers.items():  # Allow, Retry-After, security headers ...
        if name not in OF_THE_BODY:
            problem.headers.setdefault(name, value)
    return problem


class DatabaseAwayMiddleware:
    """Answers admin requests with a 503 at once while the database is known to be unreachable."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(CONSOLE_PREFIX) and availability.database.is_away():
            return answer(request, 503)
        return self.get_response(request)


class ApiShortcutEnd:
    """The last middleware; its `get_response` is the view."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        _being_built.end = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)


class ApiShortcut:
    """Updates two metrics of django_prometheus, answers and latency by view; label objects are cached."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self._end: Handler = _being_built.end
        self._metrics = Metrics.get_instance()
        self._labelled: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API):
            return self.get_response(request)
        began = time.perf_counter()
        request.get_host()  # raises DisallowedHost: links in answers are made of it
        response = self._end(request)
        headers = response.headers
        for name, value in SECURITY_HEADERS.items():
            headers[name] = value
        if isinstance(response, HttpResponse):
            if "HTTP_ACCEPT_ENCODING" in request.META:
                compress(request, response)
            if "Content-Length" not in headers:
                headers["Content-Length"] = str(len(response.content))
        found = request.resolver_match
        key = (found.view_name if found else "", request.method or "", response.status_code)
        answers, latency = self._labelled.get(key) or self._label(key, request)
        answers.inc()
        latency.observe(time.perf_counter() - began)
        return response

    def _label(self, key: tuple[str, str, int], request: HttpRequest) -> tuple[Any, Any]:
        """Unknown methods share one label and are not cached: clients can invent any number of them."""
        names = PrometheusAfterMiddleware(lambda _: None)
        view, method = names._get_view_name(request), names._method(request)  # noqa: SLF001
        found = (
            self._metrics.responses_by_status_view_method.labels(status=str(key[2]), view=view, method=method),
            self._metrics.requests_latency_by_view_method.labels(view=view, method=method),
        )
        if method == key[1]:
            self._labelled[key] = found
        return found


class PageMetrics(PrometheusAfterMiddleware):  # type: ignore[misc]  # untyped upstream
    """Counts pages only. Django calls `process_view` of every middleware for every request, skipped or not."""

    def process_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        if not request.path_info.startswith(API):
            super().process_view(request, *args, **kwargs)


class PolicyByPathMiddleware(CSPMiddleware):
    """The content security policy, extended for the path prefixes of CSP_BY_PREFIX."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        for prefix, directives in settings.CSP_BY_PREFIX.items():
            if parts.replace is None and request.path_info.startswith(prefix):
                parts.replace = directives
        return parts
