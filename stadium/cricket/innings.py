"""The state of one innings. Striker and bowler are taken from each ball, never derived from the ball before."""

from __future__ import annotations

from dataclasses import dataclass, field

from stadium.cricket.script import BOWLERS_OWN, Ball, InningsPlan, Wicket
from stadium.matches.teams import Player, Team

WICKETS = 10
SUPER_OVER_WICKETS = 2


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
    maidens: int = 0
    balls_per_over: int = 6

    @property
    def overs(self) -> str:
        return overs_text(self.balls, self.balls_per_over)


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

    @property
    def legal_balls(self) -> int:
        return sum(ball.is_legal for ball in self.balls)

    @property
    def is_complete(self) -> bool:
        return bool(self.balls) and self.balls[-1].closes_over

    @property
    def is_maiden(self) -> bool:
        """True if one bowler bowled the whole over and conceded no run."""
        return all(ball.bowler == self.bowler and conceded(ball) == 0 for ball in self.balls)


@dataclass(slots=True)
class FallOfWicket:
    ball: Ball
    runs: int
    balls: int
    number: int
    score: int
    legal_balls: int
    wicket: Wicket
    overs: str  # when it fell, as "10.5"


@dataclass(slots=True)
class Innings:
    number: int
    batting: Team
    bowling: Team
    plan: InningsPlan | None = None
    balls_per_over: int = 6
    target: int | None = None
    runs: int = 0
    wickets: int = 0
    legal_balls: int = 0
    batters: dict[str, BatterLine] = field(default_factory=dict)  # in batting order
    bowlers: dict[str, BowlerLine] = field(default_factory=dict)
    overs: list[OverLine] = field(default_factory=list)
    extras: dict[str, int] = field(default_factory=dict)
    crease: list[Player] = field(default_factory=list)  # a new batter replaces the one who is out
    striker: int = 0
    partnership: tuple[int, int] = (0, 0)
    falls: list[FallOfWicket] = field(default_factory=list)
    retired: set[str] = field(default_factory=set)  # keys of batters who left the field and did not return
    is_declared: bool = False

    def __post_init__(self) -> None:
        self.crease = list(self.order[:2])
        self.batters = {player.key: BatterLine(player) for player in self.crease}

    @property
    def order(self) -> tuple[Player, ...]:
        return self.plan.order if self.plan and self.plan.order else self.batting.players

    @property
    def is_super_over(self) -> bool:
        return self.plan is not None and self.plan.is_super_over

    @property
    def score(self) -> str:
        return f"{self.runs}/{self.wickets}"

    @property
    def overs_text(self) -> str:
        if not self.overs:
            return "0.0"
        last = self.overs[-1]
        return f"{last.number}.0" if last.is_complete else f"{last.number - 1}.{last.legal_balls}"

    @property
    def last_wicket(self) -> FallOfWicket | None:
        return self.falls[-1] if self.falls else None

    @property
    def is_all_out(self) -> bool:
        absent = self.plan.absent if self.plan else 0
        return self.wickets + absent + len(self.retired) >= (SUPER_OVER_WICKETS if self.is_super_over else WICKETS)

    def apply(self, ball: Ball) -> None:
        self._take_guard(ball)
        self._count(ball)
        self._credit_batter(ball)
        self._credit_bowler(ball)
        self._extend_over(ball)
        if ball.is_crossing:
            self.striker = 1 - self.striker
        for wicket in ball.wickets:
            self._dismiss(ball, wicket)
        if ball.closes_over:
            self._close_over()

    def add_penalty(self, runs: int) -> None:
        """Adds runs without a ball."""
        self.runs += runs
        self.extras["pen"] = self.extras.get("pen", 0) + runs

    def _take_guard(self, ball: Ball) -> None:
        pair = (ball.striker, ball.partner)
        for player in pair:
            if self.retired:
                self.retired.discard(player.key)
            if player not in self.crease:
                self.batters.setdefault(player.key, BatterLine(player))
                gone = next((other for other in self.crease if other not in pair), None)
                place = len(self.crease) if gone is None else self.crease.index(gone)
                self.crease[place : place + 1] = [player]
        self.striker = self.crease.index(ball.striker)

    def _count(self, ball: Ball) -> None:
        self.runs += ball.total
        self.legal_balls += ball.is_legal
        for code, runs in ball.extras:
            self.extras[code] = self.extras.get(code, 0) + runs
        runs, balls = self.partnership
        self.partnership = (runs + ball.total, balls + ball.is_legal)

    def _credit_batter(self, ball: Ball) -> None:
        line = self.batters[ball.striker.key]
        line.runs += ball.runs
        line.balls += not ball.gave("wd")
        line.fours += ball.runs == 4 and ball.is_boundary
        line.sixes += ball.runs == 6 and ball.is_boundary

    def _credit_bowler(self, ball: Ball) -> None:
        line = self.bowlers.get(ball.bowler.key)
        if line is None:
            line = self.bowlers[ball.bowler.key] = BowlerLine(ball.bowler, balls_per_over=self.balls_per_over)
        line.balls += ball.is_legal
        line.runs += conceded(ball)
        if ball.wickets:
            line.wickets += sum(wicket.kind in BOWLERS_OWN for wicket in ball.wickets)

    def _extend_over(self, ball: Ball) -> None:
        if not self.overs or self.overs[-1].number != ball.over + 1:
            self.overs.append(OverLine(ball.over + 1, ball.bowler))
        self.overs[-1].balls.append(ball)
        fallen = sum(wicket.counts for wicket in ball.wickets) if ball.wickets else 0
        self.overs[-1].total = f"{self.runs}/{self.wickets + fallen}"

    def _close_over(self) -> None:
        self.striker = 1 - self.striker
        over = self.overs[-1]
        self.bowlers[over.bowler.key].maidens += over.is_maiden

    def _dismiss(self, ball: Ball, wicket: Wicket) -> None:
        line = self.batters.setdefault(wicket.out.key, BatterLine(wicket.out))
        if wicket.counts:
            self.wickets += 1
            fallen = (line.runs, line.balls, self.wickets, self.runs, self.legal_balls)
            self.falls.append(
                FallOfWicket(ball, *fallen, wicket, ball.label if ball.is_legal else self._overs_before())
            )
        else:
            self.retired.add(wicket.out.key)
        self.partnership = (0, 0)
        coming = next((player for player in self.order if player.key not in self.batters), None)
        if coming and not self.is_all_out and wicket.out in self.crease:
            self.crease[self.crease.index(wicket.out)] = coming
            self.batters[coming.key] = BatterLine(coming)

    def _overs_before(self) -> str:
        """Returns the overs bowled before a wide or no-ball."""
        return f"{self.overs[-1].number - 1}.{self.overs[-1].legal_balls}"


def conceded(ball: Ball) -> int:
    """Returns the runs of a ball that are charged to the bowler."""
    return ball.runs + ball.gave("wd") + ball.gave("nb") if ball.extras else ball.runs


def overs_text(legal_balls: int, balls_per_over: int = 6) -> str:
    return f"{legal_balls // balls_per_over}.{legal_balls % balls_per_over}"
