"""Reads of usage: requests of consumers, added up from the hourly sums, for the API and the admin."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import Max, QuerySet, Sum
from django.db.models.functions import TruncDay

from apiauth.models import UsageHour

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DAYS_SHOWN = 30


SUMS = (
    "requests", "not_modified", "throttled", "refused", "failed", "duration_ms_total", "aged", "age_seconds_total",
)  # fmt: skip
MOST = ("duration_ms_most", "age_seconds_most")
ADDED: dict[str, Any] = {  # not under the columns' own names: an aggregate may not hide a field
    **{f"all_{name}": Sum(name) for name in SUMS},
    **{f"all_{name}": Max(name) for name in MOST},
}


def hours(since: datetime, until: datetime, *, consumer: int | None = None) -> dict[datetime, UsageHour]:
    """Returns sums by hour (UTC), only of hours with requests; `since` is the start of one."""
    return _grouped(_rows(since, until, consumer), "hour")


def first_day(now: datetime) -> datetime:
    return day_of(now) - DAY * (DAYS_SHOWN - 1)


def last_days(now: datetime, *, consumer: int | None = None) -> dict[date, UsageHour]:
    first = first_day(now)
    rows = _rows(first, now, consumer).annotate(day=TruncDay("hour", tzinfo=UTC))
    found = {day.date(): sums for day, sums in _grouped(rows, "day").items()}
    return {day: found.get(day, UsageHour()) for day in ((first + DAY * number).date() for number in range(DAYS_SHOWN))}


def routes(since: datetime, until: datetime, *, consumer: int | None = None) -> dict[str, UsageHour]:
    return _grouped(_rows(since, until, consumer), "route")


def consumers(since: datetime, until: datetime) -> dict[str, UsageHour]:
    return _grouped(_rows(since, until, None), "consumer__name")


def total(since: datetime, until: datetime, *, consumer: int | None = None) -> UsageHour:
    return _sums(_rows(since, until, consumer).aggregate(**ADDED))


def hour_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    return hour_of(moment).replace(hour=0)


def _rows(since: datetime, until: datetime, consumer: int | None) -> QuerySet[UsageHour]:
    rows = UsageHour.objects.filter(hour__gte=since, hour__lte=until)
    return rows if consumer is None else rows.filter(consumer=consumer)


def _grouped(rows: QuerySet[UsageHour], by: str) -> dict[Any, UsageHour]:
    """Returns sums by the values of a column, the most requested first."""
    found = {row[by]: _sums(row) for row in rows.order_by(by).values(by).annotate(**ADDED)}
    return dict(sorted(found.items(), key=lambda item: -item[1].requests))


def _sums(found: dict[str, Any]) -> UsageHour:
    return UsageHour(**{name.removeprefix("all_"): found[name] or 0 for name in ADDED})
