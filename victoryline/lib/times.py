"""The one spelling of time in our answers."""

from __future__ import annotations

from datetime import UTC, datetime


def as_utc_iso(moment: datetime) -> str:
    """ISO 8601 with milliseconds and a Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
