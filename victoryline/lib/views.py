"""The view that all our API views are: JSON only, limits in the headers."""

from __future__ import annotations

from typing import Any

from django.utils.cache import patch_vary_headers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from victoryline.lib import presence
from victoryline.lib.http import RateLimit
from victoryline.lib.problems import StoreAway
from victoryline.lib.renderers import JsonOnly


class ApiView(APIView):
    """`required_scope` is what the caller's key must allow; the permission class of the settings reads it.

    A view that `needs_database` is refused at once while that is known to be away, instead of after a wait for it.
    """

    required_scope = "read"
    needs_database = True
    content_negotiation_class = JsonOnly

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.needs_database and presence.database.is_away():
            raise StoreAway.now()

    def check_permissions(self, request: Request) -> None:
        """Counts first: a refusal for want of a scope costs quota as well, and its answer says how much is left."""
        super().check_throttles(request)
        super().check_permissions(request)

    def check_throttles(self, request: Request) -> None:
        """Done already."""

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        finished = super().finalize_response(request, response, *args, **kwargs)
        rate_limit: RateLimit | None = getattr(request, "rate_limit", None)
        if rate_limit is not None:
            for name, value in rate_limit.headers().items():
                finished.headers[name] = value
        patch_vary_headers(finished, ["Authorization"])
        return finished
