"""The health log: one row a scraper and interval (DM-4), thinned after a day.

Guards the disk and the queries of the objectives against the log's growth: 300 scrapers write 20 rows a second, 1.73
million a day. Every row is kept for a day, then those of the first 15 seconds of every five minutes for a week, which
adds half a million.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet
from prometheus_client import Counter, Histogram

from monitoring import objectives
from monitoring.health.evaluation import Evaluation
from monitoring.health.scrapers import WatchedScraper, health_of
from monitoring.models import HealthLog
from scraping.models import HealthStatus
from victoryline.lib.retention import Rule
from victoryline.lib.units import MEGABYTE

EVERY_ROW_FOR = timedelta(hours=24)
KEPT_DAYS = 7
KEPT_MINUTES = range(0, 60, 5)
INTERVAL_SECONDS = 15
# That is thinned at once. The log and its thinning run in one process, every few minutes, so no more is left over.
THINNED_RANGE = timedelta(hours=2)
FRESHNESS = Histogram(
    "scraper_freshness_seconds",
    "Ages of the live matches' data, measured every 15 s.",
    buckets=(1, 2.5, 5, 10, 30, 60, 120, 300),
)
MEASUREMENTS = Counter("scraper_objective_measurements", "Measurements of an objective.", ["objective", "is_met"])


def log_health(now: datetime) -> int:
    """Scheduler step: writes one row for each active scraper and counts them for Prometheus; returns how many."""
    evaluation = Evaluation(now)
    rows = [_row(each, now) for each in evaluation.scrapers]
    HealthLog.objects.bulk_create(rows, batch_size=500)
    for age in evaluation.live_ages:
        FRESHNESS.observe(age)
    for each in objectives.objectives_of(objectives.count(now, now + timedelta(microseconds=1))):
        MEASUREMENTS.labels(each.name, "yes").inc(each.good)
        MEASUREMENTS.labels(each.name, "no").inc(each.total - each.good)
    return len(rows)


def _row(watched: WatchedScraper, now: datetime) -> HealthLog:
    scraper = watched.scraper
    return HealthLog(
        scraper_id=scraper.scraper_id,
        match_id=watched.key,
        timestamp=now,
        health_status=health_of(watched, now),
        error_count=scraper.error_count,
        memory_mb=round(watched.memory_bytes / MEGABYTE, 2),
        cpu_percent=round(watched.cpu_percent, 2),
        update_latency_ms=scraper.last_latency_ms,
        polling_interval_seconds=round(scraper.polling_interval, 2),
        uptime_seconds=max(0, int((now - scraper.start_time).total_seconds())),
        last_update_age_seconds=max(0, int(scraper.staleness_seconds(now))),
    )


def _extra_rows(now: datetime) -> QuerySet[HealthLog]:
    """Returns the rows between two kept samples, by all statuses so that the index on status and time is used."""
    end = now - EVERY_ROW_FOR
    rows = HealthLog.objects.filter(
        health_status__in=HealthStatus.values, timestamp__gte=end - THINNED_RANGE, timestamp__lt=end
    )
    return rows.exclude(timestamp__minute__in=KEPT_MINUTES, timestamp__second__lt=INTERVAL_SECONDS)


THINNING = Rule(
    "health-log-rows",
    f"all for {EVERY_ROW_FOR.total_seconds() / 3600:g} hours, then one sample in 5 minutes",
    outstanding=lambda now: _extra_rows(now).count(),
    step=lambda now: _extra_rows(now).delete()[0],
)
