"""What Django answers where no view does: a problem document under the API's addresses, a plain page elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template import loader
from django.urls import resolve
from django.views.decorators.common import no_append_slash
from django.views.decorators.csrf import csrf_exempt

from victoryline.lib import presence, problems
from victoryline.lib.request_id import request_id_of
from victoryline.lib.store import STORE_AWAY

CONSOLE_PREFIX = "/admin/"
API_PREFIXES = ("/api/", "/cricket-data", "/token/", "/health", "/status", "/metrics")
DETAILS = {
    400: "The request can't be read. Check its address and headers.",
    403: "You may not do this here.",
    404: "There is nothing at this address. The addresses are listed at /api/docs.",
    500: "An error on our side, which we have logged. Tell us the request id if it stays.",
    503: (
        "The database can't be reached, so this page can't be shown. Nothing is lost: matches are still read, and what "
        "is new is kept on disk until the database is back. Nothing that you have just sent was saved. Try again in a "
        "few seconds; if it stays, look at /health and start the database."
    ),
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django calls this while it handles the error; a database that is away is not our mistake, and says so."""
    error = sys.exc_info()[1]
    if isinstance(error, STORE_AWAY):
        presence.database.report(error)
        return answer(request, 503)
    return answer(request, 500)


class StoreAwayMiddleware:
    """The console lives in the database: while that is known to be away, its pages say so at once."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(CONSOLE_PREFIX) and presence.database.is_away():
            return answer(request, 503)
        return self.get_response(request)


@no_append_slash
@csrf_exempt  # only the API's addresses come here, and tokens aren't sent by a browser on its own
def without_slash(request: HttpRequest, address: str) -> HttpResponseBase:
    """Our addresses have no slash at their end; who sends one gets the same answer, not a 404."""
    found = resolve(f"/{address.rstrip('/')}")
    request.resolver_match = found
    response: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
    return response


def answer(request: HttpRequest, code: int) -> HttpResponse:
    retry = {"Retry-After": str(problems.RETRY_SECONDS)} if code == 503 else {}
    if request.path.startswith(API_PREFIXES):
        body = orjson.dumps(problems.document(request, code, DETAILS[code]), default=str)
        headers = {"Cache-Control": "no-store", **retry}
        return HttpResponse(body, status=code, content_type=problems.MEDIA_TYPE, headers=headers)
    page = loader.render_to_string(
        "error.html",
        {"code": code, "title": problems.KINDS[code][1], "detail": DETAILS[code], "request_id": request_id_of(request)},
    )
    return HttpResponse(page, status=code, headers=retry)
