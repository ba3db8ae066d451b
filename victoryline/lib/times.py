"""The spelling of times in our answers, and the time buckets that counters are kept in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, PlainSerializer, WithJsonSchema


def as_utc_iso(moment: datetime) -> str:
    """Formats as ISO 8601 in UTC with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


UtcTime = Annotated[
    AwareDatetime,
    PlainSerializer(as_utc_iso),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


def bucket_start(at: datetime, seconds: int) -> datetime:
    """Returns the start of the time bucket of `seconds` that `at` falls in; buckets are counted from the epoch."""
    return at.replace(microsecond=0) - timedelta(seconds=int(at.timestamp()) % seconds)
