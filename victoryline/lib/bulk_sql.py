"""SQL statements over many rows at once: UPDATE ... FROM (VALUES ...), INSERT ... VALUES and upserts that add up.

Written out because the ORM takes several times longer to compose them than the database to run them, and has neither
UPDATE ... FROM nor RETURNING. PostgreSQL and SQLite (from 3.35) understand all of it alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Field, Model

ROWS_AT_ONCE = 200

Row = Sequence[Any]


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
        cursor.execute(_with_rows(statement, rows), _values(before, rows, after))
        return int(cursor.rowcount)


def fetch_rows(statement: str, rows: Sequence[Row], *, before: Row = (), after: Row = ()) -> list[tuple[Any, ...]]:
    """As `execute_rows`, for a statement with RETURNING: returns those rows."""
    with connection.cursor() as cursor:
        cursor.execute(_with_rows(statement, rows), _values(before, rows, after))
        return list(cursor.fetchall())  # to the end: SQLite holds its lock until then


def _with_rows(statement: str, rows: Sequence[Row]) -> str:
    one_row = "(" + ", ".join(["%s"] * len(rows[0])) + ")"
    lock = "FOR UPDATE" if connection.features.has_select_for_update else ""  # SQLite locks the whole database
    return statement.format(rows=", ".join([one_row] * len(rows)), lock=lock)


def _values(before: Row, rows: Sequence[Row], after: Row) -> list[Any]:
    return [adapted(value) for part in (before, *rows, after) for value in part]


def adapted(value: Any) -> Any:
    """Returns a value as the database driver takes it: SQLite wants times as text."""
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def add_up(
    model: type[Model],
    *,
    by: Sequence[str],
    sums: Sequence[str],
    rows: Mapping[tuple[Any, ...], Sequence[float]],
    most: Sequence[str] = (),
) -> int:
    """Adds the numbers of `sums` to the rows identified by `by` (a unique key of the model); creates missing rows.

    For the columns of `most`, which follow `sums` in each row, the larger number is kept. Rows are written in the order
    of their keys, so that two processes never wait for each other in a circle. Returns the number of rows.
    """
    fields = [_field(model, name) for name in (*by, *sums, *most)]
    table = f'"{model._meta.db_table}"'  # noqa: SLF001
    columns = [f'"{field.column}"' for field in fields]
    first_most = len(by) + len(sums)
    added = ", ".join(
        [f"{column} = {table}.{column} + excluded.{column}" for column in columns[len(by) : first_most]]
        + [_larger(table, column) for column in columns[first_most:]]
    )
    statement = (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES {{rows}} "  # noqa: S608 - our own names only
        f"ON CONFLICT ({', '.join(columns[: len(by)])}) DO UPDATE SET {added}"
    )
    keys = sorted(rows)
    for start in range(0, len(keys), ROWS_AT_ONCE):
        part = keys[start : start + ROWS_AT_ONCE]
        execute_rows(statement, [_prepared(fields, (*key, *rows[key])) for key in part])
    return len(rows)


def _larger(table: str, column: str) -> str:
    """CASE instead of GREATEST, which SQLite does not have."""
    return f"{column} = CASE WHEN excluded.{column} > {table}.{column} THEN excluded.{column} ELSE {table}.{column} END"


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name)  # noqa: SLF001
    assert isinstance(field, Field)
    return field


def _prepared(fields: Sequence[Field[Any, Any]], values: Sequence[Any]) -> list[Any]:
    return [field.get_db_prep_save(value, connection) for field, value in zip(fields, values, strict=True)]
