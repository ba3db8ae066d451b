"""The API's description (OpenAPI), open to everybody, so it is made once a process and not once a request."""

from __future__ import annotations

import threading
from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer

_being_made = threading.Lock()


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    return HttpResponse(document(), content_type="application/json", headers={"Cache-Control": "max-age=300"})


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Swagger UI, all of it from this server, without a line of inline script."""
    return render(request, "api_docs.html")


def document() -> bytes:
    """One at a time: drf-spectacular keeps its place in what all threads share, and two disturb each other."""
    with _being_made:
        return _document()


@cache
def _document() -> bytes:
    described = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    rendered: bytes = OpenApiJsonRenderer().render(described)
    return rendered
