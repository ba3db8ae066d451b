"""What reading a source costs in a day (UTC), against what it may cost. Sole writer of SourceDay.

Guards against a bill: a page that grew, a challenge that loads megabytes, a source that is visited where it used to be
asked. Past the budget nothing is visited any more until midnight; direct reads, which cost little, go on.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, QuerySet, Sum

from scraping.models import Source, SourceDay
from scraping.readings import Reading, ReadMode
from victoryline.lib.bulk_sql import add_up

MEGABYTE = 1_000_000  # as those who bill for traffic count
ALERT_PERCENT = 80.0
ASK_AGAIN_SECONDS = 60.0  # a larger budget, given by a person, is seen then
KEPT_DAYS = 90
FOLDED_AT_ONCE = 100
EARLIER = date(1970, 1, 1)  # the row that holds the sums of all days that are no longer kept
SUMS = ("bytes_in", "requests", "requests_blocked", "visits", "direct_reads", "attached_reads")


class Cost(NamedTuple):
    """In the order of SUMS."""

    bytes_in: int = 0
    requests: int = 0
    requests_blocked: int = 0
    visits: int = 0
    direct_reads: int = 0
    attached_reads: int = 0

    @classmethod
    def of(cls, reading: Reading) -> Cost:
        return cls(
            bytes_in=reading.bytes_in,
            requests=reading.requests_made,
            requests_blocked=reading.requests_blocked,
            visits=int(reading.mode is ReadMode.VISIT),
            direct_reads=int(reading.mode is ReadMode.DIRECT),
            attached_reads=int(reading.mode is ReadMode.ATTACHED),
        )

    def plus(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, self, other))


def add(costs: Mapping[tuple[int, date], Cost]) -> int:
    """Add to the days of sources, by the source's id."""
    return add_up(SourceDay, by=("source", "day"), sums=SUMS, rows=dict(costs))


@dataclass(frozen=True)
class Budget:
    """A source's traffic of today against what it may be; `limit_bytes` 0: it may be anything."""

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
        """Somebody should know."""
        return bool(self.limit_bytes) and self.percent >= ALERT_PERCENT


UNLIMITED = Budget()


def budgets(today: date) -> dict[int, Budget]:
    """By source: those that have a budget, summed over all workers."""
    limits = dict(Source.objects.filter(daily_megabytes__gt=0).values_list("pk", "daily_megabytes"))
    if not limits:
        return {}
    used = dict(SourceDay.objects.filter(source__in=limits, day=today).values_list("source", "bytes_in"))
    return {pk: Budget(megabytes * MEGABYTE, used.get(pk, 0)) for pk, megabytes in limits.items()}


def spent_sources(today: date) -> int:
    """How many sources may not be visited any more today."""
    limit = F("source__daily_megabytes") * MEGABYTE
    return SourceDay.objects.filter(day=today, source__daily_megabytes__gt=0, bytes_in__gte=limit).count()


def totals() -> dict[str, Cost]:
    """By the source's key: everything there ever was."""
    rows = SourceDay.objects.order_by().values_list("source__key").annotate(*(Sum(name) for name in SUMS))
    return {key: Cost(*sums) for key, *sums in rows}


def old_days(now: datetime) -> QuerySet[SourceDay]:
    oldest = now.astimezone(UTC).date() - timedelta(days=KEPT_DAYS)
    return SourceDay.objects.filter(day__gt=EARLIER, day__lt=oldest)


def fold_old_days(*, now: datetime) -> int:
    """Days that are no longer kept go into the one row that stands for all of them; how many."""
    with transaction.atomic():
        days = list(old_days(now).select_for_update().order_by("pk")[:FOLDED_AT_ONCE])
        sums: dict[tuple[int, date], Cost] = defaultdict(Cost)
        for day in days:
            key = day.source_id, EARLIER
            sums[key] = sums[key].plus(Cost(*(getattr(day, name) for name in SUMS)))
        if days:
            add(sums)
            SourceDay.objects.filter(pk__in=[day.pk for day in days]).delete()
    return len(days)


def midnight_after(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), tzinfo=UTC)


class Traffic:
    """The budgets as one worker knows them: read by its heartbeat, asked by its tasks, without a statement a poll."""

    def __init__(self) -> None:
        self._known: tuple[date, Mapping[int, Budget]] = (EARLIER, {})

    def refresh(self, *, now: datetime) -> None:
        today = now.astimezone(UTC).date()
        self._known = today, budgets(today)

    def verdict(self, source_id: int, now: datetime) -> Budget:
        """What was spent yesterday does not count, however long ago the last heartbeat was."""
        day, known = self._known
        return known.get(source_id, UNLIMITED) if now.astimezone(UTC).date() == day else UNLIMITED

    def visits_from(self, source_id: int, now: datetime) -> datetime | None:
        """No visits before then; None: at any time. Asked again soon, in case the budget is made larger."""
        if not self.verdict(source_id, now).is_spent:
            return None
        return min(midnight_after(now), now + timedelta(seconds=ASK_AGAIN_SECONDS))
