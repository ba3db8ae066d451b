"""The state of a football match: a fold over its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stadium.football.script import (
    Card,
    FootballEvent,
    FootballScript,
    Goal,
    InjuryTime,
    Period,
    PeriodMark,
    VarDecision,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """An event with the score right after it, as the incidents list shows it."""

    event: FootballEvent
    home: int
    away: int


@dataclass(slots=True)
class FootballState:
    script: FootballScript
    shown: list[Shown] = field(default_factory=list)  # oldest first
    applied: int = 0
    status: str = "upcoming"
    phase: str = "scheduled"
    period: Period | None = None
    period_started_at: float | None = None
    by_half: list[list[int]] = field(default_factory=lambda: [[0, 0], [0, 0]])
    red_cards: list[int] = field(default_factory=lambda: [0, 0])
    injury: dict[int, int] = field(default_factory=dict)
    changed_at: float | None = None

    @property
    def goals(self) -> tuple[int, int]:
        first, second = self.by_half
        return first[0] + second[0], first[1] + second[1]

    @property
    def half(self) -> int:
        return 1 if self.period in (Period.SECOND_HALF, Period.FULL_TIME) else 0

    def apply(self, event: FootballEvent) -> None:
        self.applied += 1
        self.changed_at = event.at
        if isinstance(event, PeriodMark):
            self._enter(event)
        elif isinstance(event, Goal):
            self.by_half[self.half][0 if event.is_home else 1] += 1
        elif isinstance(event, Card) and event.kind != "yellow":
            self.red_cards[0 if event.is_home else 1] += 1
        elif isinstance(event, InjuryTime):
            self.injury[event.time] = event.length
        elif isinstance(event, VarDecision):
            self._review(event)
        self.shown.append(Shown(event, *self.goals))

    def _enter(self, mark: PeriodMark) -> None:
        self.period = mark.period
        self.status = "completed" if mark.period is Period.FULL_TIME else "live"
        self.phase = {
            Period.FIRST_HALF: "first_half",
            Period.HALFTIME: "halftime",
            Period.SECOND_HALF: "second_half",
            Period.FULL_TIME: "finished",
        }[mark.period]
        if mark.period in (Period.FIRST_HALF, Period.SECOND_HALF):
            self.period_started_at = mark.at
        else:  # the line of the running half gives way to the line of the ended one
            self.shown = [
                line
                for line in self.shown
                if not (
                    isinstance(line.event, PeriodMark) and line.event.period in (Period.FIRST_HALF, Period.SECOND_HALF)
                )
            ]

    def _review(self, decision: VarDecision) -> None:
        """A goal that the review takes back leaves the list: a reader has to retract it."""
        if decision.cancels is None:
            return
        self.by_half[self.half][0 if decision.is_home else 1] -= 1
        self.shown = [
            line for line in self.shown if not (isinstance(line.event, Goal) and line.event.number == decision.cancels)
        ]


def fold(script: FootballScript, events: Iterable[FootballEvent]) -> FootballState:
    state = FootballState(script)
    for event in events:
        state.apply(event)
    return state
