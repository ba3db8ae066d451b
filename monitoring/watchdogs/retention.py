"""How long our own history is kept. Deletes in slices, so that no write waits long for it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Model

from monitoring.models import Alert, AuditEntry, GradeChange, HealthLog

SLICE = 2000
MOST_SLICES = 10
ALERTS_KEPT = timedelta(days=90)
KEPT: tuple[tuple[type[Model], str, timedelta], ...] = (
    (HealthLog, "timestamp", timedelta(days=2)),
    (GradeChange, "at", timedelta(days=90)),
    (AuditEntry, "timestamp", timedelta(days=365)),
)


def prune(now: datetime) -> int:
    removed = sum(_prune(model, column, now - kept) for model, column, kept in KEPT)
    return removed + Alert.objects.filter(closed_at__lt=now - ALERTS_KEPT).delete()[0]


def _prune(model: type[Model], column: str, before: datetime) -> int:
    """Rows are written in the order of time, so the oldest are the first by key: no scan, no index of their own."""
    removed = 0
    for _ in range(MOST_SLICES):
        oldest = model._default_manager.order_by("pk").values_list("pk", column)[:SLICE]
        outdated = [pk for pk, at in oldest if at < before]
        if outdated:
            removed += model._default_manager.filter(pk__in=outdated).delete()[0]
        if len(outdated) < SLICE:
            break
    return removed
