"""Traces API requests: one log line with request and answer, without bodies and secrets.

REQUEST_TRACE sets which requests (none, refused, slow, all), REQUEST_SLOW_MS what is slow. A traced request has only
this line: `request_id` omits its shorter one when `is_traced` is set.

Guards against a flood of 429s or 503s that pushes everything else out of bounded log files: a process logs one of each
kind per consumer (and for all strangers together) in QUIET_SECONDS, with the number it left out. The access log has
all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apiauth.access_records import LONGEST_PATH, AccessRecord
from victoryline.lib.http.request_id import is_our_failure, printable
from victoryline.lib.redaction import redact

logger = logging.getLogger("victoryline.requests")

MOST_PARAMETERS, LONGEST_VALUE = 50, 500
PROBLEM = "application/problem+json"
QUIET_STATUSES, QUIET_SECONDS = (429, 503), 10.0

# By consumer (None: strangers) and status: time of the last logged one, and how many were left out since.
_logged: dict[tuple[int | None, int], tuple[float, int]] = {}


def is_wanted(request: HttpRequest, record: AccessRecord) -> bool:
    level = settings.CONFIG.request_trace
    if level == "all":
        return True
    if record.status in QUIET_STATUSES and _is_left_out(request, record):
        request.is_traced = True  # type: ignore[attr-defined]
        return False
    match level:
        case "slow":
            return record.status >= 400 or record.seconds * 1000 >= settings.CONFIG.request_slow_ms
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
