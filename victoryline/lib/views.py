"""The view that all our API views are: JSON only, limits in the headers."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils.cache import patch_vary_headers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from victoryline.lib import presence
from victoryline.lib.bodies import ApiRequest
from victoryline.lib.http import RateLimit
from victoryline.lib.problems import StoreAway
from victoryline.lib.renderers import JsonOnly, OrjsonRenderer

RENDERER = OrjsonRenderer()


class _Tools(NamedTuple):
    parsers: list[Any]
    authenticators: list[Any]
    throttles: list[Any]
    negotiator: Any


@cache
def _tools(view: type[APIView]) -> _Tools:
    """What a view works with. These hold nothing of a request, so all requests share them."""
    one = view()
    return _Tools(one.get_parsers(), one.get_authenticators(), one.get_throttles(), one.get_content_negotiator())


class ApiView(APIView):
    """`required_scope` is what the caller's key must allow (empty: any key will do); the permission class of the
    settings reads it.

    A view that `needs_database` is refused at once while that is known to be away, instead of after a wait for it. One
    that is not marked `costs_quota` is answered without a count, up to a far limit. A view with a method
    `is_unchanged(request)` tells cheaply that the caller has the present answer already: that is free as well.
    """

    required_scope = "read"
    needs_database = True
    costs_quota = True
    content_negotiation_class = JsonOnly

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        tools = _tools(type(self))  # type: ignore[arg-type]  # a class is hashable
        return ApiRequest(
            request,
            parsers=tools.parsers,
            authenticators=tools.authenticators,
            negotiator=tools.negotiator,
            parser_context={"view": self, "args": self.args, "kwargs": self.kwargs},
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """As upstream, without what is the same for every request: we speak one format, in one version."""
        self.format_kwarg = None
        request.accepted_renderer, request.accepted_media_type = RENDERER, RENDERER.media_type
        request.version = request.versioning_scheme = None
        self.perform_authentication(request)
        self.check_permissions(request)
        if self.needs_database and presence.database.is_away():
            raise StoreAway.now()

    def check_permissions(self, request: Request) -> None:
        """Counts first: a refusal for want of a scope costs quota as well, and its answer says how much is left."""
        for throttle in _tools(type(self)).throttles:  # type: ignore[arg-type]  # a class is hashable
            throttle.allow_request(request, self)  # raises
        if hasattr(self, (request.method or "").lower()):  # no scope makes a method that isn't there: that is a 405
            super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Done already."""

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Response:  # type: ignore[override]  # as upstream
        """`Allow` says it all; what else there is to know is at /api/schema."""
        return Response(status=204)

    @property
    def default_response_headers(self) -> dict[str, str]:
        """Upstream lists the methods on every answer; those are wanted where the method was wrong, or asked for."""
        return {}

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        finished = super().finalize_response(request, response, *args, **kwargs)
        headers = finished.headers
        rate_limit: RateLimit | None = getattr(request, "rate_limit", None)
        if rate_limit is not None:
            for name, value in rate_limit.headers().items():
                headers[name] = value
        if finished.status_code == 405 or request.method == "OPTIONS":
            headers["Allow"] = ", ".join(self.allowed_methods)
        if "Vary" in headers:
            patch_vary_headers(finished, ["Authorization"])
        else:
            headers["Vary"] = "Authorization"
        return finished
