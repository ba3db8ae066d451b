"""Work that is not wanted any more: nobody does it, and who is at it writes nothing."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Exists, OuterRef

from scraping.journal.ending import REASON_LENGTH
from scraping.models import OPEN_STATES, JobItem, ScrapeTask, TaskState, TaskTransition


def cancel_open(ref_ids: Collection[int], *, actor: str, reason: str, now: datetime) -> int:
    """End the open tasks of these refs, but for those that a job waits for. Runs in the caller's transaction.

    Tasks are locked before anything of their matches is, and in one order, as every other writer does.
    """
    tasks = list(
        ScrapeTask.objects.select_for_update()
        .filter(~Exists(JobItem.objects.filter(task=OuterRef("pk"))), ref_id__in=ref_ids, state__in=OPEN_STATES)
        .order_by("pk")
    )
    for task in tasks:
        TaskTransition.objects.create(
            task=task,
            from_state=task.state,
            to_state=TaskState.CANCELLED,
            at=now,
            attempt=task.attempt,
            stage=task.stage,
            actor=actor,
            reason=reason[:REASON_LENGTH],
        )
    return ScrapeTask.objects.filter(pk__in=[task.pk for task in tasks]).update(
        state=TaskState.CANCELLED, finished_at=now, lease_until=None, reason=reason[:REASON_LENGTH]
    )
