"""The document cache of a process: all listed matches in memory, correct within LIFETIME_SECONDS by construction.

Guards the database against the readers, and the readers against an outage of the database. A read that finds the
memory older than its lifetime updates it first: documents that workers published come from Redis, and once a second
(at every update where there is no Redis) a comparison of a few columns with the database finds everything else. While
the database is away the last known documents are served with their true age, and what is in no cache is refused.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

import orjson
from cachetools import LRUCache

from scraping.documents import queries, redis_store
from scraping.documents.cached_match import CACHE, CachedMatch, MatchTable, NotCachedError, Page, decode, encode
from scraping.documents.filters import MatchFilter, Place, Sort
from scraping.documents.redis_store import MAX_NAME_LENGTH, AbsentNames, find_published
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY

logger = logging.getLogger(__name__)

Found = TypeVar("Found")
LIFETIME_SECONDS = 0.1
FOLLOWED_SECONDS = 0.025  # the lifetime while Redis reports changes: an update without news is one short round trip
COMPARE_SECONDS = 1.0  # between two comparisons with the database while Redis reports changes
UPDATE_SHARE = 4  # an update is followed by at least this many times its duration without one
MAX_MATCHES = 5_000  # in memory; older ones are read from the database
LOADED_AT_ONCE = 500
MAX_DERIVED_BYTES = 32 * 2**20
DERIVED_OVERHEAD_BYTES = 300  # of an entry, beside its text


@contextmanager
def reading_database() -> Iterator[None]:
    """Limits the time of the block's reads. Reports a database that does not answer, and ends the block."""
    try:
        with pg_wait.within(availability.READ_SECONDS):
            yield
    except DATABASE_AWAY as error:
        availability.database.report(error)


