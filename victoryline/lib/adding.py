"""Rows of sums, added to by many processes at once: one statement that makes what is missing and adds to what is there.

PostgreSQL and SQLite understand it alike. Rows go in one order: two writers never wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, Model

ROWS_AT_ONCE = 200


def add_up(
    model: type[Model],
    *,
    by: Sequence[str],
    sums: Sequence[str],
    rows: Mapping[tuple[Any, ...], Sequence[float]],
    most: Sequence[str] = (),
) -> int:
    """Add to the rows that `by` tells apart (a unique key of the model) the numbers of `sums`; how many rows.

    Of those of `most`, which come after them, the larger one stays.
    """
    fields = [_field(model, name) for name in (*by, *sums, *most)]
    table = f'"{model._meta.db_table}"'  # noqa: SLF001 - it is public, for all its name
    columns = [f'"{field.column}"' for field in fields]
    first_most = len(by) + len(sums)
    added = ", ".join(
        [f"{column} = {table}.{column} + excluded.{column}" for column in columns[len(by) : first_most]]
        + [_larger(table, column) for column in columns[first_most:]]
    )
    for part in _parts(sorted(rows)):
        values = ", ".join(f"({', '.join(['%s'] * len(fields))})" for _ in part)
        statement = (
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values} "  # noqa: S608 - our own names only
            f"ON CONFLICT ({', '.join(columns[: len(by)])}) DO UPDATE SET {added}"
        )
        with connection.cursor() as cursor:
            cursor.execute(statement, [value for key in part for value in _prepared(fields, (*key, *rows[key]))])
    return len(rows)


def _larger(table: str, column: str) -> str:
    """In words that both databases know: GREATEST is PostgreSQL's alone."""
    return f"{column} = CASE WHEN excluded.{column} > {table}.{column} THEN excluded.{column} ELSE {table}.{column} END"


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    field = model._meta.get_field(name)  # noqa: SLF001
    assert isinstance(field, Field)
    return field


def _prepared(fields: Sequence[Field[Any, Any]], values: Sequence[Any]) -> list[Any]:
    return [field.get_db_prep_save(value, connection) for field, value in zip(fields, values, strict=True)]


def _parts(keys: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    for start in range(0, len(keys), ROWS_AT_ONCE):
        yield keys[start : start + ROWS_AT_ONCE]
