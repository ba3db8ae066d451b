"""The sole writer of audit entries: who did what to the system, why, and how it came out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from monitoring.models import AuditEntry, AuditOutcome, Grade

# SO-6: a recovery is judged by the grade that the system has reached within this time.
JUDGED_AFTER = timedelta(seconds=120)
BROWSER_RECYCLE = "browser_recycle"
SOFT_RESTART = "soft_restart"
RECOVERIES = (BROWSER_RECYCLE, SOFT_RESTART)

_VERDICTS = {
    Grade.HEALTHY: AuditOutcome.SUCCESS,
    Grade.DEGRADED: AuditOutcome.PARTIAL,
    Grade.RECOVERING: AuditOutcome.PARTIAL,
    Grade.FAILING: AuditOutcome.FAILED,
}


def record(
    *,
    actor: str,
    action_type: str,
    trigger_condition: str,
    target: str = "",
    outcome: AuditOutcome = AuditOutcome.SUCCESS,
    metadata: Mapping[str, Any] | None = None,
    duration_seconds: float = 0.0,
    now: datetime,
) -> AuditEntry:
    return AuditEntry.objects.create(
        timestamp=now,
        actor=actor[:150],
        action_type=action_type[:40],
        trigger_condition=trigger_condition[:500],
        target=target[:200],
        outcome=outcome,
        metadata=dict(metadata or {}),
        duration_seconds=duration_seconds,
    )


def judge_recoveries(grade: Grade, now: datetime) -> int:
    """Write the outcome of recoveries that were still open: at once when all is well, else when their time is over."""
    pending = AuditEntry.objects.filter(outcome=AuditOutcome.PENDING)
    if grade != Grade.HEALTHY:
        pending = pending.filter(timestamp__lte=now - JUDGED_AFTER)
    return pending.update(outcome=_VERDICTS[grade])


def last_recovery_at(since: datetime) -> datetime | None:
    entry = AuditEntry.objects.filter(action_type__in=RECOVERIES, timestamp__gte=since).order_by("-timestamp").first()
    return entry.timestamp if entry else None
