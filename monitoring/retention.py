"""Retention of monitoring's own tables."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db.models import Model, QuerySet

from monitoring.health.log import KEPT_DAYS, thinning
from monitoring.models import Alert, AlertMessage, AuditEntry, GradeChange, HealthLog
from victoryline.lib.retention import OldestFirst, Rows, Rule
from victoryline.lib.retention import prune as apply_rules

ALERTS_DAYS = 90
LOGS: tuple[tuple[str, type[Model], str, int], ...] = (
    ("health-log", HealthLog, "timestamp", KEPT_DAYS),
    ("grade-changes", GradeChange, "at", 90),
    ("audit", AuditEntry, "timestamp", 365),
    ("alert-messages", AlertMessage, "created_at", 30),
)


def rules() -> tuple[Rule, ...]:
    logs = (
        OldestFirst(table, f"{days} days", model, column, partial(_before, days)) for table, model, column, days in LOGS
    )
    return (thinning, *logs, Rows("alerts", f"{ALERTS_DAYS} days after they closed", _closed_alerts))


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)


def _before(days: int, now: datetime) -> datetime:
    return now - timedelta(days=days)


def _closed_alerts(now: datetime) -> QuerySet[Alert]:
    return Alert.objects.filter(closed_at__lt=_before(ALERTS_DAYS, now))
