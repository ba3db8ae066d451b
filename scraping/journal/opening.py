"""Work is written down before it is done."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scraping.journal import statements
from scraping.models import OPEN_STATES, ScrapeTask
from scraping.payloads import Resource
from victoryline.lib.crash import crash_point

TRIES = 20
MANY = 500  # rows in one statement


@dataclass(frozen=True)
class NewTask:
    """A unit of work to be written down."""

    source_id: int
    ref_id: int | None
    resource: Resource
    priority: int
    run_at: datetime
    job_id: int | None = None


@dataclass(frozen=True)
class Opened:
    """A task that was written."""

    task_id: int
    source_id: int
    resource: Resource


def open_tasks(new: Sequence[NewTask], *, now: datetime) -> int:
    """Write tasks, as `open_new` does; how many were new."""
    return len(open_new(new, now=now))


def open_new(new: Sequence[NewTask], *, now: datetime, is_hinted: bool = False) -> list[Opened]:
    """Write tasks as PENDING. One that is open already for the same ref and resource is left as it is.

    `is_hinted`: whoever opens them also tells the workers, at once.
    """
    rows = [
        ScrapeTask(
            request_id=uuid.uuid4(),
            source_id=task.source_id,
            ref_id=task.ref_id,
            job_id=task.job_id,
            resource=task.resource.value,
            priority=task.priority,
            run_at=task.run_at,
            hinted_at=now if is_hinted else None,
            created_at=now,
        )
        for task in new
    ]
    crash_point("open_tasks.before")
    written: dict[uuid.UUID, int] = {}
    for start in range(0, len(rows), MANY):
        written |= statements.open_many(rows[start : start + MANY])
    crash_point("open_tasks.after")
    return [
        Opened(written[row.request_id], row.source_id, task.resource)
        for row, task in zip(rows, new, strict=True)
        if row.request_id in written
    ]


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
