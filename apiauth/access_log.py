"""Records every request to a protected address and for a token: consumer, address, time, status, age of the data.

Outside of everything that may answer in a view's place (a limit, a wrong host, an error, an unknown address), so that
every answer is recorded. A request makes a tuple here; `access_writer` stores it.

Authentication names the caller on Django's request, admitted or not: `api_consumer` (primary key), `api_key_prefix`.

REQUEST_TRACE adds one log line with request and answer, without bodies and secrets, for the requests that it names
(none, refused, slow, all). RequestIdMiddleware omits its shorter line
when `is_traced` is set. A flood of 429s or 503s must not fill bounded log files: a process logs one of each kind per
consumer (and for all strangers together) in QUIET_SECONDS, with the number it left out.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt
import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apiauth import access_records
from apiauth.access_records import LONGEST_PATH, AccessRecord
from apiauth.access_writer import writer
from apiauth.authentication import Principal
from apiauth.tokens import MAX_TOKEN_LENGTH
from victoryline.lib.http.middleware import is_our_failure
from victoryline.lib.redaction import printable, redact

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
        if is_traced(request, record):
            log_request(request, response, record)
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
        getattr(request, "request_id", ""),
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


logger = logging.getLogger("victoryline.requests")

MOST_PARAMETERS, LONGEST_VALUE = 50, 500
SLOW_SECONDS = 0.5
PROBLEM = "application/problem+json"
QUIET_STATUSES, QUIET_SECONDS = (429, 503), 10.0

# By consumer (None: strangers) and status: time of the last logged one, and how many were left out since.
_logged: dict[tuple[int | None, int], tuple[float, int]] = {}


def is_traced(request: HttpRequest, record: AccessRecord) -> bool:
    level = settings.CONFIG.request_trace
    if level == "all":
        return True
    if record.status in QUIET_STATUSES and _is_left_out(request, record):
        request.is_traced = True  # type: ignore[attr-defined]
        return False
    match level:
        case "slow":
            return record.status >= 400 or record.seconds >= SLOW_SECONDS
        case "refused":
            return record.status >= 400
    return False


def _is_left_out(request: HttpRequest, record: AccessRecord) -> bool:
    kind = (record.consumer, record.status)
    logged_at, count = _logged.get(kind, (0.0, 0))
    if 0 <= record.at - logged_at < QUIET_SECONDS:
        _logged[kind] = (logged_at, count + 1)
        return True
    _logged[kind] = (record.at, 0)
    request.left_out = count  # type: ignore[attr-defined]
    return False


def log_request(request: HttpRequest, response: HttpResponseBase, record: AccessRecord) -> None:
    """Never raises: a failed log line must not cost the answer."""
    try:
        logger.log(
            logging.WARNING if is_our_failure(response) else logging.INFO,
            "%s %s was answered with %d in %.1f ms",
            printable(record.method, 8),
            printable(record.path, LONGEST_PATH),
            record.status,
            record.seconds * 1000,
            extra=_document(request, response, record),
        )
    except Exception:
        logger.exception("A request could not be traced", extra={"action": "trace_failed"})
    else:
        request.is_traced = True  # type: ignore[attr-defined]


def _document(request: HttpRequest, response: HttpResponseBase, record: AccessRecord) -> dict[str, Any]:
    known = {
        "consumer_id": record.consumer,
        "key_prefix": record.key_prefix or None,
        "route": record.route or None,
        "query": _query(request) or None,
        "data_age_seconds": record.age_seconds,
        "data_state": record.state or None,
        "problem": _problem(response),
        "left_out": request.__dict__.get("left_out") or None,
        "response_bytes": len(response.content) if isinstance(response, HttpResponse) else None,
    }
    return {
        "action": "request_traced",
        "request_id": record.request_id,
        "method": printable(record.method, 8),
        "path": printable(record.path, LONGEST_PATH),
        "status": record.status,
        "ms": round(record.seconds * 1000, 1),
        "request_bytes": _number(request.META.get("CONTENT_LENGTH")),
        **{name: value for name, value in known.items() if value is not None},
        "request_headers": _headers(request.headers.items()),
        "response_headers": _headers(response.headers.items()),
    }


def _number(text: str | None) -> int:
    """Returns 0 for a Content-Length that is no number."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else 0


def _headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {printable(name, 80): _shown(name, value) for name, value in list(headers)[:MOST_PARAMETERS]}


def _query(request: HttpRequest) -> str:
    """Returns the parameters with secrets hidden, by their names and by their form."""
    text = request.META.get("QUERY_STRING", "")[: LONGEST_VALUE * 4]
    pairs = parse_qsl(text, keep_blank_values=True, errors="replace")[:MOST_PARAMETERS]
    return urlencode([(printable(name, 80), _shown(name, value)) for name, value in pairs], safe="*:,-_.")


def _shown(name: str, value: str) -> str:
    return printable(str(redact(name, value)), LONGEST_VALUE)


def _problem(response: HttpResponseBase) -> str | None:
    """Returns the code of a problem document."""
    if not isinstance(response, HttpResponse) or not response.headers.get("Content-Type", "").startswith(PROBLEM):
        return None
    try:
        document = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None
    return str(document.get("code") or document.get("type", "")).rpartition("/")[2] or None
