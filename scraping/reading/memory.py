"""What a worker remembers of its visits, so that later polls can ask directly. Losing it costs one visit a match."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from scraping.payloads import Payload
from scraping.readings import Document, RefInfo, Request


@dataclass(frozen=True)
class Visited:
    """What one visit taught: how the page asks its endpoints, and the page itself."""

    requests: dict[str, Request]
    page: Document | None  # None: another match's visit taught it, its own page has not been seen yet
    at: float  # monotonic seconds; when the page was seen
    last: Mapping[str, Document] = field(default_factory=dict)  # the answers of the last direct read of everything
    last_at: float = float("-inf")
    payload: Payload | None = None  # what they meant


class VisitMemory:
    """Bounded: the matches that were not read for the longest time are forgotten first."""

    def __init__(self, limit: int = 500) -> None:
        self._limit = limit
        self._visits: OrderedDict[int, Visited] = OrderedDict()
        self._examples: dict[str, tuple[RefInfo, Visited]] = {}
        self._lock = threading.Lock()

    def get(self, ref_id: int) -> Visited | None:
        with self._lock:
            visited = self._visits.get(ref_id)
            if visited is not None:
                self._visits.move_to_end(ref_id)
            return visited

    def put(self, ref_id: int, visited: Visited) -> None:
        with self._lock:
            self._visits[ref_id] = visited
            self._visits.move_to_end(ref_id)
            while len(self._visits) > self._limit:
                self._visits.popitem(last=False)

    def teach(self, source_key: str, ref: RefInfo, visited: Visited) -> None:
        """The newest visit of a source is the example for its other matches."""
        with self._lock:
            self._examples[source_key] = ref, visited

    def example(self, source_key: str) -> tuple[RefInfo, Visited] | None:
        with self._lock:
            return self._examples.get(source_key)

    def forget(self, ref_id: int) -> None:
        with self._lock:
            self._visits.pop(ref_id, None)
