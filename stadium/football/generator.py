"""Generates a complete football match from a random stream."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from stadium.football.script import (
    Card,
    FootballEvent,
    FootballScript,
    Goal,
    InjuryTime,
    Minute,
    Period,
    PeriodMark,
    Postponement,
    ShootoutKick,
    Stoppage,
    Substitution,
    VarDecision,
)
from stadium.football.state import fold
from stadium.matches.teams import Player, Team

HALF_SECONDS = 45 * 60
HALFTIME_SECONDS = 15 * 60
REVIEW_SECONDS = 100.0
EXTRA_SECONDS = 15 * 60
BREAK_SECONDS = 300.0
KICKS = 5


class MatchGenerator:
    """`may_vary`: the match may also be postponed, interrupted, or a knockout match."""

    def __init__(self, random: Random, teams: tuple[Team, Team], *, may_vary: bool = False, variant: str = "") -> None:
        self.random, self.teams = random, teams
        self.events: list[FootballEvent] = []
        self.number = 0
        self.on_field = [list(team.players[:11]) for team in teams]
        self.bench = [list(team.players[11:]) for team in teams]
        self.booked: set[int] = set()
        self.variant = _variant(random) if may_vary else variant

    def run(self) -> FootballScript:
        if self.variant == "postponed":
            return FootballScript(self.teams, (Postponement(-self.random.uniform(900, 3600)),))
        self._half(0, self.random.uniform(40, 160))
        self._half(1, self.events[-1].at + HALFTIME_SECONDS + self.random.uniform(-20, 90))
        if self.variant == "interrupted":
            self._interrupt()
        if self.variant == "knockout" and self._is_level():
            self._extra_time()
            if self._is_level():
                self._shootout()
        events = sorted(self.events, key=lambda event: event.at)
        last = events.pop()
        assert isinstance(last, PeriodMark)
        return FootballScript(self.teams, (*events, replace(last, is_end=True)), self.variant == "knockout")

    def _half(self, half: int, start: float) -> None:
        added = self.random.choice((1, 2, 2, 3, 3, 4)) if half == 0 else self.random.choice((3, 4, 5, 5, 6, 8))
        first, last = (Period.FIRST_HALF, Period.HALFTIME) if half == 0 else (Period.SECOND_HALF, Period.FULL_TIME)
        self.events.append(PeriodMark(start, first))
        last_second = HALF_SECONDS + added * 60
        for second in self._moments(half, last_second):
            self._add_event(half, start, second)
        self.events.append(InjuryTime(start + HALF_SECONDS - 20, 45 * (half + 1), added))
        self.events.append(PeriodMark(start + last_second + self.random.uniform(5, 50), last))

    def _interrupt(self) -> None:
        """Interrupts play in the second half; all later events move back."""
        begins = next(e.at for e in self.events if isinstance(e, PeriodMark) and e.period is Period.SECOND_HALF)
        at, seconds = begins + self.random.uniform(300, 2400), self.random.uniform(600, 1800)
        self.events = [replace(event, at=event.at + seconds) if event.at > at else event for event in self.events]
        self.events += [Stoppage(at), Stoppage(at + seconds, seconds)]

    def _is_level(self) -> bool:
        return len(set(fold(FootballScript(self.teams, ()), sorted(self.events, key=lambda e: e.at)).goals)) == 1

    def _extra_time(self) -> None:
        start = max(event.at for event in self.events) + BREAK_SECONDS
        for half, period in enumerate((Period.FIRST_EXTRA, Period.SECOND_EXTRA)):
            self.events.append(PeriodMark(start, period))
            second = self.random.uniform(100, EXTRA_SECONDS - 130)
            minute = Minute(91 + 15 * half + int(second // 60))
            if self.random.random() < 0.5:
                self._goal(round(start + second, 2), minute, self.random.random() < 0.5)
            else:
                self._card(round(start + second, 2), minute, self.random.random() < 0.5)
            self.events.append(InjuryTime(start + EXTRA_SECONDS - 20, 105 + 15 * half, 1))
            start += EXTRA_SECONDS + 60 + self.random.uniform(20, 90)
        self.events.append(PeriodMark(start, Period.EXTRA_TIME_END))

    def _shootout(self) -> None:
        """Five kicks each, or until one side can't catch up; then one each until only one side scores."""
        at = max(event.at for event in self.events) + BREAK_SECONDS
        self.events.append(PeriodMark(at, Period.SHOOTOUT))
        home_first, scored, taken = self.random.random() < 0.5, [0, 0], [0, 0]
        while not _is_decided(scored, taken):
            is_home = (sum(taken) % 2 == 0) == home_first
            side = 0 if is_home else 1
            at += self.random.uniform(35, 55)
            is_scored = self.random.random() < 0.75
            taker = self.on_field[side][1:][taken[side] % (len(self.on_field[side]) - 1)]
            scored[side], taken[side] = scored[side] + is_scored, taken[side] + 1
            self.events.append(ShootoutKick(at, self._next(), is_home, taker, is_scored, sum(taken)))
        self.events.append(PeriodMark(at + 20, Period.SHOOTOUT_END))

    def _moments(self, half: int, last_second: int) -> list[float]:
        """Returns moments at least three minutes apart, so that a review ends before the next event."""
        wanted, moments = self.random.randint(3, 6) + 4 * half, list[float]()
        for second in sorted(self.random.uniform(100, last_second - 130) for _ in range(wanted)):
            if not moments or second - moments[-1] > 180:
                moments.append(second)
        return moments

    def _add_event(self, half: int, start: float, second: float) -> None:
        at, minute = round(start + second, 2), _minute(half, second)
        is_home = self.random.random() < 0.53
        dice = self.random.random()
        if dice < 0.38:
            self._goal(at, minute, is_home)
        elif dice < 0.70 or half == 0:
            self._card(at, minute, is_home)
        else:
            self._substitution(at, minute, is_home)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _field_player(self, is_home: bool) -> Player:
        return self.random.choice(self.on_field[0 if is_home else 1][1:])

    def _goal(self, at: float, minute: Minute, is_home: bool) -> None:
        kind = self.random.choices(("regular", "penalty", "ownGoal"), (86, 10, 4))[0]
        scorer = self._field_player(is_home if kind != "ownGoal" else not is_home)
        helper = self._field_player(is_home)
        assist = helper if kind == "regular" and helper != scorer else None
        goal = Goal(at, self._next(), minute, is_home, scorer, assist, kind)
        self.events.append(goal)
        if kind == "regular" and self.random.random() < 0.10:
            self._review(goal)

    def _review(self, goal: Goal) -> None:
        is_valid = self.random.random() < 0.4
        kind = "goalAwarded" if is_valid else "goalNotAwarded"
        at = goal.at + REVIEW_SECONDS
        cancels = None if is_valid else goal.number
        self.events.append(VarDecision(at, self._next(), goal.minute, goal.is_home, goal.scorer, kind, cancels))

    def _card(self, at: float, minute: Minute, is_home: bool) -> None:
        player = self._field_player(is_home)
        first = "red" if self.random.random() < 0.04 else "yellow"
        kind = "yellowRed" if player.number in self.booked else first
        self.booked.add(player.number)
        self.events.append(Card(at, self._next(), minute, is_home, player, kind))
        if kind != "yellow":
            self.on_field[0 if is_home else 1].remove(player)

    def _substitution(self, at: float, minute: Minute, is_home: bool) -> None:
        side = 0 if is_home else 1
        if not self.bench[side]:
            return
        out = self._field_player(is_home)
        came = self.bench[side].pop()
        self.on_field[side][self.on_field[side].index(out)] = came
        kind = "injury" if self.random.random() < 0.1 else "regular"
        self.events.append(Substitution(at, self._next(), minute, is_home, came, out, kind))


def _variant(random: Random) -> str:
    dice = random.random()
    if dice < 0.04:
        return "postponed"
    if dice < 0.08:
        return "interrupted"
    return "knockout" if dice < 0.33 else ""


def _is_decided(scored: list[int], taken: list[int]) -> bool:
    left = [max(KICKS - number, 0) for number in taken]
    if any(left):
        return any(scored[side] > scored[1 - side] + left[1 - side] for side in (0, 1))
    return taken[0] == taken[1] and scored[0] != scored[1]


def _minute(half: int, second: float) -> Minute:
    minute = int(second // 60) + 1
    base = 45 * half
    return Minute(base + min(minute, 45), max(minute - 45, 0))
