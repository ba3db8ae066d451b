"""Whether this installation can do its work: database there, tables current, a worker alive."""

from __future__ import annotations

from datetime import datetime

from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from monitoring.queries import workers_at_work
from scraping.models.process import SILENT_AFTER
from victoryline.lib import availability, pg_wait


class _Migrations:
    """Migrations that were applied once stay applied, so a good answer is never asked for again."""

    def __init__(self) -> None:
        self._are_applied = False

    def are_applied(self) -> bool:
        if not self._are_applied:
            executor = MigrationExecutor(connection)
            self._are_applied = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return self._are_applied


_migrations = _Migrations()


def reasons_not_ready(now: datetime) -> list[str]:
    """Empty: ready."""
    if availability.database.is_away():
        return [f"the database is away ({availability.database.reason()})"]
    try:
        with pg_wait.within(availability.READ_SECONDS):
            return _reasons(now)
    except Error as error:
        availability.database.report(error)
        return [f"the database is away ({type(error).__name__})"]


def _reasons(now: datetime) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    if not _migrations.are_applied():
        return ["migrations are not applied: run manage.py migrate"]
    if not workers_at_work(now):
        return [f"no worker has been heard of for {SILENT_AFTER.total_seconds():.0f} s"]
    return []
