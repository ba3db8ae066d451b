"""Health over time: one row an active scraper and interval (DM-4)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from monitoring.health.document import health_of
from monitoring.models import HealthLog
from monitoring.queries import MEGABYTE, Shares, Watch, active_watches, workers_at_work


def log_health(now: datetime) -> int:
    watches = active_watches()
    shares = Shares(workers_at_work(now), watches)
    HealthLog.objects.bulk_create([_row(watch, shares, now) for watch in watches], batch_size=500)
    return len(watches)


def _row(watch: Watch, shares: Shares, now: datetime) -> HealthLog:
    scraper = watch.scraper
    return HealthLog(
        scraper_id=scraper.scraper_id,
        match_id=watch.match_id,
        timestamp=now,
        health_status=health_of(watch, now),
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
