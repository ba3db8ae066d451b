"""What goes wrong in a night, drawn by its seed: when, where, and how badly. All is well again before the end."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

CALM, USUAL, HELL = "calm", "usual", "hell"
LEVELS = (CALM, USUAL, HELL)
EVERYWHERE = -1


class Kind(StrEnum):
    ERRORS = "some errors"  # a part of the answers
    OUTAGE = "source down"
    LIMITED = "429, come back later"
    SLOW = "slow answers"
    HANGS = "no answer at all"
    CUT = "network cut"
    POISON = "one match always fails"
    MUTE = "one match hangs in its session"
    KILLED = "worker killed"
    CRASH = "browser crash"
    BROKER = "hints lost"
    STORE = "database away"
    LEADER = "scheduler lost"


OF_SOURCE = frozenset({Kind.ERRORS, Kind.OUTAGE, Kind.LIMITED, Kind.SLOW, Kind.HANGS})
OF_MATCH = frozenset({Kind.POISON, Kind.MUTE})
OF_US = frozenset({Kind.CUT, Kind.STORE, Kind.LEADER, Kind.BROKER})


@dataclass(frozen=True)
class Fault:
    kind: Kind
    begin: float
    end: float
    target: int = EVERYWHERE  # a source, a worker or a match, by its number
    strength: float = 1.0  # the share of calls that it hits, or how much slower

    def is_on(self, seconds: float) -> bool:
        return self.begin <= seconds < self.end


@dataclass(frozen=True)
class Room:
    """What there is to be hit."""

    sources: int
    workers: int
    matches: int
    last: float  # all is over by then


# How long it lasts in seconds, how strong it is, and how many come in an hour at the usual level.
SIZES: dict[Kind, tuple[tuple[float, float], tuple[float, float], float]] = {
    Kind.ERRORS: ((60, 420), (0.05, 0.3), 0.6),
    Kind.OUTAGE: ((20, 400), (1.0, 1.0), 0.4),
    Kind.LIMITED: ((30, 180), (0.2, 0.8), 0.25),
    Kind.SLOW: ((60, 600), (4.0, 15.0), 0.4),
    Kind.HANGS: ((30, 240), (1.0, 1.0), 0.25),
    Kind.POISON: ((600, 1800), (0.0, 1.0), 0.4),
    Kind.MUTE: ((300, 900), (1.0, 1.0), 0.3),
    Kind.KILLED: ((4, 9), (1.0, 1.0), 0.7),
    Kind.CRASH: ((0.5, 2), (1.0, 1.0), 1.0),
    Kind.BROKER: ((5, 120), (1.0, 1.0), 0.3),
    Kind.STORE: ((5, 90), (1.0, 1.0), 0.2),
    Kind.LEADER: ((10, 10), (1.0, 1.0), 0.3),
}
RATES = {CALM: 0.0, USUAL: 0.6, HELL: 3.0}
CUT_EVERY, CUT_SECONDS = 900.0, 10.0
FIRST_SECONDS = 120.0
QUIET_BEFORE_THE_END = 2100.0  # a source's breaker waits a quarter of an hour, and closes after that


def draw(level: str, room: Room, chance: random.Random) -> list[Fault]:
    faults = [
        fault
        for kind, (_, _, rate) in SIZES.items()
        for fault in _some(kind, rate * RATES[level] * room.last / 3600.0, room, chance)
    ]
    if level == HELL:
        begin = chance.uniform(0, CUT_EVERY)
        faults += [
            Fault(Kind.CUT, begin + number * CUT_EVERY, begin + number * CUT_EVERY + CUT_SECONDS)
            for number in range(int((room.last - begin) / CUT_EVERY))
        ]
    elif level == USUAL and room.last > 0 and chance.random() < 0.5:
        begin = chance.uniform(0, room.last)
        faults.append(Fault(Kind.CUT, begin, begin + CUT_SECONDS))
    return sorted(faults, key=lambda one: (one.begin, one.kind))


def _some(kind: Kind, expected: float, room: Room, chance: random.Random) -> Iterable[Fault]:
    number = int(expected) + (chance.random() < expected % 1)
    (shortest, longest), (weakest, strongest), _ = SIZES[kind]
    for _ in range(number):
        seconds = chance.uniform(shortest, longest)
        begin = chance.uniform(FIRST_SECONDS, max(FIRST_SECONDS, room.last - seconds))
        if begin + seconds < room.last:
            yield Fault(kind, begin, begin + seconds, _target(kind, room, chance), chance.uniform(weakest, strongest))


def _target(kind: Kind, room: Room, chance: random.Random) -> int:
    if kind in OF_SOURCE:
        return chance.randrange(room.sources)
    if kind in OF_MATCH:
        return chance.randrange(room.matches)
    return chance.randrange(room.workers) if kind in (Kind.KILLED, Kind.CRASH) else EVERYWHERE


class Trouble:
    """Which faults are on, asked by kind and target."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.keep(faults)

    def keep(self, faults: Sequence[Fault]) -> None:
        """These and no others."""
        self.all = faults
        self.over_at = max((fault.end for fault in faults), default=0.0)
        self._of: dict[tuple[Kind, int], list[Fault]] = {}
        for fault in faults:
            self._of.setdefault((fault.kind, fault.target), []).append(fault)
        self.stops_us = any(fault.kind in (Kind.STORE, Kind.LEADER) for fault in faults)

    def now(self, kind: Kind, target: int, seconds: float) -> Fault | None:
        for fault in self._of.get((kind, target), ()):
            if fault.begin <= seconds < fault.end:
                return fault
        return None

    def overlap(self, begin: float, end: float, *, source: int, after: float) -> float:
        """Seconds of a stretch in which we, or this source, were in trouble or had just been."""
        spans = sorted(
            (max(begin, one.begin), min(end, one.end + after))
            for one in self.all
            if one.begin < end and one.end + after > begin and (one.kind not in OF_SOURCE or one.target == source)
        )
        total, reached = 0.0, begin
        for since, until in spans:
            total += max(0.0, until - max(since, reached))
            reached = max(reached, until)
        return total
