"""Health over time: one row an active scraper and interval (DM-4)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from monitoring.health.document import health_of
from monitoring.models import HealthLog
from monitoring.queries import MEGABYTE, Shares, active_scrapers, workers_at_work
from scraping.models import Scraper


def log_health(now: datetime) -> int:
    scrapers = list(active_scrapers())
    shares = Shares(workers_at_work(now), scrapers)
    HealthLog.objects.bulk_create([_row(scraper, shares, now) for scraper in scrapers], batch_size=500)
    return len(scrapers)


def _row(scraper: Scraper, shares: Shares, now: datetime) -> HealthLog:
    return HealthLog(
        scraper_id=scraper.scraper_id,
        match_id=scraper.ref.match_id,
        timestamp=now,
        health_status=health_of(scraper, now),
        error_count=scraper.error_count,
        memory_mb=_two_places(shares.memory_bytes(scraper) / MEGABYTE),
        cpu_percent=_two_places(shares.cpu_percent(scraper)),
        update_latency_ms=scraper.last_latency_ms,
        polling_interval_seconds=_two_places(scraper.polling_interval),
        uptime_seconds=max(0, int((now - scraper.start_time).total_seconds())),
        last_update_age_seconds=max(0, int(scraper.staleness_seconds(now))),
    )


def _two_places(value: float) -> Decimal:
    return Decimal(str(round(value, 2)))
