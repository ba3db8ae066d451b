"""One line of log with all about a request and its answer but bodies and secrets, for whoever looks for a fault.

How much is told is configured (REQUEST_TRACE, REQUEST_SLOW_MS). A single request is told in any case when its caller
sends `X-Debug-Trace: 1` and may operate the system; from others the header does nothing. A traced request has this one
line: `request_id` leaves its own, shorter one away when it finds `is_traced`.

Whoever asks on beyond his limit, or while the database is away, would drive everything else out of a log of bounded
files: of a consumer's 429s and 503s (and of all strangers' together) a process tells one of each in HUSH_SECONDS, with
how many it left out. The access log has them all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apiauth.attempts import LONGEST_PATH, Attempt
from apiauth.principals import Principal
from victoryline.lib.redaction import redact
from victoryline.lib.request_id import is_our_failure, printable

logger = logging.getLogger("victoryline.requests")

HEADER = "HTTP_X_DEBUG_TRACE"
MOST_PARAMETERS, LONGEST_VALUE = 50, 500
PROBLEM = "application/problem+json"
HUSHED, HUSH_SECONDS = (429, 503), 10.0

# By consumer (None: strangers) and status: when one was told last, and how many were left out since.
_hushed: dict[tuple[int | None, int], tuple[float, int]] = {}


def forget() -> None:
    _hushed.clear()


def is_wanted(request: HttpRequest, attempt: Attempt) -> bool:
    level = settings.CONFIG.request_trace
    if level == "all" or (HEADER in request.META and _may_ask(request)):
        return True
    if attempt.status in HUSHED and _is_left_out(request, attempt):
        request.is_traced = True  # type: ignore[attr-defined]
        return False
    match level:
        case "slow" if attempt.status >= 400 or attempt.seconds * 1000 >= settings.CONFIG.request_slow_ms:
            return True
        case "refused" if attempt.status >= 400:
            return True
    return False


def _is_left_out(request: HttpRequest, attempt: Attempt) -> bool:
    who = (attempt.consumer, attempt.status)
    told_at, count = _hushed.get(who, (0.0, 0))
    if 0 <= attempt.at - told_at < HUSH_SECONDS:
        _hushed[who] = (told_at, count + 1)
        return True
    _hushed[who] = (attempt.at, 0)
    request.left_out = count  # type: ignore[attr-defined]
    return False


def _may_ask(request: HttpRequest) -> bool:
    user = request.__dict__.get("user")
    return type(user) is Principal and "operate" in user.scopes and request.META[HEADER] == "1"


def tell(request: HttpRequest, response: HttpResponseBase, attempt: Attempt) -> None:
    """Never raises: a line of log is not worth an answer."""
    try:
        logger.log(
            logging.WARNING if is_our_failure(response) else logging.INFO,
            "%s %s was answered with %d in %.1f ms",
            printable(attempt.method, 8),
            printable(attempt.path, LONGEST_PATH),
            attempt.status,
            attempt.seconds * 1000,
            extra=_document(request, response, attempt),
        )
    except Exception:
        logger.exception("A request could not be traced", extra={"action": "trace_failed"})
    else:
        request.is_traced = True  # type: ignore[attr-defined]


def _document(request: HttpRequest, response: HttpResponseBase, attempt: Attempt) -> dict[str, Any]:
    known = {
        "consumer_id": attempt.consumer,
        "key_prefix": attempt.key_prefix or None,
        "route": attempt.route or None,
        "query": _query(request) or None,
        "data_age_seconds": attempt.age_seconds,
        "data_state": attempt.state or None,
        "problem": _problem(response),
        "left_out": request.__dict__.get("left_out") or None,
        "response_bytes": len(response.content) if isinstance(response, HttpResponse) else None,
    }
    return {
        "action": "request_traced",
        "request_id": attempt.request_id,
        "method": printable(attempt.method, 8),
        "path": printable(attempt.path, LONGEST_PATH),
        "status": attempt.status,
        "ms": round(attempt.seconds * 1000, 1),
        "request_bytes": _number(request.META.get("CONTENT_LENGTH")),
        **{name: value for name, value in known.items() if value is not None},
        "request_headers": _headers(request.headers.items()),
        "response_headers": _headers(response.headers.items()),
    }


def _number(text: str | None) -> int:
    """As the caller says, who may say anything."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else 0


def _headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {printable(name, 80): _shown(name, value) for name, value in list(headers)[:MOST_PARAMETERS]}


def _query(request: HttpRequest) -> str:
    """Parameters by their names: one that sounds like a secret is hidden, and so is what looks like one."""
    text = request.META.get("QUERY_STRING", "")[: LONGEST_VALUE * 4]
    pairs = parse_qsl(text, keep_blank_values=True, errors="replace")[:MOST_PARAMETERS]
    return urlencode([(printable(name, 80), _shown(name, value)) for name, value in pairs], safe="*:,-_.")


def _shown(name: str, value: str) -> str:
    return printable(str(redact(name, value)), LONGEST_VALUE)


def _problem(response: HttpResponseBase) -> str | None:
    """The kind of refusal, as the answer names it."""
    if not isinstance(response, HttpResponse) or not response.headers.get("Content-Type", "").startswith(PROBLEM):
        return None
    try:
        document = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None
    return str(document.get("code") or document.get("type", "")).rpartition("/")[2] or None
