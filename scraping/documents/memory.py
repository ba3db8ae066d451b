"""What this process has read last, in bounded memory: the least recently used goes first.

Everything is kept as bytes, so that its size is what it says. 32 MB is some ten thousand matches.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from datetime import timedelta

import orjson

from scraping.documents.known import Known, decode, encode

MAX_ENTRIES = 20_000
MAX_BYTES = 32 * 2**20
OVERHEAD_BYTES = 300  # of an entry, beside its text: key, tuple, links
# A match that is asked for often is written down anew when it changed, or when what is written is this much older.
RENEWED_AFTER = timedelta(seconds=2)


class Memory:
    """Bytes by key. Safe to use from many threads."""

    def __init__(self, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[Hashable, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def put(self, key: Hashable, text: bytes) -> None:
        with self._lock:
            self._drop(key)
            self._entries[key] = text
            self._bytes += len(text) + OVERHEAD_BYTES
            while self._entries and (len(self._entries) > self._max_entries or self._bytes > self._max_bytes):
                self._drop(next(iter(self._entries)))

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def get(self, key: Hashable) -> bytes | None:
        with self._lock:
            text = self._entries.get(key)
            if text is not None:
                self._entries.move_to_end(key)
            return text

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        text = self._entries.pop(key, None)
        if text is not None:
            self._bytes -= len(text) + OVERHEAD_BYTES


class MatchMemory:
    """Matches by number and by their names at sources, and pages of lists and events as they were last answered."""

    def __init__(self, store: Memory | None = None) -> None:
        self.store = Memory() if store is None else store
        self._seen: OrderedDict[int, tuple[int, str, float]] = OrderedDict()

    def remember(self, known: Known) -> None:
        """Never raises: what can't be written down isn't remembered."""
        at = known.scraped_at.timestamp() if known.scraped_at else 0.0
        seen = self._seen.get(known.id)
        is_young = seen is not None and at - seen[2] < RENEWED_AFTER.total_seconds()
        is_same = seen is not None and seen[:2] == (known.sequence, known.lifecycle)
        if is_same and is_young and ("match", known.id) in self.store:  # it may have had to go meanwhile
            return
        try:
            text = encode(known)
        except (orjson.JSONEncodeError, ValueError):
            return
        self.store.put(("match", known.id), text)
        for key in known.keys:
            self.store.put(("name", key), str(known.id).encode())
        self._seen[known.id] = (known.sequence, known.lifecycle, at)
        if len(self._seen) > MAX_ENTRIES:
            self._seen.popitem(last=False)

    def remember_old_number(self, name: str, match_id: int) -> None:
        """The match that once had this number is a part of another one."""
        self.store.put(("name", name), str(match_id).encode())

    def match(self, match_id: int) -> Known | None:
        text = self.store.get(("match", match_id))
        return None if text is None else decode(text)

    def id_of(self, name: str) -> int | None:
        text = self.store.get(("name", name))
        return None if text is None else int(text)

    def remember_page(self, question: Hashable, page: object) -> None:
        try:
            self.store.put(("page", question), orjson.dumps(page))
        except (orjson.JSONEncodeError, ValueError):
            return

    def knows(self, name: str) -> bool:
        """A match was read here under this name or number."""
        return ("match", int(name)) in self.store if name.isdecimal() else ("name", name) in self.store

    def page(self, question: Hashable) -> object | None:
        text = self.store.get(("page", question))
        return None if text is None else orjson.loads(text)

    def clear(self) -> None:
        self.store.clear()
        self._seen.clear()


memory = MatchMemory()
