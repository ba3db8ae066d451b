"""A match as answers show it, as a value: the same whether it was read from the database, Redis or memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson
from django.conf import settings
from pydantic import TypeAdapter

from scraping.documents.freshness import Freshness, measure
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.models.source import PUSHED

FORMAT = 5  # of the stored document; documents of other formats are ignored
CACHE = "cache"  # the data source of documents that are served while the database is away
# Columns that answers show and that may change while the sequence stays: part of the ETag.
SHOWN = ("lifecycle", "status", "phase", "title", "start_time", "team_a_id", "team_b_id")
COMPARED = ("sequence", "scraped_at", "changed_at", "pause_until", "frozen_at", *SHOWN)
COPIED = ("id", "sport", "team_a", "team_b", "merged_into", *COMPARED)
COLUMNS = {
    "scraped_at": "last_scraper_update",
    "changed_at": "last_changed_at",
    "merged_into": "merged_into_id",
    "team_a_id": "known_team_a_id",
    "team_b_id": "known_team_b_id",
}
Plan = tuple[str, str, datetime | None, datetime | None]  # source, event id, held until, next poll


def number_in(name: str) -> int | None:
    """The match id, if the name is one."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else None


def not_before(earliest: datetime | None, planned: datetime | None) -> datetime | None:
    return planned if planned is None or earliest is None else max(planned, earliest)


class NotCachedError(Exception):
    """The database is away and no cache holds the requested data."""


@dataclass(frozen=True, kw_only=True)
class CachedRef:
    """The match at one source. `planned_at` is None if it is not polled; `held_until`: end of the open breaker."""

    source: str
    event_id: str
    planned_at: datetime | None
    scraper_id: str | None
    held_until: datetime | None = None
    left_out: tuple[str, ...] | None = None  # parts that the latest reading lacks; None: never read

    @property
    def next_read_at(self) -> datetime | None:
        return not_before(self.held_until, self.planned_at)

    @property
    def key(self) -> str:
        return f"{self.source}_{self.event_id}"

    @classmethod
    def from_row(cls, ref: MatchRef) -> CachedRef:
        """Reads a row with its source and, if selected, the annotations `scraper_id` and `held_until`."""
        scraper_id = getattr(ref, "scraper_id", None)
        return cls(
            source=ref.source.key,
            event_id=ref.source_event_id,
            planned_at=ref.planned_at,
            scraper_id=None if scraper_id is None else str(scraper_id),
            held_until=getattr(ref, "held_until", None),
            left_out=None if ref.captured_at is None else ref.left_out,
        )


