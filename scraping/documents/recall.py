"""Answers from what is known last. Says so when it doesn't know: a part of a list is never passed off as the whole."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime

from scraping.documents import pages, shared
from scraping.documents.absent import absent
from scraping.documents.known import Known, NotKnown, number_in
from scraping.documents.memory import memory
from scraping.documents.queries import SERIES_LENGTH, MatchFilter
from scraping.models import MatchLifecycle
from scraping.models.plain_text import plain

RENEWED_SECONDS = 1.0
LONGEST_WAY = 5  # from one match to what it became; what was published at different times might lead in a circle
RENEWED_FACTOR = 10  # at most a tenth of the time goes into renewing


@dataclass(frozen=True)
class _Everything:
    matches: tuple[Known, ...]  # newest first
    is_complete: bool


def match(name: str) -> Known:
    """By its number or its name at a source, with "cache" as its source; raises NotKnown."""
    match_id = _id_of(name)
    if match_id is None:
        raise NotKnown(f"match {name[:100]}")
    known = _newest(match_id, shared.match(match_id))
    for _ in range(LONGEST_WAY):
        if known.merged_into is None:
            break
        known = _newest(known.merged_into, shared.match(known.merged_into))
    return replace(known, data_source="cache")


def page(wanted: MatchFilter, *, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
    """As `queries.page_of_matches`, from all that workers have published, or as this process last answered the same."""
    everything = _everything.get()
    if everything is None or wanted.lifecycle == MatchLifecycle.ARCHIVED:
        return _as_answered_before(wanted, before_id, limit)
    found = [
        each for each in everything.matches if (before_id is None or each.id < before_id) and is_wanted(each, wanted)
    ]
    if len(found) <= limit and not everything.is_complete:
        return _as_answered_before(wanted, before_id, limit)
    return [replace(each, data_source="cache") for each in found[:limit]], len(found) > limit


def is_wanted(known: Known, wanted: MatchFilter) -> bool:
    """What `queries.page_of_matches` asks of the database, asked of one match."""
    return (
        (known.lifecycle == wanted.lifecycle if wanted.lifecycle else known.lifecycle != MatchLifecycle.ARCHIVED)
        and (not wanted.status or known.status in wanted.statuses)
        and wanted.sport in {"", known.sport}
        and (not wanted.source or any(ref.source == wanted.source for ref in known.refs))
        and (not wanted.team or _has_part(known.team_a, wanted.team) or _has_part(known.team_b, wanted.team))
        and (not wanted.series or _has_part(_series(known), wanted.series))
        and _is_between(known.start_time, wanted.start_from, wanted.start_to)
        and _is_between(known.changed_at, wanted.updated_since, None)
    )


def _has_part(name: str, part: str) -> bool:
    return plain(part) in plain(name)


def _series(known: Known) -> str:
    """As far as the column of the database has it."""
    metadata = known.payload.get("metadata") or {}
    return str(metadata.get("series") or "")[:SERIES_LENGTH]


def _is_between(moment: datetime | None, start: datetime | None, end: datetime | None) -> bool:
    if start is None and end is None:
        return True
    return moment is not None and (start is None or moment >= start) and (end is None or moment < end)


def list_question(wanted: MatchFilter, before_id: int | None, limit: int) -> tuple[object, ...]:
    return ("list", wanted, before_id, limit)


def _as_answered_before(wanted: MatchFilter, before_id: int | None, limit: int) -> tuple[list[Known], bool]:
    answered = memory.page(list_question(wanted, before_id, limit))
    if not isinstance(answered, list):
        raise NotKnown("this list")
    ids, has_more = answered
    held = shared.matches(ids)
    return [replace(_newest(each, held.get(each)), data_source="cache") for each in ids], has_more


def _id_of(name: str) -> int | None:
    for found in (memory.id_of(name), number_in(name)):
        if found is not None:
            return found
    index = shared.index()
    return index.names.get(name) if index else None


def _newest(match_id: int, published: Known | None) -> Known:
    own = memory.match(match_id)
    candidates = [each for each in (published, own) if each is not None]
    if not candidates:
        raise NotKnown(f"match {match_id}")
    return max(candidates, key=lambda each: each.version)


class _Published:
    """All published matches, fetched once in a while, however many ask for lists."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._held: _Everything | None = None

    def get(self) -> _Everything | None:
        with self._lock:
            if time.monotonic() >= self._until:
                began = time.monotonic()
                self._held = _fetch()
                took = time.monotonic() - began
                self._until = time.monotonic() + max(RENEWED_SECONDS, RENEWED_FACTOR * took)
            return self._held

    def forget(self) -> None:
        self._until = 0.0


def _fetch() -> _Everything | None:
    index = shared.index()
    if index is None:
        return None
    held = shared.matches(index.ids)
    try:
        return _Everything(tuple(_newest(each, held.get(each)) for each in index.ids), index.is_complete)
    except NotKnown:
        return None


_everything = _Published()


def forget() -> None:
    """What was fetched and what was remembered."""
    _everything.forget()
    memory.clear()
    absent.forget()
    pages.forget()
