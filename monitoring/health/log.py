"""The health log: one row a scraper and interval (DM-4), thinned after a day.

Guards the disk and the queries of the objectives against the log's growth: 300 scrapers write 20 rows a second, 1.73
million a day. Every row is kept for a day, then one sample in five minutes for a week, which adds half a million. All
rows of one sample have the same time, so a step deletes the rows of up to twenty times in one statement: at 300
scrapers 6,000 rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby

from monitoring.health.evaluation import Evaluation, WatchedScraper, health_of
from monitoring.models import HealthLog
from monitoring.queries import MEGABYTE
from scraping.models import HealthStatus
from victoryline.lib.retention import Amount

EVERY_ROW_FOR = timedelta(hours=24)
KEPT_DAYS = 7
SLOT = timedelta(minutes=5)
RANGE = timedelta(hours=1)  # whose samples are read with one query
SAMPLES_A_STEP = 20


def log_health(now: datetime) -> int:
    """Scheduler step: writes one row for each active scraper; returns how many."""
    evaluation = Evaluation(now)
    rows = [_row(each, evaluation) for each in evaluation.scrapers]
    HealthLog.objects.bulk_create(rows, batch_size=500)
    return len(rows)


def _row(watched: WatchedScraper, evaluation: Evaluation) -> HealthLog:
    scraper, now, shares = watched.scraper, evaluation.now, evaluation.resource_shares
    return HealthLog(
        scraper_id=scraper.scraper_id,
        match_id=watched.match_id,
        timestamp=now,
        health_status=health_of(watched, now),
        error_count=scraper.error_count,
        memory_mb=round(shares.memory_bytes(scraper) / MEGABYTE, 2),
        cpu_percent=round(shares.cpu_percent(scraper), 2),
        update_latency_ms=scraper.last_latency_ms,
        polling_interval_seconds=round(scraper.polling_interval, 2),
        uptime_seconds=max(0, int((now - scraper.start_time).total_seconds())),
        last_update_age_seconds=max(0, int(scraper.staleness_seconds(now))),
    )


class Thinning:
    """A retention rule. Its progress is kept in memory only: after a restart it begins again with the oldest hour."""

    table = "health-log-rows"
    keeps = f"all for {EVERY_ROW_FOR.total_seconds() / 3600:g} hours, then one sample in 5 minutes"

    def __init__(self) -> None:
        self._through: datetime | None = None

    def outstanding(self, now: datetime) -> Amount:
        extra = [sample for hour in _hours(_oldest(now), now) for sample in _extra_samples(*hour)]
        return Amount(HealthLog.objects.filter(timestamp__in=extra).count() if extra else 0)

    def step(self, now: datetime) -> Amount:
        """Deletes a few samples of the oldest hour that has more than one in a slot."""
        for start, end in _hours(max(self._through or _oldest(now), _oldest(now)), now):
            if extra := _extra_samples(start, end)[:SAMPLES_A_STEP]:
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


def _extra_samples(start: datetime, end: datetime) -> list[datetime]:
    """Returns the times of all samples but the first of each slot."""
    rows = HealthLog.objects.filter(health_status__in=HealthStatus.values, timestamp__gte=start, timestamp__lt=end)
    samples = rows.order_by("timestamp").values_list("timestamp", flat=True).distinct()
    return [sample for _, slot in groupby(samples, key=_slot) for sample in list(slot)[1:]]


def _slot(moment: datetime) -> datetime:
    seconds = moment.timestamp() // SLOT.total_seconds() * SLOT.total_seconds()
    return datetime.fromtimestamp(seconds, UTC)


thinning = Thinning()
