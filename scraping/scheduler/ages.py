"""How old the data of each live match is, as a column: for lists, reports and whoever reads the table itself.

Two statements, whatever the number of matches. A row that somebody else holds is being written just now: it is left
out, and its age is written the next time. What is served does not come from here; it is measured when it is asked for.
"""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce

from scraping.models import Match
from victoryline.lib import bulk_sql

MOST_SECONDS = 2**31 - 1  # what the column holds


def write_ages(now: datetime) -> int:
    """How many ages were written. A match that was never read is as old as its discovery."""
    with transaction.atomic():
        rows = [(pk, _age(heard_at, now)) for pk, heard_at, before in _live() if _age(heard_at, now) != before]
        return _write(rows) if rows else 0


def _live() -> list[tuple[int, datetime, int]]:
    matches = Match.objects.live().watched().annotate(heard_at=Coalesce(F("last_scraper_update"), F("created_at")))
    matches = matches.order_by("pk")  # as every other writer of matches locks them
    if connection.features.has_select_for_update_skip_locked:
        matches = matches.select_for_update(skip_locked=True, no_key=True, of=("self",))
    return list(matches.values_list("pk", "heard_at", "data_freshness_seconds"))


def _age(heard_at: datetime, now: datetime) -> int:
    return min(MOST_SECONDS, max(0, int((now - heard_at).total_seconds())))


def _write(rows: list[tuple[int, int]]) -> int:
    return bulk_sql.execute_rows(
        """UPDATE scraping_match SET data_freshness_seconds = v.column2 FROM (VALUES {rows}) AS v
           WHERE scraping_match.id = v.column1""",
        rows,
    )
