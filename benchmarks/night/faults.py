"""Faults of a night, drawn by its seed: kind, time, target, strength. The last one ends before the quiet time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

CALM, USUAL, HELL = "calm", "usual", "hell"
LEVELS = (CALM, USUAL, HELL)
ANY = -1


class FaultKind(StrEnum):
    ERRORS = "some errors"
    OUTAGE = "source down"
    RATE_LIMITED = "429 with Retry-After"
    SLOW = "slow responses"
    HANGS = "no response"
    NETWORK_CUT = "network cut"
    MATCH_FAILS = "one match always fails"
    SESSION_HANGS = "one match hangs in its session"
    WORKER_KILLED = "worker killed"
    HINTS_LOST = "hints lost"
    SCHEDULER_LOST = "scheduler lost"


OF_SOURCE = frozenset({FaultKind.ERRORS, FaultKind.OUTAGE, FaultKind.RATE_LIMITED, FaultKind.SLOW, FaultKind.HANGS})
OF_MATCH = frozenset({FaultKind.MATCH_FAILS, FaultKind.SESSION_HANGS})


@dataclass(frozen=True)
class Fault:
    kind: FaultKind
    begin: float
    end: float
    target: int = ANY  # number of a source, match or worker
    strength: float = 1.0  # share of the requests that fail, or how many times slower


@dataclass(frozen=True)
class FaultPlan:
    """Range of durations in seconds, range of strengths, and number in an hour at rate 1."""

    seconds: tuple[float, float]
    strength: tuple[float, float] = (1.0, 1.0)
    per_hour: float = 1.0


PLANS = {
    FaultKind.ERRORS: FaultPlan((60, 300), (0.05, 0.3), 0.6),
    FaultKind.OUTAGE: FaultPlan((20, 300), per_hour=0.5),
    FaultKind.RATE_LIMITED: FaultPlan((30, 180), (0.2, 0.8), 0.3),
    FaultKind.SLOW: FaultPlan((60, 400), (4.0, 15.0), 0.4),
    FaultKind.HANGS: FaultPlan((30, 200), per_hour=0.3),
    FaultKind.NETWORK_CUT: FaultPlan((10, 10), per_hour=0.6),
    FaultKind.MATCH_FAILS: FaultPlan((120, 500), (0.0, 1.0), 0.4),
    FaultKind.SESSION_HANGS: FaultPlan((120, 500), per_hour=0.3),
    FaultKind.WORKER_KILLED: FaultPlan((4, 9), per_hour=0.7),
    FaultKind.HINTS_LOST: FaultPlan((5, 60), per_hour=0.3),
    FaultKind.SCHEDULER_LOST: FaultPlan((10, 10), per_hour=0.3),
}
RATES = {CALM: 0.0, USUAL: 2.0, HELL: 8.0}
FIRST_SECONDS = 60.0


@dataclass(frozen=True)
class Targets:
    """The number of targets of each kind, and the time by which all faults are over."""

    sources: int
    matches: int
    workers: int
    over_at: float

    def draw(self, kind: FaultKind, rng: random.Random) -> int:
        if kind in OF_SOURCE:
            return rng.randrange(self.sources)
        if kind in OF_MATCH:
            return rng.randrange(self.matches)
        return rng.randrange(self.workers) if kind is FaultKind.WORKER_KILLED else ANY


def draw_faults(level: str, targets: Targets, rng: random.Random) -> list[Fault]:
    faults = [fault for kind in FaultKind for fault in _draw_kind(kind, RATES[level], targets, rng)]
    return sorted(faults, key=lambda fault: (fault.begin, fault.kind))


def _draw_kind(kind: FaultKind, rate: float, targets: Targets, rng: random.Random) -> Iterator[Fault]:
    plan = PLANS[kind]
    expected = rate * plan.per_hour * max(0.0, targets.over_at) / 3600.0
    for _ in range(int(expected) + (rng.random() < expected % 1)):
        seconds = rng.uniform(*plan.seconds)
        begin = rng.uniform(FIRST_SECONDS, max(FIRST_SECONDS, targets.over_at - seconds))
        if begin + seconds <= targets.over_at:
            yield Fault(kind, begin, begin + seconds, targets.draw(kind, rng), rng.uniform(*plan.strength))


class Faults:
    """All faults of a night, looked up by kind and target."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.all = tuple(faults)

    def active(self, kind: FaultKind, seconds: float, target: int = ANY) -> Fault | None:
        for fault in self.all:
            if fault.kind is kind and fault.target == target and fault.begin <= seconds < fault.end:
                return fault
        return None

    def last_end(self, before: float) -> float:
        """Returns the end of the last fault that ended before a time; 0 for none."""
        return max((fault.end for fault in self.all if fault.end <= before), default=0.0)
