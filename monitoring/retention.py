"""Retention of monitoring's own tables."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from monitoring.health.log import KEPT_DAYS, THINNING
from monitoring.models import Alert, AlertMessage, AuditEntry, GradeChange, HealthLog
from scraping.models import HealthStatus
from victoryline.lib.retention import Rule, aged
from victoryline.lib.retention import prune as apply_rules


def rules() -> tuple[Rule, ...]:
    return (
        THINNING,
        # By all statuses, so that the index on status and time is used.
        aged("health-log", HealthLog, "timestamp", where=Q(health_status__in=HealthStatus.values), days=KEPT_DAYS),
        aged("grade-changes", GradeChange, "at", days=90),
        aged("audit", AuditEntry, "timestamp", days=365),
        aged("alert-messages", AlertMessage, "created_at", days=30),
        aged("alerts", Alert, "closed_at", "{} after they closed", days=90),
    )


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)
