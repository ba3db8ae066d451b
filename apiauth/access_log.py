"""Notes every request to a protected address and for a token: who, what, when, the answer, how old its data was.

Stands outside of everything that may answer in a view's place, so that nothing is answered unseen: a limit, a wrong
host, an error, an address that doesn't exist. What a request costs here is a tuple; `access_writer` does the rest.

Whoever finds out who is asking says so on Django's request, let in or not: `api_consumer` (the row's number) and
`api_key_prefix`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import jwt
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from apiauth import tracing
from apiauth.access_writer import writer
from apiauth.attempts import LONGEST_PATH, Attempt
from apiauth.principals import Principal
from victoryline.lib.request_id import request_id_of

LOGGED_PREFIXES = ("/api/", "/cricket-data", "/token")
OPEN = ("/api/schema", "/api/docs")
PREFIX = re.compile(r"(?:vl_)?(?P<prefix>[0-9a-f]{12})(?:[._]|$)", re.ASCII)
LONGEST_TOKEN = 4096


class AccessLogMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_logged(request.path):
            return self.get_response(request)
        began = time.perf_counter()
        response = self.get_response(request)
        attempt = attempt_of(request, response, time.perf_counter() - began)
        note(attempt)
        if tracing.is_wanted(request, attempt):
            tracing.tell(request, response, attempt)
        return response


def is_logged(path: str) -> bool:
    return path.startswith(LOGGED_PREFIXES) and path.rstrip("/") not in OPEN


def note(attempt: Attempt) -> None:
    """Never waits and never raises."""
    if settings.ACCESS_LOG_IS_SYNCHRONOUS:
        writer.write_at_once(attempt)
    else:
        writer.write(attempt)


def attempt_of(request: HttpRequest, response: HttpResponseBase, seconds: float) -> Attempt:
    """In the order of Attempt's fields: by their names it would take twice as long."""
    found, headers, status = request.resolver_match, response.headers, response.status_code
    return Attempt(
        time.time(),
        getattr(request, "api_consumer", None),
        _key_prefix(request, status),
        request.method or "",
        request.path[:LONGEST_PATH],
        (found.url_name or "") if found else "",
        status,
        headers.get("X-Data-Age-Seconds"),
        headers.get("X-Data-State") or "",
        seconds,
        request_id_of(request),
    )


def _key_prefix(request: HttpRequest, status: int) -> str:
    """Of the key that was used; where it was refused, of the one that was meant. Never more than the prefix."""
    user = request.__dict__.get("user")  # Django's own is lazy, and would ask the database
    if type(user) is Principal:
        return user.key_prefix
    told: str = request.__dict__.get("api_key_prefix", "")
    return told or (_claimed_prefix(request) if status >= 400 else "")


def _claimed_prefix(request: HttpRequest) -> str:
    """As the key or the token itself says, believed by nobody: it may help to find whose it was."""
    if key := request.headers.get("X-API-Key", ""):
        return _prefix_in(key)
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or len(token) > LONGEST_TOKEN:
        return ""
    try:
        claims = jwt.decode(token.strip(), options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):
        return ""
    return _prefix_in(str(claims.get("key", "")))


def _prefix_in(text: str) -> str:
    found = PREFIX.match(text)
    return found["prefix"] if found else ""
