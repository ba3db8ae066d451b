"""The statements that every poll needs of the journal, written out, each for one task or for many.

The ORM takes several times longer to compose them than the database to run them (3.2 ms of our time a task, 0.7 ms
written out), and claims in two steps what UPDATE ... RETURNING does in one. Columns are named through the model, so
that a renamed one is an error at the start. PostgreSQL and SQLite (from 3.35) understand both alike.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db import connection
from django.db.models import Field

from scraping.models import ScrapeTask, Stage, TaskState

_META = ScrapeTask._meta  # noqa: SLF001 - it is public, for all its name
# fmt: off
_FIELDS = (
    "id", "state", "stage", "attempt", "charged_attempts", "fence", "worker_id", "lease_until", "started_at", "run_at",
    "finished_at", "reason", "error_class", "error", "resource", "source", "ref", "job", "request_id", "priority",
    "hinted_at", "created_at", "rescues",
)
# fmt: on
_NAMES = {name: f'"{cast("Field[Any, Any]", _META.get_field(name)).column}"' for name in _FIELDS}
_TAKE = """UPDATE {table}
    SET {state} = %s, {stage} = %s, {attempt} = {attempt} + 1, {fence} = {fence} + 1,
        {worker_id} = %s, {lease_until} = %s, {started_at} = %s
    WHERE {id} = %s AND {state} = %s AND {run_at} <= %s
    RETURNING {fence}, {attempt}, {charged_attempts}, {resource}, {source}, {ref}, {job}, {error_class} <> ''
""".format(table=f'"{_META.db_table}"', **_NAMES)  # noqa: S608 - our own names only
# Rows are locked in one order: two statements that each take many never wait for each other in a circle.
_TAKE_MANY = """UPDATE {table}
    SET {state} = %s, {stage} = %s, {attempt} = {attempt} + 1, {fence} = {fence} + 1,
        {worker_id} = %s, {lease_until} = %s, {started_at} = %s
    WHERE {id} IN (SELECT {id} FROM {table} WHERE {id} IN ({{ids}}) AND {state} = %s AND {run_at} <= %s
                   ORDER BY {id} {{lock}})
    RETURNING {id}, {fence}, {attempt}, {charged_attempts}, {resource}, {source}, {ref}, {job}, {error_class} <> ''
""".format(table=f'"{_META.db_table}"', **_NAMES)  # noqa: S608
_END_MANY = """UPDATE {table}
    SET {state} = %s, {stage} = %s, {finished_at} = %s, {lease_until} = NULL, {reason} = '',
        {error_class} = '', {error} = NULL
    WHERE {id} IN (SELECT {id} FROM {table} WHERE ({id}, {fence}) IN (VALUES {{held}})
                     AND {worker_id} = %s AND {state} = %s
                   ORDER BY {id} {{lock}})
    RETURNING {id}
""".format(table=f'"{_META.db_table}"', **_NAMES)  # noqa: S608
_OPEN_MANY = """INSERT INTO {table}
    ({request_id}, {source}, {ref}, {job}, {resource}, {priority}, {run_at}, {hinted_at}, {created_at},
     {state}, {stage}, {attempt}, {charged_attempts}, {rescues}, {worker_id}, {fence}, {error_class}, {reason})
    VALUES {{rows}} ON CONFLICT DO NOTHING RETURNING {id}, {request_id}
""".format(table=f'"{_META.db_table}"', **_NAMES)  # noqa: S608
_END = """UPDATE {table}
    SET {state} = %s, {stage} = %s, {finished_at} = %s, {lease_until} = NULL, {reason} = %s,
        {error_class} = '', {error} = NULL
    WHERE {id} = %s AND {fence} = %s AND {worker_id} = %s AND {state} = %s
""".format(table=f'"{_META.db_table}"', **_NAMES)  # noqa: S608


@dataclass(frozen=True)
class Taken:
    """The row as it is after the claim."""

    fence: int
    attempt: int
    charged_attempts: int
    resource: str
    source_id: int
    ref_id: int | None
    job_id: int | None
    has_failed: bool  # an attempt before this one left its error behind


def take(task_id: int, *, worker_id: str, lease_until: datetime, now: datetime) -> Taken | None:
    """PENDING and due -> EXECUTING, in one step; None if it isn't there to be taken."""
    moment = _moment(now)
    values = (
        *(TaskState.EXECUTING.value, Stage.INIT.value, worker_id, _moment(lease_until), moment),
        *(task_id, TaskState.PENDING.value, moment),
    )
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        rows = cursor.fetchall()  # to the end: SQLite holds its lock until then
    return Taken(*rows[0]) if rows else None


def take_many(
    task_ids: Sequence[int], *, worker_id: str, lease_until: datetime, now: datetime
) -> list[tuple[int, Taken]]:
    """As `take`, of as many of them as are there to be taken."""
    moment = _moment(now)
    values = (
        *(TaskState.EXECUTING.value, Stage.INIT.value, worker_id, _moment(lease_until), moment),
        *(*task_ids, TaskState.PENDING.value, moment),
    )
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_MANY.format(ids=", ".join(["%s"] * len(task_ids)), lock=_lock()), values)
        return sorted((row[0], Taken(*row[1:])) for row in cursor.fetchall())


def end_many(held: Sequence[tuple[int, int]], *, worker_id: str, now: datetime) -> set[int]:
    """EXECUTING -> SUCCESS of tasks by their number and fence; those that were still their holder's."""
    values = (
        *(TaskState.SUCCESS.value, Stage.DONE.value, _moment(now)),
        *(number for pair in held for number in pair),
        *(worker_id, TaskState.EXECUTING.value),
    )
    with connection.cursor() as cursor:
        cursor.execute(_END_MANY.format(held=", ".join(["(%s, %s)"] * len(held)), lock=_lock()), values)
        return {row[0] for row in cursor.fetchall()}


def open_many(rows: Sequence[ScrapeTask]) -> dict[uuid.UUID, int]:
    """Write new tasks as PENDING; the numbers of those that were written, by their request's id."""
    values = [value for row in rows for value in _columns(row)]
    places = "(" + ", ".join(["%s"] * (len(values) // len(rows))) + ")"
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_MANY.format(rows=", ".join([places] * len(rows))), values)
        return {uuid.UUID(str(request_id)): task_id for task_id, request_id in cursor.fetchall()}


def _columns(row: ScrapeTask) -> tuple[Any, ...]:
    request_id = _META.get_field("request_id").get_db_prep_save(row.request_id, connection)
    return (
        *(request_id, row.source_id, row.ref_id, row.job_id, row.resource, row.priority),
        *(_moment(row.run_at), _moment(row.hinted_at) if row.hinted_at else None, _moment(row.created_at)),
        *(TaskState.PENDING.value, Stage.INIT.value, 0, 0, 0, "", 0, "", ""),
    )


def _lock() -> str:
    return "FOR UPDATE" if connection.features.has_select_for_update else ""


def end(task_id: int, *, fence: int, worker_id: str, to_state: TaskState, reason: str, now: datetime) -> bool:
    """EXECUTING -> its end, with what earlier attempts failed of cleared; False if it isn't the holder's any more."""
    values = (
        *(to_state.value, Stage.DONE.value, _moment(now), reason),
        *(task_id, fence, worker_id, TaskState.EXECUTING.value),
    )
    with connection.cursor() as cursor:
        cursor.execute(_END, values)
        return bool(cursor.rowcount)


def _moment(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)
