"""Reads of the document cache beyond its memory: names that no match has, documents in Redis, the database."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachetools import TTLCache

from scraping.documents import redis_store
from scraping.documents.cached_match import CachedMatch, number_in
from victoryline.lib import availability, pg_wait
from victoryline.lib.availability import DATABASE_AWAY

ABSENT_SECONDS = 60
MAX_ABSENT = 5_000
MAX_NAME_LENGTH = 100
LONGEST_MERGE_CHAIN = 5
PLAIN_NAME = re.compile(r"[\w.:-]{1,100}", re.ASCII)  # as sources name matches; only these are keys of Redis


class AbsentNames:
    """Names that no match has, for a minute (`negative_cache:{name}`, SO-11). Safe to use from many threads.

    A client that repeats one costs the database nothing. A match that appears later is found in memory first.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._names: TTLCache[str, bool] = TTLCache(MAX_ABSENT, ABSENT_SECONDS, timer=clock)

    def __contains__(self, name: str) -> bool:
        with self._lock:
            if name in self._names:
                return True
        return bool(PLAIN_NAME.fullmatch(name)) and redis_store.get_text(f"negative_cache:{name}") is not None

    def add(self, name: str) -> None:
        if len(name) <= MAX_NAME_LENGTH:
            with self._lock:
                self._names[name] = True
        if PLAIN_NAME.fullmatch(name):
            redis_store.put_text(f"negative_cache:{name}", b"1", seconds=ABSENT_SECONDS)

    def clear(self) -> None:
        with self._lock:
            self._names.clear()


def find_published(name: str) -> CachedMatch | None:
    """Finds a match in Redis by its id, or the one that it became part of. Listed ones are in memory, also by keys."""
    match_id, found = number_in(name), None
    for _ in range(LONGEST_MERGE_CHAIN):
        if match_id is None:
            break
        found = redis_store.get([match_id]).get(match_id)
        match_id = found.merged_into if found else None
    return found


@contextmanager
def reading_database() -> Iterator[None]:
    """Limits the time of the block's reads. Reports a database that does not answer, and ends the block."""
    try:
        with pg_wait.within(availability.READ_SECONDS):
            yield
    except DATABASE_AWAY as error:
        availability.database.report(error)
