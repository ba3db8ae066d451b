"""Is a reading worth keeping? Against the one before it: nothing new, something small, or something nobody may lose."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

import orjson

from scraping.matches.reconcile.states import progress_summary
from scraping.payloads import Payload


class Importance(Enum):
    NOTHING_NEW = 0
    MINOR = 1  # a clock, a text, a phase: the next reading tells it as well
    CRITICAL = 2  # score, wickets, overs, status, or an event that matters


@dataclass(frozen=True)
class Seen:
    """What is left of a reading to compare the next one with."""

    state: str = ""
    progress: str = ""
    events: frozenset[str] = frozenset()
    critical: frozenset[str] = frozenset()


def seen(payload: Payload) -> Seen:
    state = payload.normalized()
    marks = {event.id: event.fingerprint() for event in payload.events}
    return Seen(
        state=payload.state.checksum(),
        progress=_checksum({**progress_summary(state), "innings": state.get("innings"), "score": state.get("score")}),
        events=frozenset(marks.values()),
        critical=frozenset(marks[event.id] for event in payload.events if event.is_critical),
    )


def importance(before: Seen, now: Seen) -> Importance:
    if now.progress != before.progress or now.critical - before.critical:
        return Importance.CRITICAL
    if now.state != before.state or now.events - before.events:
        return Importance.MINOR
    return Importance.NOTHING_NEW


def _checksum(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]
