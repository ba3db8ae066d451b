"""The `Link` header of lists (RFC 8288): where the first page is, and where the next."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponseBase
from rest_framework.request import Request

from scraping.api.base import FreshView


class LinkedView(FreshView):
    """Subclasses call `link` in `find`."""

    _link = ""

    def link(self, *, first: str, next: str) -> str | None:
        """Returns the next page's address for the body; None where there is none."""
        links = {"first": first, "next": next}
        self._link = ", ".join(f'<{where}>; rel="{word}"' for word, where in links.items() if where)
        return next or None

    def respond(self, request: Request) -> HttpResponseBase:
        response = super().respond(request)
        response.headers["Link"] = self._link
        return response


def address(request: Request, **changed: Any) -> str:
    """Of this request with other values of some parameters; None leaves one out."""
    kept = {**request.query_params.dict(), **changed}
    query = urlencode({name: value for name, value in kept.items() if value is not None})
    return request.build_absolute_uri(f"{request.path}?{query}" if query else request.path)
