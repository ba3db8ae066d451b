"""Events of a cricket match, each with its time in seconds after the scheduled start."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from stadium.matches.teams import Player, Team


class Dismissal(IntEnum):
    """The first seven have Crex's numbers, used in `dismissal` and in the `^n` codes; Crex has none for the others."""

    BOWLED = 1
    CAUGHT = 2
    CAUGHT_AND_BOWLED = 3
    RUN_OUT = 4
    STUMPED = 5
    HIT_WICKET = 6
    LBW = 7
    RETIRED_OUT = 8
    OBSTRUCTING = 9
    HANDLED_BALL = 10
    HIT_TWICE = 11
    TIMED_OUT = 12
    RETIRED_HURT = 13
    RETIRED_NOT_OUT = 14


BOWLERS_OWN = frozenset(
    {
        Dismissal.BOWLED,
        Dismissal.CAUGHT,
        Dismissal.CAUGHT_AND_BOWLED,
        Dismissal.STUMPED,
        Dismissal.HIT_WICKET,
        Dismissal.LBW,
    }
)
NOT_OUT = frozenset({Dismissal.RETIRED_HURT, Dismissal.RETIRED_NOT_OUT})


class NoticeKind(StrEnum):
    TOSS = "toss"
    INNINGS_START = "innings_start"
    INNINGS_BREAK = "innings_break"
    DECLARED = "declared"
    PENALTY = "penalty"  # runs without a ball
    DRINKS = "drinks"
    LUNCH = "lunch"
    TEA = "tea"
    STUMPS = "stumps"
    RAIN = "rain"
    RESUME = "resume"
    POSTPONED = "postponed"
    RESULT = "result"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Wicket:
    kind: Dismissal
    out: Player
    fielder: Player | None = None

    @property
    def counts(self) -> bool:
        """False for a batter who retires hurt: it is no wicket in the score."""
        return self.kind not in NOT_OUT


@dataclass(frozen=True, slots=True)
class Ball:
    at: float
    innings: int  # from 0, over the whole match
    over: int  # completed overs before this one
    number: int  # from 1; a wide or no-ball repeats the number of the ball that replaces it
    delivery: int  # running number over the whole match, from 1
    striker: Player
    partner: Player
    bowler: Player
    runs: int  # off the bat
    extras: tuple[tuple[str, int], ...] = ()  # of "wd", "nb", "b", "lb" and "pen"; the most significant first
    wickets: tuple[Wicket, ...] = ()
    index: int = 1  # place within the over, from 1, extras included
    is_boundary: bool = True  # False if four or six runs off the bat were run
    closes_over: bool = False

    @property
    def extra(self) -> str:
        return self.extras[0][0] if self.extras else ""

    @property
    def extra_runs(self) -> int:
        return sum(runs for _, runs in self.extras) if self.extras else 0

    @property
    def wicket(self) -> Wicket | None:
        return next((wicket for wicket in self.wickets if wicket.counts), None) if self.wickets else None

    @property
    def is_legal(self) -> bool:
        return not self.extras or not (self.gave("wd") or self.gave("nb"))

    @property
    def total(self) -> int:
        return self.runs + self.extra_runs

    @property
    def label(self) -> str:
        return f"{self.over}.{self.number}"

    @property
    def text(self) -> str:
        """As the ball feed writes it: `4`, `1nb`, `W`."""
        return "W" if self.wicket else f"{self.total}{self.extra}"

    @property
    def is_crossing(self) -> bool:
        """True if the batters changed ends. The penalty run of a wide or no-ball is not run."""
        if not self.extras:
            return self.runs % 2 == 1
        ran = self.runs + self.gave("b") + self.gave("lb") + max(self.gave("wd") - 1, 0) + max(self.gave("nb") - 1, 0)
        return ran % 2 == 1

    def gave(self, code: str) -> int:
        return sum(runs for name, runs in self.extras if name == code) if self.extras else 0


@dataclass(frozen=True, slots=True)
class WicketCard:
    at: float
    ball: Ball
    which: int = 0  # of the ball's wickets that count

    @property
    def wicket(self) -> Wicket:
        return [wicket for wicket in self.ball.wickets if wicket.counts][self.which]


@dataclass(frozen=True, slots=True)
class OverCard:
    at: float
    ball: Ball  # the last one


@dataclass(frozen=True, slots=True)
class Notice:
    at: float
    kind: NoticeKind
    text: str = ""
    long_text: str = ""
    team: Team | None = None  # winner of the toss or the match
    bats: bool = False  # decision of the winner of the toss
    innings: int = 0  # the innings that starts, or the one after the break
    runs: int = 0  # of a penalty


CricketEvent = Ball | WicketCard | OverCard | Notice


@dataclass(frozen=True, slots=True)
class InningsPlan:
    """The parameters of an innings that are known when it starts."""

    batting: int  # which of the script's teams
    order: tuple[Player, ...] = ()  # batting order; empty: the order of the team
    target: int | None = None  # runs that win; None if unknown
    overs: int = 0  # limit; 0: that of the match
    is_super_over: bool = False
    absent: int = 0  # batters who can't bat
    chases: bool = False  # the target is one more than the runs of the innings before


@dataclass(frozen=True, slots=True)
class Fixture:
    """Venue and series of a recorded match; those of generated matches come from the programme."""

    venue: str
    series: str
    series_short: str
    title: str  # "36th Match", "Final"
    invented: tuple[str, ...] = ()  # parts that are not in the recording


@dataclass(frozen=True, slots=True)
class CricketScript:
    teams: tuple[Team, Team]  # the side that bats first comes first
    overs: int  # 0: no limit
    events: tuple[CricketEvent, ...]
    format: str = "T20"
    plans: tuple[InningsPlan, ...] = ()  # empty: two innings, the second chases the first
    balls_per_over: int = 6
    fixture: Fixture | None = field(default=None, compare=False)

    def plan(self, number: int) -> InningsPlan:
        return self.plans[number] if self.plans else InningsPlan(number, chases=number == 1)

    def time_of(self, kind: NoticeKind) -> float:
        return next(event.at for event in self.events if isinstance(event, Notice) and event.kind is kind)

    @property
    def ends_at(self) -> float:
        return self.events[-1].at
