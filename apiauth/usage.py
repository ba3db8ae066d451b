"""Reads of usage: requests of consumers, added up from the hourly sums, for the API and the admin."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import Max, QuerySet, Sum
from django.db.models.functions import TruncDay

from apiauth.models import UsageHour

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAYS_SHOWN = 30


@dataclass(frozen=True)
class Sums:
    """The columns of UsageHour, added up."""

    requests: int = 0
    not_modified: int = 0
    throttled: int = 0
    refused: int = 0
    failed: int = 0
    duration_ms_total: int = 0
    duration_ms_most: int = 0
    aged: int = 0
    age_seconds_total: float = 0.0
    age_seconds_most: float = 0.0

    @classmethod
    def of_row(cls, row: UsageHour) -> Sums:
        return cls(*(getattr(row, name) for name in COLUMNS))

    @property
    def answered(self) -> int:
        """Requests answered in full."""
        return self.requests - self.not_modified - self.throttled - self.refused - self.failed

    @property
    def mean_ms(self) -> float | None:
        return self.duration_ms_total / self.requests if self.requests else None

    @property
    def mean_age_seconds(self) -> float | None:
        return self.age_seconds_total / self.aged if self.aged else None

    @property
    def most_age_seconds(self) -> float | None:
        return self.age_seconds_most if self.aged else None


NOTHING = Sums()
COLUMNS = tuple(field.name for field in fields(Sums))
ADDED: dict[str, Any] = {
    f"all_{name}": (Max if name.endswith("_most") else Sum)(name) for name in COLUMNS
}  # not under the columns' own names: an aggregate may not hide a field


def hours(since: datetime, until: datetime, *, consumer: int | None = None) -> dict[datetime, Sums]:
    """Returns sums by hour (UTC), only of hours with requests; `since` is the start of one."""
    return _grouped(_rows(since, until, consumer), "hour")


def first_day(now: datetime) -> datetime:
    """Returns the start of the first of the DAYS_SHOWN."""
    return day_of(now) - DAY * (DAYS_SHOWN - 1)


def last_days(now: datetime, *, consumer: int | None = None) -> dict[date, Sums]:
    """Returns sums of each of the last DAYS_SHOWN days."""
    first = first_day(now)
    rows = _rows(first, now, consumer).annotate(day=TruncDay("hour", tzinfo=UTC))
    found = {day.date(): sums for day, sums in _grouped(rows, "day").items()}
    return {day: found.get(day, NOTHING) for day in ((first + DAY * number).date() for number in range(DAYS_SHOWN))}


def routes(since: datetime, until: datetime, *, consumer: int | None = None) -> dict[str, Sums]:
    """Returns sums by route name, the most requested first."""
    return _grouped(_rows(since, until, consumer), "route")


def consumers(since: datetime, until: datetime) -> dict[str, Sums]:
    """Returns sums by consumer name, the busiest first."""
    return _grouped(_rows(since, until, None), "consumer__name")


def total(since: datetime, until: datetime, *, consumer: int | None = None) -> Sums:
    found = _rows(since, until, consumer).aggregate(**ADDED)
    return Sums(*(found[f"all_{name}"] or 0 for name in COLUMNS))


def hour_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    return hour_of(moment).replace(hour=0)


def _rows(since: datetime, until: datetime, consumer: int | None) -> QuerySet[UsageHour]:
    rows = UsageHour.objects.filter(hour__gte=since, hour__lte=until)
    return rows if consumer is None else rows.filter(consumer=consumer)


def _grouped(rows: QuerySet[UsageHour], by: str) -> dict[Any, Sums]:
    """Returns sums by the values of a column, the most requested first."""
    found = {key: Sums(*sums) for key, *sums in rows.order_by(by).values_list(by).annotate(**ADDED)}
    return dict(sorted(found.items(), key=lambda item: -item[1].requests))
