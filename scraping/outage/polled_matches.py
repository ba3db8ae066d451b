"""The matches that a worker polls on during an outage of the database, and the comparison of their readings.

These are the matches it read lately, with the facts that reading them without a database needs.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import orjson

from scraping.matches.reconcile.states import progress_summary
from scraping.outage.spool import HeldMatch
from scraping.payloads import Payload

KEPT_SECONDS = 90.0  # a match that was not read for so long is over, or read by another worker
LONGEST_PAUSE_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 2.5


class Importance(Enum):
    NOTHING_NEW = 0
    MINOR = 1  # a clock, a text, a phase: the next reading has it as well
    CRITICAL = 2  # score, wickets, overs, status, or a critical event


@dataclass(frozen=True)
class Fingerprint:
    """Checksums of a reading, to compare the next one with."""

    state: str = ""
    progress: str = ""
    events: frozenset[str] = frozenset()
    critical: frozenset[str] = frozenset()

    @classmethod
    def of(cls, payload: Payload) -> Fingerprint:
        state = payload.normalized()
        marks = {event.id: event.fingerprint() for event in payload.events}
        scores = {"innings": state.get("innings"), "score": state.get("score")}
        return cls(
            state=payload.state.checksum(),
            progress=_checksum({**progress_summary(state), **scores}),
            events=frozenset(marks.values()),
            critical=frozenset(marks[event.id] for event in payload.events if event.is_critical),
        )


def importance(before: Fingerprint, now: Fingerprint) -> Importance:
    """Returns how much of a reading is new compared with the one before."""
    if now.progress != before.progress or now.critical - before.critical:
        return Importance.CRITICAL
    if now.state != before.state or now.events - before.events:
        return Importance.MINOR
    return Importance.NOTHING_NEW


def _checksum(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]


@dataclass
class PolledMatch:
    match: HeldMatch
    interval_seconds: float
    read_at: float  # monotonic
    due_at: float = 0.0
    errors: int = 0
    last: Payload | None = None  # compared in an outage only: at every poll it would cost 1 ms with 240 balls

    def add_reading(self, payload: Payload, now: float) -> Importance:
        """Replaces the last reading; returns how much of the new one is new."""
        weight = importance(Fingerprint.of(self.last) if self.last else Fingerprint(), Fingerprint.of(payload))
        self.set_reading(payload, now)
        return weight

    def set_reading(self, payload: Payload, now: float) -> None:
        self.last, self.read_at, self.errors = payload, now, 0

    def add_failure(self, now: float, *, retry_after_seconds: float | None = None) -> None:
        """Delays the next reading: without the rows of the breakers each match has its own back-off."""
        self.errors += 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self.errors, 10), LONGEST_PAUSE_SECONDS)
        self.due_at = now + max(pause, retry_after_seconds or 0.0)


class PolledMatches:
    """Shared by the task threads, which add to it, and the keeper, which polls from it."""

    def __init__(self) -> None:
        self._matches: dict[int, PolledMatch] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._matches)

    def stored(self, match: HeldMatch, payload: Payload, *, interval_seconds: float, now: float) -> None:
        """Sets the reading of the match that the database has."""
        with self._lock:
            one = self._matches.setdefault(match.ref_id, PolledMatch(match, interval_seconds, now))
            one.match, one.interval_seconds = match, interval_seconds
        one.set_reading(payload, now)

    def restore(self, matches: Iterable[HeldMatch], *, interval_seconds: float, now: float) -> None:
        """Adds the matches of a worker that has ended."""
        with self._lock:
            for match in matches:
                self._matches.setdefault(match.ref_id, PolledMatch(match, interval_seconds, now))

    def get(self, ref_id: int) -> PolledMatch | None:
        with self._lock:
            return self._matches.get(ref_id)

    def matches(self) -> list[HeldMatch]:
        with self._lock:
            return [one.match for one in self._matches.values()]

    def forget(self, ref_id: int) -> None:
        with self._lock:
            self._matches.pop(ref_id, None)

    def forget_old(self, now: float) -> None:
        """Outside an outage: removes the matches that other workers read now."""
        with self._lock:
            old = [ref_id for ref_id, one in self._matches.items() if now - one.read_at > _kept_seconds(one)]
            for ref_id in old:
                del self._matches[ref_id]

    def due(self, now: float) -> list[PolledMatch]:
        """Returns the matches to be read now, the longest waiting first."""
        with self._lock:
            return sorted((one for one in self._matches.values() if one.due_at <= now), key=lambda one: one.due_at)


def _kept_seconds(one: PolledMatch) -> float:
    return max(KEPT_SECONDS, 3 * one.interval_seconds)
