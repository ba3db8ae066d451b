"""Timelines of simulated matches: periods of play and breaks, and the times at which the score changes."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate

from scraping.payloads import Phase, Status

MINUTE = 60.0
RAIN_SHARE = 1 / 6  # of all matches
RUSH_SHARE, RUSH_CHANGES = 0.05, 12  # now and then the score changes several times within seconds


@dataclass(frozen=True)
class Period:
    phase: Phase
    seconds: float
    change_every: float = 0.0  # seconds between two changes of the score; 0: none
    is_announced: bool = True  # False: the source shows the break as play

    @property
    def is_play(self) -> bool:
        return self.change_every > 0


def _play(minutes: float, change_every: float = 38.0) -> Period:
    return Period(Phase.PLAY, minutes * MINUTE, change_every)


FORMATS: dict[str, tuple[Period, ...]] = {
    "T20": (_play(85), Period(Phase.INNINGS_BREAK, 15 * MINUTE), _play(80)),
    "ODI": (
        _play(70),
        Period(Phase.DRINKS, 4 * MINUTE, is_announced=False),
        _play(100),
        Period(Phase.INNINGS_BREAK, 35 * MINUTE),
        _play(170),
    ),
    "Test": (
        _play(120, 45.0),
        Period(Phase.LUNCH, 40 * MINUTE),
        _play(120, 45.0),
        Period(Phase.TEA, 20 * MINUTE),
        _play(120, 45.0),
        Period(Phase.STUMPS, 600 * MINUTE),
    ),
}


@dataclass(frozen=True)
class TrueState:
    status: Status
    phase: Phase
    changes: int  # so far; serves as the score


class Timeline:
    """One match, from its start to its end. Times are seconds of the night."""

    def __init__(self, periods: tuple[Period, ...], start: float, rng: random.Random) -> None:
        self.start = start
        self.periods = _with_rain(periods, rng)
        self._ends = [start + length for length in accumulate(period.seconds for period in self.periods)]
        self.end = self._ends[-1]
        self._changes = self._draw_changes(rng)

    def _draw_changes(self, rng: random.Random) -> list[float]:
        """Every period begins with a change; play brings more."""
        changes: list[float] = []
        begin = self.start
        for period, end in zip(self.periods, self._ends, strict=True):
            at = begin
            while at < end:
                changes.append(at)
                if not period.is_play:
                    break
                is_rush = rng.random() < RUSH_SHARE
                gaps = [rng.uniform(1.5, 3.0) for _ in range(RUSH_CHANGES)] if is_rush else [period.change_every]
                for gap in gaps:
                    at += gap * rng.uniform(0.7, 1.3)
                    changes.append(min(at, end))
            begin = end
        return [*changes, self.end]

    def state_at(self, seconds: float) -> TrueState:
        if seconds < self.start:
            return TrueState(Status.UPCOMING, Phase.SCHEDULED, 0)
        changes = bisect_right(self._changes, seconds)
        if seconds >= self.end:
            return TrueState(Status.COMPLETED, Phase.FINISHED, changes)
        period = self._period_at(seconds)
        return TrueState(Status.LIVE, period.phase if period.is_play or period.is_announced else Phase.PLAY, changes)

    def is_live(self, seconds: float) -> bool:
        return self.start <= seconds < self.end

    def is_in_play(self, seconds: float) -> bool:
        return self.is_live(seconds) and self._period_at(seconds).is_play

    def _period_at(self, seconds: float) -> Period:
        return self.periods[bisect_right(self._ends, seconds)]


def _with_rain(periods: tuple[Period, ...], rng: random.Random) -> tuple[Period, ...]:
    """Interrupts some matches; half of the interruptions are not announced."""
    if rng.random() > RAIN_SHARE:
        return periods
    place = rng.choice([number for number, period in enumerate(periods) if period.is_play])
    play, share = periods[place], rng.uniform(0.2, 0.8)
    rain = Period(Phase.RAIN, rng.uniform(8, 35) * MINUTE, is_announced=rng.random() < 0.5)
    before, after = (replace(play, seconds=play.seconds * part) for part in (share, 1 - share))
    return (*periods[:place], before, rain, after, *periods[place + 1 :])
