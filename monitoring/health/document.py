"""The JSON of GET /health, key by key as specified (DM-3), with the figures of FR-012 behind it.

Everything in it comes from the database, so every web process tells the same; ten queries, whatever the number of
scrapers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import Q

from monitoring.alerts import causes
from monitoring.alerts.registry import open_keys
from monitoring.health.verdict import Signs, Status, Verdict, judge
from monitoring.queries import (
    MEGABYTE,
    ErrorCounts,
    LiveCounts,
    Queue,
    Shares,
    Watch,
    active_watches,
    error_counts,
    live_counts,
    percentile,
    queue,
    updates_last_minute,
    workers_at_work,
)
from scraping.models import Breaker, BreakerState, HealthStatus, Scraper, Snapshot, Worker
from scraping.stats import traffic
from victoryline.lib import availability, pg_wait
from victoryline.lib.times import as_utc_iso

LATENCY_WINDOW = timedelta(minutes=5)
LATENCY_SAMPLES = 1000


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the database says at one moment."""

    watches: list[Watch]
    workers: list[Worker]
    breakers: list[Breaker]
    errors: ErrorCounts
    latencies_ms: list[int]
    updates_per_minute: int
    live: LiveCounts
    queue: Queue
    sources_without_token: int = 0
    sources_over_budget: int = 0


NOTHING_SEEN = Observed(
    watches=[],
    workers=[],
    breakers=[],
    errors=ErrorCounts(0, 0),
    latencies_ms=[],
    updates_per_minute=0,
    live=LiveCounts(0, 0, 0, {}),
    queue=Queue({}, 0.0, 0),
)


def health_document(now: datetime) -> dict[str, Any]:
    """Never raises and never waits long for a database that is away: that is an answer too."""
    if availability.database.is_away():
        return _without_database(now, availability.database.reason())
    try:
        with pg_wait.within(availability.READ_SECONDS):
            seen = observe(now)
    except Error as error:
        availability.database.report(error)
        return _without_database(now, type(error).__name__)
    _last_seen.put(seen, now)
    return compose(seen, now)


def observe(now: datetime) -> Observed:
    snapshots = Snapshot.objects.filter(created_at__gt=now - LATENCY_WINDOW).order_by("-created_at")
    return Observed(
        watches=active_watches(),
        workers=workers_at_work(now),
        breakers=_breakers(),
        errors=error_counts(now),
        latencies_ms=list(snapshots.values_list("update_latency_ms", flat=True)[:LATENCY_SAMPLES]),
        updates_per_minute=updates_last_minute(now),
        live=live_counts(),
        queue=queue(now),
        sources_without_token=len(open_keys(causes.TOKEN)),
        sources_over_budget=traffic.spent_sources(now.astimezone(UTC).date()),
    )


def health_of(watch: Watch, now: datetime) -> HealthStatus:
    """Silence counts against the scrapers of live matches only: the others are meant to be quiet for long."""
    threshold, scraper = settings.CONFIG.staleness_threshold_seconds, watch.scraper
    if watch.is_live:
        return scraper.health_status(now, threshold)
    return scraper.health_status(scraper.last_update_time or scraper.start_time, threshold)


def compose(seen: Observed, now: datetime) -> dict[str, Any]:
    shares = Shares(seen.workers, seen.watches)
    rows = [_scraper(watch, shares, now) for watch in seen.watches]
    verdict = verdict_on(seen, now)
    resources = _resources(seen)
    return {
        "status": verdict.status.value,
        "timestamp": as_utc_iso(now),
        "active_scraper_count": len(rows),
        "total_matches_scraping": len({watch.match_id for watch in seen.watches}),
        "scrapers": rows,
        "resources": resources,
        "errors": {
            "last_minute": seen.errors.last_minute,
            "last_hour": seen.errors.last_hour,
            "circuit_breakers": [breaker.as_document() for breaker in seen.breakers],
        },
        "performance": {
            "average_latency_ms": round(fmean(seen.latencies_ms)) if seen.latencies_ms else 0,
            "p95_latency_ms": round(percentile(seen.latencies_ms, 0.95)),
            "updates_per_minute": seen.updates_per_minute,
        },
        **_figures(verdict, rows, resources["total_memory_mb"], uptime_seconds(seen, now)),
        "queue": {"depth": seen.queue.waiting, "oldest_age_seconds": round(seen.queue.oldest_age_seconds, 1)},
    }


