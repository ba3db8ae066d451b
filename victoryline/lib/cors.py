"""Lets pages of other sites call the API from a browser (CORS), for the sites that CORS_ORIGINS names. Empty: nobody.

Never with credentials: who calls is known by the token in `Authorization`, which no browser sends on its own. So a `*`
gives away nothing but what is open anyway, and the console (/admin) is left out altogether.

Our own page of code and not django-cors-headers: there is nothing to configure but the origins, and credentials can't
be switched on by mistake.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from victoryline.lib.http import API_PREFIXES

ANYBODY = "*"
PREFLIGHT_SECONDS = 3600
METHODS = "GET, HEAD, POST, OPTIONS"
ASKED_WITH = (
    "Authorization", "Content-Type", "If-None-Match", "If-Modified-Since", "Idempotency-Key", "X-API-Key",
    "X-Request-Id", "X-Debug-Trace",
)  # fmt: skip
ANSWERED_WITH = (
    "Allow", "Date", "ETag", "Last-Modified", "Link", "Location", "Retry-After", "WWW-Authenticate",
    "X-Data-Age-Seconds", "X-Data-Freshness", "X-Data-Source", "X-Data-State", "X-Next-Update-In",
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id",
)  # fmt: skip
PREFLIGHT = {
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": ", ".join(ASKED_WITH),
    "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
}
EXPOSED = ", ".join(ANSWERED_WITH)


class CorsMiddleware:
    """Stands before whatever may answer, so that refusals can be read by the page that asked, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._origins = frozenset(origin.lower() for origin in settings.CONFIG.cors_origins)
        if not self._origins:
            raise MiddlewareNotUsed

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith(API_PREFIXES):
            return self.get_response(request)
        origin = request.META.get("HTTP_ORIGIN", "")
        if origin and request.method == "OPTIONS" and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.META:
            # A question of the browser itself: it has no token, and is asked again only after an hour.
            response: HttpResponseBase = HttpResponse(status=204)
            del response.headers["Content-Type"]
            if allowed := self._allowed(origin):
                response.headers["Access-Control-Allow-Origin"] = allowed
                for name, value in PREFLIGHT.items():
                    response.headers[name] = value
        else:
            response = self.get_response(request)
            if origin and (allowed := self._allowed(origin)):
                response.headers["Access-Control-Allow-Origin"] = allowed
                response.headers["Access-Control-Expose-Headers"] = EXPOSED
        self._vary(response)
        return response

    def _allowed(self, origin: str) -> str:
        if ANYBODY in self._origins:
            return ANYBODY
        return origin if origin.lower() in self._origins else ""

    def _vary(self, response: HttpResponseBase) -> None:
        """Where the answer depends on who asks, a cache between us must know, also when nobody asked from a page."""
        if ANYBODY not in self._origins:
            told = response.headers.get("Vary")
            response.headers["Vary"] = f"{told}, Origin" if told else "Origin"
