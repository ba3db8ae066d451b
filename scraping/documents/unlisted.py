"""Matches that the memory of the document cache does not hold, and names that no match has.

Archived matches, the former ids of merged matches, and the oldest of very many are read from the database. The results
are kept for seconds, and as the last known ones for the time when the database is away. Unknown names are kept for a
minute (`negative_cache:{name}`, SO-11), so that a client that repeats one costs the database nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cachetools import LRUCache, TTLCache

from scraping.documents import queries, redis_store
from scraping.documents.cached_match import CACHE, CachedMatch, NotCachedError, number_in
from scraping.documents.filters import MatchFilter
from scraping.models import MatchLifecycle
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY

UNLISTED_SECONDS = 5.0  # archived matches and former ids change seldom
MAX_UNLISTED = 1_000
MAX_PAGES = 200
ABSENT_SECONDS = 60
MAX_ABSENT = 5_000
MAX_NAME_LENGTH = 100
LONGEST_MERGE_CHAIN = 5
PLAIN_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)  # as sources name matches; only these are keys of Redis


@dataclass(frozen=True)
class Page:
    matches: list[CachedMatch]
    has_more: bool
    is_last_known: bool  # the database is away

    @classmethod
    def of(cls, found: list[CachedMatch], has_more: bool, *, is_current: bool) -> Page:
        matches = found if is_current else [replace(each, data_source=CACHE) for each in found]
        return cls(matches, has_more, is_last_known=not is_current)


class UnlistedMatches:
    """Safe to use from many threads."""

    def __init__(self, *, clock: Callable[[], float], max_absent: int = MAX_ABSENT) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._matches: LRUCache[str, tuple[float, CachedMatch]] = LRUCache(MAX_UNLISTED)
        self._pages: LRUCache[Hashable, tuple[list[CachedMatch], bool]] = LRUCache(MAX_PAGES)
        self.absent: TTLCache[str, bool] = TTLCache(max_absent, ABSENT_SECONDS, timer=clock)

    def forget_names(self) -> None:
        with self._lock:
            self._matches.clear()
            self.absent.clear()

    def find(self, name: str, *, is_current: bool) -> tuple[CachedMatch | None, bool]:
        """Returns the match or None, and whether the database is known to agree. Raises NotCachedError."""
        if not queries.is_valid_name(name):
            return None, is_current
        with self._lock:
            read_at, known = self._matches.get(name, (float("-inf"), None))
        if is_current:
            changes_seldom = known and (known.lifecycle == MatchLifecycle.ARCHIVED or known.is_former_id(name))
            if changes_seldom and self._clock() < read_at + UNLISTED_SECONDS:
                return known, True
            if self._is_absent(name):
                return None, True
            with outage_reported(), pg_wait.within(availability.READ_SECONDS):
                row = queries.find_match(name)
                return self._keep(name, None if row is None else CachedMatch.from_row(row)), True
        known = known or _find_in_redis(name)
        if known is None:
            raise NotCachedError(f"match {name[:MAX_NAME_LENGTH]}")
        return known, False

    def page(self, wanted: MatchFilter, *, before_id: int | None, limit: int, is_current: bool) -> Page:
        """Reads a page from the database; while it is away, returns its last answer to the same question."""
        question = (wanted, before_id, limit)
        if is_current:
            with outage_reported(), pg_wait.within(availability.READ_SECONDS):
                ids = queries.accepted_ids(wanted, below_id=before_id, limit=limit + 1)
                found, has_more = queries.cached_matches(ids=ids[:limit]), len(ids) > limit
                with self._lock:
                    self._pages[question] = (found, has_more)
                return Page.of(found, has_more, is_current=True)
        with self._lock:
            known = self._pages.get(question)
        if known is None:
            raise NotCachedError("this list")
        return Page.of(*known, is_current=False)

    def _keep(self, name: str, found: CachedMatch | None) -> CachedMatch | None:
        with self._lock:
            if found is not None:
                self._matches[name] = (self._clock(), found)
                return found
            self._matches.pop(name, None)
            if len(name) <= MAX_NAME_LENGTH:
                self.absent[name] = True
        if PLAIN_NAME.fullmatch(name):
            redis_store.put_text(f"negative_cache:{name}", b"1", seconds=ABSENT_SECONDS)
        return None

    def _is_absent(self, name: str) -> bool:
        """A match that appears later is found in memory, before this is asked."""
        with self._lock:
            if name in self.absent:
                return True
        return bool(PLAIN_NAME.fullmatch(name)) and redis_store.get_text(f"negative_cache:{name}") is not None


def _find_in_redis(name: str) -> CachedMatch | None:
    """Finds a match by its id, or one that it became part of. Listed matches are in memory, also by their keys."""
    match_id, found = number_in(name), None
    for _ in range(LONGEST_MERGE_CHAIN):
        if match_id is None:
            break
        found = redis_store.get([match_id]).get(match_id)
        match_id = found.merged_into if found else None
    return found


@contextmanager
def outage_reported() -> Iterator[None]:
    """Reports a database that does not answer, and ends the block."""
    try:
        yield
    except DATABASE_AWAY as error:
        availability.database.report(error)
