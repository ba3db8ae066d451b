from __future__ import annotations

from random import Random

import pytest

from stadium.football.play import Play
from stadium.football.script import FootballScript, Goal, Period, PeriodMark, Substitution, VarDecision
from stadium.football.state import fold
from stadium.people import football_team
from stadium.programme import FOOTBALL_PERIOD


def played(seed: int) -> FootballScript:
    return Play(Random(f"test:{seed}"), (football_team(1), football_team(6))).run()


@pytest.fixture(params=range(25))
def script(request: pytest.FixtureRequest) -> FootballScript:
    return played(request.param)


class TestScript:
    def test_is_the_same_for_the_same_seed(self) -> None:
        assert played(4) == played(4)
        assert played(4) != played(5)

    def test_runs_from_first_half_to_full_time_inside_its_period(self, script: FootballScript) -> None:
        marks = [event.period for event in script.events if isinstance(event, PeriodMark)]
        assert marks == [Period.FIRST_HALF, Period.HALFTIME, Period.SECOND_HALF, Period.FULL_TIME]
        assert script.ends_at < FOOTBALL_PERIOD
        assert script.events[0].at > 0
        assert isinstance(script.events[-1], PeriodMark)

    def test_nobody_comes_on_twice(self, script: FootballScript) -> None:
        came = [event.player_in for event in script.events if isinstance(event, Substitution)]
        assert len(set(came)) == len(came)


class TestState:
    def test_score_is_the_goals_that_stand(self, script: FootballScript) -> None:
        state = fold(script, script.events)
        goals = [line.event.is_home for line in state.shown if isinstance(line.event, Goal)]
        assert state.goals == (goals.count(True), goals.count(False))
        assert state.status == "completed"

    def test_a_goal_taken_back_leaves_list_and_score(self) -> None:
        for seed in range(300):
            script = played(seed)
            for index, event in enumerate(script.events):
                if isinstance(event, VarDecision) and event.cancels:
                    before, after = fold(script, script.events[:index]), fold(script, script.events[: index + 1])
                    assert sum(after.goals) == sum(before.goals) - 1
                    assert all(getattr(line.event, "number", None) != event.cancels for line in after.shown)
                    return
        pytest.fail("no review took a goal back in 300 matches")

    def test_the_line_of_a_running_half_gives_way(self) -> None:
        script = played(1)
        texts = [line.event.period for line in fold(script, script.events).shown if isinstance(line.event, PeriodMark)]
        assert texts == [Period.HALFTIME, Period.FULL_TIME]
