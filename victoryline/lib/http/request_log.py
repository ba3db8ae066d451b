"""Log lines of requests: a short one for every refusal and failure, or a full one as REQUEST_TRACE says.

REQUEST_TRACE names the API requests that get a full line, with request and answer, without bodies and secrets: none,
refused, slow, all. A flood of 429s or 503s must not fill bounded log files: below the level `all` a process logs one of
each kind per consumer (and for all others together) in QUIET_SECONDS, with the number it left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from victoryline.lib.redaction import printable, redact

logger = logging.getLogger("victoryline.requests")

TRACED_PREFIXES = ("/api/", "/cricket-data", "/token")
LONGEST_PATH, LONGEST_VALUE, MOST_VALUES = 200, 500, 50
SLOW_SECONDS = 0.5
QUIET_STATUSES, QUIET_SECONDS = (429, 503), 10.0

# By consumer (None: anonymous) and status: time of the last logged one, and how many were left out since.
_logged: dict[tuple[int | None, int], tuple[float, int]] = {}


def log_request(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Logs a refused, failed or traced request. Never raises: a failed log line must not cost the answer."""
    level, status, ms = settings.CONFIG.request_trace, response.status_code, seconds * 1000
    is_slow = level == "slow" and seconds >= SLOW_SECONDS
    is_traced = level == "all" or is_slow or (level != "none" and status >= 400)
    is_traced = is_traced and request.path.startswith(TRACED_PREFIXES)
    if not is_traced and status < 400:
        return
    left_out = 0
    if level != "all" and status in QUIET_STATUSES:
        kind, now = (getattr(request, "api_consumer", None), status), time.monotonic()
        logged_at, left_out = _logged.get(kind, (float("-inf"), 0))
        if now - logged_at < QUIET_SECONDS:
            _logged[kind] = (logged_at, left_out + 1)
            return
        _logged[kind] = (now, 0)
    # A 503 because of the client's own `max_age` is no failure of ours.
    is_our_failure = status >= 500 and "X-Data-State" not in response.headers
    method, path = printable(request.method or "", 8), printable(request.path, LONGEST_PATH)
    known = {
        "action": "request_traced" if is_traced else "request_refused" if status < 500 else "request_failed",
        "request_id": getattr(request, "request_id", ""),
        "method": method,
        "path": path,
        "status": status,
        "ms": round(ms, 1),
        "consumer_id": getattr(request, "api_consumer", None),
        "left_out": left_out or None,
    }
    try:
        more = _details(request, response) if is_traced else {}
    except Exception:
        logger.exception("A request could not be traced", extra={"action": "trace_failed"})
        return
    logger.log(
        logging.WARNING if is_our_failure else logging.INFO,
        "%s %s was answered with %d in %.1f ms",
        method,
        path,
        status,
        ms,
        extra={name: value for name, value in (known | more).items() if value is not None},
    )


def _details(request: HttpRequest, response: HttpResponseBase) -> dict[str, Any]:
    found, length, headers = request.resolver_match, request.META.get("CONTENT_LENGTH") or "", response.headers
    age = headers.get("X-Data-Age-Seconds")
    return {
        "key_prefix": getattr(request, "api_key_prefix", "") or None,
        "route": found.url_name if found else None,
        "query": _query(request) or None,
        "data_age_seconds": None if age is None else float(age),
        "data_state": headers.get("X-Data-State"),
        "problem": _problem(response),
        "request_bytes": int(length) if length.isascii() and length.isdigit() and len(length) <= 18 else 0,
        "response_bytes": len(response.content) if isinstance(response, HttpResponse) else None,
        "request_headers": _headers(request.headers.items()),
        "response_headers": _headers(headers.items()),
    }


def _query(request: HttpRequest) -> str:
    """Returns the parameters with secrets hidden, by their names and by their form."""
    text = request.META.get("QUERY_STRING", "")[: LONGEST_VALUE * 4]
    pairs = parse_qsl(text, keep_blank_values=True, errors="replace")[:MOST_VALUES]
    return urlencode([(printable(name, 80), _shown(name, value)) for name, value in pairs], safe="*:,-_.")


def _headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {printable(name, 80): _shown(name, value) for name, value in list(headers)[:MOST_VALUES]}


def _shown(name: str, value: str) -> str:
    return printable(str(redact(name, value)), LONGEST_VALUE)


def _problem(response: HttpResponseBase) -> str | None:
    """Returns the code of a problem document."""
    is_problem = response.headers.get("Content-Type", "").startswith("application/problem+json")
    return orjson.loads(response.content)["code"] if is_problem and isinstance(response, HttpResponse) else None
