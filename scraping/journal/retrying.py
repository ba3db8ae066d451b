"""A person asks again for what has failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from scraping.models import ScrapeTask, TaskState, TaskTransition
from scraping.signals import task_retried


@dataclass(frozen=True)
class RetryOutcome:
    retried: list[int]
    refused: dict[int, str]


def retry(*, task_ids: Iterable[int], actor: str, now: datetime) -> RetryOutcome:
    """A person asks again for failed or dead tasks. Never opens a second task for the same ref and resource."""
    outcome = RetryOutcome([], {})
    for task in ScrapeTask.objects.filter(pk__in=list(task_ids)).order_by("-pk"):
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
        return "another task for the same match is open already, so there is nothing to retry"
    return ""
