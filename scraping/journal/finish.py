"""Ends an attempt: finished, to be retried, dead, or cancelled. Only the holder of the current fence can do it.

Guards against late writers, whose fence is refused, and against tasks of dead workers: a worker whose lease has expired
loses them (`rescue`); a task that has cost too many workers is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from scraping.errors import ERROR_RULES, OUR_FAULTS, ErrorClass, StaleFence
from scraping.journal.claims import Claim
from scraping.models import OPEN_STATES, JobItem, ScrapeTask, Stage, TaskState, TaskTransition
from scraping.signals import task_died
from victoryline.lib import bulk_sql
from victoryline.lib.crash import crash_point

REASON_LENGTH = 500
SCHEDULER = "scheduler"
OnDeath = Callable[[ScrapeTask], None]

# Rows are locked in one order, so that two statements that each finish many never wait for each other in a circle.
_FINISH = bulk_sql.with_columns(
    ScrapeTask,
    """UPDATE {table}
       SET {state} = %s, {stage} = %s, {finished_at} = %s, {lease_until} = NULL, {reason} = %s,
           {error_class} = '', {error} = NULL
       WHERE {id} IN (SELECT {id} FROM {table} WHERE ({id}, {fence}) IN (VALUES {{rows}})
                        AND {worker_id} = %s AND {state} = %s
                      ORDER BY {id} {{lock}})
       RETURNING {id}
    """,
)


@contextmanager
def finishing(
    *claims: Claim, now: datetime, to_state: TaskState = TaskState.SUCCESS, reason: str = ""
) -> Iterator[None]:
    """Finishes tasks of one worker and, in the body, writes their effects: one transaction, all or nothing.

    Raises StaleFence if one of them is not the worker's any more. Clears the errors of earlier attempts, which stay in
    the transitions and error rows.
    """
    with transaction.atomic():
        finished = bulk_sql.fetch_rows(
            _FINISH,
            [(claim.task_id, claim.fence) for claim in claims],
            before=(to_state.value, Stage.DONE.value, now, reason[:REASON_LENGTH]),
            after=(claims[0].worker_id, TaskState.EXECUTING.value),
        )
        ended = {task_id for (task_id,) in finished}
        for claim in claims:
            if claim.task_id not in ended:
                raise _stale(claim)
        crash_point("finish.ended")
        yield
        crash_point("finish.effects")
    crash_point("finish.committed")


def keep(claim: Claim) -> None:
    """Locks the task for the rest of the transaction; StaleFence if the claim is not valid any more.

    Every writer of a match locks its task first, then the match, then the rest, so that two writers never deadlock.
    """
    if _claimed(claim).select_for_update().first() is None:
        raise _stale(claim)


def _leave_executing(claim: Claim, **columns: Any) -> None:
    if not _claimed(claim).update(lease_until=None, **columns):
        raise _stale(claim)


def _claimed(claim: Claim) -> QuerySet[ScrapeTask]:
    return ScrapeTask.objects.filter(
        pk=claim.task_id, fence=claim.fence, worker_id=claim.worker_id, state=TaskState.EXECUTING
    )


def _stale(claim: Claim) -> StaleFence:
    return StaleFence(f"task {claim.task_id} is no longer ours (fence {claim.fence}): nothing was written")


@dataclass(frozen=True)
class FailureNote:
    """The failure of an attempt as its task keeps it."""

    error_class: ErrorClass
    reason: str
    stage: Stage
    error: dict[str, Any] = field(default_factory=dict)
    match_id: int | None = None


def retry_later(claim: Claim, note: FailureNote, *, at: datetime, is_charged: bool, now: datetime) -> None:
    """EXECUTING -> FAILED -> PENDING: the attempt failed, the next one is due at `at`."""
    again = {"run_at": at, "hinted_at": None, "worker_id": ""}
    _fail(claim, note, TaskState.PENDING, reason=note.reason, is_charged=is_charged, now=now, **again)


def mark_dead(claim: Claim, note: FailureNote, *, reason: str, now: datetime) -> None:
    """EXECUTING -> FAILED -> DEAD: a dead letter, with everything that explains it."""
    is_charged = note.error_class not in OUR_FAULTS
    _fail(claim, note, TaskState.DEAD, reason=reason, is_charged=is_charged, now=now, finished_at=now)
    task_died.send_robust(
        sender=ScrapeTask,
        task_id=claim.task_id,
        match_id=note.match_id,
        error_class=note.error_class.value,
        error_type=ERROR_RULES[note.error_class].error_type.value,
        reason=note.reason,
    )


def _fail(
    claim: Claim, note: FailureNote, state: TaskState, *, reason: str, is_charged: bool, now: datetime, **columns: Any
) -> None:
    with transaction.atomic():
        _leave_executing(
            claim,
            state=state,
            stage=note.stage,
            charged_attempts=F("charged_attempts") + int(is_charged),
            error_class=note.error_class.value,
            reason=reason[:REASON_LENGTH],
            error=note.error,
            **columns,
        )
        crash_point("fail.left")
        write_transitions(
            claim.task_id,
            (TaskState.EXECUTING, TaskState.FAILED, state),
            attempt=claim.attempt,
            stage=note.stage,
            actor=claim.worker_id,
            reason=note.reason,
            now=now,
        )
        crash_point("fail.transitions")


def put_off(claim: Claim, *, until: datetime) -> None:
    """Gives a task back that was not tried; it is due again at `until`."""
    _leave_executing(
        claim, state=TaskState.PENDING, run_at=until, hinted_at=None, worker_id="", attempt=F("attempt") - 1
    )


def write_transitions(task_id: int, states: Sequence[str], *, reason: str, now: datetime, **columns: Any) -> None:
    """Writes the way of a task through these states by one statement."""
    TaskTransition.objects.bulk_create(
        TaskTransition(
            task_id=task_id, from_state=before, to_state=after, at=now, reason=reason[:REASON_LENGTH], **columns
        )
        for before, after in pairwise(states)
    )


def cancel_open(ref_ids: Collection[int], *, actor: str, reason: str, now: datetime) -> int:
    """Cancels the open tasks of these refs, except those of jobs; a worker that executes one writes nothing.

    Runs in the caller's transaction. Tasks are locked before their matches, and in one order, as by every other writer.
    """
    tasks = list(
        ScrapeTask.objects.select_for_update()
        .filter(~Exists(JobItem.objects.filter(task=OuterRef("pk"))), ref_id__in=ref_ids, state__in=OPEN_STATES)
        .order_by("pk")
    )
    for task in tasks:
        history: dict[str, Any] = {"attempt": task.attempt, "stage": task.stage, "actor": actor, "reason": reason}
        write_transitions(task.pk, (task.state, TaskState.CANCELLED), now=now, **history)
    return ScrapeTask.objects.filter(pk__in=[task.pk for task in tasks]).update(
        state=TaskState.CANCELLED, finished_at=now, lease_until=None, reason=reason[:REASON_LENGTH]
    )


def rescue(*, max_rescues: int, now: datetime, limit: int = 500, on_death: OnDeath | None = None) -> int:
    """Returns tasks with an expired lease to PENDING, or makes them DEAD after `max_rescues`; returns how many.

    `on_death` writes the consequences for the match, in the same transaction.
    """
    expired = ScrapeTask.objects.filter(state=TaskState.EXECUTING, lease_until__lt=now).order_by("lease_until")
    tasks = expired.select_related("ref__match")[:limit]
    return sum(_rescue_one(task, max_rescues=max_rescues, now=now, on_death=on_death) for task in tasks)


def _rescue_one(task: ScrapeTask, *, max_rescues: int, now: datetime, on_death: OnDeath | None) -> bool:
    rescues = task.rescues + 1
    is_dead = rescues >= max_rescues
    reason = f"lease_expired: worker {task.worker_id} fell silent in attempt {task.attempt}"
    columns: dict[str, Any] = {"state": TaskState.PENDING, "run_at": now, "hinted_at": None, "worker_id": ""}
    if is_dead:
        reason += f"; killed or hung {rescues} times"
        error = {
            "error_class": ErrorClass.RESOURCE.value,
            "error_type": ERROR_RULES[ErrorClass.RESOURCE].error_type.value,
            "error_code": "lease_expired",
            "message": reason,
            "stage": task.stage,
            "attempt": task.attempt,
            "rescues": rescues,
            "worker_id": task.worker_id,
            "is_soft": False,
        }
        columns = {"state": TaskState.DEAD, "finished_at": now, "error_class": error["error_class"], "error": error}
    held = ScrapeTask.objects.filter(pk=task.pk, fence=task.fence, state=TaskState.EXECUTING, lease_until__lt=now)
    with transaction.atomic():
        if not held.update(rescues=rescues, lease_until=None, reason=reason[:REASON_LENGTH], **columns):
            return False
        crash_point("rescue.taken")
        history: dict[str, Any] = {"attempt": task.attempt, "stage": task.stage, "actor": SCHEDULER, "reason": reason}
        write_transitions(task.pk, (TaskState.EXECUTING, columns["state"]), now=now, **history)
        crash_point("rescue.transitions")
        if is_dead:
            if on_death is not None:
                on_death(task)
            task_died.send_robust(  # in the same transaction, so that it cannot be lost
                sender=ScrapeTask,
                task_id=task.pk,
                match_id=task.ref.match_id if task.ref else None,
                error_class=error["error_class"],
                error_type=error["error_type"],
                reason=reason,
            )
    crash_point("rescue.committed")
    return True
