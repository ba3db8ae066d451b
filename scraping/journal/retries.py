"""Retries of failed and dead tasks at the request of a person: single tasks, or all that a selection matches.

Guards against a request that starts work twice: a task is reopened from FAILED or DEAD only, never beside an open
one, and not where its work was done since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from scraping.errors import ErrorClass
from scraping.journal.finish import write_transitions
from scraping.models import OPEN_STATES, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.signals import task_retried
from victoryline.lib.crash import crash_point

RETRIABLE = (TaskState.FAILED, TaskState.DEAD)
AT_ONCE = 500
OPEN_ALREADY = "another task for the same match is open already, so there is nothing to retry"
SUPERSEDED = "a later task for the same has ended since; retry that one if it failed too"
READ_SINCE = "the match has been read since, so there is nothing to retry"


@dataclass(frozen=True)
class RetryOutcome:
    """`has_more`: there were more than are retried at once; the same call again goes on with them."""

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


def retry(*, task_ids: Iterable[int], actor: str, now: datetime) -> RetryOutcome:
    """Retries failed or dead tasks. Never opens a second task for the same ref and resource."""
    outcome = RetryOutcome([], {})
    for task in ScrapeTask.objects.filter(pk__in=list(task_ids)).order_by("-pk"):
        refusal = _reopen(task, actor=actor, now=now)
        if refusal:
            outcome.refused[task.pk] = refusal
        else:
            outcome.retried.append(task.pk)
            task_retried.send_robust(sender=ScrapeTask, task_id=task.pk, actor=actor)
    return outcome


def retry_matching(which: TaskSelection, *, actor: str, now: datetime, is_dry_run: bool = False) -> RetryOutcome:
    """Retries all failed and dead tasks of a selection; a second call changes nothing.

    Only what is still missing: not where a later task for the same has ended, nor where the match was read since.
    A dry run returns what would be done, and does nothing.
    """
    found = list(failed(which).order_by("-pk")[: AT_ONCE + 1])
    tasks, has_more = found[:AT_ONCE], len(found) > AT_ONCE
    refused = _not_needed(tasks)
    needed = [task.pk for task in tasks if task.pk not in refused]
    if is_dry_run:
        return RetryOutcome(needed, refused, has_more)
    done = retry(task_ids=needed, actor=actor, now=now)
    return RetryOutcome(done.retried, {**refused, **done.refused}, has_more)


def failed(which: TaskSelection) -> QuerySet[ScrapeTask]:
    tasks = ScrapeTask.objects.filter(state__in=RETRIABLE)
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


def _reopen(task: ScrapeTask, *, actor: str, now: datetime) -> str:
    """Reopens one task; returns why not, or an empty string."""
    if task.state not in RETRIABLE:
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
                return "it was changed by another process at the same moment"
            crash_point("retry.reopened")
            history: dict[str, Any] = {"attempt": task.attempt, "actor": actor, "reason": "retried by hand"}
            write_transitions(task.pk, (task.state, TaskState.PENDING), now=now, **history)
    except IntegrityError:
        return OPEN_ALREADY
    return ""
