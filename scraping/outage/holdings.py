"""The matches a worker holds: those it read lately, with what is needed to go on reading them without a database."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from scraping.outage.importance import Importance, Seen, importance, seen
from scraping.outage.spool import HeldMatch
from scraping.payloads import Payload

HELD_SECONDS = 90.0  # a match that was not read for so long is somebody else's, or over
LONGEST_PAUSE_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 2.5


@dataclass
class Held:
    match: HeldMatch
    interval_seconds: float
    read_at: float  # monotonic
    due_at: float = 0.0
    errors: int = 0
    last: Payload | None = None  # compared in an outage only: at every poll that would cost a match of 240 balls 1 ms

    def note(self, payload: Payload, now: float) -> Importance:
        """A reading came: how much of it is new."""
        weight = importance(seen(self.last) if self.last else Seen(), seen(payload))
        self.keep(payload, now)
        return weight

    def keep(self, payload: Payload, now: float) -> None:
        self.last, self.read_at, self.errors = payload, now, 0

    def note_failure(self, now: float, *, retry_after_seconds: float | None = None) -> None:
        """Without the rows of the breakers each match slows down by itself."""
        self.errors += 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self.errors, 10), LONGEST_PAUSE_SECONDS)
        self.due_at = now + max(pause, retry_after_seconds or 0.0)


class Holdings:
    """Shared by the task threads, which add to it, and the keeper, which polls from it."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def stored(self, match: HeldMatch, payload: Payload, *, interval_seconds: float, now: float) -> None:
        """The database has this reading of the match."""
        with self._lock:
            held = self._held.setdefault(match.ref_id, Held(match, interval_seconds, now))
            held.match, held.interval_seconds = match, interval_seconds
        held.keep(payload, now)

    def restore(self, matches: Iterable[HeldMatch], *, interval_seconds: float, now: float) -> None:
        """Go on with the matches of a worker that has ended."""
        with self._lock:
            for match in matches:
                self._held.setdefault(match.ref_id, Held(match, interval_seconds, now))

    def get(self, ref_id: int) -> Held | None:
        with self._lock:
            return self._held.get(ref_id)

    def matches(self) -> list[HeldMatch]:
        with self._lock:
            return [held.match for held in self._held.values()]

    def forget(self, ref_id: int) -> None:
        with self._lock:
            self._held.pop(ref_id, None)

    def forget_old(self, now: float) -> None:
        """Outside an outage: let go of what others read now."""
        with self._lock:
            old = [ref_id for ref_id, held in self._held.items() if now - held.read_at > _patience(held)]
            for ref_id in old:
                del self._held[ref_id]

    def due(self, now: float) -> list[Held]:
        """What is to be read now, the longest waiting first; it is not due again until it was read or put off."""
        with self._lock:
            return sorted((held for held in self._held.values() if held.due_at <= now), key=lambda held: held.due_at)


def _patience(held: Held) -> float:
    return max(HELD_SECONDS, 3 * held.interval_seconds)
