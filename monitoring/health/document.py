"""The JSON of GET /health, key by key as specified (DM-3), with the figures of FR-012 after it."""

from __future__ import annotations

from datetime import datetime
from statistics import fmean
from typing import Any

from monitoring.health.evaluation import Evaluation, LastEvaluation, health_of
from monitoring.health.status_rules import SystemStatus
from monitoring.queries import MEGABYTE, DatabaseAway, WatchedScraper, database_read, percentile
from victoryline.lib.times import as_utc_iso

_last = LastEvaluation()


def health_document(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the document; never raises and never waits long for a database that is away."""
    try:
        with database_read():
            document = _document(evaluation)
    except DatabaseAway as error:
        return _document_without_database(evaluation.now, str(error))
    _last.put(evaluation)
    return document


def _document(evaluation: Evaluation) -> dict[str, Any]:
    rows = [_scraper(each, evaluation) for each in evaluation.scrapers]
    resources = _resources(evaluation)
    latencies = evaluation.latencies_ms
    return {
        "status": evaluation.status.status.value,
        "timestamp": as_utc_iso(evaluation.now),
        "active_scraper_count": len(rows),
        "total_matches_scraping": len({each.match_id for each in evaluation.scrapers}),
        "scrapers": rows,
        "resources": resources,
        "errors": {
            "last_minute": evaluation.errors.last_minute,
            "last_hour": evaluation.errors.last_hour,
            "circuit_breakers": [breaker.as_document() for breaker in evaluation.breakers],
        },
        "performance": {
            "average_latency_ms": round(fmean(latencies)) if latencies else 0,
            "p95_latency_ms": round(percentile(latencies, 0.95)),
            "updates_per_minute": evaluation.updates_per_minute,
        },
        "reason": "; ".join(evaluation.status.reasons),
        "uptime_seconds": round(evaluation.uptime_seconds, 1),
        "total_memory_mb": resources["total_memory_mb"],
        "per_match_status": [_match_status(row) for row in rows],
        "queue": {
            "depth": evaluation.queue.waiting,
            "oldest_age_seconds": round(evaluation.queue.oldest_age_seconds, 1),
        },
    }


def _match_status(row: dict[str, Any]) -> dict[str, Any]:
    """The figures of FR-012, under the names that it asks for."""
    return {
        "match_id": row["match_id"],
        "url": row["url"],
        "last_update_iso8601": row["last_update"],
        "error_count": row["error_count"],
        "memory_mb": row["memory_mb"],
    }


def _scraper(watched: WatchedScraper, evaluation: Evaluation) -> dict[str, Any]:
    shares = evaluation.resource_shares
    document = watched.scraper.as_document(
        evaluation.now,
        match_id=watched.key,
        url=watched.url,
        memory_mb=shares.memory_bytes(watched.scraper) / MEGABYTE,
        cpu=shares.cpu_percent(watched.scraper),
    )
    return {**document, "health_status": health_of(watched, evaluation.now).value}


def _resources(evaluation: Evaluation) -> dict[str, float]:
    """Peak: the largest memory that any worker now alive, browser included, has ever used."""
    workers, scrapers = evaluation.workers, evaluation.scrapers
    total = sum(worker.memory_bytes for worker in workers) / MEGABYTE
    peak = max((worker.peak_memory_bytes for worker in workers), default=0) / MEGABYTE
    return {
        "total_memory_mb": round(total, 1),
        "average_memory_mb": round(total / len(scrapers), 1) if scrapers else 0.0,
        "peak_memory_mb": round(peak, 1),
        "total_cpu_percent": round(sum(worker.cpu_percent for worker in workers), 1),
    }


def _document_without_database(now: datetime, error: str) -> dict[str, Any]:
    """Returns the same shape from the last evaluation, with ages as of now and the time of its figures."""
    reason = f"the database is away ({error})"
    last = _last.get()
    if last is not None:
        reason += f"; the other figures are those of {last.now:%H:%M:%S} UTC"
    evaluation = (last or Evaluation.empty(now)).as_of(now)
    return {**_document(evaluation), "status": SystemStatus.DOWN.value, "reason": reason}
