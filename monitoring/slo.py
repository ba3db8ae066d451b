"""What was promised, measured: the share of time that scrapers were up, and of looks at which the data was fresh.

Both come from the health log, a row a scraper and 15 seconds. Up: the scraper was not failing. In play: it was polled
at least every five seconds, or only as often as its errors let it, which is no excuse for old data. Breaks and matches
that wait have other intervals (the log doesn't know the phase). Fresh: the last update was less than ten seconds old.

An hour that is over does not change any more, so its sums are kept; a look at the last day costs one query of the hour
that runs. Whoever starts with an empty memory works the hours off a few at a time, and says how many are counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

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
LOOKS_SECONDS = 60.0  # between two looks at the log
CATCHES_UP_SECONDS = 0.2  # that one look may spend on hours that are over
IS_UP = ~Q(health_status=HealthStatus.FAILING)
IS_PLAY = Q(polling_interval_seconds__lte=IN_PLAY_SECONDS) | Q(
    polling_interval_seconds__in=[seconds for _, seconds in error_slowdown.STEPS]
)
IS_FRESH = IS_PLAY & Q(last_update_age_seconds__lt=FRESH_SECONDS)
COUNTED = {
    "looks": Count("pk"),
    "up": Count("pk", filter=IS_UP),
    "in_play": Count("pk", filter=IS_PLAY),
    "fresh": Count("pk", filter=IS_FRESH),
}


@dataclass(frozen=True)
class Tally:
    """How many looks there were, and at how many it was as promised."""

    looks: int = 0
    up: int = 0
    in_play: int = 0
    fresh: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.looks + other.looks, self.up + other.up, self.in_play + other.in_play, self.fresh + other.fresh
        )


@dataclass(frozen=True)
class Objective:
    """`ratio` is None where nothing was there to measure: that is neither kept nor missed."""

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
    def verdict(self) -> str:
        return {True: "met", False: "missed", None: "nothing measured"}[self.is_met]


def objectives(tally: Tally) -> tuple[Objective, Objective]:
    return (
        Objective("uptime", UPTIME_TARGET, tally.up, tally.looks),
        Objective("freshness", FRESHNESS_TARGET, tally.fresh, tally.in_play),
    )


def tally(start: datetime, end: datetime, *, match_id: int | None = None) -> Tally:
    """One query."""
    rows = _between(start, end)
    if match_id is not None:
        rows = rows.filter(match=match_id)
    return Tally(**rows.aggregate(**COUNTED))


def by_match(start: datetime, end: datetime) -> dict[int, Tally]:
    """One query."""
    rows = _between(start, end).filter(match__isnull=False).order_by().values_list("match_id")
    return {match_id: Tally(*counts) for match_id, *counts in rows.annotate(**COUNTED)}


def _between(start: datetime, end: datetime) -> QuerySet[HealthLog]:
    """The words of health are named so that the index on them and the time serves."""
    return HealthLog.objects.filter(health_status__in=HealthStatus.values, timestamp__gte=start, timestamp__lt=end)


@dataclass(frozen=True)
class Measured:
    """A window that ends with the present: so many of its hours are in it so far."""

    hours_counted: int
    tally: Tally

    def as_document(self) -> dict[str, Any]:
        kept = {
            each.name: {
                "target": each.target,
                "ratio": None if each.ratio is None else round(each.ratio, 5),
                "is_met": each.is_met,
                "measurements": each.total,
            }
            for each in objectives(self.tally)
        }
        return {"hours_counted": self.hours_counted, **kept}


class Ledger:
    """The sums of the last day's hours."""

    def __init__(self, count: Callable[[datetime, datetime], Tally] = tally) -> None:
        self._count = count
        self._hours: dict[datetime, Tally] = {}
        self._held: tuple[datetime, dict[str, Measured]] | None = None
        self._lock = threading.Lock()

    def windows(self, now: datetime) -> dict[str, Measured]:
        with self._lock:
            if self._held is None or not 0 <= (now - self._held[0]).total_seconds() < LOOKS_SECONDS:
                self._held = (now, self._measured(now))
            return self._held[1]

    def forget(self) -> None:
        self._hours.clear()
        self._held = None

    def _measured(self, now: datetime) -> dict[str, Measured]:
        last_hour = self._count(now - HOUR, now)
        this_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        self._catch_up(this_hour)
        day = sum(self._hours.values(), self._count(this_hour, now))
        return {
            "1h": Measured(1, last_hour),
            "24h": Measured(1 + len(self._hours), day),
        }

    def _catch_up(self, this_hour: datetime) -> None:
        wanted = [this_hour - number * HOUR for number in range(1, DAY_HOURS)]
        self._hours = {hour: self._hours[hour] for hour in wanted if hour in self._hours}
        end = time.monotonic() + CATCHES_UP_SECONDS
        for hour in (each for each in wanted if each not in self._hours):
            self._hours[hour] = self._count(hour, hour + HOUR)
            if time.monotonic() > end:
                break


ledger = Ledger()


def rows_of(now: datetime) -> Iterator[tuple[str, Objective]]:
    """Each window with each of its objectives: for the admin's first page and for metrics."""
    for window, measured in ledger.windows(now).items():
        for objective in objectives(measured.tally):
            yield window, objective
