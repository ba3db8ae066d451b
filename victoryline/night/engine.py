"""The night itself: a heap of what happens next, a clock that jumps there, and the state that everybody shares."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

from monitoring.health.grading import GradeState
from monitoring.models import Grade
from scraping.configuration import policies
from scraping.configuration.policies import Policies
from scraping.policies.breaker import CLOSED, OPEN, BreakerView
from scraping.scheduler.loop import SETTLING_SECONDS
from victoryline.night import breaking, dispatch, watching, working
from victoryline.night.alarms import Alarms
from victoryline.night.faults import EVERYWHERE, Fault, Kind, Trouble
from victoryline.night.invariants import Rules, Violation
from victoryline.night.measures import Figures, Measures
from victoryline.night.moments import BEGIN, TICK_SECONDS, clock_time, moment, next_round
from victoryline.night.rows import NEVER, Game, Site, Watch
from victoryline.night.world import Script, build

MOST_AT_ONCE = 100_000  # things that happen at the same moment: a rule that calls for itself must not hang us
FIRST_WATCH_SECONDS = 15.0  # rare steps have their first turn a little later: see the scheduler's loop


@dataclass(frozen=True)
class Story:
    """What a night came to."""

    script: Script
    figures: Figures
    violations: tuple[Violation, ...]
    measures: Measures
    faults: tuple[Fault, ...]
    sources: tuple[Site, ...]
    alarms: Alarms


class Night:
    def __init__(self, script: Script, *, tick_seconds: float = TICK_SECONDS) -> None:
        self.script, self._tick_seconds = script, tick_seconds
        self.world = build(script)
        self.policies: Policies = policies.current()
        self.chance = random.Random(script.seed + 1_000_003)  # noqa: S311 - a world, no secret
        self.trouble = Trouble(self.world.faults)
        self.is_crowded = self.world.is_crowded
        self.t, self.now = 0.0, BEGIN
        self.measures = Measures(self.world)
        self.rules = Rules(self.trouble, self.policies)
        self.alarms = Alarms()
        self.queue = working.Queue()
        self.watchdogs_from = FIRST_WATCH_SECONDS
        self.last_success: float | None = None
        self.standing = GradeState(Grade.HEALTHY)
        self.failing_from = self.recovered_at = NEVER
        self.has_failed_again = False  # the last recovery was in vain
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = count()
        self._numbers = count(1)

    def at(self, seconds: float, do: Callable[..., None], *args: Any) -> None:
        heappush(self._heap, (max(seconds, self.t), next(self._count), do, args))

    def wake(self, site: Site, seconds: float) -> None:
        """The scheduler looks at a source in its next round at or after this time."""
        at = next_round(max(seconds, self.t), self._tick_seconds)
        if site.round_at is None or at < site.round_at:
            site.round_at = at
            self.at(at, dispatch.round_of, self, site, at)

    def next_number(self) -> int:
        return next(self._numbers)

    def store_away(self) -> Fault | None:
        return self.trouble.now(Kind.STORE, EVERYWHERE, self.t) if self.trouble.stops_us else None

    def scheduler_away(self) -> Fault | None:
        if not self.trouble.stops_us:
            return None
        return self.store_away() or self.trouble.now(Kind.LEADER, EVERYWHERE, self.t)

    def note(self, game: Game, text: str) -> None:
        game.log.append(f"{clock_time(self.t)} {text}")

    def set_breaker(self, of: Watch | Site, view: BreakerView) -> None:
        """A breaker has a new view; a change of its state is counted and told."""
        before, of.breaker = of.breaker.state, view
        if view.state == before:
            return
        name = f"{of.row.key}_source" if isinstance(of, Site) else f"{of.ref.key}_scraper"
        if isinstance(of, Site):
            of.breaker_since = self.t
            of.openings += view.state == OPEN
        else:
            self.note(of.game, f"breaker {view.state}: {view.reason}")
        self.measures.breaker_changed(name, view.state)
        self.rules.breaker_changed(name, view, self.t)
        if view.state == OPEN:
            self.alarms.opened(f"breaker:{name}", self.t, is_critical=isinstance(of, Site))
        elif view.state == CLOSED:
            self.alarms.closed(f"breaker:{name}", self.t)

    def run(self) -> Story:
        self._set_out()
        end = self.script.seconds
        heap = self._heap
        rounds = 0
        while heap and heap[0][0] <= end:
            t, _, do, args = heappop(heap)
            if t > self.t:
                self.t, self.now, rounds = t, moment(t), 0
            rounds += 1
            if rounds > MOST_AT_ONCE:
                raise RuntimeError(f"the night stands still at {clock_time(t)}: {do.__name__} again and again")
            do(*args)
        self.t, self.now = end, moment(end)
        self.measures.finish(self)
        self.rules.at_the_end(self)
        figures = self.measures.figures(self)
        self.rules.judge_figures(figures, self.script, end, is_crowded=self.is_crowded)
        return Story(
            self.script,
            figures,
            tuple(self.rules.violations),
            self.measures,
            tuple(self.world.faults),
            tuple(self.world.sites),
            self.alarms,
        )

    def _set_out(self) -> None:
        for watch in self.world.watches:
            if watch.ref.is_watched:  # found one after the other: discovery reads a list at a time
                dispatch.plan(self, watch, self.chance.uniform(0.0, 10.0))
        for fault in self.world.faults:
            if fault.kind is Kind.KILLED:
                self.at(fault.begin, working.kill, self, fault)
            elif fault.kind is Kind.CRASH:
                self.at(fault.begin, working.crash, self, fault)
            elif fault.kind is Kind.BROKER:
                self.at(fault.begin, working.lose_hints, self)
            elif fault.kind is Kind.STORE:
                self.at(fault.end, self._settle)
                self.at(fault.end, working.serve, self)
        self.at(1.0, breaking.judge_sources, self)
        self.at(FIRST_WATCH_SECONDS, watching.step, self)
        self.at(FIRST_WATCH_SECONDS, watching.grade_step, self)

    def _settle(self) -> None:
        """After an outage everything looks old: watchdogs wait a little, as the scheduler's loop lets them."""
        self.watchdogs_from = self.t + SETTLING_SECONDS


def simulate(script: Script) -> Story:
    return Night(script).run()
