"""Rescues tasks of workers whose leases have expired; a task that has cost too many workers is dead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from scraping.errors import ErrorClass
from scraping.journal.finish import REASON_LENGTH
from scraping.models import ScrapeTask, TaskState, TaskTransition
from scraping.signals import task_died
from victoryline.lib.crash import crash_point

SCHEDULER = "scheduler"
OnDeath = Callable[[ScrapeTask], None]


def rescue(*, max_rescues: int, now: datetime, limit: int = 500, on_death: OnDeath | None = None) -> int:
    """Returns expired tasks to PENDING, or makes them DEAD after `max_rescues`; returns how many.

    `on_death` writes the consequences for the match, in the same transaction.
    """
    expired = ScrapeTask.objects.filter(state=TaskState.EXECUTING, lease_until__lt=now).order_by("lease_until")
    tasks = expired.select_related("ref__match")[:limit]
    return sum(_rescue_one(task, max_rescues=max_rescues, now=now, on_death=on_death) for task in tasks)


def _rescue_one(task: ScrapeTask, *, max_rescues: int, now: datetime, on_death: OnDeath | None) -> bool:
    is_dead = task.rescues + 1 >= max_rescues
    silent = f"lease_expired: worker {task.worker_id} fell silent in attempt {task.attempt}"
    reason = f"{silent}; killed or hung {task.rescues + 1} times" if is_dead else silent
    ending: dict[str, Any] = (
        {
            "state": TaskState.DEAD,
            "finished_at": now,
            "error_class": ErrorClass.RESOURCE.value,
            "error": _dead_letter(task, reason),
        }
        if is_dead
        else {"state": TaskState.PENDING, "run_at": now, "hinted_at": None, "worker_id": ""}
    )
    with transaction.atomic():
        held = ScrapeTask.objects.filter(
            pk=task.pk, fence=task.fence, state=TaskState.EXECUTING, lease_until__lt=now
        ).update(rescues=F("rescues") + 1, lease_until=None, reason=reason[:REASON_LENGTH], **ending)
        if not held:
            return False
        crash_point("rescue.taken")
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
        crash_point("rescue.transitions")
        if is_dead:
            _bury(task, reason=reason, on_death=on_death)
    crash_point("rescue.committed")
    return True


def _dead_letter(task: ScrapeTask, reason: str) -> dict[str, Any]:
    """Returns the error of a task without an exception: its worker, its stage and how often it was rescued."""
    return {
        "error_class": ErrorClass.RESOURCE.value,
        "error_type": "lease_expired",
        "message": reason,
        "stage": task.stage,
        "attempt": task.attempt,
        "rescues": task.rescues + 1,
        "worker_id": task.worker_id,
        "is_soft": False,
    }


def _bury(task: ScrapeTask, *, reason: str, on_death: OnDeath | None) -> None:
    """Announces the death in the same transaction, so that it cannot be lost."""
    if on_death is not None:
        on_death(task)
    task_died.send_robust(
        sender=ScrapeTask,
        task_id=task.pk,
        match_id=task.ref.match_id if task.ref else None,
        error_class=ErrorClass.RESOURCE.value,
        error_type="lease_expired",
        reason=reason,
    )
