"""What the match is doing: the status type first, its code second.

A type that we do not know is refused: a refused reading changes nothing, so the last known state stays, and it is
reported. A code that we do not know counts as its type does, and is noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Phase, Status
from scraping.sources import parsing
from scraping.sources.parsing import note_unrecognized

_BY_TYPE = {
    "notstarted": (Status.UPCOMING, Phase.SCHEDULED),
    "inprogress": (Status.LIVE, Phase.PLAY),
    "finished": (Status.COMPLETED, Phase.FINISHED),
    "postponed": (Status.UPCOMING, Phase.POSTPONED),
    "canceled": (Status.ABANDONED, Phase.FINISHED),
    "interrupted": (Status.LIVE, Phase.INTERRUPTED),
    "suspended": (Status.LIVE, Phase.INTERRUPTED),
    "willcontinue": (Status.LIVE, Phase.INTERRUPTED),
}
_SEEN = {  # codes by type; 41 and 50 are the ones that nobody has recorded
    "notstarted": frozenset({0}),
    "inprogress": frozenset({6, 7, 20, 21, 22, 31, 41, 42, 50}),
    "finished": frozenset({91, 92, 100, 110, 120}),
    "postponed": frozenset({60}),
    "canceled": frozenset({70, 90}),
    "interrupted": frozenset({80}),
    "suspended": frozenset({81}),
    "willcontinue": frozenset({141}),
}
HALFTIME, EXTRA_TIME, PENALTIES = 31, (41, 42), 50
_LIVE_PHASES = (
    (("halftime", "half time", "pause"), Phase.HALFTIME),
    (("penalt",), Phase.PENALTIES),
    (("extra", "overtime"), Phase.EXTRA_TIME),
)
_PERIODS = {
    6: (0, 2700),
    7: (2700, 5400),
    41: (5400, 6300),
    42: (6300, 7200),
}  # code: seconds played before, and at its end
_MOST_ADDED = 20  # minutes; a match whose end nobody entered would tick for ever
_ENDINGS = {110: "AET", 120: "AP"}


def status_and_phase(status: Mapping[str, Any]) -> tuple[Status, Phase]:
    """PayloadRejected for an unknown type: the last known state stays until somebody has looked."""
    judged, phase = by_type(status)
    return judged, _live_phase(status) if phase is Phase.PLAY else phase


def by_type(status: Mapping[str, Any]) -> tuple[Status, Phase]:
    """What every sport's status says by its type alone."""
    kind, code = parsing.text(status.get("type"), 40), parsing.integer(status.get("code"))
    if not kind:
        raise SchemaBreak(f"the event's status has no type; it has {', '.join(sorted(status)[:10]) or 'nothing'}")
    if kind not in _BY_TYPE:
        note_unrecognized("event.status.type", kind)
        raise PayloadRejected(f"unknown status type {kind!r}, code {code}")
    if code not in _SEEN[kind]:
        note_unrecognized("event.status.code", f"{kind} {code}")
    return _BY_TYPE[kind]


def _live_phase(status: Mapping[str, Any]) -> Phase:
    code = parsing.integer(status.get("code"))
    if code == HALFTIME:
        return Phase.HALFTIME
    if code in EXTRA_TIME:
        return Phase.EXTRA_TIME
    if code == PENALTIES:
        return Phase.PENALTIES
    described = parsing.text(status.get("description"), 60).lower()
    return next((phase for words, phase in _LIVE_PHASES if any(word in described for word in words)), Phase.PLAY)


def clock(event: Mapping[str, Any], judged: Status, phase: Phase, now: datetime) -> str:
    """The minute being played ("37", "45+2"), HT, PEN, FT, AET or AP; empty where the source does not say."""
    code = parsing.integer(parsing.mapping(event.get("status")).get("code"))
    if judged is Status.COMPLETED:
        return _ENDINGS.get(code or 0, "FT")
    if judged is not Status.LIVE or phase is Phase.INTERRUPTED:
        return ""
    if phase is Phase.HALFTIME:
        return "HT"
    if phase is Phase.PENALTIES:
        return "PEN"
    return _minute(parsing.mapping(event.get("time")), code, now)


def _minute(time: Mapping[str, Any], code: int | None, now: datetime) -> str:
    began = parsing.moment(time.get("currentPeriodStartTimestamp"))
    initial, end = parsing.integer(time.get("initial")), parsing.integer(time.get("max"))
    if code in _PERIODS:
        initial = _PERIODS[code][0] if initial is None else initial
        end = _PERIODS[code][1] if end is None else end
    if began is None or initial is None or not 0 <= initial <= 7200:
        return ""
    elapsed = max(0, int((now - began).total_seconds()))
    minute, last = (initial + elapsed) // 60 + 1, (end or 0) // 60
    return f"{last}+{min(minute - last, _MOST_ADDED)}" if last and minute > last else str(minute)
