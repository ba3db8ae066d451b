"""Workers that are close to their memory limit, or gone altogether (FR-016)."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alert, close_alerts, open_keys, raise_alert
from monitoring.models import Severity
from monitoring.queries import MEGABYTE, matches_to_watch, workers_at_work
from scraping.models import Worker

MEMORY_ALERT_SHARE = 0.8


def watch_workers(now: datetime) -> int:
    """How many alerts about workers stand."""
    workers = workers_at_work(now)
    limit = settings.CONFIG.memory_soft_limit_mb * MEGABYTE * MEMORY_ALERT_SHARE
    heavy = [worker for worker in workers if worker.memory_bytes > limit]
    for worker in heavy:
        _report(worker, now)
    close_alerts(open_keys(causes.MEMORY) - {causes.memory(worker.worker_id) for worker in heavy}, now)
    if workers:
        close_alert(causes.NO_WORKER, now)
        return len(heavy)
    return _nobody_at_work(now)


def _report(worker: Worker, now: datetime) -> None:
    held = worker.memory_bytes // MEGABYTE
    limit = settings.CONFIG.memory_soft_limit_mb
    detail = {"worker_id": worker.worker_id, "memory_mb": held, "soft_limit_mb": limit}
    summary = f"Worker {worker.worker_id} holds {held} MB of the {limit} MB it may"
    raise_alert(causes.memory(worker.worker_id), Severity.WARNING, summary, detail, now)


def _nobody_at_work(now: datetime) -> int:
    matches = matches_to_watch().count()
    if not matches:
        return 0
    waiting = "1 live match waits" if matches == 1 else f"{matches} live matches wait"
    summary = f"No worker is alive and {waiting}"
    raise_alert(causes.NO_WORKER, Severity.CRITICAL, summary, {"matches": matches}, now)
    return 1
