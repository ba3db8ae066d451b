"""SQL statements over many rows at once: UPDATE ... FROM (VALUES ...), INSERT ... VALUES and upserts that add up.

Written out because the ORM takes several times longer to compose them than the database to run them, and has neither
UPDATE ... FROM nor RETURNING. PostgreSQL and SQLite (from 3.35) understand all of it alike.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Model

ROWS_AT_ONCE = 200

Row = Sequence[Any]
Sums = dict[tuple[Any, ...], Sequence[int]]  # numbers by key, counted in memory until `add_up` writes them


def with_columns(model: type[Model], statement: str) -> str:
    """Fills in the table and column names of a statement by `{table}` and `{name of a field}`.

    Used at import time, so that a renamed field is an error at the start. Write `{{rows}}` for the list of rows.
    """
    fields = model._meta.concrete_fields  # noqa: SLF001 - Django's documented way to a model's fields
    names = {field.name: f'"{field.column}"' for field in fields}
    return statement.format(table=f'"{model._meta.db_table}"', **names)  # noqa: SLF001


def execute_rows(statement: str, rows: Sequence[Row], *, before: Row = (), after: Row = ()) -> int:
    """Runs a statement in which `{rows}` is replaced by the value rows; returns how many rows it changed.

    `before` and `after` are the values of the placeholders in front of and behind `{rows}`. `{lock}` at the end of a
    subquery locks its rows.
    """
    with connection.cursor() as cursor:
        cursor.execute(*_bound(statement, before, rows, after))
        return int(cursor.rowcount)


def fetch_rows(statement: str, rows: Sequence[Row], *, before: Row = (), after: Row = ()) -> list[tuple[Any, ...]]:
    """As `execute_rows`, for a statement with RETURNING: returns those rows."""
    with connection.cursor() as cursor:
        cursor.execute(*_bound(statement, before, rows, after))
        return list(cursor.fetchall())  # to the end: SQLite holds its lock until then


def _bound(statement: str, before: Row, rows: Sequence[Row], after: Row) -> tuple[str, list[Any]]:
    one_row = "(" + ", ".join(["%s"] * len(rows[0])) + ")"
    lock = "FOR UPDATE" if connection.features.has_select_for_update else ""  # SQLite locks the whole database
    text = statement.format(rows=", ".join([one_row] * len(rows)), lock=lock)
    return text, [adapted(value) for part in (before, *rows, after) for value in part]


def adapted(value: Any) -> Any:
    """Returns a value as the database driver takes it: SQLite wants times as text."""
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def bucket_start(at: datetime, seconds: int) -> datetime:
    """Returns the start of the time bucket of `seconds` that `at` falls in; buckets are counted from the epoch."""
    return at.replace(microsecond=0) - timedelta(seconds=int(at.timestamp()) % seconds)


def in_periods(counts: Sums, lengths: Sequence[int]) -> Sums:
    """Returns counts by (..., time) as counts by (..., length, start), for each of the lengths in seconds."""
    found: Sums = {}
    for (*key, at), numbers in counts.items():
        for seconds in lengths:
            count(found, {(*key, seconds, bucket_start(at, seconds)): numbers})
    return found


def count(sums: Sums, rows: Mapping[tuple[Any, ...], Sequence[int]]) -> None:
    """Adds the numbers of `rows` to those in memory."""
    for key, numbers in rows.items():
        known = sums.get(key)
        sums[key] = numbers if known is None else tuple(map(operator.add, known, numbers))


def add_up(
    model: type[Model],
    *,
    by: Sequence[str],
    sums: Sequence[str],
    rows: Mapping[tuple[Any, ...], Sequence[float]],
    most: Sequence[str] = (),
) -> int:
    """Adds the numbers of `sums` to the rows identified by `by` (a unique key of the model); creates missing rows.

    For the columns of `most`, which follow `sums` in each row, the larger number is kept. Written in the order of the
    keys, which prevents deadlocks. Returns the number of rows.
    """
    by_name = {field.name: field for field in model._meta.concrete_fields}  # noqa: SLF001
    fields = [by_name[name] for name in (*by, *sums, *most)]
    table = f'"{model._meta.db_table}"'  # noqa: SLF001
    keys = [f'"{field.column}"' for field in fields[: len(by)]]
    columns = [f'"{field.column}"' for field in fields[len(by) :]]
    # CASE instead of GREATEST, which SQLite does not have.
    larger = "{0} = CASE WHEN excluded.{0} > {1}.{0} THEN excluded.{0} ELSE {1}.{0} END"
    added = [f"{column} = {table}.{column} + excluded.{column}" for column in columns[: len(sums)]]
    added += [larger.format(column, table) for column in columns[len(sums) :]]
    statement = (
        f"INSERT INTO {table} ({', '.join(keys + columns)}) VALUES {{rows}} "  # noqa: S608 - our own names only
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(added)}"
    )
    ordered = sorted(rows)
    for start in range(0, len(ordered), ROWS_AT_ONCE):
        values = [
            [field.get_db_prep_save(value, connection) for field, value in zip(fields, (*key, *rows[key]), strict=True)]
            for key in ordered[start : start + ROWS_AT_ONCE]
        ]
        execute_rows(statement, values)
    return len(rows)
