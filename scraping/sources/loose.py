"""Reading JSON that somebody else writes: each accessor answers with the wanted type or nothing, and never raises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from html import unescape
from typing import Any

from pydantic import ValidationError

from scraping.errors import PayloadRejected

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_TAG = re.compile(r"<[^>]*>")
_SPACE = re.compile(r"\s+")
_EARLIEST, _LATEST = 0, 253_402_300_799  # 1970 to 9999, in seconds


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; anything else in it is left out."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def text(value: Any, limit: int = 500) -> str:
    """A string or number as trimmed text; NUL goes, PostgreSQL does not take it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).replace("\x00", "").strip()[:limit].strip()


def plain(value: Any, limit: int = 500) -> str:
    """HTML as one line of text."""
    return (
        text(_SPACE.sub(" ", unescape(_TAG.sub(" ", value))), limit) if isinstance(value, str) else text(value, limit)
    )


def integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    return None


def moment(value: Any, *, per_second: int = 1) -> datetime | None:
    """A time from seconds since 1970 (`per_second=1000`: milliseconds)."""
    count = integer(value)
    if count is None or not _EARLIEST < count / per_second < _LATEST:
        return None
    return datetime.fromtimestamp(count / per_second, tz=UTC)


def iso_moment(value: Any) -> datetime | None:
    """A time from ISO 8601; without an offset it is taken as UTC."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.strip())
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@contextmanager
def rejecting_absurd_values(url: str) -> Iterator[None]:
    """Eleven wickets or a negative score are no match: the payload is refused, with the field named."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or error.title
        shown = repr(first.get("input"))[:80]
        raise PayloadRejected(f"{error.title}: {where} is {shown}: {first['msg']}", url=url) from error
