"""Lets old access-log rows go, a few at a time, so that no lock is held for long."""

from __future__ import annotations

from datetime import datetime, timedelta

from apiauth.models import AccessLog

KEEP = timedelta(days=30)
BATCH = 1_000
BATCHES_PER_RUN = 20


def prune(now: datetime) -> int:
    """Removes rows past KEEP, up to BATCHES_PER_RUN batches; returns how many went."""
    removed = 0
    for _ in range(BATCHES_PER_RUN):
        old = (
            AccessLog.objects.filter(timestamp__lt=now - KEEP)
            .order_by("timestamp")
            .values_list("pk", flat=True)[:BATCH]
        )
        count, _ = AccessLog.objects.filter(pk__in=list(old)).delete()
        removed += count
        if count < BATCH:
            break
    return removed
