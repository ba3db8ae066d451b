"""Error answers outside of views, and the pages at /problems: a problem document for programs, a page for browsers.

Paths of the API get problem documents and paths of the admin get pages; elsewhere the Accept header decides.
"""

from __future__ import annotations

import sys

import orjson
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.template import loader
from django.urls import resolve
from django.views.decorators.common import no_append_slash
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from victoryline.lib import availability
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.http import body_limits, problems
from victoryline.lib.http.headers import API_PREFIXES
from victoryline.lib.http.problems import KINDS, of_status

CONSOLE_PREFIX = "/admin/"
DETAILS = {
    400: problems.UNREADABLE,
    403: "You have no permission for this.",
    404: problems.NO_SUCH_ADDRESS,
    405: "This address does not accept the method; the header `Allow` lists those that it accepts.",
    413: "The body is larger than the limit.",
    500: "An error on our side, which is logged. If it persists, report it with the request id.",
    503: (
        "The database can't be reached, so this page can't be shown. Nothing is lost: matches are still read, and new "
        "data is kept on disk until the database is back. Your last request was not saved. Try again in a few seconds; "
        "if the error persists, check /health and start the database."
    ),
}
WRONG_HOST = (
    "The host name in the header `Host` is not served here. Use the address from the operator of this site, who lists "
    "its names in ALLOWED_HOSTS."
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
    """Called by Django while it handles the error; an unreachable database is a 503, not a 500."""
    error = sys.exc_info()[1]
    if isinstance(error, DATABASE_AWAY):
        availability.database.report(error)
        return answer(request, 503)
    if body_limits.is_refused(error):
        return answer(request, 503, body_limits.REFUSAL)
    if isinstance(error, UnreadablePostError):  # the client closed the connection in the middle of its body
        return answer(request, 400)
    return answer(request, 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answers a form without its CSRF token; for paths of the API it is a wrong method."""
    if request.path.startswith(API_PREFIXES):
        refusal = answer(request, 405)
        refusal.headers["Allow"] = "GET, HEAD"
        return refusal
    return answer(
        request,
        403,
        "The form has no valid token, so nothing was done. Go back, reload the page and send the form again; cookies "
        "must be allowed for this site.",
    )


@no_append_slash
@csrf_exempt  # only for addresses of the API, whose tokens a browser does not send by itself
def without_slash(request: HttpRequest, address: str) -> HttpResponseBase:
    """Answers a path with a trailing slash like the path without it."""
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
    if is_for_programs(request):
        more = {"retry_after": problems.RETRY_SECONDS} if status == 503 else {}
        body = orjson.dumps(problems.document(request, status, detail, extensions=more), default=str)
        return HttpResponse(body, status=status, content_type=problems.MEDIA_TYPE, headers=headers)
    page = loader.render_to_string(
        "error.html",
        {
            "code": status,
            "title": "This is not allowed" if status == 403 else kind.title,  # a browser has no token
            "detail": detail,
            "request_id": getattr(request, "request_id", ""),
        },
    )
    return HttpResponse(page, status=status, headers=headers)


def is_for_programs(request: HttpRequest) -> bool:
    if request.path.startswith(API_PREFIXES):
        return True
    return not request.path.startswith(CONSOLE_PREFIX) and "text/html" not in request.headers.get("Accept", "")


@csrf_exempt  # changes nothing; a wrong method must get a 405, not a CSRF failure
@require_safe
def problem_page(request: HttpRequest, code: str = "") -> HttpResponse:
    """Explains one kind of problem, or all of them. Uses no session: the database may be unreachable."""
    if code and code not in KINDS:
        raise Http404
    kinds = {code: KINDS[code]} if code else KINDS
    text = loader.render_to_string("problems.html", {"kinds": kinds, "title": kinds[code].title if code else ""})
    return HttpResponse(text, headers={"Cache-Control": "public, max-age=3600"})
