"""Retries and endings of tasks at the request of a person: single tasks, or all that a selection matches.

Guards against a request that starts work twice: a task is reopened from FAILED or DEAD only, never beside an open
one, and not where its work was done since. A dead letter whose work was done since is discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scraping.errors import ErrorClass
from scraping.journal import error_log
from scraping.journal.finish import REASON_LENGTH, SCHEDULER, write_transitions
from scraping.models import OPEN_STATES, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.signals import tasks_moved
from victoryline.lib.crash import crash_point

RETRIABLE = (TaskState.FAILED, TaskState.DEAD)
MOVES = {  # where a person may move a task: from which states, and the verb
    TaskState.PENDING: (RETRIABLE, "retried"),
    TaskState.DISCARDED: (RETRIABLE, "discarded"),
    TaskState.CANCELLED: ((TaskState.PENDING,), "cancelled"),
}
AT_ONCE = 500
EXAMINED_AT_ONCE = 2000
OPEN_ALREADY = "another task for the same match is open already, so there is nothing to retry"
SUPERSEDED = "a later task for the same has ended since; retry that one if it failed too"
DONE_SINCE = "a later task has done the same since"
READ_SINCE = "the match has been read since, so there is nothing to retry"

_examined = 0  # the dead letter that was examined last


@dataclass(frozen=True)
class RetryOutcome:
    """`retried`: or discarded, or cancelled. `has_more`: there are more than one call changes; call again."""

    retried: list[int]
    refused: dict[int, str]
    has_more: bool = False


@dataclass(frozen=True, kw_only=True)
class TaskSelection:
    """Selects failed tasks: those that match everything given."""

    job_id: int | None = None
    source_key: str = ""
    error_class: ErrorClass | None = None
    fingerprint: str = ""

    def __bool__(self) -> bool:
        return self != TaskSelection()


def retry(*, task_ids: Iterable[int], actor: str, now: datetime, reason: str = "") -> RetryOutcome:
    """Retries failed or dead tasks. Never opens a second task for the same ref and resource."""
    fresh = {"hinted_at": None, "finished_at": None, "worker_id": "", "attempt": 0, "charged_attempts": 0, "rescues": 0}
    reason = reason or "retried by hand"
    return _change(task_ids, TaskState.PENDING, actor=actor, reason=reason, now=now, run_at=now, **fresh)


def discard(*, task_ids: Collection[int], actor: str, reason: str, now: datetime) -> RetryOutcome:
    """Ends failed and dead tasks that are not needed any more, and resolves their errors."""
    outcome = _change(task_ids, TaskState.DISCARDED, actor=actor, reason=reason, now=now, finished_at=now)
    error_log.resolve_discarded(outcome.retried, now=now)
    return outcome


def cancel(*, task_ids: Iterable[int], actor: str, reason: str, now: datetime) -> RetryOutcome:
    """Ends tasks that no worker has taken yet."""
    return _change(task_ids, TaskState.CANCELLED, actor=actor, reason=reason, now=now, finished_at=now)


def discard_superseded(*, now: datetime) -> list[int]:
    """Discards dead letters whose work was done since; returns their ids. Examines a part of them at a time."""
    global _examined  # noqa: PLW0603 - a scheduler is one process; a new one begins with the oldest
    dead = ScrapeTask.objects.filter(state__in=RETRIABLE, pk__gt=_examined).order_by("pk")
    ids = list(dead.values_list("pk", flat=True)[:EXAMINED_AT_ONCE])
    _examined = ids[-1] if len(ids) == EXAMINED_AT_ONCE else 0
    later = ScrapeTask.objects.filter(pk__gt=OuterRef("pk"), state=TaskState.SUCCESS, resource=OuterRef("resource"))
    was_done = (
        Q(resource=Resource.SCORECARD, ref__captured_at__gt=F("finished_at"))
        | Q(resource=Resource.DISCOVERY, ref=None, source__last_discovery_at__gt=F("finished_at"))
        | Exists(later.filter(ref=OuterRef("ref")))
        | Exists(later.filter(ref=None, job=OuterRef("job")))
    )
    done = list(ScrapeTask.objects.filter(was_done, pk__in=ids).values_list("pk", flat=True)) if ids else []
    return discard(task_ids=done, actor=SCHEDULER, reason=DONE_SINCE, now=now).retried if done else []


def retry_matching(
    which: TaskSelection, *, actor: str, now: datetime, reason: str = "", is_dry_run: bool = False
) -> RetryOutcome:
    """Retries all failed and dead tasks of a selection; a second call changes nothing.

    Only what is still missing: not where a later task for the same has ended, nor where the match was read since.
    A dry run returns what would be done, and does nothing.
    """
    found = list(selected(which).order_by("-pk")[: AT_ONCE + 1])
    tasks, has_more = found[:AT_ONCE], len(found) > AT_ONCE
    refused = _not_needed(tasks)
    needed = [task.pk for task in tasks if task.pk not in refused]
    if is_dry_run:
        return RetryOutcome(needed, refused, has_more)
    done = retry(task_ids=needed, actor=actor, now=now, reason=reason)
    return RetryOutcome(done.retried, {**refused, **done.refused}, has_more)


def selected(which: TaskSelection, states: Sequence[TaskState] = RETRIABLE) -> QuerySet[ScrapeTask]:
    tasks = ScrapeTask.objects.filter(state__in=states)
    if which.job_id is not None:
        # A task that two jobs share belongs to the one that opened it; both may ask for it again.
        tasks = tasks.filter(Q(job_id=which.job_id) | Q(job_items__job_id=which.job_id))
    if which.source_key:
        tasks = tasks.filter(source__key=which.source_key)
    if which.error_class is not None:
        tasks = tasks.filter(error_class=which.error_class.value)
    if which.fingerprint:
        tasks = tasks.filter(errors__group__fingerprint=which.fingerprint)
    # One row a task, however many errors or items led to it.
    return ScrapeTask.objects.filter(pk__in=tasks.order_by().values("pk")).select_related("ref")


def _not_needed(tasks: Sequence[ScrapeTask]) -> dict[int, str]:
    refused: dict[int, str] = {}
    for task in tasks:
        same = ScrapeTask.objects.filter(resource=task.resource, ref_id=task.ref_id)
        if task.ref_id is None:
            same = same.filter(source_id=task.source_id, job_id=task.job_id)
        states = set(same.filter(pk__gt=task.pk).values_list("state", flat=True))
        # Successful polls are soon pruned from the journal, so the time of the last reading counts.
        read_at = task.ref.captured_at if task.ref and task.resource == Resource.SCORECARD else None
        if states & set(OPEN_STATES):
            refused[task.pk] = OPEN_ALREADY
        elif states:
            refused[task.pk] = SUPERSEDED
        elif read_at and task.finished_at and read_at > task.finished_at:
            refused[task.pk] = READ_SINCE
    return refused


def _change(
    task_ids: Iterable[int], to: TaskState, *, actor: str, reason: str, now: datetime, **columns: Any
) -> RetryOutcome:
    """Moves tasks at the request of a person, the newest first, and collects the refusals."""
    outcome = RetryOutcome([], {})
    for task in ScrapeTask.objects.filter(pk__in=list(task_ids)).order_by("-pk"):
        refusal = _move(task, to, actor=actor, reason=reason, now=now, **columns)
        if refusal:
            outcome.refused[task.pk] = refusal
        else:
            outcome.retried.append(task.pk)
    if outcome.retried:
        tasks_moved.send_robust(sender=ScrapeTask, task_ids=outcome.retried, to=to, actor=actor, reason=reason)
    return outcome


def _move(task: ScrapeTask, to: TaskState, *, actor: str, reason: str, now: datetime, **columns: Any) -> str:
    """Moves one task; returns why not, or an empty string."""
    before, verb = MOVES[to]
    if task.state not in before:
        return f"it is {task.state}; only {' and '.join(before)} tasks can be {verb}"
    if to == TaskState.CANCELLED:  # a discarded one keeps the reason of its failure
        columns["reason"] = reason[:REASON_LENGTH]
    try:
        with transaction.atomic():
            if not ScrapeTask.objects.filter(pk=task.pk, state=task.state).update(state=to, **columns):
                return "it was changed by another process at the same moment"
            crash_point("retry.reopened")
            history: dict[str, Any] = {"attempt": task.attempt, "actor": actor, "reason": reason}
            write_transitions(task.pk, (task.state, to), now=now, **history)
    except IntegrityError:
        return OPEN_ALREADY
    return ""
