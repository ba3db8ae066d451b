"""Work that was done while the journal could not be written gets its row afterwards."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F

from scraping.models import ScrapeTask, Stage, TaskState
from scraping.payloads import Resource

REASON = "read while the database was away, written when it was back"


@dataclass(frozen=True)
class PastRead:
    """A reading that was made without a task."""

    request_id: UUID
    source_id: int
    ref_id: int
    worker_id: str
    read_at: datetime


def record_past_read(read: PastRead, *, now: datetime) -> bool:
    """Write its task, done. False where there is one already: its effects are in the database too.

    Belongs into the transaction that writes the effects.
    """
    _, is_new = ScrapeTask.objects.get_or_create(
        request_id=read.request_id,
        defaults={
            "source_id": read.source_id,
            "ref_id": read.ref_id,
            "resource": Resource.SCORECARD.value,
            "state": TaskState.SUCCESS,
            "stage": Stage.DONE,
            "attempt": 1,
            "fence": 1,
            "run_at": read.read_at,
            "worker_id": read.worker_id,
            "created_at": read.read_at,
            "started_at": read.read_at,
            "finished_at": now,
            "reason": REASON,
        },
    )
    return is_new


def release_strays(*, worker_id: str, held: Collection[int], taken_before: datetime, now: datetime) -> int:
    """Give back the tasks that are this worker's by their row but not in its hands.

    Their outcome, or the answer to their claim, was lost with the database; that costs them no attempt.
    """
    taken = ScrapeTask.objects.filter(worker_id=worker_id, state=TaskState.EXECUTING, started_at__lte=taken_before)
    return taken.exclude(pk__in=list(held)).update(
        state=TaskState.PENDING, run_at=now, hinted_at=None, worker_id="", lease_until=None, attempt=F("attempt") - 1
    )
