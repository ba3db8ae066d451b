"""Two lanes through the middleware: pages for people take all of it, API requests go past what only pages need.

Sessions, messages, logins, form tokens, static files: an API request has none of these, and walking through them cost
it more than its answer did. Two middlewares stand around them in settings.MIDDLEWARE: at `ApiLane` a request to the API
leaves the way and goes on at `LaneEnd`, behind all of them. What it needs of what it passed by (a checked Host, the
length, a security policy, a few figures) is done here in the shortest way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django_prometheus.middleware import Metrics, PrometheusAfterMiddleware

Handler = Callable[[HttpRequest], HttpResponseBase]

API = ("/api/v1/", "/api/scrape", "/cricket-data", "/token/")
# An answer in JSON loads nothing, and belongs into nobody's frame.
SAFE = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}
_being_built = threading.local()  # Django builds a chain of middleware from its end, in one thread


class LaneEnd:
    """The last of all: whoever comes here has the view before it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        _being_built.end = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)


class ApiLane:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self._end: Handler = _being_built.end
        self._figures = _Figures()

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API):
            return self.get_response(request)
        began = time.perf_counter()
        request.get_host()  # raises DisallowedHost: links in answers are made of it
        response = self._end(request)
        headers = response.headers
        for name, value in SAFE.items():
            headers[name] = value
        if isinstance(response, HttpResponse) and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(response.content))
        self._figures.count(request, response.status_code, time.perf_counter() - began)
        return response


class PageFigures(PrometheusAfterMiddleware):  # type: ignore[misc]  # untyped upstream
    """Of pages. What it does before a view is done for every request, whichever lane it came by."""

    def process_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        if not request.path_info.startswith(API):
            super().process_view(request, *args, **kwargs)


class _Figures:
    """The two of django_prometheus that are looked at, answers and latency by view; labels are looked up once."""

    def __init__(self) -> None:
        self._metrics = Metrics.get_instance()
        self._known: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def count(self, request: HttpRequest, status: int, seconds: float) -> None:
        found = request.resolver_match
        key = (found.view_name if found else "", request.method or "", status)
        answers, latency = self._known.get(key) or self._look_up(key, request)
        answers.inc()
        latency.observe(seconds)

    def _look_up(self, key: tuple[str, str, int], request: HttpRequest) -> tuple[Any, Any]:
        """Methods are anybody's invention: those that nobody knows share one name, and are not remembered."""
        names = PrometheusAfterMiddleware(lambda _: None)
        view, method = names._get_view_name(request), names._method(request)  # noqa: SLF001
        found = (
            self._metrics.responses_by_status_view_method.labels(status=str(key[2]), view=view, method=method),
            self._metrics.requests_latency_by_view_method.labels(view=view, method=method),
        )
        if method == key[1]:
            self._known[key] = found
        return found
