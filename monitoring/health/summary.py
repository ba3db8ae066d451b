"""The JSON of GET /status: the health summary of the specification, and what the status page needs.

Open to everybody, so it holds nothing that helps an attacker: no addresses, process ids, names of people or hosts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import Count

from monitoring.alerts import causes
from monitoring.board import card, matches_on_the_board
from monitoring.health.grading import Freshness, current_standing
from monitoring.models import Alert, AuditEntry
from monitoring.queries import (
    MEGABYTE,
    failure_ratio,
    last_success_at,
    live_ages,
    live_counts,
    percentile,
    queue,
    updates_last_minute,
    workers_at_work,
)
from monitoring.slo import ledger
from monitoring.source_figures import SourceFigures, source_figures
from scraping.models import Match, MatchRef, Source
from victoryline.lib import availability, pg_wait
from victoryline.lib.times import as_utc_iso

AUDIT_ENTRIES = 10
MOST_ALERTS = 20
MOST_PAUSED = 100
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


_last_board: list[Match] = []


def status_summary(now: datetime) -> dict[str, Any]:
    """Never raises and never waits long for a database that is away."""
    if availability.database.is_away():
        return _without_database(now, availability.database.reason())
    try:
        with pg_wait.within(availability.READ_SECONDS):
            return _summary(now)
    except Error as error:
        availability.database.report(error)
        return _without_database(now, type(error).__name__)


def _without_database(now: datetime, error: str) -> dict[str, Any]:
    """The matches as they were last seen, with ages as of now."""
    return {
        "grade": "FAILING",
        "reason": f"the database is away ({error})",
        "generated_at": as_utc_iso(now),
        "matches": [card(match, now) for match in list(_last_board)],
        "alerts": [],
    }


def _summary(now: datetime) -> dict[str, Any]:
    standing = current_standing(now)
    succeeded_at = last_success_at()
    return {
        "grade": standing.grade.value,
        "reason": standing.reason,
        "generated_at": as_utc_iso(now),
        "freshness": _freshness(now),
        **_queue(now),
        "failure_ratio": round(failure_ratio(now), 4),
        "updates_per_minute": updates_last_minute(now),
        "paused_matches": _paused(),
        "silence": _silence(),
        "services": _services(),
        "objectives": {window: measured.as_document() for window, measured in ledger.windows(now).items()},
        "last_success_at": as_utc_iso(succeeded_at) if succeeded_at else None,
        "workers": _workers(now),
        "sources": _sources(now),
        "alerts": _alerts(),
        "audit_entries": _audit(),
        "config": {name: getattr(settings.CONFIG, name) for name in SHOWN_CONFIG},
        "matches": _matches(now),
    }


def _matches(now: datetime) -> list[dict[str, Any]]:
    rows = matches_on_the_board()
    _last_board[:] = rows
    return [card(match, now) for match in rows]


def _freshness(now: datetime) -> dict[str, Any]:
    ages = live_ages(now)
    fresh = Freshness.of(ages)
    return {
        "median": round(fresh.median, 1),
        "p50": round(fresh.median, 1),
        "p95": round(fresh.p95, 1),
        "p99": round(percentile(ages, 0.99), 1),
        "max": round(fresh.max, 1),
        "count": fresh.count,
    }


def _queue(now: datetime) -> dict[str, Any]:
    found = queue(now)
    return {
        "queue_depth": found.depth,
        "oldest_queued_seconds": round(found.oldest_age_seconds, 1),
        "active_tasks": found.executing,
    }


def _silence() -> dict[str, Any]:
    """Live matches that nothing is heard of: what was done about them last."""
    counted = live_counts()
    return {"frozen": counted.frozen, "by_rung": counted.silent}


def _services() -> dict[str, bool]:
    """Those that we lean on, and whether they answer. The database does, or this would not be said."""
    url = settings.CONFIG.redis_url
    return {"database": True, **({"redis": not availability.redis(url).is_away()} if url else {})}


def _paused() -> list[dict[str, Any]]:
    rows = Match.objects.paused().order_by("pause_until").values_list("pk", "title", "pause_until")[:MOST_PAUSED]
    return [{"id": pk, "title": title, "until": as_utc_iso(until) if until else None} for pk, title, until in rows]


def _workers(now: datetime) -> list[dict[str, Any]]:
    return [
        {
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
        for number, worker in enumerate(workers_at_work(now), start=1)
    ]


def _sources(now: datetime) -> list[dict[str, Any]]:
    watched = dict(
        MatchRef.objects.filter(is_watched=True).values_list("source").annotate(number=Count("pk")).order_by()
    )
    figures = source_figures(now)
    return [
        {
            "key": source.key,
            "name": source.name,
            "sport": source.sport,
            "is_enabled": source.is_enabled,
            "matches_watched": watched.get(source.pk, 0),
            "last_discovery_at": as_utc_iso(source.last_discovery_at) if source.last_discovery_at else None,
            **_in_figures(figures.get(source.key, SourceFigures())),
        }
        for source in Source.objects.defer("metadata")
    ]


def _in_figures(source: SourceFigures) -> dict[str, Any]:
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
    standing = Alert.objects.filter(closed_at__isnull=True).order_by("severity", "-opened_at")
    return [
        {
            "severity": alert.severity,
            "summary": causes.public_text(alert.key, alert.summary),
            "opened_at": as_utc_iso(alert.opened_at),
        }
        for alert in standing[:MOST_ALERTS]
    ]


def _audit() -> list[dict[str, Any]]:
    return [
        {
            "timestamp": as_utc_iso(entry.timestamp),
            "action_type": entry.action_type,
            "outcome": entry.outcome,
            "duration_seconds": entry.duration_seconds,
        }
        for entry in AuditEntry.objects.order_by("-timestamp")[:AUDIT_ENTRIES]
    ]
