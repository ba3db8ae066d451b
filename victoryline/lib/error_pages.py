"""What is answered where no view does: a problem document for programs, a plain page for people.

Under the API's addresses everybody is a program, in the console everybody is a person; anywhere else whoever accepts
HTML, as browsers say they do, gets the page.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import orjson
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.template import loader
from django.urls import resolve
from django.views.decorators.common import no_append_slash
from django.views.decorators.csrf import csrf_exempt

from victoryline.lib import body_gate, presence, problems
from victoryline.lib.http import API_PREFIXES, RateLimit
from victoryline.lib.problem_kinds import KINDS, of_status
from victoryline.lib.request_id import request_id_of
from victoryline.lib.store import STORE_AWAY

CONSOLE_PREFIX = "/admin/"
DETAILS = {
    400: "The request can't be read. Check its address and headers.",
    403: "You may not do this here.",
    404: "There is nothing at this address. The addresses are listed at /api/docs.",
    405: "This address does not take that method; the header `Allow` says what it takes.",
    413: "The body is larger than we read.",
    500: "An error on our side, which we have logged. Tell us the request id if it stays.",
    503: (
        "The database can't be reached, so this page can't be shown. Nothing is lost: matches are still read, and what "
        "is new is kept on disk until the database is back. Nothing that you have just sent was saved. Try again in a "
        "few seconds; if it stays, look at /health and start the database."
    ),
}

PAGE_TITLES = {403: "This is not allowed"}  # people have no token in hand
WRONG_HOST = (
    "The header `Host` names no site that is served here. Ask under the name that you were given; whoever runs this "
    "site lists its names in ALLOWED_HOSTS."
)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, DisallowedHost):
        return answer(request, 400, WRONG_HOST)
    return answer(request, 413 if isinstance(exception, RequestDataTooBig) else 400)


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
    if body_gate.is_crowded(error):
        return answer(request, 503, body_gate.CROWDED)
    if isinstance(error, UnreadablePostError):  # the caller has gone in the middle of its body
        return answer(request, 400)
    return answer(request, 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: an old page, or cookies that are not sent. The API has no forms, only wrong methods."""
    if request.path.startswith(API_PREFIXES):
        refusal = answer(request, 405)
        refusal.headers["Allow"] = "GET, HEAD"
        return refusal
    return answer(
        request,
        403,
        "The form that you sent has no valid token, so nothing was done. Go back, load the page again and send it once "
        "more; cookies must be allowed for this site.",
    )


class StoreAwayMiddleware:
    """The console lives in the database: while that is known to be away, its pages say so at once."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path.startswith(CONSOLE_PREFIX) and presence.database.is_away():
            return answer(request, 503)
        return self.get_response(request)


class ProblemMiddleware:
    """Gives a body to refusals that have none: Django's own 405 and whatever else answers with a bare status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if response.status_code < 400 or response.streaming or not is_for_programs(request):
            return response
        if not response.headers.get("Content-Type", "").startswith("text/"):
            return response
        told = answer(request, response.status_code)
        for name in ("Allow", "Retry-After", "WWW-Authenticate"):
            if name in response.headers:
                told.headers[name] = response.headers[name]
        return told


@no_append_slash
@csrf_exempt  # only the API's addresses come here, and tokens aren't sent by a browser on its own
def without_slash(request: HttpRequest, address: str) -> HttpResponseBase:
    """Our addresses have no slash at their end; who sends one gets the same answer, not a 404."""
    found = resolve(f"/{address.rstrip('/')}")
    request.resolver_match = found
    response: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
    return response


def answer(request: HttpRequest, status: int, detail: str = "") -> HttpResponse:
    kind = KINDS[of_status(status)]
    detail = detail or DETAILS.get(status) or kind.meaning
    headers = {"Cache-Control": "no-store"}
    if status == 503:
        headers["Retry-After"] = str(problems.RETRY_SECONDS)
    rate_limit: RateLimit | None = getattr(request, "rate_limit", None)
    if rate_limit is not None:
        headers |= rate_limit.headers()
    if is_for_programs(request):
        more = {"retry_after": problems.RETRY_SECONDS} if status == 503 else {}
        body = orjson.dumps(problems.document(request, status, detail, extensions=more), default=str)
        return HttpResponse(body, status=status, content_type=problems.MEDIA_TYPE, headers=headers)
    page = loader.render_to_string(
        "error.html",
        {
            "code": status,
            "title": PAGE_TITLES.get(status, kind.title),
            "detail": detail,
            "request_id": request_id_of(request),
        },
    )
    return HttpResponse(page, status=status, headers=headers)


def is_for_programs(request: HttpRequest) -> bool:
    if request.path.startswith(API_PREFIXES):
        return True
    return not request.path.startswith(CONSOLE_PREFIX) and "text/html" not in request.headers.get("Accept", "")
