"""The right to do a task: taken by one conditional UPDATE, kept by heartbeats, given back at a stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F

from scraping.models import ScrapeTask, Stage, TaskState
from scraping.payloads import Resource


@dataclass(frozen=True)
class Claim:
    """The right to do one task: valid while the fence is the task's own."""

    task_id: int
    fence: int
    worker_id: str
    attempt: int
    charged_attempts: int
    resource: Resource
    source_id: int
    ref_id: int | None
    job_id: int | None
    started_at: datetime


def claim(task_id: int, *, worker_id: str, lease_seconds: float, now: datetime) -> Claim | None:
    """Take a due task, or None if it is not there to be taken. Counts the attempt before any work is done."""
    task = ScrapeTask.objects.filter(pk=task_id, state=TaskState.PENDING, run_at__lte=now).first()
    if task is None:
        return None
    # Only the fence that was read can be followed by ours: whoever came in between has moved it.
    taken = ScrapeTask.objects.filter(pk=task_id, state=TaskState.PENDING, run_at__lte=now, fence=task.fence).update(
        state=TaskState.EXECUTING,
        stage=Stage.INIT,
        attempt=F("attempt") + 1,
        fence=F("fence") + 1,
        worker_id=worker_id,
        lease_until=now + timedelta(seconds=lease_seconds),
        started_at=now,
    )
    if not taken:
        return None
    return Claim(
        task_id=task.pk,
        fence=task.fence + 1,
        worker_id=worker_id,
        attempt=task.attempt + 1,
        charged_attempts=task.charged_attempts,
        resource=Resource(task.resource),
        source_id=task.source_id,
        ref_id=task.ref_id,
        job_id=task.job_id,
        started_at=now,
    )


def extend_leases(task_ids: Iterable[int], *, worker_id: str, until: datetime) -> int:
    """The heartbeat: the worker is alive and still has these tasks in hand."""
    return ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING).update(
        lease_until=until
    )


def release(task_ids: Iterable[int], *, worker_id: str, now: datetime) -> int:
    """Give tasks back at a graceful stop: as if they had never been taken."""
    return ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING).update(
        state=TaskState.PENDING, run_at=now, hinted_at=None, worker_id="", lease_until=None, attempt=F("attempt") - 1
    )


def holders() -> list[str]:
    """The workers that have tasks in hand."""
    held = ScrapeTask.objects.filter(state=TaskState.EXECUTING).order_by()
    return list(held.values_list("worker_id", flat=True).distinct())


def end_leases(workers: Sequence[str], *, now: datetime) -> int:
    """These workers are known to have ended: their tasks need not wait for the leases to run out."""
    if not workers:
        return 0
    held = ScrapeTask.objects.filter(worker_id__in=workers, state=TaskState.EXECUTING)
    return held.update(lease_until=now - timedelta(microseconds=1))
