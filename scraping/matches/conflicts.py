"""Where sources disagree about a match: rows that open, are counted, and close when they agree again.

Only a conflict that lasts is logged. Of two sources one is always some seconds late, and a wide or a goal that it has
not told yet looks like a disagreement: a line for each of those would hide the ones that somebody has to look at.

Sole writer of Conflict. Called inside the transaction that writes the match, with its row locked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from scraping.matches.reconcile import FieldConflict
from scraping.models import Conflict

logger = logging.getLogger("scraping.reconciliation")

Key = tuple[str, frozenset[str]]  # the field and both sources, whichever of them is believed at the moment
LASTS = timedelta(seconds=15)  # so late a source may be without anybody having to look
VALUES = ("chosen_source", "chosen_value", "other_source", "other_value", "difference_percent")


def note(match_id: int, found: Sequence[FieldConflict], *, now: datetime, had_open: bool | None = None) -> int:
    """Write what the sources of a match disagree about now; how many conflicts are open then.

    `had_open` False: the caller knows that there were none, so that agreement costs no query at all.
    """
    if not found and had_open is False:
        return 0
    rows = {_key(row): row for row in open_of(match_id)}
    news = {_key(one): one for one in found}
    # In this order: an open row's place (match, field, other source) must be free before another one takes it.
    _close([row for key, row in rows.items() if key not in news], now)
    _count([(row, news[key]) for key, row in rows.items() if key in news], now)
    _open(match_id, [one for key, one in news.items() if key not in rows], now)
    return len(news)


def open_of(match_id: int) -> QuerySet[Conflict]:
    return Conflict.objects.filter(match_id=match_id, resolved_at=None)


def close_all(match_id: int, *, now: datetime) -> None:
    """The match is told by one source only, or is none any more."""
    note(match_id, (), now=now)


def _key(one: Conflict | FieldConflict) -> Key:
    return one.field, frozenset((one.chosen_source, one.other_source))


def _open(match_id: int, found: Sequence[FieldConflict], now: datetime) -> None:
    Conflict.objects.bulk_create(
        Conflict(match_id=match_id, field=one.field, first_seen_at=now, last_seen_at=now, **_values(one))
        for one in found
    )


def _count(seen: Sequence[tuple[Conflict, FieldConflict]], now: datetime) -> None:
    """One statement for all that say what they said before, one more for each that says something else."""
    if not seen:
        return
    for row, one in seen:
        values = _values(one)
        if any(getattr(row, name) != value for name, value in values.items()):
            Conflict.objects.filter(pk=row.pk).update(**values)
    text = "Sources disagree about %s of match %s: %s says %s, %s says %s"
    lasting = [one for row, one in seen if not _was_told(row) and now - row.first_seen_at >= LASTS]
    _log(text, seen[0][0].match_id, lasting, logger.warning, "conflict")
    Conflict.objects.filter(pk__in=[row.pk for row, _ in seen]).update(times_seen=F("times_seen") + 1, last_seen_at=now)


def _close(rows: Sequence[Conflict], now: datetime) -> None:
    if rows:
        Conflict.objects.filter(pk__in=[row.pk for row in rows]).update(resolved_at=now)
        text = "Sources agree again about %s of match %s: %s said %s, %s said %s"
        _log(text, rows[0].match_id, [row for row in rows if _was_told(row)], logger.info, "agreement")


def _was_told(row: Conflict) -> bool:
    """Has it lasted long enough to be in the log?"""
    return row.last_seen_at - row.first_seen_at >= LASTS


def _values(one: Conflict | FieldConflict) -> dict[str, Any]:
    return {name: getattr(one, name) for name in VALUES}


def _log(
    text: str,
    match_id: int,
    rows: Iterable[Conflict | FieldConflict],
    level: Callable[..., None],
    what: str,
) -> None:
    for row in rows:
        words = row.field, match_id, row.chosen_source, row.chosen_value, row.other_source, row.other_value
        extra = {"action": f"reconciliation_{what}", "match_id": match_id, "field": row.field, **_values(row)}
        transaction.on_commit(partial(level, text, *words, extra=extra))
