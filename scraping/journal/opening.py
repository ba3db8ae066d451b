"""Work is written down before it is done."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scraping.models import ScrapeTask
from scraping.payloads import Resource


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