def verdict_on(seen: Observed, now: datetime) -> Verdict:
    return judge(_signs(seen, now))


def uptime_seconds(seen: Observed, now: datetime) -> float:
    """Since the oldest worker that is at work began."""
    return (now - min((worker.started_at for worker in seen.workers), default=now)).total_seconds()


def _figures(
    verdict: Verdict, rows: list[dict[str, Any]], total_memory_mb: float, uptime_seconds: float
) -> dict[str, Any]:
    """FR-012 asks for these by these names."""
    return {
        "reason": "; ".join(verdict.reasons),
        "uptime_seconds": round(uptime_seconds, 1),
        "total_memory_mb": total_memory_mb,
        "per_match_status": [
            {
                "match_id": row["match_id"],
                "url": row["url"],
                "last_update_iso8601": row["last_update"],
                "error_count": row["error_count"],
                "memory_mb": row["memory_mb"],
            }
            for row in rows
        ],
    }


def _scraper(watch: Watch, shares: Shares, now: datetime) -> dict[str, Any]:
    document = watch.scraper.as_document(
        now,
        match_id=watch.key,
        url=watch.url,
        memory_mb=shares.memory_bytes(watch.scraper) / MEGABYTE,
        cpu=shares.cpu_percent(watch.scraper),
    )
    return {**document, "health_status": health_of(watch, now).value}


def _signs(seen: Observed, now: datetime) -> Signs:
    live = [watch for watch in seen.watches if watch.is_live]
    return Signs(
        matches_to_watch=seen.live.to_watch,
        active_scrapers=len(live),
        workers=len(seen.workers),
        errors_last_minute=seen.errors.last_minute,
        unwell_scrapers=sum(health_of(watch, now) != HealthStatus.HEALTHY for watch in live),
        paused_live_matches=seen.live.paused,
        frozen_matches=seen.live.frozen,
        sources_without_token=seen.sources_without_token,
        sources_over_budget=seen.sources_over_budget,
    )


def _resources(seen: Observed) -> dict[str, float]:
    """Peak: the most that any worker now alive, browser included, has ever held."""
    total = sum(worker.memory_bytes for worker in seen.workers) / MEGABYTE
    peak = max((worker.peak_memory_bytes for worker in seen.workers), default=0) / MEGABYTE
    return {
        "total_memory_mb": round(total, 1),
        "average_memory_mb": round(total / len(seen.watches), 1) if seen.watches else 0.0,
        "peak_memory_mb": round(peak, 1),
        "total_cpu_percent": round(sum(worker.cpu_percent for worker in seen.workers), 1),
    }


def _breakers() -> list[Breaker]:
    """Those of the active scrapers and of the sources, and every other that is not closed."""
    watched = Scraper.objects.filter(stopped_at__isnull=True).values("ref")
    shown = Q(ref__isnull=True) | Q(ref__in=watched) | ~Q(state=BreakerState.CLOSED)
    return list(Breaker.objects.filter(shown).order_by("name"))


class _LastSeen:
    """What the database said last, for the time when it says nothing."""

    def __init__(self) -> None:
        self._held: tuple[Observed, datetime] | None = None

    def put(self, seen: Observed, at: datetime) -> None:
        self._held = (seen, at)

    def get(self) -> tuple[Observed, datetime] | None:
        return self._held

    def forget(self) -> None:
        self._held = None


_last_seen = _LastSeen()


def _without_database(now: datetime, error: str) -> dict[str, Any]:
    """The same shape from what was seen last, with ages as of now; nothing of it is passed off as today's."""
    reason = f"the database is away ({error})"
    seen, at = _last_seen.get() or (NOTHING_SEEN, None)
    if at is not None:
        reason += f"; what else is said here was so at {at:%H:%M:%S} UTC"
    return {**compose(seen, now), "status": Status.DOWN.value, "reason": reason}
