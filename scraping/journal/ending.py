"""How a task leaves the hands of its worker: done, to be tried again, or dead. Only with the present fence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from scraping.errors import OUR_FAULTS, ErrorClass, StaleFence
from scraping.journal import statements
from scraping.journal.claiming import Claim
from scraping.models import ScrapeTask, Stage, TaskState, TaskTransition
from scraping.signals import task_died, task_failed
from victoryline.lib.crash import crash_point

REASON_LENGTH = 500


@contextmanager
def finishing(
    claim: Claim, *, now: datetime, to_state: TaskState = TaskState.SUCCESS, reason: str = ""
) -> Iterator[None]:
    """One transaction: the task's end and, in the body, its effects. All or nothing; StaleFence if it is not ours.

    What earlier attempts failed of does not hold any more; it stays in their transitions and error rows.
    """
    with transaction.atomic():
        if not statements.end(
            claim.task_id,
            fence=claim.fence,
            worker_id=claim.worker_id,
            to_state=to_state,
            reason=reason[:REASON_LENGTH],
            now=now,
        ):
            raise _stale(claim)
        crash_point("finish.ended")
        yield
        crash_point("finish.effects")
    crash_point("finish.committed")


@contextmanager
def finishing_many(claims: Sequence[Claim], *, now: datetime) -> Iterator[None]:
    """One transaction: the good end of many tasks of one worker and their effects. StaleFence if one is not ours."""
    with transaction.atomic():
        held = [(claim.task_id, claim.fence) for claim in claims]
        ended = statements.end_many(held, worker_id=claims[0].worker_id, now=now)
        for claim in claims:
            if claim.task_id not in ended:
                raise _stale(claim)
        crash_point("finish.ended")
        yield
        crash_point("finish.effects")
    crash_point("finish.committed")


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
        crash_point("retry_later.left")
        _write_transitions(claim, note, (TaskState.EXECUTING, TaskState.FAILED, TaskState.PENDING), now)
        crash_point("retry_later.told")
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
        crash_point("bury.left")
        _write_transitions(claim, note, (TaskState.EXECUTING, TaskState.FAILED, TaskState.DEAD), now)
        crash_point("bury.told")
    _announce(task_died, claim, note)


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
