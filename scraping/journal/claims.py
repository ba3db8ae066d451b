"""Claims and leases: the right of one worker to execute a task.

Guards against a task that two workers execute, and one that is stuck with a dead worker: it is taken by one conditional
UPDATE with an end, kept by heartbeats, given back at a stop or after an outage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Value
from django.db.models.functions import Least

from scraping.models import ScrapeTask, Stage, TaskState
from scraping.payloads import Resource
from scraping.policies.retry import TIMEOUT_STRETCH
from victoryline.lib import bulk_sql
from victoryline.lib.crash import crash_point

# Rows are locked in one order, so that two statements that each claim many never wait for each other in a circle.
_CLAIM = bulk_sql.with_columns(
    ScrapeTask,
    """UPDATE {table}
       SET {state} = %s, {stage} = %s, {attempt} = {attempt} + 1, {fence} = {fence} + 1,
           {worker_id} = %s, {lease_until} = %s, {started_at} = %s
       WHERE {id} IN (SELECT {id} FROM {table} WHERE {id} IN (VALUES {{rows}}) AND {state} = %s AND {run_at} <= %s
                      ORDER BY {id} {{lock}})
       RETURNING {id}, {fence}, {attempt}, {charged_attempts}, {resource}, {source}, {ref}, {job}, {error_class}
    """,
)
_GIVEN_BACK: dict[str, Any] = {
    "state": TaskState.PENDING,
    "hinted_at": None,
    "worker_id": "",
    "lease_until": None,
    "attempt": F("attempt") - 1,  # as if it had never been claimed
}


@dataclass(frozen=True)
class Claim:
    """The right to execute one task: valid while the fence is the task's own."""

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
    is_retry: bool = False  # an earlier attempt failed by the source's fault
    timeout_factor: float = 1.0  # the previous attempt timed out: this one gets more time
    was_stretched: bool = False  # one attempt of this task had more time already; no other one gets it


def claim(task_id: int, *, worker_id: str, lease_seconds: float, now: datetime) -> Claim | None:
    """Claims a due task; None if it is not due, or claimed already."""
    return next(iter(claim_many([task_id], worker_id=worker_id, lease_seconds=lease_seconds, now=now)), None)


def claim_many(task_ids: Sequence[int], *, worker_id: str, lease_seconds: float, now: datetime) -> list[Claim]:
    """Claims those of the tasks that are due and free, in one step. Counts the attempt before any work is done."""
    crash_point("claim.before")
    claimed = bulk_sql.fetch_rows(
        _CLAIM,
        [(task_id,) for task_id in task_ids],
        before=(
            *(TaskState.EXECUTING.value, Stage.INIT.value, worker_id),
            *(now + timedelta(seconds=lease_seconds), now),
        ),
        after=(TaskState.PENDING.value, now),
    )
    if claimed:
        crash_point("claim.after")
    return [_claim_of(row, worker_id, now) for row in sorted(claimed)]


def _claim_of(row: tuple[Any, ...], worker_id: str, now: datetime) -> Claim:
    task_id, fence, attempt, charged_attempts, resource, source_id, ref_id, job_id, error_class = row
    return Claim(
        task_id=task_id,
        fence=fence,
        worker_id=worker_id,
        attempt=attempt,
        charged_attempts=charged_attempts,
        resource=Resource(resource),
        source_id=source_id,
        ref_id=ref_id,
        job_id=job_id,
        started_at=now,
        is_retry=charged_attempts > 0,
        **(_history(task_id) if error_class or charged_attempts else {}),
    )


def _history(task_id: int) -> dict[str, Any]:
    """Returns what an attempt needs to know of earlier ones; read for the few tasks that have failed before only."""
    error = ScrapeTask.objects.values_list("error", flat=True).get(pk=task_id) or {}
    was_stretched = bool(error.get("stretched"))
    # FR-021: a task that timed out is tried once with half as much time again.
    is_stretched = error.get("error_code") == "timeout" and not was_stretched
    return {
        "timeout_factor": TIMEOUT_STRETCH if is_stretched else 1.0,
        "was_stretched": was_stretched,
    }


def extend_leases(task_ids: Iterable[int], *, worker_id: str, until: datetime) -> int:
    """Extends the leases of tasks that a worker is executing: the heartbeat."""
    held = ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING)
    # A locked task is just being finished: it needs no lease any more, and must not be waited for.
    with transaction.atomic():
        free = held.select_for_update(skip_locked=connection.features.has_select_for_update_skip_locked)
        return held.filter(pk__in=list(free.order_by("pk").values_list("pk", flat=True))).update(lease_until=until)


def release(task_ids: Iterable[int], *, worker_id: str, now: datetime) -> int:
    """Gives tasks back at a graceful stop."""
    held = ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING)
    return held.update(run_at=now, **_GIVEN_BACK)


def release_unknown_claims(*, worker_id: str, held: Collection[int], taken_before: datetime, now: datetime) -> int:
    """Gives back tasks that are claimed by this worker in the database but unknown to it.

    Their outcome, or the result of their claim, was lost while the database was unreachable.
    """
    taken = ScrapeTask.objects.filter(worker_id=worker_id, state=TaskState.EXECUTING, started_at__lte=taken_before)
    return taken.exclude(pk__in=list(held)).update(run_at=now, **_GIVEN_BACK)


def make_tasks_due(
    ref_ids: Collection[int], *, now: datetime, resource: Resource | None = None, obeys_retry_after: bool = False
) -> list[int]:
    """Makes the waiting tasks of refs due now and has them hinted again; returns the refs that have such a task.

    All of them, or those of one resource. `obeys_retry_after`: a task that the source has put off keeps its time.
    """
    waiting = ScrapeTask.objects.filter(ref_id__in=ref_ids, state=TaskState.PENDING)
    waiting = waiting.filter(resource=resource) if resource else waiting
    found = list(waiting.values_list("pk", "ref_id", "error"))
    due = [pk for pk, _, error in found if not (obeys_retry_after and _is_put_off(error, now))]
    waiting.filter(pk__in=due).update(run_at=Least("run_at", Value(now)), hinted_at=None)
    return [ref_id for _, ref_id, _ in found if ref_id is not None]


def _is_put_off(error: dict[str, Any] | None, now: datetime) -> bool:
    return bool(error and error.get("retry_after_until", 0.0) > now.timestamp())


def holders() -> list[str]:
    held = ScrapeTask.objects.filter(state=TaskState.EXECUTING).order_by()
    return list(held.values_list("worker_id", flat=True).distinct())


def end_leases(workers: Sequence[str], *, now: datetime) -> int:
    """Expires the leases of workers that are known to have ended, so that their tasks are rescued at once."""
    if not workers:
        return 0
    held = ScrapeTask.objects.filter(worker_id__in=workers, state=TaskState.EXECUTING)
    return held.update(lease_until=now - timedelta(microseconds=1))
