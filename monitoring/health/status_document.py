"""The JSON of GET /status: the health summary of the specification, and the data of the status page.

Public, so it holds nothing that helps an attacker: no addresses, process ids, names of people or hosts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Count

from monitoring.alerts import alert_keys
from monitoring.health.evaluation import Evaluation, LastEvaluation
from monitoring.health.match_cards import card
from monitoring.models import Alert, AuditEntry
from monitoring.objectives import hourly_totals
from monitoring.queries import MEGABYTE, DatabaseAway, database_read, percentile
from monitoring.source_stats import SourceStats
from scraping.models import Match, MatchRef, Source, Worker
from victoryline.lib import availability
from victoryline.lib.times import as_utc_iso

AUDIT_ENTRIES = 10
MAX_ALERTS = 20
MAX_PAUSED = 100
SHOWN_CONFIG = (
    "polling_interval_seconds",
    "staleness_threshold_seconds",
    "scraper_max_lifetime_hours",
    "memory_soft_limit_mb",
    "memory_hard_limit_mb",
    "circuit_breaker_threshold",
    "circuit_breaker_timeout_seconds",
    "circuit_breaker_success_threshold",
    "retry_max_attempts",
    "retry_base_delay_seconds",
    "retry_max_delay_seconds",
    "pause_after_failures",
    "pause_seconds",
    "worker_threads",
    "task_lease_seconds",
)


_last = LastEvaluation()


def status_document(evaluation: Evaluation) -> dict[str, Any]:
    """Returns the document; never raises and never waits long for a database that is away."""
    try:
        with database_read():
            document = _document(evaluation)
    except DatabaseAway as error:
        return _document_without_database(evaluation.now, str(error))
    _last.put(evaluation)
    return document


def _document_without_database(now: datetime, error: str) -> dict[str, Any]:
    """Returns the matches of the last evaluation, with ages as of now."""
    last = _last.get()
    return {
        "grade": "FAILING",
        "reason": f"the database is away ({error})",
        "generated_at": as_utc_iso(now),
        "matches": [card(match, now) for match in last.matches] if last else [],
        "alerts": [],
    }


def _document(evaluation: Evaluation) -> dict[str, Any]:
    now, live, succeeded_at = evaluation.now, evaluation.live, evaluation.last_success_at
    return {
        "grade": evaluation.grade.grade.value,
        "reason": evaluation.grade.reason,
        "generated_at": as_utc_iso(now),
        "freshness": _freshness(evaluation),
        "queue_depth": evaluation.queue.depth,
        "oldest_queued_seconds": round(evaluation.queue.oldest_age_seconds, 1),
        "active_tasks": evaluation.queue.executing,
        "failure_ratio": round(evaluation.failure_ratio, 4),
        "updates_per_minute": evaluation.updates_per_minute,
        "paused_matches": _paused(),
        "silence": {"frozen": live.frozen, "by_rung": live.silent},
        "services": _services(),
        "objectives": {window: totals.as_document() for window, totals in hourly_totals.windows(now).items()},
        "last_success_at": as_utc_iso(succeeded_at) if succeeded_at else None,
        "workers": [_worker(number, worker, now) for number, worker in enumerate(evaluation.workers, start=1)],
        "sources": _sources(evaluation.sources),
        "alerts": _alerts(),
        "audit_entries": _audit_entries(),
        "config": {name: getattr(settings.CONFIG, name) for name in SHOWN_CONFIG},
        "matches": [card(match, now) for match in evaluation.matches],
    }


def _freshness(evaluation: Evaluation) -> dict[str, Any]:
    fresh = evaluation.freshness
    return {
        "median": round(fresh.median, 1),
        "p50": round(fresh.median, 1),
        "p95": round(fresh.p95, 1),
        "p99": round(percentile(evaluation.live_ages, 0.99), 1),
        "max": round(fresh.max, 1),
        "count": fresh.count,
    }


def _services() -> dict[str, bool]:
    """Returns whether each service answers; the database does, or this document would not be built."""
    url = settings.CONFIG.redis_url
    return {"database": True, **({"redis": not availability.redis(url).is_away()} if url else {})}


def _paused() -> list[dict[str, Any]]:
    rows = Match.objects.paused().order_by("pause_until").values_list("pk", "title", "pause_until")[:MAX_PAUSED]
    return [{"id": pk, "title": title, "until": as_utc_iso(until) if until else None} for pk, title, until in rows]


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
    watched = dict(
        MatchRef.objects.filter(is_watched=True).values_list("source").annotate(number=Count("pk")).order_by()
    )
    return [
        {
            "key": source.key,
            "name": source.name,
            "sport": source.sport,
            "is_enabled": source.is_enabled,
            "matches_watched": watched.get(source.pk, 0),
            "last_discovery_at": as_utc_iso(source.last_discovery_at) if source.last_discovery_at else None,
            **_source_stats(stats.get(source.key, SourceStats())),
        }
        for source in Source.objects.defer("metadata")
    ]


def _source_stats(source: SourceStats) -> dict[str, Any]:
    return {
        "attempts": source.attempts,
        "successes": source.successes,
        "failures": [
            {"type": kind, "reason": reason, "count": number} for (kind, reason), number in source.failures.items()
        ],
        "bytes_in": source.cost.bytes_in,
        "requests": source.cost.requests,
        "requests_blocked": source.cost.requests_blocked,
        "reads": source.reads,
        "matches_by_read_mode": source.matches_by_read_mode,
        "budget_used_ratio": source.budget_used_ratio,
        "integrity_score": source.integrity_score,
    }


def _alerts() -> list[dict[str, Any]]:
    open_alerts = Alert.objects.filter(closed_at__isnull=True).order_by("severity", "-opened_at")
    return [
        {
            "severity": alert.severity,
            "summary": alert_keys.public_text(alert.key, alert.summary),
            "opened_at": as_utc_iso(alert.opened_at),
        }
        for alert in open_alerts[:MAX_ALERTS]
    ]


def _audit_entries() -> list[dict[str, Any]]:
    return [
        {
            "timestamp": as_utc_iso(entry.timestamp),
            "action_type": entry.action_type,
            "outcome": entry.outcome,
            "duration_seconds": entry.duration_seconds,
        }
        for entry in AuditEntry.objects.order_by("-timestamp")[:AUDIT_ENTRIES]
    ]
