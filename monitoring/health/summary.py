"""The JSON of GET /status: the health summary of the specification, and what the status page needs.

Open to everybody, so it holds nothing that helps an attacker: no addresses, process ids, names of people or hosts.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import Count, Min, Q

from monitoring.alerts import causes
from monitoring.board import card, matches_on_the_board
from monitoring.health.grading import Freshness, current_standing
from monitoring.models import Alert, AuditEntry
from monitoring.queries import MEGABYTE, last_success_at, live_ages, percentile, updates_last_minute, workers_at_work
from scraping.models import Match, MatchRef, Priority, ScrapeTask, Source, TaskState
from victoryline.lib import pg_wait, presence
from victoryline.lib.times import as_utc_iso

FAILURE_WINDOW = timedelta(minutes=10)
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
    if presence.database.is_away():
        return _without_database(now, presence.database.reason())
    try:
        with pg_wait.within(presence.READ_SECONDS):
            return _summary(now)
    except Error as error:
        presence.database.report(error)
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
        **_failures(now),
        "updates_per_minute": updates_last_minute(now),
        "paused_matches": _paused(),
        "last_success_at": as_utc_iso(succeeded_at) if succeeded_at else None,
        "workers": _workers(now),
        "sources": _sources(),
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
    open_tasks = ScrapeTask.objects.filter(state__in=(TaskState.PENDING, TaskState.EXECUTING))
    is_waiting = Q(state=TaskState.PENDING)
    counted = open_tasks.aggregate(
        active=Count("pk", filter=Q(state=TaskState.EXECUTING)),
        oldest=Min("run_at", filter=is_waiting & Q(run_at__lte=now)),
        **{priority.label.lower(): Count("pk", filter=is_waiting & Q(priority=priority)) for priority in Priority},
    )
    oldest = counted["oldest"]
    return {
        "queue_depth": {priority.label.lower(): counted[priority.label.lower()] for priority in Priority},
        "oldest_queued_seconds": round((now - oldest).total_seconds(), 1) if oldest else 0.0,
        "active_tasks": counted["active"],
    }


def _failures(now: datetime) -> dict[str, Any]:
    """Tasks that ended in the last ten minutes: how many of them in failure."""
    ended = ScrapeTask.objects.filter(
        state__in=(TaskState.SUCCESS, TaskState.FAILED, TaskState.DEAD), finished_at__gt=now - FAILURE_WINDOW
    )
    counted = ended.aggregate(total=Count("pk"), failed=Count("pk", filter=~Q(state=TaskState.SUCCESS)))
    return {"failure_ratio": round(counted["failed"] / counted["total"], 4) if counted["total"] else 0.0}


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
        }
        for number, worker in enumerate(workers_at_work(now), start=1)
    ]


def _sources() -> list[dict[str, Any]]:
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
        }
        for source in Source.objects.defer("metadata")
    ]


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
