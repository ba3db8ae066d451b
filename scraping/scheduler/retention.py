"""Tables that grow are pruned, a little at a time, so that nobody waits for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet

from scraping.models import ScrapeError, Scraper, ScrapeTask, Snapshot, TaskState, Worker

BATCH = 2000
KEEP_TASKS: dict[TaskState, timedelta] = {
    TaskState.SUCCESS: timedelta(hours=1),
    TaskState.SKIPPED: timedelta(days=7),
    TaskState.CANCELLED: timedelta(days=7),
    TaskState.FAILED: timedelta(days=30),
    TaskState.DEAD: timedelta(days=30),
}
KEEP_ERRORS = timedelta(days=30)
KEEP_SNAPSHOTS = timedelta(days=1)  # at the demo's pace a day is some 400 MB
KEEP_SCRAPERS = timedelta(days=7)
KEEP_WORKERS = timedelta(days=1)


def prune(now: datetime) -> int:
    deleted = sum(
        _delete(ScrapeTask.objects.filter(state=state, finished_at__lt=now - keep))
        for state, keep in KEEP_TASKS.items()
    )
    deleted += _delete(ScrapeError.objects.filter(timestamp__lt=now - KEEP_ERRORS))
    old = Snapshot.objects.filter(created_at__lt=now - KEEP_SNAPSHOTS)
    deleted += _delete(old.exclude(sequence=F("match__sequence")))  # the newest one is what the match is served from
    deleted += _delete(Scraper.objects.filter(stopped_at__lt=now - KEEP_SCRAPERS))
    return deleted + _delete(Worker.objects.filter(heartbeat_at__lt=now - KEEP_WORKERS))


def _delete(rows: QuerySet[Any]) -> int:
    ids = list(rows.values_list("pk", flat=True)[:BATCH])
    return rows.model.objects.filter(pk__in=ids).delete()[0] if ids else 0
