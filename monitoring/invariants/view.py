"""One consistent look at the whole database: what is written meanwhile is not seen, so that it can't look half done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def consistent_view() -> Iterator[None]:
    """Everything that is read in the body is of the same moment; writing in it fails. Writers are not held up."""
    if connection.in_atomic_block:  # the caller's transaction is the view; it can't be changed any more
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        yield from _sqlite_view()


def _sqlite_view() -> Iterator[None]:
    """`atomic` would take the write lock (IMMEDIATE), and everybody would wait for us."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
            cursor.execute("PRAGMA query_only = OFF")
