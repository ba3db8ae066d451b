"""Times and durations for people: relative, with the exact time for the mouse, in units that fit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db.models import DateTimeField, Field
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from victoryline.lib.times import as_utc_iso

BYTES = ("_bytes", "bytes_in")  # the ends of the names of columns that hold sizes


def duration(seconds: float) -> str:
    """Returns a duration in units that fit its size, as "312 ms", "4.2 s" or "3 min 5 s"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    place = next(number for number, (_, size) in enumerate(units) if seconds >= size)
    (name, size), (smaller, part) = units[place : place + 2]
    whole, rest = divmod(round(seconds / part) * part, size)
    return f"{whole} {name} {rest // part} {smaller}" if rest else f"{whole} {name}"


def exact(at: datetime) -> str:
    """Returns a time in UTC with milliseconds."""
    return f"{at.astimezone(UTC):%d %b %Y %H:%M:%S.%f}"[:-3]


def ago(at: datetime | None, now: datetime | None = None) -> SafeString:
    """Returns a time relative to now, with the exact time for the mouse and for programs."""
    if at is None:
        return format_html("{}", "-")
    seconds = ((now or timezone.now()) - at).total_seconds()
    text = (
        f"in {duration(-seconds)}" if seconds <= -1 else f"{duration(max(0.0, seconds))} ago" if seconds >= 1 else "now"
    )
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', as_utc_iso(at), exact(at), text)


def column_of(field: Field[Any, Any], *, is_exact: bool = False) -> Callable[[Any], object] | None:
    """Returns the computed column of a time or a size; None for other fields, which Django shows well."""
    name = field.name

    def time_of(row: Any) -> SafeString:
        at = getattr(row, name)
        return format_html("{} UTC ({})", exact(at), ago(at)) if is_exact and at else ago(at)

    def size_of(row: Any) -> str:
        return filesizeformat(getattr(row, name))

    if not isinstance(field, DateTimeField) and not name.endswith(BYTES):
        return None
    read = time_of if isinstance(field, DateTimeField) else size_of
    shown = display(description=field.verbose_name, ordering=name)(read)
    shown.__name__ = name  # the class of its cells
    return shown  # type: ignore[no-any-return]  # unfold publishes no types
