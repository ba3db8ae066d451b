"""The format of times in our responses."""

from __future__ import annotations

from datetime import UTC, datetime
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