@dataclass(frozen=True, kw_only=True)
class CachedMatch:
    id: int
    sport: str
    title: str
    status: str
    phase: str
    lifecycle: str
    team_a: str
    team_b: str
    team_a_id: int | None  # of the known teams
    team_b_id: int | None
    series: str  # empty until the match was read
    sequence: int
    start_time: datetime | None
    scraped_at: datetime | None
    changed_at: datetime | None
    pause_until: datetime | None
    frozen_at: datetime | None
    data_source: str
    payload: dict[str, Any] = field(repr=False)
    refs: tuple[CachedRef, ...]  # the most trusted source first
    merged_into: int | None = None  # the match that it became part of
    # Parts of answers that do not depend on the clock, kept as long as the document.
    _rendered: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rendered(self, name: str, render: Callable[[], bytes]) -> bytes:
        held = self._rendered.get(name)
        if held is None:
            held = self._rendered[name] = render()
        return held

    @classmethod
    def from_row(cls, match: Match, refs: tuple[CachedRef, ...] | None = None) -> CachedMatch:
        """Reads a row of `queries`, which brings its references along, or one whose references are given."""
        return cls(
            **{name: getattr(match, COLUMNS.get(name, name)) for name in COPIED},
            series=match.series if match.sequence else "",
            data_source=getattr(match, "data_source", None) or "scraper",
            payload=match.__dict__.get("payload", {}),
            refs=tuple(map(CachedRef.from_row, match.refs.all())) if refs is None else refs,
        )

    @property
    def keys(self) -> list[str]:
        return [ref.key for ref in self.refs]

    @property
    def main_key(self) -> str:
        return self.refs[0].key if self.refs else str(self.id)

    @property
    def main_source(self) -> str:
        return self.refs[0].source if self.refs else ""

    @property
    def scraper_id(self) -> str | None:
        return next((ref.scraper_id for ref in self.refs if ref.scraper_id), None)

    @property
    def version(self) -> tuple[int, float]:
        """Compares documents of the same match: the higher, the newer."""
        return self.sequence, self.scraped_at.timestamp() if self.scraped_at else 0.0

    @cached_property
    def compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in COMPARED)

    @cached_property
    def plans(self) -> frozenset[Plan]:
        return frozenset((ref.source, ref.event_id, ref.held_until, ref.planned_at) for ref in self.refs)

    @property
    def is_listed(self) -> bool:
        """False for archived matches and for those that became part of another one."""
        return self.lifecycle != MatchLifecycle.ARCHIVED and self.merged_into is None

    def is_former_id(self, name: str) -> bool:
        """True if the match was requested by the id of another match that became part of it."""
        return number_in(name) not in {None, self.id}

    @property
    def is_submitted(self) -> bool:
        """True if all its data is sent in by a consumer and no source is polled."""
        return bool(self.refs) and all(ref.source == PUSHED for ref in self.refs)

    @property
    def paused_until(self) -> datetime | None:
        return self.pause_until if self.lifecycle == MatchLifecycle.PAUSED else None

    @property
    def planned_at(self) -> datetime | None:
        return min((ref.planned_at for ref in self.refs if ref.planned_at is not None), default=None)

    @property
    def next_read_at(self) -> datetime | None:
        """Returns the time of the next poll at any source; considers open breakers, but no pauses."""
        return min((at for ref in self.refs if (at := ref.next_read_at) is not None), default=None)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Returns the parts that could not be read; empty if one source's latest reading has everything.

        The latest reading of a source that is not polled any more says nothing about the present data.
        """
        polled = [ref for ref in self.refs if ref.planned_at is not None]
        readings = [ref.left_out for ref in polled or self.refs if ref.left_out is not None]
        return min(readings, key=len, default=())

    @property
    def next_update_at(self) -> datetime | None:
        return not_before(self.paused_until, self.next_read_at)

    def freshness(self, now: datetime) -> Freshness:
        return measure(self, now, stale_after=settings.CONFIG.staleness_threshold_seconds)

    def updated_by(self, published: CachedMatch) -> CachedMatch:
        """Returns this document with the news that a worker published.

        With the same sequence only the time of the poll is news: the worker may have read the row before a pause. Its
        plans of other sources may be old: known ones stay unless the published one is later than the poll.
        """
        refs = _merged_plans(self, published)
        if published.sequence != self.sequence:
            return replace(published, refs=refs)
        found = replace(self, scraped_at=published.scraped_at, refs=refs)
        found._rendered.update(self._rendered)  # noqa: SLF001 - of its own class; no rendered part depends on times
        return found


def _merged_plans(held: CachedMatch, published: CachedMatch) -> tuple[CachedRef, ...]:
    if not held.refs:
        return published.refs
    read_at = published.scraped_at
    planned = {
        ref.key: ref
        for ref in published.refs
        if ref.planned_at is None or read_at is None or ref.planned_at >= read_at  # else it is overdue
    }
    return tuple(
        replace(ref, planned_at=new.planned_at, scraper_id=new.scraper_id or ref.scraper_id, left_out=new.left_out)
        if (new := planned.get(ref.key))
        else ref
        for ref in held.refs
    )


@dataclass(frozen=True)
class Page:
    matches: list[CachedMatch]
    has_more: bool
    is_last_known: bool  # the database is away


class MatchTable:
    """Documents by id and by key. Writers hold the cache's lock, readers need none."""

    def __init__(self) -> None:
        self._documents: dict[int, CachedMatch] = {}
        self._ids_by_key: dict[str, int] = {}
        self._newest_first: tuple[CachedMatch, ...] | None = None

    def get(self, match_id: int) -> CachedMatch | None:
        return self._documents.get(match_id)

    def find(self, name: str) -> CachedMatch | None:
        number = number_in(name)
        if number is not None:
            return self._documents.get(number)
        found = self._documents.get(self._ids_by_key.get(name, 0))
        return found if found and name in found.keys else None

    def ids(self) -> set[int]:
        return set(self._documents)

    def newest_first(self) -> tuple[CachedMatch, ...]:
        held = self._newest_first
        if held is None:
            documents = self._documents.copy()
            held = tuple(documents[match_id] for match_id in sorted(documents, reverse=True))
            self._newest_first = held
        return held

    def put(self, match: CachedMatch) -> None:
        self._ids_by_key.update(dict.fromkeys(match.keys, match.id))
        self._documents[match.id] = match
        self._newest_first = None

    def drop(self, match_ids: Iterable[int]) -> None:
        for match_id in match_ids:
            self._documents.pop(match_id, None)
        # Another match may have the keys of a dropped one.
        self._ids_by_key = {key: each.id for each in self._documents.values() for key in each.keys}
        self._newest_first = None


_stored_match = TypeAdapter(CachedMatch)
_STORED = tuple(each.name for each in fields(CachedMatch) if each.init)


def encode(match: CachedMatch) -> bytes:
    """Raises orjson.JSONEncodeError for what JSON cannot hold: integers beyond 64 bits, lone surrogates."""
    return orjson.dumps({"format": FORMAT, "match": {name: getattr(match, name) for name in _STORED}})


def decode(text: bytes | str) -> CachedMatch | None:
    """Returns None for anything but a document of this format."""
    try:
        document = orjson.loads(text)
        return _stored_match.validate_python(document["match"]) if document["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        return None
