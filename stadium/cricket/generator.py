"""Generates a complete cricket match from a random stream, ball by ball."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from stadium.cricket.innings import Innings
from stadium.cricket.script import (
    BOWLERS_OWN,
    Ball,
    CricketEvent,
    CricketScript,
    Dismissal,
    Notice,
    NoticeKind,
    OverCard,
    Wicket,
    WicketCard,
)
from stadium.matches.teams import Player, Team, plural

BREAK_SECONDS = 600.0
TOSS_LEAD_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Rules:
    overs: int
    wicket_chance: float
    rain_chance: float = 0.25
    abandon_chance: float = 0.15  # of the matches with rain
    run_weights: tuple[int, ...] = (34, 37, 8, 1, 13, 0, 7)  # for 0..6 off the bat
    balls_per_over: int = 6

    @property
    def format(self) -> str:
        if self.balls_per_over == 5:
            return "The Hundred"
        return "ODI" if self.overs == 50 else f"T{self.overs}"

    @property
    def spell(self) -> int:
        return max(self.overs // 5, 1)


T20 = Rules(20, 0.055)
T10 = Rules(10, 0.075, run_weights=(28, 33, 8, 1, 17, 0, 13))
HUNDRED = replace(T20, balls_per_over=5)
FIFTY = Rules(50, 0.026, rain_chance=0.0, run_weights=(46, 37, 6, 1, 8, 0, 2))
_KINDS = (1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 4, 5, 6, 7, 7)


class MatchGenerator:
    """Generates one match. `now` is in seconds after the scheduled start."""

    def __init__(self, random: Random, rules: Rules, teams: tuple[Team, Team], may_rain: bool) -> None:
        self.random, self.rules, self.teams = random, rules, teams
        self.now = 0.0
        self.deliveries = 0
        self.events: list[CricketEvent] = []
        self.rain_at = self._plan_rain(may_rain)
        self.is_abandoned = False

    def run(self) -> CricketScript:
        self._toss()
        first = self._innings(0, None)
        if not self.is_abandoned:
            self._add_notice(8, NoticeKind.INNINGS_BREAK, "Innings Break", innings=1)
            self.now += BREAK_SECONDS + self.random.uniform(-60, 60)
            second = self._innings(1, first.runs + 1)
            if not self.is_abandoned:
                self._conclude(first, second)
        balls, events = self.rules.balls_per_over, tuple(self.events)
        return CricketScript(self.teams, self.rules.overs, events, self.rules.format, balls_per_over=balls)

    def _plan_rain(self, may_rain: bool) -> int:
        """Returns the delivery before which rain starts, or 0."""
        is_dry = self.random.random() >= self.rules.rain_chance
        delivery = self.random.randrange(20, self.rules.overs * 11)
        return 0 if is_dry or not may_rain else delivery

    def _toss(self) -> None:
        first, second = self.teams
        winner, choice = (first, "bat") if self.random.random() < 0.5 else (second, "bowl")
        text = f"{winner.short} opt to {choice}"
        notice = Notice(-TOSS_LEAD_SECONDS, NoticeKind.TOSS, text, team=winner, bats=winner is first)
        self.events.append(notice)

    def _add_notice(
        self,
        after: float,
        kind: NoticeKind,
        text: str = "",
        long_text: str = "",
        *,
        team: Team | None = None,
        innings: int = 0,
    ) -> None:
        self.now += after
        self.events.append(Notice(round(self.now, 2), kind, text, long_text, team, innings=innings))

    def _innings(self, number: int, target: int | None) -> Innings:
        order = self.teams if number == 0 else self.teams[::-1]
        innings = Innings(number, order[0], order[1], balls_per_over=self.rules.balls_per_over)
        self._add_notice(0, NoticeKind.INNINGS_START, innings=number)
        quota = {player.key: self.rules.spell for player in innings.bowling.players[5:]}
        bowler: Player | None = None
        while not self._is_done(innings, target):
            bowler = self._next_bowler(innings.bowling, quota, bowler)
            self._over(innings, bowler, target)
        return innings

    def _is_done(self, innings: Innings, target: int | None) -> bool:
        reached = target is not None and innings.runs >= target
        return (
            self.is_abandoned
            or innings.is_all_out
            or reached
            or innings.legal_balls >= self.rules.overs * innings.balls_per_over
        )

    def _next_bowler(self, side: Team, quota: dict[str, int], last: Player | None) -> Player:
        """Chooses among the bowlers with most overs left, so that the last bowler is never the only one available."""
        able = [player for player in side.players[5:] if player != last and quota[player.key] > 0]
        most = max(quota[player.key] for player in able)
        chosen = self.random.choice([player for player in able if quota[player.key] == most])
        quota[chosen.key] -= 1
        return chosen

    def _over(self, innings: Innings, bowler: Player, target: int | None) -> None:
        over = innings.legal_balls // innings.balls_per_over
        self.now += self.random.uniform(10, 30)
        while innings.legal_balls // innings.balls_per_over == over and not self._is_done(innings, target):
            self._weather()
            if self.is_abandoned:
                return
            self.now += self.random.triangular(20, 45, 27)
            ball = self._ball(innings, bowler)
            self.events.append(ball)
            innings.apply(ball)
            if ball.wicket:
                self.now += 3
                self.events.append(WicketCard(round(self.now, 2), ball))
        self.now += 4
        self.events.append(OverCard(round(self.now, 2), innings.overs[-1].balls[-1]))

    def _weather(self) -> None:
        if not self.rain_at or self.deliveries + 1 < self.rain_at:
            return
        self.rain_at = 0
        self._add_notice(12, NoticeKind.RAIN, "Match delayed by rain")
        self.now += self.random.uniform(500, 1300)
        if self.random.random() < self.rules.abandon_chance:
            self._add_notice(0, NoticeKind.ABANDONED, "Match abandoned due to rain", "Match abandoned due to rain")
            self.is_abandoned = True
        else:
            self._add_notice(0, NoticeKind.RESUME)

    def _ball(self, innings: Innings, bowler: Player) -> Ball:
        striker, partner = innings.crease[innings.striker], innings.crease[1 - innings.striker]
        runs, extra, extra_runs, wicket = self._outcome(innings, striker, bowler)
        self.deliveries += 1
        over, done = divmod(innings.legal_balls, innings.balls_per_over)
        extras = ((extra, extra_runs),) if extra else ()
        wickets = (wicket,) if wicket else ()
        index = 1 if len(innings.overs) <= over else len(innings.overs[-1].balls) + 1
        return Ball(
            round(self.now, 2), innings.number, over, done + 1, self.deliveries,
            striker, partner, bowler, runs, extras, wickets, index,
            closes_over=done + 1 == innings.balls_per_over and extra not in ("wd", "nb"),
        )  # fmt: skip

    def _outcome(self, innings: Innings, striker: Player, bowler: Player) -> tuple[int, str, int, Wicket | None]:
        dice = self.random.random()
        if dice < self.rules.wicket_chance:
            return 0, "", 0, self._wicket(innings, striker, bowler)
        dice -= self.rules.wicket_chance
        if dice < 0.035:
            return 0, "wd", self.random.choice((1, 1, 1, 1, 1, 1, 5)), None
        if dice < 0.043:
            return self.random.choice((0, 0, 1, 1, 4, 6)), "nb", 1, None
        if dice < 0.055:
            return 0, "b", self.random.choice((1, 1, 2, 4)), None
        if dice < 0.080:
            return 0, "lb", self.random.choice((1, 1, 1, 2, 4)), None
        return self.random.choices(range(7), self.rules.run_weights)[0], "", 0, None

    def _wicket(self, innings: Innings, striker: Player, bowler: Player) -> Wicket:
        kind = Dismissal(self.random.choice(_KINDS))
        keeper, *others = (player for player in innings.bowling.players if player != bowler)
        if kind is Dismissal.STUMPED:
            return Wicket(kind, striker, keeper)
        if kind in (Dismissal.CAUGHT, Dismissal.RUN_OUT):
            return Wicket(kind, striker, self.random.choice([keeper, *others]))
        return Wicket(kind, striker)

    def _conclude(self, first: Innings, second: Innings) -> None:
        if second.runs > first.runs:
            left = 10 - second.wickets
            winner, by = second.batting, f"won by {plural(left, 'wicket')}"
        elif second.runs < first.runs:
            margin = first.runs - second.runs
            winner, by = first.batting, f"won by {plural(margin, 'run')}"
        else:
            self._add_notice(10, NoticeKind.RESULT, "Match tied", "Match tied")
            return
        self._add_notice(10, NoticeKind.RESULT, f"{winner.short} {by}", f"{winner.name} {by}", team=winner)


def dismissal_text(ball: Ball, wicket: Wicket | None = None, *, surnames: bool = False) -> tuple[str, str]:
    """Returns the two parts of a dismissal: fielder and bowler. Without `wicket`: the ball's first wicket."""
    wicket = wicket or ball.wicket
    assert wicket is not None
    kind, fielder = wicket.kind, wicket.fielder
    bowler = _named(ball.bowler, surnames)
    catcher = _named(fielder, surnames) if fielder else "sub"
    if kind is Dismissal.RUN_OUT:
        return f"run out ({catcher})" if fielder else "run out", ""
    if kind not in BOWLERS_OWN:
        return _OTHER_DISMISSALS[kind], ""
    head = {
        Dismissal.CAUGHT: f"c {catcher}",
        Dismissal.CAUGHT_AND_BOWLED: "c &",
        Dismissal.STUMPED: f"st {catcher}",
        Dismissal.LBW: "lbw",
        Dismissal.HIT_WICKET: "hit wicket",
    }.get(kind, "")
    return head, f"b {bowler}"


_OTHER_DISMISSALS = {
    Dismissal.RETIRED_OUT: "retired out",
    Dismissal.OBSTRUCTING: "obstructing the field",
    Dismissal.HANDLED_BALL: "handled the ball",
    Dismissal.HIT_TWICE: "hit the ball twice",
    Dismissal.TIMED_OUT: "timed out",
    Dismissal.RETIRED_HURT: "retired hurt",
    Dismissal.RETIRED_NOT_OUT: "retired not out",
}


def _named(player: Player, surname: bool) -> str:
    return player.name.partition(" ")[2] if surname else player.short
