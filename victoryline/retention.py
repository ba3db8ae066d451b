"""Retention of sessions, logins and rotated logs, which belong to no app; and the list of all rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from axes.models import AccessAttempt, AccessFailureLog
from axes.models import AccessLog as LoginLog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils.module_loading import import_string

from victoryline.lib.retention import Rule, aged, files, rows
from victoryline.lib.retention import prune as apply_rules

LOGINS_DAYS = 30
LOG_FILES_DAYS = 30


def rules() -> tuple[Rule, ...]:
    return (
        rows("sessions", "until they expire", lambda now: Session.objects.filter(expire_date__lt=now)),
        aged("login-attempts", AccessAttempt, "attempt_time", days=LOGINS_DAYS),
        aged("login-failures", AccessFailureLog, "attempt_time", days=LOGINS_DAYS),
        aged("logins", LoginLog, "attempt_time", days=LOGINS_DAYS),
        files("log-files", f"{LOG_FILES_DAYS} days after they were rotated", _rotated_logs),
    )


def all_rules() -> list[Rule]:
    """Returns the rules of every app, in the order of the settings."""
    return [rule for path in settings.RETENTION_TABLES for rule in import_string(path)()]


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)


def _rotated_logs(now: datetime) -> Iterator[Path]:
    """Yields old rotated logs. Current logs are bounded by size; files of a renamed child are no longer rotated."""
    limit = now - timedelta(days=LOG_FILES_DAYS)
    for file in sorted((Path(settings.VAR_DIR) / "log").glob("*.log.*")):
        if datetime.fromtimestamp(file.stat().st_mtime, UTC) < limit:
            yield file
