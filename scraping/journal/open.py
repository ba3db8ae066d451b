"""Opens tasks: every unit of work is a row before it is executed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from scraping.models import OPEN_STATES, ScrapeTask, Stage, TaskState
from scraping.payloads import Resource
from victoryline.lib import bulk_sql
from victoryline.lib.crash import crash_point

TRIES = 20
ROWS_AT_ONCE = 500
READ_DURING_OUTAGE = "read while the database was away, written when it was back"

_OPEN = bulk_sql.with_columns(
    ScrapeTask,
    """INSERT INTO {table}
       ({request_id}, {source}, {ref}, {job}, {resource}, {priority}, {run_at}, {hinted_at}, {created_at},
        {state}, {stage}, {attempt}, {charged_attempts}, {rescues}, {worker_id}, {fence}, {error_class}, {reason})
       VALUES {{rows}} ON CONFLICT DO NOTHING RETURNING {id}, {request_id}
    """,
)


@dataclass(frozen=True)
class NewTask:
    source_id: int
    ref_id: int | None
    resource: Resource
    priority: int
    run_at: datetime
    job_id: int | None = None


@dataclass(frozen=True)
class Opened:
    task_id: int
    source_id: int
    resource: Resource


def open_tasks(new: Sequence[NewTask], *, now: datetime) -> int:
    """Opens tasks, as `open_new` does; returns how many were new."""
    return len(open_new(new, now=now))


def open_new(new: Sequence[NewTask], *, now: datetime, is_hinted: bool = False) -> list[Opened]:
    """Writes tasks as PENDING. One that is open already for the same ref and resource stays as it is.

    `is_hinted`: the caller sends the hints itself, at once.
    """
    request_ids = [uuid.uuid4() for _ in new]
    prepared = ScrapeTask._meta.get_field("request_id").get_db_prep_save  # noqa: SLF001 - documented under this name
    rows = [
        (
            *(prepared(request_id, connection), task.source_id, task.ref_id, task.job_id, task.resource.value),
            *(task.priority, task.run_at, now if is_hinted else None, now),
            *(TaskState.PENDING.value, Stage.INIT.value, 0, 0, 0, "", 0, "", ""),
        )
        for request_id, task in zip(request_ids, new, strict=True)
    ]
    crash_point("open_tasks.before")
    written: dict[uuid.UUID, int] = {}
    for start in range(0, len(rows), ROWS_AT_ONCE):
        inserted = bulk_sql.fetch_rows(_OPEN, rows[start : start + ROWS_AT_ONCE])
        written |= {uuid.UUID(str(request_id)): task_id for task_id, request_id in inserted}
    crash_point("open_tasks.after")
    return [
        Opened(written[request_id], task.source_id, task.resource)
        for request_id, task in zip(request_ids, new, strict=True)
        if request_id in written
    ]


def open_or_share(new: Sequence[NewTask], *, now: datetime) -> dict[int, int]:
    """Returns the open task of each ref, all of one resource: a new one, or the one that is open already."""
    wanted = {task.ref_id: task for task in new if task.ref_id is not None}
    resources = {task.resource.value for task in new}
    found: dict[int, int] = {}
    # A task that was open may end between our INSERT, which did nothing because of it, and our SELECT: try again.
    for _ in range(TRIES):
        missing = sorted(wanted.keys() - found.keys())  # in one order, so that two jobs never deadlock
        if not missing:
            return found
        open_tasks([wanted[ref_id] for ref_id in missing], now=now)
        rows = ScrapeTask.objects.filter(ref_id__in=missing, resource__in=resources, state__in=OPEN_STATES)
        found |= dict(rows.values_list("ref_id", "pk"))
    raise RuntimeError(f"the tasks of {len(wanted.keys() - found.keys())} refs ended faster than they could be shared")


def record_past_read(
    request_id: uuid.UUID, *, source_id: int, ref_id: int, worker_id: str, read_at: datetime, now: datetime
) -> bool:
    """Writes the task of a reading made while the database was unreachable as done, in the transaction of its effects.

    Returns False where the task exists already: then its effects are in the database too.
    """
    _, is_new = ScrapeTask.objects.get_or_create(
        request_id=request_id,
        defaults={
            "source_id": source_id,
            "ref_id": ref_id,
            "resource": Resource.SCORECARD.value,
            "state": TaskState.SUCCESS,
            "stage": Stage.DONE,
            "attempt": 1,
            "fence": 1,
            "run_at": read_at,
            "worker_id": worker_id,
            "created_at": read_at,
            "started_at": read_at,
            "finished_at": now,
            "reason": READ_DURING_OUTAGE,
        },
    )
    return is_new
