"""From an answer's status, headers and bytes to a document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from scraping.readings import Document

MAX_RETRY_AFTER_SECONDS = 900.0


def retry_after_seconds(value: str | None, *, now: datetime) -> float | None:
    """A Retry-After header, in seconds or as a date; bounded, for a source must not send us away for ever."""
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return float(min(int(value[:9]), MAX_RETRY_AFTER_SECONDS))
    try:
        seconds = (parsedate_to_datetime(value) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def document(
    name: str, url: str, status: int, headers: Mapping[str, str], body: bytes, *, wire_bytes: int = 0
) -> Document:
    wait = retry_after_seconds(headers.get("retry-after"), now=datetime.now(UTC))
    return Document(name, url, status, headers.get("content-type", ""), body, wait, wire_bytes)
