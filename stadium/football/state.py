"""The state of a football match, computed by applying its events in order."""

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
    Postponement,
    Ruling,
    ShootoutKick,
    Unlisted,
    VarDecision,
)

_PHASES = {
    Period.FIRST_HALF: "first_half",
    Period.HALFTIME: "halftime",
    Period.SECOND_HALF: "second_half",
    Period.FULL_TIME: "second_half",  # of a match that continues with extra time
    Period.FIRST_EXTRA: "extra_time",
    Period.SECOND_EXTRA: "extra_time",
    Period.EXTRA_TIME_END: "extra_time",
    Period.SHOOTOUT: "penalties",
}
_INDEX = {Period.SECOND_HALF: 1, Period.FULL_TIME: 1, Period.FIRST_EXTRA: 2, Period.SECOND_EXTRA: 3}
_LAST = 3


@dataclass(frozen=True, slots=True)
class Incident:
    """An event with the score after it; in a shoot-out the score of the shoot-out."""

    event: FootballEvent
    home: int
    away: int


@dataclass(slots=True)
class FootballState:
    script: FootballScript
    incidents: list[Incident] = field(default_factory=list)  # oldest first
    applied: int = 0
    status: str = "upcoming"
    phase: str = "scheduled"
    period: Period | None = None
    period_started_at: float | None = None
    goals_by_period: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in range(_LAST + 1)])
    penalties: list[int] = field(default_factory=lambda: [0, 0])
    has_shootout: bool = False
    has_extra_time: bool = False
    is_interrupted: bool = False
    red_cards: list[int] = field(default_factory=lambda: [0, 0])
    injury: dict[int, int] = field(default_factory=dict)
    changed_at: float | None = None
    ruling: Ruling | None = None

    @property
    def goals(self) -> tuple[int, int]:
        """Goals without the shoot-out."""
        if self.ruling and self.ruling.goals:
            return self.ruling.goals
        home, away = (sum(goals[side] for goals in self.goals_by_period) for side in (0, 1))
        return home, away

    @property
    def period_index(self) -> int:
        """0 and 1 for the halves, 2 and 3 for those of extra time."""
        return 0 if self.period is None else _INDEX.get(self.period, _LAST if self.has_extra_time else 0)

    @property
    def winner(self) -> int | None:
        """0 for home, 1 for away; None for a draw."""
        if self.ruling and self.ruling.kind == "walkover":
            return 0
        decided = self.penalties if self.has_shootout else self.goals
        return None if decided[0] == decided[1] else int(decided[1] > decided[0])

    def apply(self, event: FootballEvent) -> None:
        self.applied += 1
        self.changed_at = event.at
        if isinstance(event, PeriodMark):
            self._enter(event)
        elif isinstance(event, Goal):
            self.goals_by_period[self.period_index][0 if event.is_home else 1] += 1
        elif isinstance(event, ShootoutKick):
            self.penalties[0 if event.is_home else 1] += event.is_scored
        elif isinstance(event, Card) and event.kind != "yellow":
            self.red_cards[0 if event.is_home else 1] += 1
        elif isinstance(event, InjuryTime):
            self.injury[event.time] = event.length
        elif isinstance(event, VarDecision):
            self._review(event)
        elif isinstance(event, Unlisted):
            self._stop(event)
            return
        in_shootout = isinstance(event, ShootoutKick) or self.period is Period.SHOOTOUT_END
        self.incidents.append(Incident(event, *(self.penalties if in_shootout else self.goals)))

    def _enter(self, mark: PeriodMark) -> None:
        self.period = mark.period
        self.has_extra_time = self.has_extra_time or mark.period is Period.FIRST_EXTRA
        self.has_shootout = self.has_shootout or mark.period is Period.SHOOTOUT
        self.status = "completed" if mark.is_end else "live"
        self.phase = "finished" if mark.is_end else _PHASES[mark.period]
        if mark.period.is_running:
            self.period_started_at = mark.at
        # the line of a running period is replaced by the next one, or by the line of its end
        self.incidents = [
            line for line in self.incidents if not (isinstance(line.event, PeriodMark) and line.event.period.is_running)
        ]

    def _stop(self, event: Unlisted) -> None:
        if isinstance(event, Ruling):
            self.ruling, is_off = event, event.kind == "abandoned"
            self.status, self.phase = ("abandoned", "abandoned") if is_off else ("completed", "finished")
            return
        if isinstance(event, Postponement):
            self.phase = "postponed"
            return
        self.is_interrupted = not event.resumes
        if event.resumes and self.period_started_at is not None:
            self.period_started_at += event.seconds
        self.phase = "interrupted" if self.is_interrupted or self.period is None else _PHASES[self.period]

    def _review(self, decision: VarDecision) -> None:
        """Removes a cancelled goal from the incidents: readers have to retract it."""
        if decision.cancels is None:
            return
        self.goals_by_period[self.period_index][0 if decision.is_home else 1] -= 1
        self.incidents = [
            line
            for line in self.incidents
            if not (isinstance(line.event, Goal) and line.event.number == decision.cancels)
        ]


def fold(script: FootballScript, events: Iterable[FootballEvent]) -> FootballState:
    state = FootballState(script)
    for event in events:
        state.apply(event)
    return state
