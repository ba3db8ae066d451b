"""The filters and the order of match lists. They are applied in memory only, so that a list means the same while the
database is away; see `cache.DocumentCache.page`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from heapq import nsmallest
from itertools import islice

from scraping.documents.cached_match import CachedMatch
from scraping.models import MatchLifecycle
from scraping.names import plain

# The place of a match in a list: of two matches the one with the smaller place comes first.
Place = tuple[int, int]
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
LAST = 2**62  # the place of a match without that time


class Sort(StrEnum):
    """The orders of a list; with a minus the latest first. Of equal times the newer match comes first."""

    NEWEST = "-id"
    START = "start_time"
    START_LATEST = "-start_time"
    UPDATED_LATEST = "-updated"

    @property
    def attribute(self) -> str:
        """The time of a match by which it sorts; empty: the id alone."""
        name = self.value.lstrip("-")
        return {"id": "", "updated": "changed_at"}.get(name, name)

    @property
    def is_descending(self) -> bool:
        return self.value.startswith("-")

    def place(self, match: CachedMatch) -> Place:
        moment: datetime | None = getattr(match, self.attribute) if self.attribute else EPOCH
        if moment is None:
            return LAST, -match.id
        passed = (moment - EPOCH) // MICROSECOND
        return -passed if self.is_descending else passed, -match.id

    def moment(self, place: Place) -> datetime | None:
        """Returns the time that is at this place."""
        passed = -place[0] if self.is_descending else place[0]
        return None if place[0] == LAST else EPOCH + passed * MICROSECOND


@dataclass(frozen=True, kw_only=True)
class MatchFilter:
    """Conditions and order of a list of matches. Archived ones are listed only if requested by their lifecycle."""

    ids: tuple[str, ...] = ()  # ids and keys at sources
    status: str = ""  # one, or several separated by commas
    sport: str = ""
    source: str = ""
    lifecycle: str = ""
    series: str = ""  # a part of its name
    team: str = ""  # a part of one team's name
    team_id: int = 0
    start_from: datetime | None = None  # inclusive
    start_to: datetime | None = None  # exclusive
    updated_since: datetime | None = None
    sort: Sort = Sort.NEWEST

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(self.ids)

    @property
    def is_archive(self) -> bool:
        return self.lifecycle == MatchLifecycle.ARCHIVED

    def accepts(self, match: CachedMatch) -> bool:
        return (
            (match.lifecycle == self.lifecycle if self.lifecycle else match.lifecycle != MatchLifecycle.ARCHIVED)
            and (not self.status or match.status in self.status.split(","))
            and self.sport in {"", match.sport}
            and (not self.ids or str(match.id) in self._ids or not self._ids.isdisjoint(match.keys))
            and (not self.source or any(ref.source == self.source for ref in match.refs))
            and (not self.team or any(plain(self.team) in plain(name) for name in (match.team_a, match.team_b)))
            and (not self.team_id or self.team_id in {match.team_a_id, match.team_b_id})
            and (not self.series or plain(self.series) in plain(match.series))
            and _is_between(match.start_time, self.start_from, self.start_to)
            and _is_between(match.changed_at, self.updated_since, None)
        )

    def page(
        self, matches: Iterable[CachedMatch], *, after: Place | None, limit: int, is_sorted: bool
    ) -> list[CachedMatch]:
        """Returns the first accepted matches behind a place. `is_sorted`: they come in the order of the list."""
        place = self.sort.place
        found = (each for each in matches if (after is None or place(each) > after) and self.accepts(each))
        return list(islice(found, limit)) if is_sorted else nsmallest(limit, found, key=place)


def _is_between(moment: datetime | None, start: datetime | None, end: datetime | None) -> bool:
    if start is None and end is None:
        return True
    return moment is not None and (start is None or moment >= start) and (end is None or moment < end)
