from __future__ import annotations

from functools import cache
from itertools import pairwise
from random import Random

import pytest

from stadium.football.generator import MatchGenerator
from stadium.football.script import (
    Card,
    FootballScript,
    Goal,
    Period,
    PeriodMark,
    Postponement,
    ShootoutKick,
    Stoppage,
    Substitution,
    VarDecision,
)
from stadium.football.state import fold
from stadium.matches.programme_parser import FOOTBALL_PERIOD
from stadium.matches.teams import football_team

NINETY = [Period.FIRST_HALF, Period.HALFTIME, Period.SECOND_HALF, Period.FULL_TIME]
EXTRA = [Period.FIRST_EXTRA, Period.SECOND_EXTRA, Period.EXTRA_TIME_END]
SHOOTOUT = [Period.SHOOTOUT, Period.SHOOTOUT_END]


def played(seed: int, *, may_vary: bool = False) -> FootballScript:
    return MatchGenerator(Random(f"test:{seed}"), (football_team(1), football_team(6)), may_vary=may_vary).run()


@cache
def varied() -> tuple[FootballScript, ...]:
    return tuple(played(seed, may_vary=True) for seed in range(400))


def marks(script: FootballScript) -> list[Period]:
    return [event.period for event in script.events if isinstance(event, PeriodMark)]


def has(script: FootballScript, kind: type) -> bool:
    return any(isinstance(event, kind) for event in script.events)


def first_with(kind: type) -> FootballScript:
    return next(script for script in varied() if has(script, kind))


@pytest.fixture(params=range(25))
def script(request: pytest.FixtureRequest) -> FootballScript:
    return played(request.param)


class TestScript:
    def test_is_the_same_for_the_same_seed(self) -> None:
        assert played(4) == played(4)
        assert played(4) != played(5)
        assert played(4, may_vary=True) == played(4, may_vary=True)

    def test_runs_from_first_half_to_full_time_inside_its_period(self, script: FootballScript) -> None:
        assert marks(script) == NINETY
        assert script.ends_at < FOOTBALL_PERIOD
        assert script.events[0].at > 0
        assert isinstance(script.events[-1], PeriodMark)

    def test_no_player_comes_on_twice(self, script: FootballScript) -> None:
        came = [event.player_in for event in script.events if isinstance(event, Substitution)]
        assert len(set(came)) == len(came)


class TestVariants:
    def test_every_variant_occurs_and_fits_its_period(self) -> None:
        ways = {tuple(marks(script)) for script in varied()}
        assert ways == {(), tuple(NINETY), tuple(NINETY + EXTRA), tuple(NINETY + EXTRA + SHOOTOUT)}
        assert max(script.ends_at for script in varied()) < FOOTBALL_PERIOD
        cards = [event.kind for script in varied() for event in script.events if isinstance(event, Card)]
        goals = [event.kind for script in varied() for event in script.events if isinstance(event, Goal)]
        assert {"yellow", "red", "yellowRed"} == set(cards)
        assert {"regular", "penalty", "ownGoal"} == set(goals)

    def test_a_knockout_match_always_has_a_winner(self) -> None:
        for script in (script for script in varied() if script.is_knockout):
            state = fold(script, script.events)
            assert state.winner is not None
            assert state.has_extra_time == (marks(script) != NINETY)
            if state.has_extra_time:
                at_ninety = next(i for i, e in enumerate(script.events) if getattr(e, "period", "") is Period.FULL_TIME)
                before = fold(script, script.events[: at_ninety + 1])
                assert (before.goals[0], before.status) == (before.goals[1], "live")

    def test_a_shoot_out_stops_when_it_is_decided_and_leaves_the_goals_alone(self) -> None:
        for script in (script for script in varied() if has(script, ShootoutKick)):
            kicks = [event for event in script.events if isinstance(event, ShootoutKick)]
            assert [kick.sequence for kick in kicks] == list(range(1, len(kicks) + 1))
            assert all(a.is_home != b.is_home for a, b in pairwise(kicks))
            state = fold(script, script.events)
            assert state.goals[0] == state.goals[1]
            scored = [sum(kick.is_scored for kick in kicks if kick.is_home is side) for side in (True, False)]
            assert state.penalties == scored
            before = [sum(kick.is_scored for kick in kicks[:-1] if kick.is_home is side) for side in (True, False)]
            assert len(kicks) > 10 or abs(before[0] - before[1]) <= 3

    def test_an_interruption_stops_the_clock_and_not_the_score(self) -> None:
        script = first_with(Stoppage)
        index = next(i for i, event in enumerate(script.events) if isinstance(event, Stoppage))
        during = fold(script, script.events[: index + 1])
        assert (during.status, during.phase) == ("live", "interrupted")
        resumed = next(i for i, e in enumerate(script.events) if isinstance(e, Stoppage) and e.resumes)
        after = fold(script, script.events[: resumed + 1])
        assert (after.phase, after.goals) == ("second_half", during.goals)
        assert after.period_started_at is not None
        assert during.period_started_at is not None
        assert after.period_started_at > during.period_started_at

    def test_a_postponed_match_stays_upcoming(self) -> None:
        state = fold(script := first_with(Postponement), script.events)
        assert (state.status, state.phase, state.period) == ("upcoming", "postponed", None)


class TestState:
    def test_score_is_the_number_of_valid_goals(self, script: FootballScript) -> None:
        state = fold(script, script.events)
        goals = [line.event.is_home for line in state.incidents if isinstance(line.event, Goal)]
        assert state.goals == (goals.count(True), goals.count(False))
        assert state.status == "completed"

    def test_a_cancelled_goal_is_removed_from_incidents_and_score(self) -> None:
        for seed in range(300):
            script = played(seed)
            for index, event in enumerate(script.events):
                if isinstance(event, VarDecision) and event.cancels:
                    before, after = fold(script, script.events[:index]), fold(script, script.events[: index + 1])
                    assert sum(after.goals) == sum(before.goals) - 1
                    assert all(getattr(line.event, "number", None) != event.cancels for line in after.incidents)
                    return
        pytest.fail("no review took a goal back in 300 matches")

    def test_the_entry_of_a_running_half_is_replaced(self) -> None:
        script = played(1)
        texts = [
            line.event.period for line in fold(script, script.events).incidents if isinstance(line.event, PeriodMark)
        ]
        assert texts == [Period.HALFTIME, Period.FULL_TIME]
