"""Service level objectives: the share of measurements in which scrapers were up, and in which data was fresh.

Both come from the health log of the last hour, one row a scraper and 15 seconds. Up: the scraper was not failing. In
play: it was polled at least every five seconds, or less often because of its errors, which does not excuse old data.
Breaks and waiting matches have other intervals (the log does not have the phase). Fresh: the last update was less than
ten seconds old.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, NamedTuple

from cachetools import TTLCache, cached
from django.db.models import Count, Q

from monitoring.models import HealthLog
from scraping.models import HealthStatus
from scraping.policies import error_slowdown

IN_PLAY_SECONDS = 5
FRESH_SECONDS = 10
UPTIME_TARGET = 0.995
FRESHNESS_TARGET = 0.99
WINDOW, WINDOW_NAME = timedelta(hours=1), "1h"
KEPT_SECONDS = 60.0  # between two queries of the log
IS_UP = ~Q(health_status=HealthStatus.FAILING)
IS_PLAY = Q(polling_interval_seconds__lte=IN_PLAY_SECONDS) | Q(
    polling_interval_seconds__in=[seconds for _, seconds in error_slowdown.STEPS]
)
IS_FRESH = IS_PLAY & Q(last_update_age_seconds__lt=FRESH_SECONDS)


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


def objectives_of(totals: Totals) -> tuple[Objective, Objective]:
    return (
        Objective("uptime", UPTIME_TARGET, totals.up, totals.measurements),
        Objective("freshness", FRESHNESS_TARGET, totals.fresh, totals.in_play),
    )


def count(start: datetime, end: datetime) -> Totals:
    """Makes one query. It filters by all statuses so that the index on status and time is used."""
    rows = HealthLog.objects.filter(health_status__in=HealthStatus.values, timestamp__gte=start, timestamp__lt=end)
    counted = rows.aggregate(
        measurements=Count("pk"),
        up=Count("pk", filter=IS_UP),
        in_play=Count("pk", filter=IS_PLAY),
        fresh=Count("pk", filter=IS_FRESH),
    )
    return Totals(**counted)


@cached(TTLCache(1, KEPT_SECONDS), key=lambda now: None, lock=Lock())
def last_hour(now: datetime) -> tuple[Objective, Objective]:
    return objectives_of(count(now - WINDOW, now))


def as_document(objectives: tuple[Objective, ...]) -> dict[str, Any]:
    return {
        each.name: {
            "target": each.target,
            "ratio": None if each.ratio is None else round(each.ratio, 5),
            "is_met": each.is_met,
            "measurements": each.total,
        }
        for each in objectives
    }
