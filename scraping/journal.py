"""The journal: the only truth about work. Sole writer of tasks and their transitions.

Guards against lost, doubled and late work. A task is written before it is done; one conditional UPDATE claims it,
counts the attempt and sets lease and fence; only the holder of the present fence can finish it; whoever falls silent
loses it.
A message in the broker is only a hint that some task is due: losing it, or getting it fifty times, changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from scraping.errors import ErrorClass, StaleFence
from scraping.models import ScrapeTask, Stage, TaskState, TaskTransition
from scraping.payloads import Resource
from scraping.resilience.decide import OUR_FAULTS
from scraping.signals import task_died, task_failed, task_rescued, task_retried

SCHEDULER = "scheduler"
REASON_LENGTH = 500


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


@dataclass(frozen=True)
class NewTask:
    """A unit of work to be written down."""

    source_id: int
    ref_id: int | None
    resource: Resource
    priority: int
    run_at: datetime
    job_id: int | None = None


def open_tasks(new: Sequence[NewTask], *, now: datetime) -> int:
    """Write tasks as PENDING. One that is open already for the same ref and resource is left as it is."""
    rows = [
        ScrapeTask(
            request_id=uuid.uuid4(),
            source_id=task.source_id,
            ref_id=task.ref_id,
            job_id=task.job_id,
            resource=task.resource.value,
            priority=task.priority,
            run_at=task.run_at,
            created_at=now,
        )
        for task in new
    ]
    before = ScrapeTask.objects.order_by("-id").values_list("id", flat=True).first() or 0
    ScrapeTask.objects.bulk_create(rows, ignore_conflicts=True)
    ids = [row.request_id for row in rows]
    return ScrapeTask.objects.filter(id__gt=before, request_id__in=ids).count() if rows else 0


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


@contextmanager
def finishing(
    claim: Claim, *, now: datetime, to_state: TaskState = TaskState.SUCCESS, reason: str = ""
) -> Iterator[None]:
    """One transaction: the task's end and, in the body, its effects. All or nothing; StaleFence if it is not ours."""
    with transaction.atomic():
        _leave_executing(
            claim, state=to_state, stage=Stage.DONE, finished_at=now, lease_until=None, reason=reason[:REASON_LENGTH]
        )
        yield


def keep(claim: Claim) -> None:
    """Lock the task for the rest of the transaction; StaleFence if it is not ours.

    Who writes a match takes its task first, then the match, then the rest: in one order, two writers never deadlock.
    """
    if _ours(claim).select_for_update().first() is None:
        raise _stale(claim)


def _leave_executing(claim: Claim, **columns: Any) -> None:
    if not _ours(claim).update(**columns):
        raise _stale(claim)


def _ours(claim: Claim) -> QuerySet[ScrapeTask]:
    return ScrapeTask.objects.filter(
        pk=claim.task_id, fence=claim.fence, worker_id=claim.worker_id, state=TaskState.EXECUTING
    )


def _stale(claim: Claim) -> StaleFence:
    return StaleFence(f"task {claim.task_id} is no longer ours (fence {claim.fence}): nothing was written")


@dataclass(frozen=True)
class FailureNote:
    """What a failed attempt leaves behind on its task."""

    error_class: ErrorClass
    error_type: str
    reason: str
    stage: Stage
    error: dict[str, Any] = field(default_factory=dict)
    match_id: int | None = None


def retry_later(claim: Claim, note: FailureNote, *, at: datetime, is_charged: bool, now: datetime) -> None:
    """EXECUTING -> FAILED -> PENDING: the attempt failed, the next one has a time."""
    with transaction.atomic():
        _leave_executing(
            claim,
            state=TaskState.PENDING,
            stage=note.stage,
            run_at=at,
            hinted_at=None,
            worker_id="",
            lease_until=None,
            charged_attempts=F("charged_attempts") + (1 if is_charged else 0),
            error_class=note.error_class.value,
            reason=note.reason[:REASON_LENGTH],
            error=note.error,
        )
        _write_transitions(claim, note, (TaskState.EXECUTING, TaskState.FAILED, TaskState.PENDING), now)
    _announce(task_failed, claim, note)


def put_off(claim: Claim, *, until: datetime) -> None:
    """Give a task back that was not even tried; it waits until then."""
    _leave_executing(
        claim,
        state=TaskState.PENDING,
        run_at=until,
        hinted_at=None,
        worker_id="",
        lease_until=None,
        attempt=F("attempt") - 1,
    )


def bury(claim: Claim, note: FailureNote, *, reason: str, now: datetime) -> None:
    """EXECUTING -> FAILED -> DEAD: a dead letter, with everything that explains it."""
    with transaction.atomic():
        _leave_executing(
            claim,
            state=TaskState.DEAD,
            stage=note.stage,
            lease_until=None,
            finished_at=now,
            charged_attempts=F("charged_attempts") + (0 if note.error_class in OUR_FAULTS else 1),
            error_class=note.error_class.value,
            reason=reason[:REASON_LENGTH],
            error=note.error,
        )
        _write_transitions(claim, note, (TaskState.EXECUTING, TaskState.FAILED, TaskState.DEAD), now)
    _announce(task_died, claim, note)


