"""What can happen in a cricket match, each thing with its time in seconds after the scheduled start."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from stadium.people import Player, Team


class Dismissal(IntEnum):
    """Numbered as the site numbers them in `dismissal` and in the `^n` codes."""

    BOWLED = 1
    CAUGHT = 2
    CAUGHT_AND_BOWLED = 3
    RUN_OUT = 4
    STUMPED = 5
    HIT_WICKET = 6
    LBW = 7


class NoticeKind(StrEnum):
    TOSS = "toss"
    INNINGS_START = "innings_start"
    INNINGS_BREAK = "innings_break"
    RAIN = "rain"
    RESUME = "resume"
    RESULT = "result"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class Wicket:
    kind: Dismissal
    out: Player
    fielder: Player | None = None


@dataclass(frozen=True, slots=True)
class Ball:
    at: float
    innings: int  # 0 or 1
    over: int  # completed overs before this one
    number: int  # 1..6; a wide or no-ball repeats the number of the ball that replaces it
    delivery: int  # running number over the whole match, from 1
    striker: Player
    partner: Player
    bowler: Player
    runs: int  # off the bat
    extra: str  # "", "wd", "nb", "b" or "lb"
    extra_runs: int
    wicket: Wicket | None = None

    @property
    def is_legal(self) -> bool:
        return self.extra not in ("wd", "nb")

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
        """Whether the batters changed ends by running."""
        ran = self.extra_runs if self.extra in ("b", "lb") else self.runs
        return ran % 2 == 1


@dataclass(frozen=True, slots=True)
class WicketCard:
    at: float
    ball: Ball


@dataclass(frozen=True, slots=True)
class OverCard:
    at: float
    last_ball: Ball


@dataclass(frozen=True, slots=True)
class Notice:
    at: float
    kind: NoticeKind
    text: str = ""
    long_text: str = ""


CricketEvent = Ball | WicketCard | OverCard | Notice


@dataclass(frozen=True, slots=True)
class CricketScript:
    teams: tuple[Team, Team]  # the side that bats first comes first
    overs: int
    events: tuple[CricketEvent, ...]

    def time_of(self, kind: NoticeKind) -> float:
        return next(event.at for event in self.events if isinstance(event, Notice) and event.kind is kind)

    @property
    def ends_at(self) -> float:
        return self.events[-1].at
