"""Traffic budgets of sources per day (UTC), and retention of the daily sums.

Guards against a bill: a page that grew, a challenge that loads megabytes, a source that is visited where it used to be
read directly. Past the budget nothing is visited until midnight; direct reads, which cost little, go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db import transaction
from django.db.models import QuerySet, Sum

from scraping.models import Source, SourceDay
from scraping.stats.read_stats import SUMS, Cost, add_costs

MEGABYTE = 1_000_000  # as traffic is billed
ALERT_PERCENT = 80.0
KEPT_DAYS = 90
FOLDED_AT_ONCE = 100
EARLIER = date(1970, 1, 1)  # the row with the sums of all days that are no longer kept


@dataclass(frozen=True)
class Budget:
    """A source's traffic of today and its limit; `limit_bytes` 0: unlimited."""

    limit_bytes: int = 0
    used_bytes: int = 0

    @property
    def percent(self) -> float:
        return 100 * self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0

    @property
    def is_spent(self) -> bool:
        return bool(self.limit_bytes) and self.used_bytes >= self.limit_bytes

    @property
    def is_scarce(self) -> bool:
        return self.percent >= ALERT_PERCENT


def budgets(today: date) -> dict[int, Budget]:
    """Returns the budgets by source, of those that have one; traffic is summed over all workers."""
    limits = dict(Source.objects.filter(daily_megabytes__gt=0).values_list("pk", "daily_megabytes"))
    if not limits:
        return {}
    used = dict(SourceDay.objects.filter(source__in=limits, day=today).values_list("source", "bytes_in"))
    return {pk: Budget(megabytes * MEGABYTE, used.get(pk, 0)) for pk, megabytes in limits.items()}


def spent_sources(today: date) -> int:
    """Returns the number of sources that may not be visited any more today."""
    return sum(budget.is_spent for budget in budgets(today).values())


def totals() -> dict[str, Cost]:
    """Returns the traffic of all time by the source's key."""
    rows = SourceDay.objects.order_by().values_list("source__key").annotate(*(Sum(name) for name in SUMS))
    return {key: Cost(*sums) for key, *sums in rows}


def old_days(now: datetime) -> QuerySet[SourceDay]:
    oldest = now.astimezone(UTC).date() - timedelta(days=KEPT_DAYS)
    return SourceDay.objects.filter(day__gt=EARLIER, day__lt=oldest)


def fold_old_days(*, now: datetime) -> int:
    """Moves the sums of days that are no longer kept into one row per source; returns the number of days."""
    with transaction.atomic():
        days = list(old_days(now).select_for_update().order_by("pk")[:FOLDED_AT_ONCE])
        for day in days:
            add_costs({(day.source_id, EARLIER): Cost(*(getattr(day, name) for name in SUMS))})
        SourceDay.objects.filter(pk__in=[day.pk for day in days]).delete()
    return len(days)


def midnight_after(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), tzinfo=UTC)
