"""Retention of sessions, logins and rotated logs, which belong to no app; and the list of all rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from axes.models import AccessAttempt, AccessFailureLog
from axes.models import AccessLog as LoginLog
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Model, QuerySet
from django.utils.module_loading import import_string

from victoryline.lib.retention import Files, OldestFirst, Rows, Rule
from victoryline.lib.retention import prune as apply_rules

LOGINS_DAYS = 30
LOG_FILES_DAYS = 30
LOGINS: tuple[tuple[str, type[Model]], ...] = (
    ("login-attempts", AccessAttempt),
    ("login-failures", AccessFailureLog),
    ("logins", LoginLog),
)


def rules() -> tuple[Rule, ...]:
    logins = (
        OldestFirst(table, f"{LOGINS_DAYS} days", model, "attempt_time", partial(_before, LOGINS_DAYS))
        for table, model in LOGINS
    )
    return (
        Rows("sessions", "until they expire", _expired_sessions),
        *logins,
        Files("log-files", f"{LOG_FILES_DAYS} days after they were rotated", _rotated_logs),
    )


def all_rules() -> list[Rule]:
    """Returns the rules of every app, in the order of the settings."""
    return [rule for path in settings.RETENTION_TABLES for rule in import_string(path)()]


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)


def _before(days: int, now: datetime) -> datetime:
    return now - timedelta(days=days)


def _expired_sessions(now: datetime) -> QuerySet[Session]:
    return Session.objects.filter(expire_date__lt=now)


def _rotated_logs(now: datetime) -> Iterator[Path]:
    """Yields old rotated logs. Current logs are bounded by size; files of a renamed child are no longer rotated."""
    limit = _before(LOG_FILES_DAYS, now)
    for file in sorted((Path(settings.VAR_DIR) / "log").glob("*.log.*")):
        if datetime.fromtimestamp(file.stat().st_mtime, UTC) < limit:
            yield file
