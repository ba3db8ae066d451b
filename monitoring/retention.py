"""Retention of monitoring's own tables."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from monitoring.health.log import KEPT_DAYS, Thinning
from monitoring.models import Alert, AlertMessage, AuditEntry, GradeChange, HealthLog
from victoryline.lib.retention import OldestFirst, Rows, Rule
from victoryline.lib.retention import prune as apply_rules

ALERTS_DAYS = 90


def rules() -> tuple[Rule, ...]:
    return (
        Thinning(),
        OldestFirst("health-log", HealthLog, "timestamp", KEPT_DAYS),
        OldestFirst("grade-changes", GradeChange, "at", 90),
        OldestFirst("audit", AuditEntry, "timestamp", 365),
        OldestFirst("alert-messages", AlertMessage, "created_at", 30),
        Rows("alerts", f"{ALERTS_DAYS} days after they closed", _closed_alerts),
    )


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)


def _closed_alerts(now: datetime) -> QuerySet[Alert]:
    return Alert.objects.filter(closed_at__lt=now - timedelta(days=ALERTS_DAYS))
