"""A match as answers show it, as a value: the same whether it was read from the database or from a cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson
from django.conf import settings

from scraping.documents.freshness import Freshness, measure, not_before
from scraping.models import Match, MatchLifecycle, MatchRef
from scraping.models.source import PUSHED
from scraping.payloads import Status

FORMAT = 2  # of the stored document; what has another number is not read
TIMES = ("start_time", "scraped_at", "changed_at", "pause_until", "frozen_at")
REF_TIMES = ("next_poll_at", "held_until")


def number_in(name: str) -> int | None:
    """A match's number, where its name is one."""
    return int(name) if name.isascii() and name.isdigit() and len(name) < 19 else None


class NotKnown(Exception):  # noqa: N818 - reads as what it says at every `except`
    """Nothing is known that would answer this."""


@dataclass(frozen=True, kw_only=True)
class KnownRef:
    """The match at one source. `next_poll_at` is None where it isn't read; `held_until`: it is not read before."""

    source: str
    event_id: str
    next_poll_at: datetime | None
    scraper_id: str | None
    held_until: datetime | None = None

    @property
    def next_read_at(self) -> datetime | None:
        return not_before(self.held_until, self.next_poll_at)

    @property
    def key(self) -> str:
        return f"{self.source}_{self.event_id}"

    def is_same(self, other: KnownRef) -> bool:
        return (self.source, self.event_id) == (other.source, other.event_id)

    @classmethod
    def of(cls, ref: MatchRef) -> KnownRef:
        """Of a row with its source and, where they were asked for, the annotations `scraper_id` and `held_until`."""
        scraper_id = getattr(ref, "scraper_id", None)
        return cls(
            source=ref.source.key,
            event_id=ref.source_event_id,
            next_poll_at=ref.planned_at,
            scraper_id=None if scraper_id is None else str(scraper_id),
            held_until=getattr(ref, "held_until", None),
        )


@dataclass(frozen=True, kw_only=True)
class Known:
    id: int
    sport: str
    title: str
    status: str
    phase: str
    lifecycle: str
    team_a: str
    team_b: str
    sequence: int
    start_time: datetime | None
    scraped_at: datetime | None
    changed_at: datetime | None
    pause_until: datetime | None
    frozen_at: datetime | None
    data_source: str
    payload: dict[str, Any] = field(repr=False)
    refs: tuple[KnownRef, ...]  # the most trusted source first
    merged_into: int | None = None  # the match that it turned out to be
    # What answers have made of it, kept as long as it is: none of it depends on the clock. (orjson leaves "_" out.)
    _texts: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def text(self, name: str, make: Callable[[], bytes]) -> bytes:
        """The part of an answer that is the same for everybody who asks, made once."""
        held = self._texts.get(name)
        if held is None:
            held = self._texts[name] = make()
        return held

    @classmethod
    def of(cls, match: Match, refs: tuple[KnownRef, ...] | None = None) -> Known:
        """Of a row read by `queries`, which brings its references along, or with references that are known already."""
        return cls(
            id=match.pk,
            sport=match.sport,
            title=match.title,
            status=match.status,
            phase=match.phase,
            lifecycle=match.lifecycle,
            team_a=match.team_a,
            team_b=match.team_b,
            sequence=match.sequence,
            start_time=match.start_time,
            scraped_at=match.last_scraper_update,
            changed_at=match.last_changed_at,
            pause_until=match.pause_until,
            frozen_at=match.frozen_at,
            data_source=getattr(match, "data_source", None) or "scraper",
            payload=match.payload,
            refs=tuple(map(KnownRef.of, match.refs.all())) if refs is None else refs,
            merged_into=match.merged_into_id,
        )

    @property
    def keys(self) -> list[str]:
        return [ref.key for ref in self.refs]

    @property
    def version(self) -> tuple[int, float]:
        """The higher, the newer."""
        return self.sequence, self.scraped_at.timestamp() if self.scraped_at else 0.0

    def has_another_number(self, name: str) -> bool:
        """`name`: what it was asked for by. The number of a match that turned out to be this one is not its own."""
        return name.isdecimal() and int(name) != self.id

    @property
    def is_sent_in(self) -> bool:
        """Nobody reads it: it is known from what a consumer sends to us, and from nowhere else."""
        return bool(self.refs) and all(ref.source == PUSHED for ref in self.refs)

    @property
    def paused_until(self) -> datetime | None:
        return self.pause_until if self.lifecycle == MatchLifecycle.PAUSED else None

    @property
    def next_poll_at(self) -> datetime | None:
        return min((ref.next_poll_at for ref in self.refs if ref.next_poll_at is not None), default=None)

    @property
    def next_read_at(self) -> datetime | None:
        """When it was planned, or as soon as a source may be asked again; were it not paused."""
        return min((at for ref in self.refs if (at := ref.next_read_at) is not None), default=None)

    @property
    def next_update_at(self) -> datetime | None:
        return not_before(self.paused_until, self.next_read_at)

    def freshness(self, now: datetime) -> Freshness:
        return measure(
            status=Status(self.status),
            scraped_at=self.scraped_at,
            paused_until=self.paused_until,
            next_poll_at=self.next_poll_at,
            next_read_at=self.next_read_at,
            now=now,
            stale_after=settings.CONFIG.staleness_threshold_seconds,
            frozen_at=self.frozen_at,
        )


def encode(known: Known) -> bytes:
    # Dataclasses and times are orjson's own; a number beyond 64 bits or a lone surrogate is not, and raises.
    return orjson.dumps({"format": FORMAT, "match": known})


def decode(text: bytes) -> Known | None:
    """None for what another version of this program has written, or somebody else."""
    try:
        document = orjson.loads(text)
        return from_plain(document["match"]) if document["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        return None


def from_plain(plain: dict[str, Any]) -> Known:
    """Of what JSON made of one; raises KeyError, TypeError or ValueError for anything else."""
    times = {name: _time(plain[name]) for name in TIMES}
    refs = tuple(KnownRef(**{**ref, **{name: _time(ref.get(name)) for name in REF_TIMES}}) for ref in plain["refs"])
    return Known(**{**plain, **times, "refs": refs})


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
