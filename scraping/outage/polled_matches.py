"""The matches that a worker read lately, with the payload of each that the database has.

During an outage of the database the worker polls these matches on, and spools the readings that differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from scraping.matches.reconcile.states import progress_summary
from scraping.outage.spool import HeldMatch
from scraping.payloads import Payload

KEPT_SECONDS = 90.0  # a match that was not read for so long is over, or read by another worker
LONGEST_PAUSE_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 2.5


class Novelty(Enum):
    NOTHING_NEW = 0
    MINOR = 1  # a clock, a text, a phase: the next reading has it as well
    CRITICAL = 2  # score, wickets, overs, status, or a critical event


def novelty(before: Payload | None, now: Payload) -> Novelty:
    """Returns how much of a reading is new compared with the one before."""
    if before is None or _progress(now) != _progress(before):
        return Novelty.CRITICAL
    known = {event.fingerprint() for event in before.events}
    new = [event for event in now.events if event.fingerprint() not in known]
    if any(event.is_critical for event in new):
        return Novelty.CRITICAL
    return Novelty.MINOR if new or now.state.checksum() != before.state.checksum() else Novelty.NOTHING_NEW


def _progress(payload: Payload) -> dict[str, Any]:
    state = payload.normalized()
    return {**progress_summary(state), "innings": state.get("innings"), "score": state.get("score")}


@dataclass
class PolledMatch:
    match: HeldMatch
    interval_seconds: float
    read_at: float  # monotonic
    due_at: float = 0.0
    errors: int = 0
    last: Payload | None = None  # compared in an outage only: at every poll it would cost 1 ms with 240 balls

    def add_reading(self, payload: Payload, now: float) -> Novelty:
        """Replaces the last reading; returns how much of the new one is new."""
        weight = novelty(self.last, payload)
        self.last, self.read_at, self.errors = payload, now, 0
        return weight

    def add_failure(self, now: float, *, retry_after_seconds: float | None = None) -> None:
        """Delays the next reading: without the rows of the breakers each match has its own back-off."""
        self.errors += 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self.errors, 10), LONGEST_PAUSE_SECONDS)
        self.due_at = now + max(pause, retry_after_seconds or 0.0)


class PolledMatches(dict[int, PolledMatch]):
    """The matches by the id of their ref. Used by several threads; each step is atomic."""

    def get_or_add(self, match: HeldMatch, *, interval_seconds: float, now: float) -> PolledMatch:
        return self.setdefault(match.ref_id, PolledMatch(match, interval_seconds, now))

    def stored(self, match: HeldMatch, payload: Payload | None, *, interval_seconds: float, now: float) -> None:
        """Sets the payload of the match that the database has; None: it has the same as before."""
        payload = payload or self.last_payload(match.ref_id)
        self[match.ref_id] = PolledMatch(match, interval_seconds, now, last=payload)

    def last_payload(self, ref_id: int) -> Payload | None:
        polled = self.get(ref_id)
        return polled.last if polled is not None else None

    def forget_old(self, now: float) -> None:
        """Outside an outage: removes the matches that other workers read now."""
        for ref_id, one in tuple(self.items()):
            if now - one.read_at > max(KEPT_SECONDS, 3 * one.interval_seconds):
                self.pop(ref_id, None)

    def due(self, now: float) -> list[PolledMatch]:
        """Returns the matches to be read now, the longest waiting first."""
        return sorted((one for one in tuple(self.values()) if one.due_at <= now), key=lambda one: one.due_at)
