"""What really happens in a match, whether anybody looks or not: its parts, and when something changes in them."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from scraping.payloads import Phase, Sport, Status

MINUTE = 60.0


@dataclass(frozen=True)
class Part:
    """A stretch of a match. `says_so`: the source has a word for the break; without one, only nothing moves."""

    phase: Phase
    seconds: float
    change_every: float = 0.0  # 0: nothing changes
    says_so: bool = True

    @property
    def is_play(self) -> bool:
        return self.change_every > 0


@dataclass(frozen=True)
class Shape:
    name: str
    sport: Sport
    parts: tuple[Part, ...]


def _cricket(name: str, *parts: Part) -> Shape:
    return Shape(name, Sport.CRICKET, parts)


BALL_SECONDS = 38.0
SHAPES = (
    _cricket(
        "T20",
        Part(Phase.PLAY, 85 * MINUTE, BALL_SECONDS),
        Part(Phase.INNINGS_BREAK, 15 * MINUTE),
        Part(Phase.PLAY, 80 * MINUTE, BALL_SECONDS),
    ),
    _cricket(
        "ODI",
        Part(Phase.PLAY, 70 * MINUTE, BALL_SECONDS),
        Part(Phase.DRINKS, 4 * MINUTE, says_so=False),
        Part(Phase.PLAY, 100 * MINUTE, BALL_SECONDS),
        Part(Phase.INNINGS_BREAK, 35 * MINUTE),
        Part(Phase.PLAY, 170 * MINUTE, BALL_SECONDS),
    ),
    _cricket(
        "Test",
        Part(Phase.PLAY, 120 * MINUTE, 45.0),
        Part(Phase.LUNCH, 40 * MINUTE),
        Part(Phase.PLAY, 120 * MINUTE, 45.0),
        Part(Phase.TEA, 20 * MINUTE),
        Part(Phase.PLAY, 120 * MINUTE, 45.0),
        Part(Phase.STUMPS, 600 * MINUTE),
    ),
    Shape(
        "football",
        Sport.FOOTBALL,
        (
            Part(Phase.PLAY, 48 * MINUTE, 55.0),
            Part(Phase.HALFTIME, 15 * MINUTE),
            Part(Phase.PLAY, 50 * MINUTE, 55.0),
        ),
    ),
)


@dataclass(frozen=True)
class State:
    """A match as it is at one moment."""

    status: Status
    phase: Phase
    version: int  # grows with every change


class Play:
    """One match of the night, from its start on."""

    def __init__(self, shape: Shape, start: float, chance: random.Random) -> None:
        self.shape, self.start = shape, start
        self.parts = _with_rain(shape.parts, chance)
        self.ends = [start + length for length in accumulate(part.seconds for part in self.parts)]
        self.end = self.ends[-1]
        self._changes = self._draw(chance)

    def _draw(self, chance: random.Random) -> list[float]:
        """Balls come evenly, with a rush now and then; every part begins with a change."""
        changes: list[float] = []
        begin = self.start
        for part, end in zip(self.parts, self.ends, strict=True):
            at = begin
            while at < end:
                changes.append(at)
                if not part.is_play:
                    break
                is_rush = chance.random() < 0.05
                steps = [chance.uniform(1.5, 3.0) for _ in range(12)] if is_rush else [part.change_every]
                for step in steps:
                    at += step * chance.uniform(0.7, 1.3)
                    changes.append(min(at, end))
            begin = end
        return [*changes, self.end]

    def at(self, seconds: float) -> State:
        version = bisect_right(self._changes, seconds)
        if seconds < self.start:
            return State(Status.UPCOMING, Phase.SCHEDULED, 0)
        if seconds >= self.end:
            return State(Status.COMPLETED, Phase.FINISHED, version)
        part = self.parts[bisect_right(self.ends, seconds)]
        return State(Status.LIVE, part.phase if part.is_play or part.says_so else Phase.PLAY, version)

    def is_in_play(self, seconds: float) -> bool:
        return self.start <= seconds < self.end and self.parts[bisect_right(self.ends, seconds)].is_play

    def play_between(self, begin: float, end: float) -> float:
        """Seconds of real play in a stretch of time."""
        total, since = 0.0, self.start
        for part, until in zip(self.parts, self.ends, strict=True):
            if part.is_play:
                total += max(0.0, min(end, until) - max(begin, since))
            since = until
        return total

    def live_between(self, begin: float, end: float) -> float:
        return max(0.0, min(end, self.end) - max(begin, self.start))


def _with_rain(parts: tuple[Part, ...], chance: random.Random) -> tuple[Part, ...]:
    """One match in six is interrupted; half of the sources have a word for it."""
    if chance.random() > 1 / 6:
        return parts
    place = chance.choice([number for number, part in enumerate(parts) if part.is_play])
    part, share = parts[place], chance.uniform(0.2, 0.8)
    rain = Part(Phase.RAIN, chance.uniform(8, 35) * MINUTE, says_so=chance.random() < 0.5)
    before = Part(part.phase, part.seconds * share, part.change_every)
    after = Part(part.phase, part.seconds * (1 - share), part.change_every)
    return (*parts[:place], before, rain, after, *parts[place + 1 :])
