"""Work is written down before it is done."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scraping.models import OPEN_STATES, ScrapeTask
from scraping.payloads import Resource
from victoryline.lib.crash import crash_point

TRIES = 20


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
    crash_point("open_tasks.before")
    ScrapeTask.objects.bulk_create(rows, ignore_conflicts=True)
    crash_point("open_tasks.after")
    ids = [row.request_id for row in rows]
    return ScrapeTask.objects.filter(id__gt=before, request_id__in=ids).count() if rows else 0


def open_or_share(new: Sequence[NewTask], *, now: datetime) -> dict[int, int]:
    """The open task of each ref, all of one resource: a new one, or that which was open already. By ref."""
    wanted = {task.ref_id: task for task in new if task.ref_id is not None}
    resources = {task.resource.value for task in new}
    found: dict[int, int] = {}
    # One that was open may end between our INSERT, which it made do nothing, and our look: then it is opened now.
    for _ in range(TRIES):
        missing = sorted(wanted.keys() - found.keys())  # in one order, so that two jobs never deadlock
        if not missing:
            return found
        open_tasks([wanted[ref_id] for ref_id in missing], now=now)
        rows = ScrapeTask.objects.filter(ref_id__in=missing, resource__in=resources, state__in=OPEN_STATES)
        found |= dict(rows.values_list("ref_id", "pk"))
    raise RuntimeError(f"the tasks of {len(wanted.keys() - found.keys())} refs ended faster than they could be shared")
