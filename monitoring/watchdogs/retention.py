"""How long our own history is kept. Deletes in slices, so that no write waits long for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Manager

from monitoring.models import Alert, AuditEntry, GradeChange, HealthLog

SLICE = 2000
MOST_SLICES = 10
ALERTS_KEPT = timedelta(days=90)
KEPT: tuple[tuple[Manager[Any], str, timedelta], ...] = (
    (HealthLog.objects, "timestamp", timedelta(days=2)),
    (GradeChange.objects, "at", timedelta(days=90)),
    (AuditEntry.objects, "timestamp", timedelta(days=365)),
)


def prune(now: datetime) -> int:
    removed = sum(_prune(rows, column, now - kept) for rows, column, kept in KEPT)
    return removed + Alert.objects.filter(closed_at__lt=now - ALERTS_KEPT).delete()[0]


def _prune(rows: Manager[Any], column: str, before: datetime) -> int:
    """Rows are written in the order of time, so the oldest are the first by key: no scan, no index of their own."""
    removed = 0
    for _ in range(MOST_SLICES):
        oldest = rows.order_by("pk").values_list("pk", column)[:SLICE]
        outdated = [pk for pk, at in oldest if at < before]
        if outdated:
            removed += rows.filter(pk__in=outdated).delete()[0]
        if len(outdated) < SLICE:
            break
    return removed
