"""Records every request to a protected address and for a token: consumer, address, time, status, age of the data.

Outside of everything that may answer in a view's place (a limit, a wrong host, an error, an unknown address), so that
every answer is recorded. A request makes a tuple here; `access_writer` stores it.

Authentication names the caller on Django's request, admitted or not: `api_consumer` (primary key), `api_key_prefix`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import jwt
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from apiauth import access_records, tracing
from apiauth.access_records import LONGEST_PATH, AccessRecord
from apiauth.access_writer import writer
from apiauth.principals import Principal
from apiauth.tokens import MAX_TOKEN_LENGTH
from victoryline.lib.http.request_id import request_id_of

LOGGED_PREFIXES = ("/api/", "/cricket-data", "/token")
OPEN = ("/api/schema", "/api/docs")
PREFIX = re.compile(r"(?:vl_)?(?P<prefix>[0-9a-f]{12})(?:[._]|$)", re.ASCII)


class AccessLogMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_logged(request.path):
            return self.get_response(request)
        began = time.perf_counter()
        response = self.get_response(request)
        record = record_of(request, response, time.perf_counter() - began)
        if settings.ACCESS_LOG_IS_SYNCHRONOUS:
            access_records.insert([record])
        else:
            writer.write(record)
        if tracing.is_wanted(request, record):
            tracing.log_request(request, response, record)
        return response


def is_logged(path: str) -> bool:
    return path.startswith(LOGGED_PREFIXES) and path.rstrip("/") not in OPEN


def record_of(request: HttpRequest, response: HttpResponseBase, seconds: float) -> AccessRecord:
    """Passes the fields by position, which takes half the time of passing them by name."""
    found, headers, status = request.resolver_match, response.headers, response.status_code
    return AccessRecord(
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
    """Returns the prefix of the key that was used; of a refused request, of the key that it claims."""
    user = request.__dict__.get("user")  # Django's own is lazy, and would query the database
    if type(user) is Principal:
        return user.key_prefix
    sent: str = request.__dict__.get("api_key_prefix", "")
    return sent or (_claimed_prefix(request) if status >= 400 else "")


def _claimed_prefix(request: HttpRequest) -> str:
    """Reads the prefix from the key or token without verifying it: it may help to find its owner."""
    if key := request.headers.get("X-API-Key", ""):
        return _prefix_in(key)
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or len(token) > MAX_TOKEN_LENGTH:
        return ""
    try:
        claims = jwt.decode(token.strip(), options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):
        return ""
    return _prefix_in(str(claims.get("key", "")))


def _prefix_in(text: str) -> str:
    found = PREFIX.match(text)
    return found["prefix"] if found else ""
