"""The right to do a task: taken by one conditional UPDATE, kept by heartbeats, given back at a stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from scraping.journal import statements
from scraping.models import ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.policies.retry import TIMEOUT_STRETCH
from scraping.policies.retry_budget import is_retry
from victoryline.lib.crash import crash_point


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
    is_retry: bool = False  # traffic on top of the schedule: counts against the source's budget of retries
    timeout_factor: float = 1.0  # the attempt before ran out of time: this one gets more of it
    was_stretched: bool = False  # an attempt of this task had more time already; there is only one such


def claim(task_id: int, *, worker_id: str, lease_seconds: float, now: datetime) -> Claim | None:
    """Take a due task, or None if it is not there to be taken. Counts the attempt before any work is done."""
    crash_point("claim.before")
    lease_until = now + timedelta(seconds=lease_seconds)
    taken = statements.take(task_id, worker_id=worker_id, lease_until=lease_until, now=now)
    if taken is None:
        return None
    crash_point("claim.after")
    return _claimed(task_id, taken, worker_id, now)


def claim_many(task_ids: Sequence[int], *, worker_id: str, lease_seconds: float, now: datetime) -> list[Claim]:
    """Take as many of these as are due and free, in one step."""
    crash_point("claim.before")
    lease_until = now + timedelta(seconds=lease_seconds)
    taken = statements.take_many(task_ids, worker_id=worker_id, lease_until=lease_until, now=now)
    crash_point("claim.after")
    return [_claimed(task_id, one, worker_id, now) for task_id, one in taken]


def _claimed(task_id: int, taken: statements.Taken, worker_id: str, now: datetime) -> Claim:
    return Claim(
        task_id=task_id,
        fence=taken.fence,
        worker_id=worker_id,
        attempt=taken.attempt,
        charged_attempts=taken.charged_attempts,
        resource=Resource(taken.resource),
        source_id=taken.source_id,
        ref_id=taken.ref_id,
        job_id=taken.job_id,
        started_at=now,
        **(_history(task_id, now) if taken.has_failed or taken.charged_attempts else {}),
    )


def _history(task_id: int, now: datetime) -> dict[str, Any]:
    """What an attempt has to know of those before it. Most tasks have none, so only the others are asked."""
    task = ScrapeTask.objects.annotate(scheduled_at=F("ref__next_poll_at")).get(pk=task_id)
    return {
        "is_retry": _is_retry(task, task.scheduled_at, now),
        "timeout_factor": _timeout_factor(task.error),
        "was_stretched": bool((task.error or {}).get("stretched")),
    }


def _is_retry(task: ScrapeTask, scheduled_at: datetime | None, now: datetime) -> bool:
    polled = scheduled_at if task.resource == Resource.SCORECARD else None  # no other kind has a schedule
    return is_retry(charged_attempts=task.charged_attempts, due_at=task.run_at, scheduled_at=polled, now=now)


def _timeout_factor(error: dict[str, Any] | None) -> float:
    """FR-021: what ran out of time is tried once with half as much again."""
    is_first_timeout = error is not None and error.get("error_type") == "timeout" and not error.get("stretched")
    return TIMEOUT_STRETCH if is_first_timeout else 1.0


def extend_leases(task_ids: Iterable[int], *, worker_id: str, until: datetime) -> int:
    """The heartbeat: the worker is alive and still has these tasks in hand."""
    held = ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING)
    # One that is locked is just being finished: it needs no lease any more, and must not be waited for.
    with transaction.atomic():
        free = held.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
        return held.filter(pk__in=list(free.order_by("pk").values_list("pk", flat=True))).update(lease_until=until)


def release(task_ids: Iterable[int], *, worker_id: str, now: datetime) -> int:
    """Give tasks back at a graceful stop: as if they had never been taken."""
    return ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING).update(
        state=TaskState.PENDING, run_at=now, hinted_at=None, worker_id="", lease_until=None, attempt=F("attempt") - 1
    )


def hasten(ref_id: int, *, now: datetime, resource: Resource | None = None) -> int:
    """Somebody does not want to wait: the match's open tasks are due now, or only that of one kind."""
    waiting = ScrapeTask.objects.filter(ref_id=ref_id, state=TaskState.PENDING, run_at__gt=now)
    waiting = waiting.filter(resource=resource) if resource else waiting
    return waiting.update(run_at=now, hinted_at=None)


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
