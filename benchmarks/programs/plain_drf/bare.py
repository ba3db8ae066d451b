"""The maximum of the server: one Django view without middleware and with a constant body."""

from __future__ import annotations

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path

TEXT = b'{"id": 1, "filler": "' + b"x" * 1000 + b'"}'  # about as long as a match


def respond(request: HttpRequest) -> HttpResponse:
    return HttpResponse(TEXT, content_type="application/json")


urlpatterns = [path("bare", respond)]
settings.configure(DEBUG=False, ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__, SECRET_KEY="nothing is signed")  # noqa: S106
application = get_wsgi_application()
