"""The health log, thinned out: every row for a day, then one look in five minutes for a week.

Guards the disk and the objectives' queries against the log's growth. 300 scrapers write 20 rows a second, 1.73 million
a day; six days of one look in five minutes add half a million. All rows of one look have the same time, so what goes is
a list of twenty times, in one statement: at 300 scrapers 6,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby

from monitoring.models import HealthLog
from scraping.models import HealthStatus
from victoryline.lib.retention import Amount

EVERY_ROW_FOR = timedelta(hours=24)
KEPT_DAYS = 7
SLOT = timedelta(minutes=5)
RANGE = timedelta(hours=1)  # whose looks are gone through with one query
MOST_LOOKS = 20  # that go in one step


class Thinning:
    """A rule of retention. How far it has come is known to the process alone: after a restart it begins with the oldest
    hour again, and finds it thin."""

    table = "health-log-rows"
    keeps = f"all for {EVERY_ROW_FOR.total_seconds() / 3600:g} hours, then one look in 5 minutes"

    def __init__(self) -> None:
        self._through: datetime | None = None

    def outstanding(self, now: datetime) -> Amount:
        extra = [look for hour in _hours(_oldest(now), now) for look in _extra_looks(*hour)]
        return Amount(HealthLog.objects.filter(timestamp__in=extra).count() if extra else 0)

    def step(self, now: datetime) -> Amount:
        """Let a few looks of the oldest hour go that has any to spare."""
        for start, end in _hours(max(self._through or _oldest(now), _oldest(now)), now):
            if extra := _extra_looks(start, end)[:MOST_LOOKS]:
                rows = HealthLog.objects.filter(health_status__in=HealthStatus.values, timestamp__in=extra)
                return Amount(rows.delete()[0])
            self._through = end
        return Amount()


def _oldest(now: datetime) -> datetime:
    return _slot(now - timedelta(days=KEPT_DAYS))


def _hours(start: datetime, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    end = _slot(now - EVERY_ROW_FOR)
    while start < end:
        yield start, min(start + RANGE, end)
        start += RANGE


def _extra_looks(start: datetime, end: datetime) -> list[datetime]:
    """All but the first of each slot."""
    rows = HealthLog.objects.filter(health_status__in=HealthStatus.values, timestamp__gte=start, timestamp__lt=end)
    looks = rows.order_by("timestamp").values_list("timestamp", flat=True).distinct()
    return [look for _, slot in groupby(looks, key=_slot) for look in list(slot)[1:]]


def _slot(moment: datetime) -> datetime:
    seconds = moment.timestamp() // SLOT.total_seconds() * SLOT.total_seconds()
    return datetime.fromtimestamp(seconds, UTC)


thinning = Thinning()
