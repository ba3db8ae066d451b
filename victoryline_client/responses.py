"""Values that calls return or raise: the data, its age by the caller's own clock, and refusals."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

Document = Mapping[str, Any]


class Problem(httpx.HTTPStatusError):
    """A refusal by the server; `document` is its problem document (RFC 9457)."""

    def __init__(self, response: httpx.Response, document: Document) -> None:
        self.document, self.status, self.detail = document, response.status_code, str(document.get("detail") or "")
        self.code = str(document.get("code") or str(document.get("type") or "").rpartition("/")[2])
        self.request_id = response.headers.get("x-request-id", "")
        self.retry_after = parse_seconds(response.headers.get("retry-after"))
        self.is_temporary = self.status == 429 or self.status >= 500
        message = f"{self.status} {document.get('title') or self.code}: {self.detail}".rstrip(": ")
        super().__init__(message[:500], request=response.request, response=response)


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """Age of the data when the server answered. `is_from_cache`: the server's database is unreachable. `requested_at`
    is the time of the request, not of the response, so that an age is never shown too young."""

    state: str = "unknown"  # or fresh, aging, partial, stale, frozen, paused, final
    age_seconds: float | None = None
    scraped_at: str | None = None
    next_update_in: float | None = None  # seconds until the server reads the source again; None if it will not
    is_from_cache: bool = False
    requested_at: float = field(default_factory=time.monotonic, compare=False)

    def age_now(self) -> float | None:
        """Returns the seconds since the source was last read; None if it never was."""
        return None if self.age_seconds is None else self.age_seconds + time.monotonic() - self.requested_at


@dataclass(frozen=True, kw_only=True)
class ApiResponse:
    """`data` is the same object while the server answers 304 (`is_unchanged`); its age is in `freshness`."""

    data: Document
    freshness: Freshness
    etag: str = ""
    is_unchanged: bool = False


def parse_seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.replace(".", "", 1).isdigit() else None
