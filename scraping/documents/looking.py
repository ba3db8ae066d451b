"""Finds out from the database which matches differ from what the board holds, and takes them.

A look compares marks: a handful of columns for each match, without payloads. What was only read again, without news,
gets its new times; what has changed is read whole. `hot` matches are those that are being read now, or may be
corrected: after its end a match is read once more as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from scraping.documents import queries, recall
from scraping.documents.board import Board
from scraping.documents.known import Known, KnownRef
from scraping.models import Match, MatchLifecycle, MatchRef

logger = logging.getLogger(__name__)

HELD_AT_MOST = 5_000
AT_ONCE = 500
HOT = (MatchLifecycle.ACTIVE, MatchLifecycle.PAUSED, MatchLifecycle.COMPLETED)
COLUMNS = (
    "pk", "sequence", "last_scraper_update", "lifecycle", "status", "phase", "title", "last_changed_at", "pause_until",
    "frozen_at", "start_time",
)  # fmt: skip
Mark = tuple[Any, ...]
Plan = tuple[str, str, datetime | None, datetime | None]


def look(board: Board) -> int:
    """Compare every match that isn't archived; how many differed."""
    before, read_at = board.ids(), board.now()  # what is told of after this is not gone because we haven't seen it
    rows = Match.objects.watched().filter(merged_into=None).order_by("-pk").values_list(*COLUMNS)
    marks = {row[0]: row[1:] for row in rows[: HELD_AT_MOST + 1]}
    board.is_complete = len(marks) <= HELD_AT_MOST
    if not board.is_complete:
        marks.pop(min(marks))
    board.floor = 0 if board.is_complete else min(marks)
    found = _take(board, marks, read_at)
    board.drop(before - marks.keys())
    found += _take_plans(board)
    board.stay_in_step()
    return found


def look_at_hot(board: Board) -> int:
    """Compare those that are read, and those that were a moment ago: all but what is to come and nobody has read."""
    read_at = board.now()
    rows = Match.objects.filter(lifecycle__in=HOT, merged_into=None, pk__gte=board.floor).values_list(*COLUMNS)
    marks = {row[0]: row[1:] for row in rows}
    left = [each.id for each in board.newest_first() if each.lifecycle in HOT and each.id not in marks]
    found = _take(board, marks, read_at)
    if left:
        take(board, left)
    board.stay_in_step()
    return found + len(left)


def take(board: Board, match_ids: Sequence[int]) -> None:
    """Read these whole. What is archived, or has become another match, is no longer held."""
    for start in range(0, len(match_ids), AT_ONCE):
        some, read_at = match_ids[start : start + AT_ONCE], board.now()
        rows = [row for row in queries.known_matches(ids=some) if not row.merged_into_id]
        held = [row for row in rows if row.lifecycle != MatchLifecycle.ARCHIVED]
        went_back = [row.pk for row in held if _puts_back(board, Known.of(row), read_at)]
        if went_back:
            _forget_the_future(went_back)
        gone = set(some) - {row.pk for row in held}
        if gone:
            board.drop(gone)


def has_moved(last: int | None) -> tuple[bool, int | None]:
    """Has anybody else committed anything since `last`? SQLite tells for next to nothing; others must be asked."""
    if connection.vendor != "sqlite":
        return True, None
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA data_version")
        version = int(cursor.fetchone()[0])
    return version != last, version


def _puts_back(board: Board, known: Known, read_at: float) -> bool:
    """Take it. True: the database has gone back behind what is held."""
    held = board.get(known.id)
    return board.put(known, read_at=read_at) and held is not None and held.sequence > known.sequence


def _forget_the_future(match_ids: Sequence[int]) -> None:
    """A database that was restored gives its numbers out again, for other states: nothing kept by them is true."""
    recall.forget()
    logger.warning(
        "The database has gone back in %d matches, as after a restore; what was remembered is forgotten",
        len(match_ids),
        extra={"action": "store_went_back", "match_ids": list(match_ids[:20])},
    )


def _take(board: Board, marks: dict[int, Mark], read_at: float) -> int:
    changed, read_again = [], {}
    for match_id, mark in marks.items():
        held = board.get(match_id)
        mine = None if held is None else _mark_of(held)
        if mine is None or mine[0] != mark[0] or mine[2:] != mark[2:]:
            changed.append(match_id)
        elif mine[1] != mark[1]:
            read_again[match_id] = mark[1]
    if changed:
        take(board, changed)
    if read_again:
        _renew(board, read_again, read_at)
    return len(changed) + len(read_again)


def _renew(board: Board, scraped_at: dict[int, datetime], read_at: float) -> None:
    refs = _refs_of(scraped_at)
    for match_id, moment in scraped_at.items():
        held = board.get(match_id)
        if held is not None:
            board.put(replace(held, scraped_at=moment, refs=refs.get(match_id, held.refs)), read_at=read_at)


def _take_plans(board: Board) -> int:
    """Plans and names change without a reading: a failed one moves the next, a source turns out to have it, too."""
    columns = (
        *("match_id", "source__key", "source_event_id", "held_until"),
        *("next_poll_at", "is_watched", "source__is_enabled"),
    )
    read_at, planned = board.now(), dict[int, set[Plan]]()
    for match_id, source, event_id, held, at, is_watched, is_enabled in _refs_of_watched().values_list(*columns):
        planned.setdefault(match_id, set()).add((source, event_id, held, at if is_watched and is_enabled else None))
    stale = [each.id for each in board.newest_first() if planned.get(each.id, set()) != _plans_of(each)]
    refs = _refs_of(stale)
    for match_id in stale:
        held = board.get(match_id)
        if held is not None:
            board.put(replace(held, refs=refs.get(match_id, ())), read_at=read_at)
    return len(stale)


def _refs_of_watched() -> QuerySet[MatchRef]:
    refs = MatchRef.objects.annotate(held_until=queries.HELD_UNTIL)
    return refs.filter(match__in=Match.objects.watched().filter(merged_into=None).values("pk"))


def _plans_of(known: Known) -> set[Plan]:
    return {(ref.source, ref.event_id, ref.held_until, ref.next_poll_at) for ref in known.refs}


def _refs_of(match_ids: Iterable[int]) -> dict[int, tuple[KnownRef, ...]]:
    found: dict[int, list[KnownRef]] = {}
    wanted = list(match_ids)
    for start in range(0, len(wanted), AT_ONCE):
        for ref in queries.refs_of(wanted[start : start + AT_ONCE]):
            found.setdefault(ref.match_id, []).append(KnownRef.of(ref))
    return {match_id: tuple(refs) for match_id, refs in found.items()}


def _mark_of(known: Known) -> Mark:
    return (
        known.sequence, known.scraped_at, known.lifecycle, known.status, known.phase, known.title, known.changed_at,
        known.pause_until, known.frozen_at, known.start_time,
    )  # fmt: skip
