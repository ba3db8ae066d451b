"""The JSON of GET /health, key by key as specified (DM-3, FR-012), and of GET /status, with the status page's data.

/status is public, so it holds nothing that helps an attacker: no addresses, process ids, names of people or hosts.
While the database is away, each document is built from the last evaluation that was read completely.
"""

from datetime import datetime
from statistics import fmean
from typing import Any

from django.conf import settings
from django.db.models import Count

from monitoring import audit, objectives
from monitoring.health.evaluation import Evaluation
from monitoring.health.match_cards import card
from monitoring.health.scrapers import WatchedScraper, health_of
from monitoring.health.status_rules import StatusResult, SystemStatus
from monitoring.models import AuditEntry
from monitoring.queries import DatabaseReadError, SourceStats, database_read, percentile
from scraping.configuration import policies
from scraping.models import Match, MatchRef, Source, Worker
from victoryline.lib import availability
from victoryline.lib.redaction import clean
from victoryline.lib.times import as_utc_iso
from victoryline.lib.units import MEGABYTE

AUDIT_ENTRIES = 10
MAX_ALERTS = 20
MAX_PAUSED = 100
last_evaluations: dict[str, Evaluation] = {}  # from which a document was built completely, by its name


def health_document(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the document; never raises and never waits long for a database that is away."""
    now = evaluation.now
    try:
        with database_read():
            document = _health(evaluation, evaluation.status)
    except DatabaseReadError as error:
        last = last_evaluations.get("health")
        reason = f"the database is away ({error})"
        if last is not None:
            reason += f"; the other figures are those of {last.now:%H:%M:%S} UTC"
        return _health((last or Evaluation.empty(now)).as_of(now), StatusResult(SystemStatus.DOWN, (reason,)))
    last_evaluations["health"] = evaluation
    return document


def _health(evaluation: Evaluation, status: StatusResult) -> dict[str, Any]:
    workers, latencies = evaluation.workers, evaluation.latencies_ms
    rows = [_scraper(each, evaluation.now) for each in evaluation.scrapers]
    memory = sum(worker.memory_bytes for worker in workers) / MEGABYTE
    peak = max((worker.peak_memory_bytes for worker in workers), default=0) / MEGABYTE  # of any worker now alive
    return {
        "status": status.status.value,
        "timestamp": as_utc_iso(evaluation.now),
        "active_scraper_count": len(rows),
        "total_matches_scraping": len({each.match_id for each in evaluation.scrapers}),
        "scrapers": rows,
        "resources": {
            "total_memory_mb": round(memory, 1),
            "average_memory_mb": round(memory / len(rows), 1) if rows else 0.0,
            "peak_memory_mb": round(peak, 1),
            "total_cpu_percent": round(sum(worker.cpu_percent for worker in workers), 1),
        },
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
        "reason": "; ".join(status.reasons),
        "uptime_seconds": round(evaluation.uptime_seconds, 1),
        "total_memory_mb": round(memory, 1),
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
        "queue": {
            "depth": evaluation.queue.waiting,
            "oldest_age_seconds": round(evaluation.queue.oldest_age_seconds, 1),
        },
    }


def _scraper(watched: WatchedScraper, now: datetime) -> dict[str, Any]:
    document = watched.scraper.as_document(
        now,
        match_id=watched.key,
        url=watched.url,
        memory_mb=watched.memory_bytes / MEGABYTE,
        cpu=watched.cpu_percent,
    )
    return {**document, "health_status": health_of(watched, now).value}


def status_document(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the document; never raises and never waits long for a database that is away."""
    now = evaluation.now
    try:
        with database_read():
            document = _status(evaluation)
    except DatabaseReadError as error:
        last = last_evaluations.get("status")
        return {
            "grade": "FAILING",
            "reason": f"the database is away ({error})",
            "generated_at": _unix(now),
            "matches": [card(match, now) for match in last.matches] if last else [],
            "alerts": [],
        }
    last_evaluations["status"] = evaluation
    return document


def _status(evaluation: Evaluation) -> dict[str, Any]:
    now, live, fresh = evaluation.now, evaluation.live, evaluation.freshness
    redis_url = settings.CONFIG.redis_url
    return {
        "grade": evaluation.grade.grade.value,
        "reason": evaluation.grade.reason,
        "generated_at": _unix(now),
        "freshness_stats": {
            "median": round(fresh.median, 1),
            "p50": round(fresh.median, 1),
            "p95": round(fresh.p95, 1),
            "p99": round(percentile(evaluation.live_ages, 0.99), 1),
            "max": round(fresh.max, 1),
            "count": fresh.count,
            "samples": sorted(round(age, 1) for age in evaluation.live_ages),
        },
        "queue_depth": evaluation.queue.depth,
        "oldest_queued_seconds": round(evaluation.queue.oldest_age_seconds, 1),
        "active_tasks": evaluation.queue.executing,
        "failure_ratio": round(evaluation.failure_ratio, 4),
        "updates_per_minute": evaluation.updates_per_minute,
        "paused_matches": [
            {"id": pk, "title": title, "until": _iso(until)}
            for pk, title, until in Match.objects.paused()
            .order_by("pause_until")
            .values_list("pk", "title", "pause_until")[:MAX_PAUSED]
        ],
        "silence": {"frozen": live.frozen, "by_rung": live.silent},
        # The database answers, or this document would not be built.
        "services": {
            "database": True,
            **({"redis": not availability.redis(redis_url).is_away()} if redis_url else {}),
        },
        "objectives": {objectives.WINDOW_NAME: objectives.as_document(objectives.last_hour(now))},
        "last_success_time": _unix(evaluation.last_success_at),
        "workers": [_worker(number, worker, now) for number, worker in enumerate(evaluation.workers, start=1)],
        "sources": _sources(evaluation.sources),
        "alerts": [
            {"severity": alert.severity, "summary": text, "opened_at": as_utc_iso(alert.opened_at)}
            for alert, text in zip(evaluation.alerts[:MAX_ALERTS], evaluation.alert_texts, strict=False)
        ],
        "audit_entries": [_action(entry) for entry in AuditEntry.objects.order_by("-timestamp")[:AUDIT_ENTRIES]],
        "config_snapshot": _config_in_effect(),
        **_matches(evaluation),
    }


def _config_in_effect() -> dict[str, float]:
    """Returns settings by name, as the configuration file has them now; the last two change with a restart only."""
    policies.reload()
    now, config = policies.current(), settings.CONFIG
    return {
        "polling_interval_seconds": now.pace.baseline_seconds,
        "staleness_threshold_seconds": now.staleness_threshold_seconds,
        "scraper_max_lifetime_hours": now.max_lifetime_seconds / 3600,
        "memory_soft_limit_mb": now.memory_soft_limit_bytes / MEGABYTE,
        "circuit_breaker_threshold": now.breaker.failure_threshold,
        "circuit_breaker_timeout_seconds": now.breaker.timeout_seconds,
        "circuit_breaker_success_threshold": now.breaker.success_threshold,
        "retry_max_attempts": now.retry.max_attempts - 1,  # the setting counts retries
        "retry_base_delay_seconds": now.retry.base_delay_seconds,
        "retry_max_delay_seconds": now.retry.max_delay_seconds,
        "memory_hard_limit_mb": config.memory_hard_limit_mb,
        "worker_threads": config.worker_threads,
    }


def _matches(evaluation: Evaluation) -> dict[str, Any]:
    cards = [card(match, evaluation.now) for match in evaluation.matches]
    counts = {group: sum(one["group"] == group for one in cards) for group in ("live", "upcoming", "finished")}
    return {"match_counts": counts, "matches": cards}


def _iso(moment: datetime | None) -> str | None:
    return as_utc_iso(moment) if moment else None


def _unix(moment: datetime | None) -> float | None:
    return round(moment.timestamp(), 3) if moment else None


def _action(entry: AuditEntry) -> dict[str, Any]:
    """Returns an audit entry for the public (SO-5): without names, and without the words of an operator."""
    return {
        "entry_id": str(entry.entry_id),
        "timestamp": _unix(entry.timestamp),
        "action_type": entry.action_type,
        "trigger_condition": clean(entry.trigger_condition) if entry.actor in audit.COMPONENTS else "by an operator",
        "outcome": entry.outcome,
        "duration_seconds": entry.duration_seconds,
        "metadata": {name: entry.metadata[name] for name in audit.PUBLIC_METADATA if name in entry.metadata},
    }


def _worker(number: int, worker: Worker, now: datetime) -> dict[str, Any]:
    """Numbered instead of named: a worker's id contains its host and process."""
    return {
        "name": f"worker {number}",
        "uptime_seconds": round((now - worker.started_at).total_seconds()),
        "heartbeat_age_seconds": round((now - worker.heartbeat_at).total_seconds(), 1),
        "memory_mb": round(worker.memory_bytes / MEGABYTE, 1),
        "cpu_percent": round(worker.cpu_percent, 1),
        "active_tasks": worker.active_tasks,
        "browser_launches": worker.browser_launches,
        "browser_uptime_seconds": round((now - (worker.browser_started_at or now)).total_seconds()),
        "process_count": worker.process_count,
        "context_count": worker.context_count,
        "page_count": worker.page_count,
    }


def _sources(stats: dict[str, SourceStats]) -> list[dict[str, Any]]:
    refs = MatchRef.objects.filter(is_watched=True).values_list("source")
    watched = dict(refs.annotate(number=Count("pk")).order_by())
    found = []
    for source in Source.objects.defer("metadata"):
        own = stats.get(source.key, SourceStats())
        found.append(
            {
                "key": source.key,
                "name": source.name,
                "sport": source.sport,
                "is_enabled": source.is_enabled,
                "matches_watched": watched.get(source.pk, 0),
                "last_discovery_at": _iso(source.last_discovery_at),
                "attempts": own.attempts,
                "successes": own.successes,
                "failures": [
                    {"type": kind, "reason": reason, "count": number} for (kind, reason), number in own.failures.items()
                ],
                "bytes_in": own.cost.bytes_in,
                "requests": own.cost.requests,
                "requests_blocked": own.cost.requests_blocked,
                "reads": own.reads,
                "matches_by_read_mode": own.matches_by_read_mode,
                "request_mode": own.request_mode,
                "request_mode_reason": own.request_mode_reason,
                "budget_used_ratio": own.budget_used_ratio,
                "integrity_score": own.integrity_score,
            }
        )
    return found
