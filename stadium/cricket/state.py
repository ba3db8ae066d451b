"""The state of a cricket match: a fold over its events. The generator and the sites both stand on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stadium.cricket.script import Ball, CricketEvent, CricketScript, Notice, NoticeKind
from stadium.people import Player, Team


@dataclass(slots=True)
class BatterLine:
    player: Player
    runs: int = 0
    balls: int = 0
    fours: int = 0
    sixes: int = 0


@dataclass(slots=True)
class BowlerLine:
    player: Player
    balls: int = 0
    runs: int = 0
    wickets: int = 0

    @property
    def overs(self) -> str:
        return overs_text(self.balls)


@dataclass(slots=True)
class OverLine:
    number: int  # from 1
    bowler: Player
    balls: list[Ball] = field(default_factory=list)
    total: str = "0/0"

    @property
    def runs(self) -> int:
        return sum(ball.total for ball in self.balls)

    @property
    def texts(self) -> list[str]:
        return [ball.text for ball in self.balls]


@dataclass(slots=True)
class FallOfWicket:
    ball: Ball
    runs: int
    balls: int
    number: int
    score: int
    legal_balls: int


@dataclass(slots=True)
class Innings:
    number: int
    batting: Team
    bowling: Team
    runs: int = 0
    wickets: int = 0
    legal_balls: int = 0
    batters: dict[str, BatterLine] = field(default_factory=dict)
    bowlers: dict[str, BowlerLine] = field(default_factory=dict)
    overs: list[OverLine] = field(default_factory=list)
    crease: list[Player] = field(default_factory=list)  # a new batter takes the place of the one who is out
    striker: int = 0
    partnership: tuple[int, int] = (0, 0)
    last_wicket: FallOfWicket | None = None

    def __post_init__(self) -> None:
        self.crease = list(self.batting.players[:2])
        self.batters = {player.key: BatterLine(player) for player in self.crease}

    @property
    def score(self) -> str:
        return f"{self.runs}/{self.wickets}"

    @property
    def overs_text(self) -> str:
        return overs_text(self.legal_balls)

    @property
    def is_all_out(self) -> bool:
        return self.wickets == 10

    def apply(self, ball: Ball) -> None:
        self._count(ball)
        self._credit_batter(ball)
        self._credit_bowler(ball)
        self._extend_over(ball)
        if ball.is_crossing:
            self.striker = 1 - self.striker
        if ball.wicket:
            self._dismiss(ball)
        if ball.is_legal and self.legal_balls % 6 == 0:
            self.striker = 1 - self.striker

    def _count(self, ball: Ball) -> None:
        self.runs += ball.total
        self.legal_balls += ball.is_legal
        runs, balls = self.partnership
        self.partnership = (runs + ball.total, balls + ball.is_legal)

    def _credit_batter(self, ball: Ball) -> None:
        line = self.batters[ball.striker.key]
        line.runs += ball.runs
        line.balls += ball.extra != "wd"
        line.fours += ball.runs == 4
        line.sixes += ball.runs == 6

    def _credit_bowler(self, ball: Ball) -> None:
        line = self.bowlers.setdefault(ball.bowler.key, BowlerLine(ball.bowler))
        line.balls += ball.is_legal
        line.runs += 0 if ball.extra in ("b", "lb") else ball.total
        line.wickets += ball.wicket is not None and ball.wicket.kind.name != "RUN_OUT"

    def _extend_over(self, ball: Ball) -> None:
        if not self.overs or self.overs[-1].number != ball.over + 1:
            self.overs.append(OverLine(ball.over + 1, ball.bowler))
        self.overs[-1].balls.append(ball)
        self.overs[-1].total = f"{self.runs}/{self.wickets + (ball.wicket is not None)}"

    def _dismiss(self, ball: Ball) -> None:
        assert ball.wicket is not None
        self.wickets += 1
        out = self.batters[ball.wicket.out.key]
        self.last_wicket = FallOfWicket(ball, out.runs, out.balls, self.wickets, self.runs, self.legal_balls)
        self.partnership = (0, 0)
        if not self.is_all_out:
            place = self.crease.index(ball.wicket.out)
            self.crease[place] = self.batting.players[self.wickets + 1]
            self.batters[self.crease[place].key] = BatterLine(self.crease[place])


@dataclass(slots=True)
class CricketState:
    script: CricketScript
    innings: list[Innings] = field(default_factory=list)
    applied: int = 0
    status: str = "upcoming"
    phase: str = "scheduled"
    notice: Notice | None = None
    toss: str = ""
    result: str = ""
    result_long: str = ""
    last_ball: Ball | None = None

    @property
    def current(self) -> Innings | None:
        return self.innings[-1] if self.innings else None

    @property
    def target(self) -> int | None:
        return self.innings[0].runs + 1 if len(self.innings) == 2 else None

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "abandoned")

    def apply(self, event: CricketEvent) -> None:
        self.applied += 1
        if isinstance(event, Ball):
            self.innings[event.innings].apply(event)
            self.last_ball = event
        elif isinstance(event, Notice):
            self._heed(event)

    def _heed(self, notice: Notice) -> None:
        self.notice = notice
        if notice.kind is NoticeKind.TOSS:
            self.phase, self.toss = "toss", notice.text
        elif notice.kind is NoticeKind.INNINGS_START:
            self.status, self.phase = "live", "in_play"
            self._open(0)
        elif notice.kind is NoticeKind.INNINGS_BREAK:
            self.phase = "innings_break"
            self._open(1)
        elif notice.kind is NoticeKind.RAIN:
            self.phase = "rain"
        elif notice.kind is NoticeKind.RESUME:
            self.phase = "in_play"
        else:
            self.status = "completed" if notice.kind is NoticeKind.RESULT else "abandoned"
            self.phase = "finished" if notice.kind is NoticeKind.RESULT else "abandoned"
            self.result, self.result_long = notice.text, notice.long_text

    def _open(self, number: int) -> None:
        """The second innings opens at the break, as the site then already shows it with no score."""
        if len(self.innings) == number:
            first, second = self.script.teams
            self.innings.append(Innings(number, *((first, second) if number == 0 else (second, first))))


def fold(script: CricketScript, events: Iterable[CricketEvent]) -> CricketState:
    state = CricketState(script)
    for event in events:
        state.apply(event)
    return state


def overs_text(legal_balls: int) -> str:
    return f"{legal_balls // 6}.{legal_balls % 6}"