class DocumentCache:
    """Safe to use from many threads."""

    def __init__(
        self,
        *,
        lifetime_seconds: float = LIFETIME_SECONDS,
        compare_seconds: float = COMPARE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lifetime_seconds, self.compare_seconds = lifetime_seconds, compare_seconds
        self._clock = clock
        self._lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        with self._lock:
            self._table = MatchTable()
            self.is_filled = self._is_complete = self._is_current = False
            self._oldest_id = 0  # older matches are not in memory: there are too many
            self._invalid: set[int] = set()
            self._invalidations = 0
            self._position: str | None = None  # in the change stream
            self._update_at = self._compare_at = float("-inf")
            self._forget_results()

    def _forget_results(self) -> None:
        self._absent = AbsentNames(clock=self._clock)
        self._derived: LRUCache[Hashable, bytes] = LRUCache(
            MAX_DERIVED_BYTES, getsizeof=lambda text: len(text) + DERIVED_OVERHEAD_BYTES
        )

    def find(self, name: str) -> CachedMatch | None:
        """Returns a match by its id or its key at a source; None if there is none.

        Raises NotCachedError while the database is away and the match is in no cache.
        """
        is_current = self.update()
        found = self._table.find(name)
        if found is None and queries.is_valid_name(name) and not (is_current and name in self._absent):
            found = self._find_unlisted(name)
            is_current = is_current and not availability.database.is_away()
        return found if found is None or is_current else replace(found, data_source=CACHE)

    def page(self, wanted: MatchFilter, *, after: Place | None = None, limit: int) -> Page:
        """Returns the first accepted matches behind the place `after`, in the order of the filter.

        Raises NotCachedError while the database is away and only it could answer completely.
        """
        is_current = self.update()
        # In another order than by ids the oldest of very many, which are not in memory, may be anywhere.
        is_partial = not self._is_complete and wanted.sort is not Sort.NEWEST
        is_elsewhere = wanted.is_archive or not self.is_filled or is_partial
        listed = () if is_elsewhere else self._table.newest_first()
        found = wanted.page(listed, after=after, limit=limit + 1, is_sorted=wanted.sort is Sort.NEWEST)
        found, has_more = found[:limit], len(found) > limit
        if is_elsewhere or not (has_more or self._is_complete):
            found, has_more = self._unlisted_page(wanted, after, limit)
            is_current = is_current and not availability.database.is_away()
        matches = found if is_current else [replace(each, data_source=CACHE) for each in found]
        return Page(matches, has_more, is_last_known=not is_current)

    def _find_unlisted(self, name: str) -> CachedMatch | None:
        """Finds an archived match, one by its former id, or one of the oldest of very many."""
        question = ("name", name)

        def load() -> str | None:
            row = queries.find_match(name)
            return None if row is None else encode(CachedMatch.from_row(row)).decode()

        try:
            text = self.derived(question, self.short_version(), load, what=f"match {name[:MAX_NAME_LENGTH]}")
        except NotCachedError:
            if published := find_published(name):
                return published
            raise
        if text is None:
            self._absent.add(name)
            with self._lock:
                self._derived.pop(question, None)
            return None
        found = decode(text)
        return found and (self._table.get(found.id) or found)

    def _unlisted_page(self, wanted: MatchFilter, after: Place | None, limit: int) -> tuple[list[CachedMatch], bool]:
        def load() -> tuple[list[str], bool]:
            ids = queries.accepted_ids(wanted, after=after, limit=limit + 1)
            found = {each.id: each for each in queries.cached_matches(ids=ids[:limit])}
            return [encode(found[each]).decode() for each in ids[:limit] if each in found], len(ids) > limit

        question = ("page", wanted, after, limit)
        texts, has_more = self.derived(question, self.short_version(), load, what="this list")
        return [match for match in map(decode, texts) if match is not None], has_more

    def derived(self, question: Hashable, version: Hashable, load: Callable[[], Found], *, what: str) -> Found:
        """Returns `load()` (JSON values), or its earlier result for this question and version.

        While the database is away: the last result of any version, else NotCachedError(what).
        """
        mark = repr(version).encode() + b"\0"
        with self._lock:
            held = self._derived.get(question)
        if held is not None and held.startswith(mark):
            current: Found = orjson.loads(held[len(mark) :])
            return current
        if not availability.database.is_away():
            with reading_database():
                found = load()
                with suppress(orjson.JSONEncodeError, ValueError), self._lock:  # what JSON cannot hold is read anew
                    self._derived[question] = mark + orjson.dumps(found)  # ValueError: too large
                return found
        if held is None:
            raise NotCachedError(what)
        last_known: Found = orjson.loads(held.partition(b"\0")[2])
        return last_known

    def short_version(self) -> tuple[int, int]:
        """A version for data that changes without the match: it lasts as long as the lifetime of the cache."""
        passed = int(self._clock() / self.lifetime_seconds) if self.lifetime_seconds else time.monotonic_ns()
        return passed, self._invalidations

    def invalidate(self, match_ids: Iterable[int]) -> None:
        """Makes the next read of this process load these matches from the database."""
        with self._lock:
            self._invalid.update(match_ids)
            self._invalidations += 1
            self._absent.clear()
            self._update_at = float("-inf")

    def expire(self) -> None:
        """Makes the next read of this process compare with the database."""
        with self._lock:
            self._compare_at = self._update_at = float("-inf")

    def update(self) -> bool:
        """Brings the memory up to date if its lifetime is over. Returns False while the database is away."""
        if self._clock() >= self._update_at:
            with self._lock:
                if self._clock() >= self._update_at:
                    self._update()
        return self._is_current

    def _update(self) -> None:
        began = self._clock()
        is_followed, is_current = self._apply_published(), False
        if not availability.database.is_away():
            with reading_database():
                is_complete = self._is_complete
                if not is_followed or began >= self._compare_at:
                    is_complete = self._compare()
                    self._compare_at = began + self.compare_seconds
                self._load(self._invalid)
                self._invalid.clear()
                self._is_complete, self.is_filled, is_current = is_complete, True, True
        self._is_current = is_current
        if not is_current:
            self._compare_at = float("-inf")
            if not self.is_filled:
                self._fill_from_redis()
        ended = self._clock()
        lifetime = min(self.lifetime_seconds, FOLLOWED_SECONDS) if is_followed else self.lifetime_seconds
        pause = max(lifetime, UPDATE_SHARE * (ended - began)) if lifetime else 0.0
        self._update_at = ended + min(pause, COMPARE_SECONDS)

    def _apply_published(self) -> bool:
        """Takes what workers published since the last update. Returns False if changes may have been missed."""
        if self._position is None or not self.is_filled:
            self._position = redis_store.latest_position()
            return False
        changes = redis_store.changes_after(self._position)
        self._position = changes.position if changes else None
        if changes is None:
            return False
        found = redis_store.get(changes.published)
        for match in found.values():
            held = self._table.get(match.id)
            if not match.is_listed:
                self._invalid.add(match.id)
            elif held is None and match.id >= self._oldest_id:
                self._table.put(match)
            elif held is not None and match.version > held.version:
                self._table.put(held.updated_by(match))
        self._invalid |= changes.reload | (changes.published - found.keys())
        return True

    def _compare(self) -> bool:
        """Marks matches that differ from the database as invalid, drops unlisted ones; False if there are too many."""
        columns, plans = queries.compared_columns(limit=MAX_MATCHES + 1), queries.poll_plans()
        is_complete = len(columns) <= MAX_MATCHES
        if not is_complete:
            del columns[min(columns)]
        self._oldest_id = 0 if is_complete else min(columns)
        self._invalid.update(
            match_id
            for match_id, values in columns.items()
            if (held := self._table.get(match_id)) is None
            or held.compared != values
            or held.plans != plans.get(match_id, set())
        )
        if gone := self._table.ids() - columns.keys():
            self._table.drop(gone)
        return is_complete

    def _load(self, match_ids: Collection[int]) -> None:
        wanted = sorted((each for each in match_ids if each >= self._oldest_id), reverse=True)
        for start in range(0, len(wanted), LOADED_AT_ONCE):
            some = wanted[start : start + LOADED_AT_ONCE]
            found = {each.id: each for each in queries.cached_matches(ids=some) if each.is_listed}
            for match in found.values():
                held = self._table.get(match.id)
                self._table.put(match)
                if held is not None and match.sequence < held.sequence:
                    # A restored database gives its sequences out again, for other states: results by them are wrong.
                    self._forget_results()
                    logger.warning(
                        "%s has an earlier sequence in the database, as after a restore; cached results are dropped",
                        match.main_key,
                        extra={"action": "store_went_back", "match_id": match.main_key},
                    )
            if gone := self._table.ids().intersection(some) - found.keys():
                self._table.drop(gone)

    def _fill_from_redis(self) -> None:
        """Starts with the published documents: the process began while the database was away.

        Where one of them is missing, single matches are found but lists are not.
        """
        index = redis_store.index()
        ids, is_complete = index or ([], False)
        found = redis_store.get(ids)
        for match in found.values():
            if match.is_listed:  # the index may be older than the document
                self._table.put(match)
        self.is_filled = index is not None and len(found) == len(ids)
        self._is_complete = self.is_filled and is_complete


documents = DocumentCache()
