"""Conflicts between sources: rows that are opened, counted, and closed when the sources agree again.

Only a conflict that lasts is logged, because one of two sources is always some seconds late. The only writer of
Conflict. Called inside the transaction that writes the match, with its row locked.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from scraping.matches.reconcile.states import FieldConflict
from scraping.models import Conflict, match_key

logger = logging.getLogger("scraping.reconciliation")

LASTING = timedelta(seconds=15)  # shorter conflicts are delays of a source and not logged
VALUES = ("chosen_source", "chosen_value", "other_source", "other_value", "difference_percent")


def note(match_id: int, found: Sequence[FieldConflict], *, now: datetime) -> int:
    """Writes the present conflicts of a match; returns how many are open."""
    rows = {_key(row): row for row in Conflict.objects.filter(match_id=match_id, resolved_at=None)}
    present = {_key(one): one for one in found}
    # In this order: an open row's unique key (match, field, other source) must be free before another row takes it.
    gone = [row for key, row in rows.items() if key not in present]
    if gone:
        Conflict.objects.filter(pk__in=[row.pk for row in gone]).update(resolved_at=now)
        text = "Sources agree again about %s of match %s: %s said %s, %s said %s"
        _log(logging.INFO, text, match_id, [row for row in gone if _was_logged(row)], "agreement")
    _count([(row, present[key]) for key, row in rows.items() if key in present], now)
    Conflict.objects.bulk_create(
        Conflict(match_id=match_id, field=one.field, first_seen_at=now, last_seen_at=now, **_values(one))
        for key, one in present.items()
        if key not in rows
    )
    return len(present)


def _key(one: Conflict | FieldConflict) -> tuple[str, frozenset[str]]:
    """Returns the field and both sources, whichever of them is chosen at the moment."""
    return one.field, frozenset((one.chosen_source, one.other_source))


def _count(seen: Sequence[tuple[Conflict, FieldConflict]], now: datetime) -> None:
    """Counts with one statement for all, and one more for each whose values have changed."""
    if not seen:
        return
    for row, one in seen:
        values = _values(one)
        if any(getattr(row, name) != value for name, value in values.items()):
            Conflict.objects.filter(pk=row.pk).update(**values)
    lasting = [one for row, one in seen if not _was_logged(row) and now - row.first_seen_at >= LASTING]
    text = "Sources disagree about %s of match %s: %s says %s, %s says %s"
    _log(logging.WARNING, text, seen[0][0].match_id, lasting, "conflict")
    Conflict.objects.filter(pk__in=[row.pk for row, _ in seen]).update(times_seen=F("times_seen") + 1, last_seen_at=now)


def _was_logged(row: Conflict) -> bool:
    return row.last_seen_at - row.first_seen_at >= LASTING


def _values(one: Conflict | FieldConflict) -> dict[str, Any]:
    return {name: getattr(one, name) for name in VALUES}


def _log(level: int, text: str, match_id: int, rows: Iterable[Conflict | FieldConflict], outcome: str) -> None:
    key = match_key(match_id) if (rows := tuple(rows)) else ""
    for row in rows:
        values = row.field, key, row.chosen_source, row.chosen_value, row.other_source, row.other_value
        extra = {"action": f"reconciliation_{outcome}", "match_id": key, "field": row.field, **_values(row)}
        transaction.on_commit(partial(logger.log, level, text, *values, extra=extra))