def release(task_ids: Iterable[int], *, worker_id: str, now: datetime) -> int:
    """Give tasks back at a graceful stop: as if they had never been taken."""
    return ScrapeTask.objects.filter(pk__in=list(task_ids), worker_id=worker_id, state=TaskState.EXECUTING).update(
        state=TaskState.PENDING, run_at=now, hinted_at=None, worker_id="", lease_until=None, attempt=F("attempt") - 1
    )


OnDeath = Callable[[ScrapeTask], None]


def rescue(*, max_rescues: int, now: datetime, limit: int = 500, on_death: OnDeath | None = None) -> int:
    """Take tasks back from workers that fell silent; one that has cost too many workers is buried.

    `on_death` writes what a burial does to the match, in the same transaction.
    """
    expired = ScrapeTask.objects.filter(state=TaskState.EXECUTING, lease_until__lt=now).order_by("lease_until")
    tasks = expired.select_related("ref__match")[:limit]
    return sum(_rescue_one(task, max_rescues=max_rescues, now=now, on_death=on_death) for task in tasks)


def _rescue_one(task: ScrapeTask, *, max_rescues: int, now: datetime, on_death: OnDeath | None) -> bool:
    is_hopeless = task.rescues + 1 > max_rescues
    silent = f"lease_expired: worker {task.worker_id} fell silent in attempt {task.attempt}"
    reason = f"{silent}; killed or hung {task.rescues + 1} times" if is_hopeless else silent
    ending: dict[str, Any] = (
        {"state": TaskState.DEAD, "finished_at": now, "error_class": ErrorClass.RESOURCE.value}
        if is_hopeless
        else {"state": TaskState.PENDING, "run_at": now, "hinted_at": None, "worker_id": ""}
    )
    with transaction.atomic():
        held = ScrapeTask.objects.filter(
            pk=task.pk, fence=task.fence, state=TaskState.EXECUTING, lease_until__lt=now
        ).update(rescues=F("rescues") + 1, lease_until=None, reason=reason[:REASON_LENGTH], **ending)
        if not held:
            return False
        TaskTransition.objects.create(
            task=task,
            from_state=TaskState.EXECUTING,
            to_state=ending["state"],
            at=now,
            attempt=task.attempt,
            stage=task.stage,
            actor=SCHEDULER,
            reason=reason[:REASON_LENGTH],
        )
        if is_hopeless and on_death is not None:
            on_death(task)
    task_rescued.send_robust(sender=ScrapeTask, task_id=task.pk, worker_id=task.worker_id, is_dead=is_hopeless)
    if is_hopeless:
        task_died.send_robust(
            sender=ScrapeTask,
            task_id=task.pk,
            match_id=task.ref.match_id if task.ref else None,
            error_class=ErrorClass.RESOURCE.value,
            error_type="lease_expired",
            reason=reason,
        )
    return True


@dataclass(frozen=True)
class RetryOutcome:
    retried: list[int]
    refused: dict[int, str]


def retry(*, task_ids: Iterable[int], actor: str, now: datetime) -> RetryOutcome:
    """A person asks again for failed or dead tasks. Never opens a second task for the same ref and resource."""
    outcome = RetryOutcome([], {})
    for task in ScrapeTask.objects.filter(pk__in=list(task_ids)).order_by("pk"):
        refusal = _reopen(task, actor=actor, now=now)
        if refusal:
            outcome.refused[task.pk] = refusal
        else:
            outcome.retried.append(task.pk)
            task_retried.send_robust(sender=ScrapeTask, task_id=task.pk, actor=actor)
    return outcome


def _reopen(task: ScrapeTask, *, actor: str, now: datetime) -> str:
    """Reopen one task; the reason why not, or empty."""
    if task.state not in (TaskState.FAILED, TaskState.DEAD):
        return f"it is {task.state}; only FAILED and DEAD tasks can be retried"
    try:
        with transaction.atomic():
            reopened = ScrapeTask.objects.filter(pk=task.pk, state=task.state).update(
                state=TaskState.PENDING,
                run_at=now,
                hinted_at=None,
                finished_at=None,
                worker_id="",
                attempt=0,
                charged_attempts=0,
                rescues=0,
            )
            if not reopened:
                return "somebody else changed it at the same moment"
            TaskTransition.objects.create(
                task=task,
                from_state=task.state,
                to_state=TaskState.PENDING,
                at=now,
                attempt=task.attempt,
                actor=actor,
                reason="retried by hand",
            )
    except IntegrityError:
        return "a newer task for the same match is open already, so there is nothing to retry"
    return ""


def _write_transitions(claim: Claim, note: FailureNote, states: Sequence[TaskState], now: datetime) -> None:
    TaskTransition.objects.bulk_create(
        TaskTransition(
            task_id=claim.task_id,
            from_state=before,
            to_state=after,
            at=now,
            attempt=claim.attempt,
            stage=note.stage,
            actor=claim.worker_id,
            reason=note.reason[:REASON_LENGTH],
        )
        for before, after in pairwise(states)
    )


def _announce(signal: Any, claim: Claim, note: FailureNote) -> None:
    signal.send_robust(
        sender=ScrapeTask,
        task_id=claim.task_id,
        match_id=note.match_id,
        error_class=note.error_class.value,
        error_type=note.error_type,
        reason=note.reason,
    )
