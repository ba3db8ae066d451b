"""What can happen in a football match, each thing with its time in seconds after the scheduled start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stadium.people import Player, Team


class Period(StrEnum):
    FIRST_HALF = "First half"
    HALFTIME = "HT"
    SECOND_HALF = "Second half"
    FULL_TIME = "FT"


@dataclass(frozen=True, slots=True)
class Minute:
    time: int  # 1..45 or 46..90
    added: int = 0

    @property
    def text(self) -> str:
        return f"{self.time}+{self.added}'" if self.added else f"{self.time}'"


@dataclass(frozen=True, slots=True)
class PeriodMark:
    at: float
    period: Period


@dataclass(frozen=True, slots=True)
class InjuryTime:
    at: float
    time: int
    length: int


@dataclass(frozen=True, slots=True)
class Goal:
    at: float
    number: int  # unique in the match; the incident's id is made of it
    minute: Minute
    is_home: bool  # the side it counts for, also for an own goal
    scorer: Player
    assist: Player | None
    kind: str  # regular, penalty or ownGoal


@dataclass(frozen=True, slots=True)
class Card:
    at: float
    number: int
    minute: Minute
    is_home: bool
    player: Player
    kind: str  # yellow, red or yellowRed


@dataclass(frozen=True, slots=True)
class Substitution:
    at: float
    number: int
    minute: Minute
    is_home: bool
    player_in: Player
    player_out: Player
    kind: str  # regular or injury


@dataclass(frozen=True, slots=True)
class VarDecision:
    at: float
    number: int
    minute: Minute
    is_home: bool
    player: Player
    kind: str  # goalAwarded or goalNotAwarded
    cancels: int | None  # the number of the goal that disappears


Numbered = Goal | Card | Substitution | VarDecision
FootballEvent = PeriodMark | InjuryTime | Numbered


@dataclass(frozen=True, slots=True)
class FootballScript:
    teams: tuple[Team, Team]  # home, away
    events: tuple[FootballEvent, ...]

    @property
    def ends_at(self) -> float:
        return self.events[-1].at

    def time_of(self, period: Period) -> float:
        return next(event.at for event in self.events if isinstance(event, PeriodMark) and event.period is period)
