"""Retention of everything outside scraping: health, alerts, audit, API access, sessions, logins, rotated logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from axes.models import AccessAttempt, AccessFailureLog
from axes.models import AccessLog as LoginLog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q

from apiauth.models import AccessLog, UsageHour
from monitoring.health.log import KEPT_DAYS, THINNING
from monitoring.models import Alert, AuditEntry, GradeChange, HealthLog, LogEntry
from scraping.models import HealthStatus
from scraping.scheduler import retention as scraping_retention
from victoryline.lib.retention import Rule, aged, files, rows
from victoryline.lib.retention import prune as apply_rules

# The log may grow by a thousand rows a second, so as many must be deletable. No row refers to these: one statement.
ACCESS_LOG_BATCH = 5_000
USAGE_DAYS = 400  # hourly sums: a year and a month to compare with
LOGINS_DAYS = 30
LOG_FILES_DAYS = 30


def rules() -> tuple[Rule, ...]:
    days = settings.CONFIG.keep_access_log_days
    return (
        aged("access-log", AccessLog, "timestamp", days=days, batch=ACCESS_LOG_BATCH, is_bare=True),
        aged("usage", UsageHour, "hour", days=USAGE_DAYS),
        THINNING,
        # By all statuses, so that the index on status and time is used.
        aged("health-log", HealthLog, "timestamp", where=Q(health_status__in=HealthStatus.values), days=KEPT_DAYS),
        aged("grade-changes", GradeChange, "at", days=90),
        aged("log-entries", LogEntry, "timestamp", days=settings.CONFIG.keep_errors_days, is_bare=True),
        aged("audit", AuditEntry, "timestamp", days=365),
        aged("alerts", Alert, "closed_at", "{} after they closed", days=90),
        rows("sessions", "until they expire", lambda now: Session.objects.filter(expire_date__lt=now)),
        aged("login-attempts", AccessAttempt, "attempt_time", days=LOGINS_DAYS),
        aged("login-failures", AccessFailureLog, "attempt_time", days=LOGINS_DAYS),
        aged("logins", LoginLog, "attempt_time", days=LOGINS_DAYS),
        files("log-files", f"{LOG_FILES_DAYS} days after they were rotated", _rotated_logs),
    )


def all_rules() -> list[Rule]:
    return [*scraping_retention.rules(), *rules()]


def prune(now: datetime) -> int:
    """Scheduler step: returns how many rows and files were deleted."""
    return apply_rules(rules(), now)


def _rotated_logs(now: datetime) -> Iterator[Path]:
    """Yields old rotated logs. Current logs are bounded by size; files of a renamed child are no longer rotated."""
    limit = now - timedelta(days=LOG_FILES_DAYS)
    for file in sorted((Path(settings.VAR_DIR) / "log").glob("*.log.*")):
        if datetime.fromtimestamp(file.stat().st_mtime, UTC) < limit:
            yield file
