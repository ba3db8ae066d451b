"""What can go wrong, named by what a caller does next.

ClientError
├── Unreachable        nobody answered, or not in our language: try again later
└── Problem            the server answered with a problem document (RFC 9457)
    ├── BadRequest     mend the request (400, 405, 406, 413, 415, 422)
    ├── Unauthorized   the key is wrong, revoked or expired: ask for a new one (401)
    ├── Forbidden      the key lacks a scope (403)
    ├── NotFound       there is no such match (404)
    ├── Conflict       the present state does not allow it (409)
    ├── Gone           too long ago: read the match whole (410)
    ├── RateLimited    wait `retry_after` seconds (429)
    ├── TooStale       the data is older than you accept (503 of the type too-stale)
    ├── Unavailable    the server can't answer now (502, 503, 504)
    └── ServerFault    the server's own mistake: tell its people the `request_id` (other 5xx)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

STANDARD_MEMBERS = frozenset({"type", "title", "status", "detail", "instance", "code", "request_id", "retry_after"})
MAX_TEXT = 500


def clean(value: object, longest: int = 300) -> str:
    """One line without control characters: a terminal obeys what it is sent, and a log has one line an entry."""
    text = "" if value is None else " ".join(str(value).split())
    return "".join(each for each in text if each.isprintable())[:longest]


class ClientError(Exception):
    """The root of all errors of this package."""

    retry_after: float | None = None


class Unreachable(ClientError):  # noqa: N818 - errors here are named by what they say
    """No usable answer: the network, the server, or something between us and it."""


class Problem(ClientError):  # noqa: N818
    """A refusal. `code` is the last word of `type`; `more` has the members beyond the standard ones."""

    def __init__(
        self,
        *,
        status: int,
        type: str = "about:blank",
        code: str = "",
        title: str = "",
        detail: str = "",
        request_id: str = "",
        retry_after: float | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{status} {title or code}: {detail}".rstrip(": "))
        self.status, self.type, self.code = status, type, code
        self.title, self.detail, self.request_id = title, detail, request_id
        self.retry_after = retry_after
        self.more: Mapping[str, Any] = dict(more or {})


class BadRequest(Problem):
    pass


class Unauthorized(Problem):
    pass


class Forbidden(Problem):
    pass


class NotFound(Problem):
    pass


class Conflict(Problem):
    pass


class Gone(Problem):
    pass


class RateLimited(Problem):
    pass


class Unavailable(Problem):
    pass


class TooStale(Unavailable):
    """`more` says how old the data is: `data_age_seconds`, `state`."""


class ServerFault(Problem):
    pass


BY_STATUS: dict[int, type[Problem]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
# Waiting helps with these; with all others it does not.
PASSING = (Unreachable, RateLimited, Unavailable, ServerFault)


def problem_of(status: int, headers: Mapping[str, str], body: bytes) -> ClientError:
    """The error that an answer stands for. Whoever stands between may answer without a problem document; their 404
    says nothing about a match: the address is wrong, or a balancer has no server to pass us on to just now."""
    told = _document(body)
    if status == 404 and not told.get("type"):
        return Unreachable("The answer is a 404, but none of VictoryLine's: is its address right?")
    kind = str(told.get("type") or "about:blank")
    code = str(told.get("code") or kind.rstrip("/").rpartition("/")[2])
    return _class_of(status, kind, code)(
        status=status,
        type=kind,
        code=code,
        title=str(told.get("title") or "")[:MAX_TEXT],
        detail=str(told.get("detail") or "")[:MAX_TEXT],
        request_id=str(told.get("request_id") or headers.get("x-request-id") or ""),
        retry_after=retry_after_of(headers, told.get("retry_after")),
        more={name: value for name, value in told.items() if name not in STANDARD_MEMBERS},
    )


def _class_of(status: int, kind: str, code: str) -> type[Problem]:
    if status == 503 and "too-stale" in (code, kind.rpartition("/")[2]):
        return TooStale
    return BY_STATUS.get(status) or (ServerFault if status >= 500 else BadRequest)


def _document(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def retry_after_of(headers: Mapping[str, str], told: object = None, now: datetime | None = None) -> float | None:
    """Seconds. The header may be a number or a date; the body's member stands in for one that got lost."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    if text:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            moment = None
        if moment is not None:
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
    if isinstance(told, int | float) and not isinstance(told, bool) and math.isfinite(told) and told >= 0:
        return float(told)
    return None
