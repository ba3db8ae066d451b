"""Generates a whole football match from a random stream."""

from __future__ import annotations

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
    Substitution,
    VarDecision,
)
from stadium.people import Player, Team

HALF_SECONDS = 45 * 60
HALFTIME_SECONDS = 15 * 60
REVIEW_SECONDS = 100.0


class Play:
    def __init__(self, random: Random, teams: tuple[Team, Team]) -> None:
        self.random, self.teams = random, teams
        self.events: list[FootballEvent] = []
        self.number = 0
        self.on_field = [list(team.players[:11]) for team in teams]
        self.bench = [list(team.players[11:]) for team in teams]
        self.booked: set[int] = set()

    def run(self) -> FootballScript:
        self._half(0, self.random.uniform(40, 160))
        self._half(1, self.events[-1].at + HALFTIME_SECONDS + self.random.uniform(-20, 90))
        return FootballScript(self.teams, tuple(sorted(self.events, key=lambda event: event.at)))

    def _half(self, half: int, start: float) -> None:
        added = self.random.choice((1, 2, 2, 3, 3, 4)) if half == 0 else self.random.choice((3, 4, 5, 5, 6, 8))
        first, last = (Period.FIRST_HALF, Period.HALFTIME) if half == 0 else (Period.SECOND_HALF, Period.FULL_TIME)
        self.events.append(PeriodMark(start, first))
        last_second = HALF_SECONDS + added * 60
        for second in self._moments(half, last_second):
            self._happen(half, start, second)
        self.events.append(InjuryTime(start + HALF_SECONDS - 20, 45 * (half + 1), added))
        self.events.append(PeriodMark(start + last_second + self.random.uniform(5, 50), last))

    def _moments(self, half: int, last_second: int) -> list[float]:
        """Moments at least three minutes apart, so that a review ends before the next thing happens."""
        wanted, moments = self.random.randint(3, 6) + 4 * half, list[float]()
        for second in sorted(self.random.uniform(100, last_second - 130) for _ in range(wanted)):
            if not moments or second - moments[-1] > 180:
                moments.append(second)
        return moments

    def _happen(self, half: int, start: float, second: float) -> None:
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
        stands = self.random.random() < 0.4
        kind = "goalAwarded" if stands else "goalNotAwarded"
        at = goal.at + REVIEW_SECONDS
        cancels = None if stands else goal.number
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


def _minute(half: int, second: float) -> Minute:
    minute = int(second // 60) + 1
    base = 45 * half
    return Minute(base + min(minute, 45), max(minute - 45, 0))
