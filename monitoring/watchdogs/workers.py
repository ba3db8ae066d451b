"""Watchdogs over workers: memory, absence, a queue that is not worked off, readings spooled in an outage (FR-016)."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min

from monitoring.alerts import alert_keys
from monitoring.alerts.registry import Report, close_alert, raise_alert, set_alerts
from monitoring.models import AuditEntry, Severity
from monitoring.queries import matches_to_watch, workers_at_work
from scraping.models import ScrapeTask, TaskState
from victoryline.lib.availability import in_redis
from victoryline.lib.units import MEGABYTE

MEMORY_ALERT_SHARE = 0.8
MAX_QUEUE_WAIT = timedelta(seconds=60)
# The scheduler repeats the hint of a task that may run; a task without a recent hint waits for a reason.
HINTED_WITHIN = timedelta(seconds=60)
REPLAY_ALERT_DURATION = timedelta(minutes=15)


def watch_workers(now: datetime) -> int:
    """Scheduler step: returns how many alerts about workers are open."""
    workers, limit = workers_at_work(now), settings.CONFIG.memory_soft_limit_mb
    reports = {}
    for worker in workers:
        held = worker.memory_bytes // MEGABYTE
        if worker.memory_bytes > limit * MEGABYTE * MEMORY_ALERT_SHARE:
            summary = f"Worker {worker.worker_id} uses {held} MB of its limit of {limit} MB"
            detail = {"worker_id": worker.worker_id, "memory_mb": held, "soft_limit_mb": limit}
            reports[alert_keys.MEMORY.of(worker.worker_id)] = Report(Severity.WARNING, summary, detail)
    set_alerts(alert_keys.MEMORY, reports, now)
    matches = 0 if workers else matches_to_watch().count()
    if not matches:
        close_alert(alert_keys.NO_WORKER, now)
        return len(reports)
    waiting = "1 live match waits" if matches == 1 else f"{matches} live matches wait"
    summary = f"No worker is alive and {waiting}"
    raise_alert(alert_keys.NO_WORKER, Severity.CRITICAL, summary, {"matches": matches}, now)
    return 1


def watch_queue(now: datetime) -> int:
    """Scheduler step: returns how many tasks have been due for over a minute and are not claimed."""
    late = ScrapeTask.objects.filter(
        state=TaskState.PENDING, run_at__lt=now - MAX_QUEUE_WAIT, hinted_at__gt=now - HINTED_WITHIN
    ).aggregate(number=Count("pk"), oldest=Min("run_at"))
    if not late["number"]:
        close_alert(alert_keys.QUEUE, now)
        return 0
    seconds, number = (now - late["oldest"]).total_seconds(), int(late["number"])
    tasks = "1 task has" if number == 1 else f"{number} tasks have"
    summary = f"{tasks} been due for up to {seconds:.0f} s, and no worker takes them"
    detail = {"tasks": number, "oldest_seconds": round(seconds)}
    raise_alert(alert_keys.QUEUE, Severity.WARNING, summary, detail, now)
    return number


def watch_redis(now: datetime) -> int:
    """Scheduler step: returns whether Redis is configured and does not answer."""
    if not settings.CONFIG.redis_url or in_redis(lambda client: bool(client.ping()), otherwise=False):
        close_alert(alert_keys.REDIS, now)
        return 0
    raise_alert(alert_keys.REDIS, Severity.WARNING, "Redis does not answer", {}, now)
    return 1


def watch_spool(now: datetime) -> int:
    """Scheduler step: returns how many workers replayed their spool lately. In an outage no alert can be written."""
    returned = AuditEntry.objects.filter(action_type="spool_replay", timestamp__gt=now - REPLAY_ALERT_DURATION)
    rows = list(returned.values_list("duration_seconds", "metadata"))
    if not rows:
        close_alert(alert_keys.SPOOL, now)
        return 0
    seconds = max(duration for duration, _ in rows)
    written = sum(metadata.get("written", 0) for _, metadata in rows)
    dropped = sum(metadata.get("dropped", 0) for _, metadata in rows)
    kept = f"{written} readings were spooled and have been written"
    lost = f", {dropped} were dropped" if dropped else ", none was dropped"
    workers = "a worker" if len(rows) == 1 else f"{len(rows)} workers"
    summary = f"The database was away from {workers} for {seconds:.0f} s: {kept}{lost}"
    detail = {"workers": len(rows), "seconds": round(seconds), "written": written, "dropped": dropped}
    raise_alert(alert_keys.SPOOL, Severity.CRITICAL if dropped else Severity.WARNING, summary, detail, now)
    return len(rows)
