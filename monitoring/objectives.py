"""Service level objectives: the share of measurements in which scrapers were up, and in which data was fresh.

Both come from the health log, one row a scraper and 15 seconds. Up: the scraper was not failing. In play: it was polled
at least every five seconds, or less often because of its errors, which does not excuse old data. Breaks and
waiting matches have other intervals (the log does not have the phase). Fresh: the last
update was less than ten seconds old.

A past hour does not change any more, so its totals are kept; the last day costs one query of the current hour. A new
process counts the past hours a few at a time, and reports how many are counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet

from monitoring.models import HealthLog
from scraping.models import HealthStatus
from scraping.policies import error_slowdown

IN_PLAY_SECONDS = 5
FRESH_SECONDS = 10
UPTIME_TARGET = 0.995
FRESHNESS_TARGET = 0.99
DAY_HOURS = 24
HOUR = timedelta(hours=1)
KEPT_SECONDS = 60.0  # between two queries of the log
CATCH_UP_SECONDS = 0.2  # that one call may spend on past hours
IS_UP = ~Q(health_status=HealthStatus.FAILING)
IS_PLAY = Q(polling_interval_seconds__lte=IN_PLAY_SECONDS) | Q(
    polling_interval_seconds__in=[seconds for _, seconds in error_slowdown.STEPS]
)
IS_FRESH = IS_PLAY & Q(last_update_age_seconds__lt=FRESH_SECONDS)
COUNTED = {
    "measurements": Count("pk"),
    "up": Count("pk", filter=IS_UP),
    "in_play": Count("pk", filter=IS_PLAY),
    "fresh": Count("pk", filter=IS_FRESH),
}


class Totals(NamedTuple):
    """Counts of measurements: all, with the scraper up, in play, and in play with fresh data."""

    measurements: int = 0
    up: int = 0
    in_play: int = 0
    fresh: int = 0


@dataclass(frozen=True)
class Objective:
    """`ratio` and `is_met` are None where nothing was measured."""

    name: str
    target: float
    good: int
    total: int

    @property
    def ratio(self) -> float | None:
        return self.good / self.total if self.total else None

    @property
    def is_met(self) -> bool | None:
        return self.good >= self.target * self.total if self.total else None

    @property
    def result(self) -> str:
        return {True: "met", False: "missed", None: "nothing measured"}[self.is_met]


def objectives_of(totals: Totals) -> tuple[Objective, Objective]:
    return (
        Objective("uptime", UPTIME_TARGET, totals.up, totals.measurements),
        Objective("freshness", FRESHNESS_TARGET, totals.fresh, totals.in_play),
    )


def totals(start: datetime, end: datetime, *, keys: Collection[str] | None = None) -> Totals:
    """Makes one query. `keys`: of one match, at its sources."""
    rows = _between(start, end)
    if keys is not None:
        rows = rows.filter(match_id__in=keys)
    return Totals(**rows.aggregate(**COUNTED))


def by_match(start: datetime, end: datetime) -> dict[str, Totals]:
    """Returns the totals of each match at each source, by its key; one query."""
    rows = _between(start, end).exclude(match_id="").order_by().values_list("match_id")
    return {key: Totals(*counts) for key, *counts in rows.annotate(**COUNTED)}


def _between(start: datetime, end: datetime) -> QuerySet[HealthLog]:
    """Filters by all statuses so that the index on status and time is used."""
    return HealthLog.objects.filter(health_status__in=HealthStatus.values, timestamp__gte=start, timestamp__lt=end)


@dataclass(frozen=True)
class WindowTotals:
    """Totals of a window that ends now, and how many of its hours are counted so far."""

    hours_counted: int
    totals: Totals

    def as_document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"hours_counted": self.hours_counted}
        for each in objectives_of(self.totals):
            document[each.name] = {
                "target": each.target,
                "ratio": None if each.ratio is None else round(each.ratio, 5),
                "is_met": each.is_met,
                "measurements": each.total,
            }
        return document


class HourlyTotals:
    """Keeps the totals of the last day's hours."""

    def __init__(self, count: Callable[[datetime, datetime], Totals] = totals) -> None:
        self._count = count
        self._hours: dict[datetime, Totals] = {}
        self._held: tuple[datetime, dict[str, WindowTotals]] | None = None
        self._lock = threading.Lock()

    def windows(self, now: datetime) -> dict[str, WindowTotals]:
        with self._lock:
            if self._held is None or not 0 <= (now - self._held[0]).total_seconds() < KEPT_SECONDS:
                self._held = (now, self._read(now))
            return self._held[1]

    def forget(self) -> None:
        self._hours.clear()
        self._held = None

    def _read(self, now: datetime) -> dict[str, WindowTotals]:
        last_hour = self._count(now - HOUR, now)
        this_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        wanted = [this_hour - number * HOUR for number in range(1, DAY_HOURS)]
        self._hours = {hour: self._hours[hour] for hour in wanted if hour in self._hours}
        end = time.monotonic() + CATCH_UP_SECONDS
        for hour in (each for each in wanted if each not in self._hours):
            self._hours[hour] = self._count(hour, hour + HOUR)
            if time.monotonic() > end:
                break
        day = zip(self._count(this_hour, now), *self._hours.values(), strict=True)
        return {
            "1h": WindowTotals(1, last_hour),
            "24h": WindowTotals(1 + len(self._hours), Totals(*map(sum, day))),
        }


hourly_totals = HourlyTotals()


def objectives_by_window(now: datetime) -> Iterator[tuple[str, Objective]]:
    """Yields each window with each of its objectives."""
    for window, measured in hourly_totals.windows(now).items():
        for objective in objectives_of(measured.totals):
            yield window, objective
