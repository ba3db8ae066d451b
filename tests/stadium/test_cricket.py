from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from stadium.cricket.generator import FIFTY, T10, T20, MatchGenerator, Rules
from stadium.cricket.script import Ball, CricketScript, Dismissal, Notice, NoticeKind, OverCard, WicketCard
from stadium.cricket.state import fold
from stadium.matches.programme_parser import PERIODS
from stadium.matches.teams import cricket_team

ROOT = Path(__file__).parents[2]
CASES = [(rules, seed) for rules in (T20, T10, FIFTY) for seed in range(12)]


def played(rules: Rules, seed: int) -> CricketScript:
    return MatchGenerator(Random(f"test:{seed}"), rules, (cricket_team(3), cricket_team(8)), may_rain=True).run()


def balls_of(script: CricketScript, innings: int) -> list[Ball]:
    return [event for event in script.events if isinstance(event, Ball) and event.innings == innings]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].overs}-overs-{case[1]}")
def script(request: pytest.FixtureRequest) -> CricketScript:
    return played(*request.param)


class TestScript:
    def test_is_the_same_in_another_process(self) -> None:
        code = "from tests.stadium.test_cricket import *; print(played(T20, 5).events[-1], len(played(T20, 5).events))"
        other = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        mine = played(T20, 5)
        assert other.stdout.strip() == f"{mine.events[-1]} {len(mine.events)}"

    def test_event_times_are_strictly_increasing(self, script: CricketScript) -> None:
        times = [event.at for event in script.events]
        feed = [event.at for event in script.events if not isinstance(event, Notice)]
        assert times == sorted(times)
        assert len(set(feed)) == len(feed)

    def test_ends_before_the_next_match_of_its_slot(self, script: CricketScript) -> None:
        assert script.ends_at < PERIODS[script.overs]

    def test_overs_have_six_legal_balls(self, script: CricketScript) -> None:
        for innings in (0, 1):
            balls = balls_of(script, innings)
            for over in {ball.over for ball in balls[:-1]}:
                legal = [ball.number for ball in balls if ball.over == over and ball.is_legal]
                assert legal == list(range(1, len(legal) + 1))
                assert len(legal) == 6 or over == balls[-1].over

    def test_no_bowler_bowls_two_overs_running_or_more_than_his_share(self, script: CricketScript) -> None:
        for innings in (0, 1):
            bowlers = list({ball.over: ball.bowler for ball in balls_of(script, innings)}.values())
            assert all(one != two for one, two in itertools.pairwise(bowlers))
            assert all(bowlers.count(bowler) <= script.overs // 5 for bowler in bowlers)

    def test_deliveries_are_numbered_without_gaps(self, script: CricketScript) -> None:
        deliveries = [event.delivery for event in script.events if isinstance(event, Ball)]
        assert deliveries == list(range(1, len(deliveries) + 1))

    def test_strike_changes_by_the_laws_of_cricket(self, script: CricketScript) -> None:
        for innings in (0, 1):
            balls = balls_of(script, innings)
            for ball, following in itertools.pairwise(balls):
                is_over_done = following.over != ball.over
                if ball.wicket:
                    assert ball.wicket.out not in (following.striker, following.partner)
                else:
                    has_swapped = following.striker == ball.partner
                    assert has_swapped == (ball.is_crossing != is_over_done)

    def test_every_wicket_and_every_over_has_its_card(self, script: CricketScript) -> None:
        wickets = [event for event in script.events if isinstance(event, Ball) and event.wicket]
        cards = [event.ball for event in script.events if isinstance(event, WicketCard)]
        assert cards == wickets
        overs = {(event.innings, event.over) for event in script.events if isinstance(event, Ball)}
        cards = [(event.ball.innings, event.ball.over) for event in script.events if isinstance(event, OverCard)]
        assert set(cards) <= overs
        assert len(set(cards)) == len(cards)


class TestState:
    def test_totals_are_the_sum_of_the_balls(self, script: CricketScript) -> None:
        state = fold(script, script.events)
        for innings in state.innings:
            balls = balls_of(script, innings.number)
            assert innings.runs == sum(ball.total for ball in balls)
            assert innings.wickets == sum(ball.wicket is not None for ball in balls)
            assert innings.legal_balls == sum(ball.is_legal for ball in balls)
            assert innings.runs == sum(over.runs for over in innings.overs)
            extras = sum(ball.extra_runs for ball in balls)
            assert innings.runs == extras + sum(line.runs for line in innings.batters.values())

    def test_result_matches_the_last_innings(self, script: CricketScript) -> None:
        state = fold(script, script.events)
        if state.status == "abandoned":
            assert "abandoned" in state.result
            return
        first, second = state.innings
        limit = script.overs * 6
        assert first.is_all_out or first.legal_balls == limit
        assert second.is_all_out or second.legal_balls == limit or second.runs > first.runs
        if second.runs > first.runs:
            assert state.result.startswith(f"{second.batting.short} won by {10 - second.wickets} wicket")
        elif first.runs > second.runs:
            assert state.result.startswith(f"{first.batting.short} won by {first.runs - second.runs} run")
        else:
            assert state.result == "Match tied"

    def test_incremental_state_equals_state_from_the_start(self) -> None:
        script = played(T20, 2)
        running = fold(script, ())
        for index, event in enumerate(script.events, start=1):
            running.apply(event)
            if index % 40 == 0:
                assert running == fold(script, script.events[:index])

    def test_passes_through_break_and_rain(self) -> None:
        phases = set()
        for seed in range(40):
            script = played(T20, seed)
            state = fold(script, ())
            for event in script.events:
                state.apply(event)
                phases.add((state.status, state.phase))
        assert phases == {
            ("upcoming", "toss"), ("live", "in_play"), ("live", "innings_break"), ("live", "rain"),
            ("completed", "finished"), ("abandoned", "abandoned"),
        }  # fmt: skip

    def test_all_kinds_of_dismissal_and_extras_occur(self) -> None:
        balls = [event for seed in range(40) for event in played(T20, seed).events if isinstance(event, Ball)]
        assert {ball.wicket.kind for ball in balls if ball.wicket} == set(list(Dismissal)[:7])
        assert {ball.extra for ball in balls} == {"", "wd", "nb", "b", "lb"}

    def test_toss_comes_before_the_start(self) -> None:
        assert played(T20, 1).time_of(NoticeKind.TOSS) < 0
