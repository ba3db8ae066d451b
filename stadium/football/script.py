"""Events of a football match, each with its time in seconds after the scheduled start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from stadium.matches.teams import Player, Team


class Period(StrEnum):
    """A period of play, or the end of one."""

    FIRST_HALF = "First half"
    HALFTIME = "HT"
    SECOND_HALF = "Second half"
    FULL_TIME = "FT"
    FIRST_EXTRA = "1st extra"
    SECOND_EXTRA = "2nd extra"
    EXTRA_TIME_END = "ET"
    SHOOTOUT = "Penalties"
    SHOOTOUT_END = "PEN"

    @property
    def is_running(self) -> bool:
        return self in RUNNING_PERIODS

    @property
    def text(self) -> str:
        """The name in the list of incidents, where both halves of extra time have the same name."""
        return "Extra time" if self in (Period.FIRST_EXTRA, Period.SECOND_EXTRA) else self.value

    @property
    def minute(self) -> int:
        """The minute of its end; 999 for a shoot-out, which has no minutes."""
        if self in (Period.FIRST_HALF, Period.HALFTIME):
            return 45
        if self in (Period.SECOND_HALF, Period.FULL_TIME):
            return 90
        return 999 if self in (Period.SHOOTOUT, Period.SHOOTOUT_END) else 120


RUNNING_PERIODS = (Period.FIRST_HALF, Period.SECOND_HALF, Period.FIRST_EXTRA, Period.SECOND_EXTRA, Period.SHOOTOUT)


@dataclass(frozen=True, slots=True)
class Minute:
    time: int  # 1..45, 46..90, 91..105 or 106..120
    added: int = 0

    @property
    def text(self) -> str:
        return f"{self.time}+{self.added}'" if self.added else f"{self.time}'"


@dataclass(frozen=True, slots=True)
class PeriodMark:
    at: float
    period: Period
    is_end: bool = False  # of the match


@dataclass(frozen=True, slots=True)
class Stoppage:
    """Play is interrupted, or resumes after `seconds`."""

    at: float
    seconds: float = 0.0

    @property
    def resumes(self) -> bool:
        return self.seconds > 0


@dataclass(frozen=True, slots=True)
class Postponement:
    """The match is not played on its day."""

    at: float


@dataclass(frozen=True, slots=True)
class Ruling:
    """The match is over by a decision: called off, a walkover for the home side, or awarded with a score."""

    at: float
    kind: Literal["abandoned", "walkover", "awarded"]
    goals: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class InjuryTime:
    at: float
    time: int
    length: int


@dataclass(frozen=True, slots=True)
class Goal:
    at: float
    number: int  # unique in the match; part of the incident's id
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


@dataclass(frozen=True, slots=True)
class ShootoutKick:
    at: float
    number: int
    is_home: bool
    player: Player
    is_scored: bool
    sequence: int  # from 1, over both sides


Numbered = Goal | Card | Substitution | VarDecision | ShootoutKick
Unlisted = Stoppage | Postponement | Ruling  # lists of incidents do not show them
FootballEvent = PeriodMark | InjuryTime | Unlisted | Numbered


@dataclass(frozen=True, slots=True)
class FootballScript:
    teams: tuple[Team, Team]  # home, away
    events: tuple[FootballEvent, ...]
    is_knockout: bool = False  # it must have a winner

    @property
    def has_shootout(self) -> bool:
        return any(isinstance(event, ShootoutKick) for event in self.events)

    @property
    def ends_at(self) -> float:
        return self.events[-1].at

    def time_of(self, period: Period) -> float:
        return next(event.at for event in self.events if isinstance(event, PeriodMark) and event.period is period)
