"""A second site tells a match later, in other words, and not always right; the truth knows nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from stadium.cricket.script import Ball, CricketScript
from stadium.cricket.state import fold
from stadium.programme import Match, Programme
from stadium.told import RIGHT, Manner, changed, read

from .conftest import Visit, Visitor

PAIR = "pair:2"


def told(manner: Manner, corrected: int = 0, text: str = PAIR) -> tuple[Match, Match]:
    """The first match of a programme, in truth and as ESPNcricinfo tells it."""
    programme = Programme(text, 7)
    programme.manners["espncricinfo"] = manner
    slot = programme.slots[0]
    return programme.match(slot, 0), programme.match(slot, 0, "espncricinfo", corrected)


def script_of(match: Match) -> CricketScript:
    assert isinstance(match.script, CricketScript)
    return match.script


def wrong_balls(truth: Match, telling: Match) -> list[int]:
    pairs = zip(script_of(truth).events, script_of(telling).events, strict=True)
    return [one.delivery for one, other in pairs if isinstance(one, Ball) and one != other]


class TestMistakes:
    def test_are_the_same_every_time_and_about_as_many_as_asked_for(self) -> None:
        truth, telling = told(Manner(mistakes=0.1))
        wrong = wrong_balls(truth, telling)
        balls = sum(isinstance(event, Ball) for event in script_of(truth).events)
        assert 0.03 * balls < len(wrong) < 0.15 * balls
        assert wrong == wrong_balls(*told(Manner(mistakes=0.1)))

    def test_are_in_the_runs_of_plain_balls_only(self) -> None:
        truth, telling = told(Manner(mistakes=1.0))
        for one, other in zip(script_of(truth).events, script_of(telling).events, strict=True):
            assert one.at == other.at
            if isinstance(one, Ball) and isinstance(other, Ball):
                assert (one.label, one.index, one.wickets, one.extras) == (
                    other.label, other.index, other.wickets, other.extras,
                )  # fmt: skip
                assert (one.runs != other.runs) == (not one.wickets and not one.extras)

    def test_are_put_right_one_after_the_other(self) -> None:
        manner = Manner(mistakes=0.1, corrects_after=20)
        truth, _ = told(manner)
        wrong = wrong_balls(*told(manner))
        assert wrong_balls(*told(manner, 3)) == wrong[3:]
        assert wrong_balls(*told(manner, len(wrong))) == []
        assert fold(script_of(truth), script_of(truth).events).result

    def test_the_first_site_makes_none(self) -> None:
        programme = Programme(PAIR, 7)
        programme.manners["crex"] = Manner(2.0, 0.5, None, True, True)
        slot = programme.slots[0]
        assert programme.match(slot, 0, "crex").script == programme.match(slot, 0).script
        assert programme.match(slot, 0, "crex").delay_seconds == 2.0


class TestNamesAndSides:
    def test_the_same_team_goes_by_another_name(self) -> None:
        truth, telling = told(Manner(other_names=True))
        for ours, theirs in zip(truth.teams, telling.teams, strict=True):
            assert (ours.key, ours.players) == (theirs.key, theirs.players)
            assert ours.name != theirs.name
            assert ours.name in theirs.name
        state = fold(script_of(telling), telling.script.events)  # type: ignore[arg-type]
        assert state.winner is None or state.result_long.startswith(state.winner.name)
        assert state.toss_winner in telling.teams
        assert state.toss_winner is not None
        assert state.toss.startswith(state.toss_winner.short)

    def test_sides_stand_the_other_way_round_in_some_matches(self) -> None:
        programme = Programme("pair:20", 7)
        programme.manners["espncricinfo"] = Manner(swaps_sides=True)
        swapped = 0
        for slot in programme.slots:
            truth, telling = programme.match(slot, 0), programme.match(slot, 0, "espncricinfo")
            one, other = (fold(script_of(match), script_of(match).events) for match in (truth, telling))
            scores = [[(i.batting.key, i.score, i.target) for i in state.innings] for state in (one, other)]
            assert scores[0] == scores[1]
            assert truth.venue == telling.venue
            swapped += truth.teams == telling.teams[::-1]
        assert 4 <= swapped <= 16

    def test_a_football_team_has_its_other_name_and_keeps_its_side(self) -> None:
        programme = Programme("many:1", 7)
        programme.manners["espnsoccer"] = Manner(other_names=True, swaps_sides=True)
        slot = programme.slots[-1]
        truth, telling = programme.match(slot, 0), programme.match(slot, 0, "espnsoccer")
        assert [team.key for team in truth.teams] == [team.key for team in telling.teams]
        assert all(team.name.endswith(" FC") and team.name.isascii() for team in telling.teams)


class TestManner:
    def test_is_read_from_an_option(self) -> None:
        assert read("espn:delay=3,mistakes=0.02,corrects_after=20,names,sides") == (
            "espn",
            Manner(3.0, 0.02, 20.0, True, True),
        )
        assert read("espn") == ("espn", RIGHT)

    @pytest.mark.parametrize(
        "wanted", [{"delay": -1}, {"delay": "x"}, {"mistakes": 2}, {"names": 1}, {"corrects_after": True}, {"what": 1}]
    )
    def test_refuses_nonsense(self, wanted: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(wanted))):
            changed(RIGHT, wanted)


class TestControl:
    def test_a_delay_shows_in_the_site_and_not_in_the_truth(self, visit: Visit) -> None:
        async def scenario(visitor: Visitor) -> None:
            visitor.wall.now += 60
            key = (await visitor.first("espncricinfo"))["key"]
            world = visitor.world
            before = await visitor.get(f"/truth/matches/espncricinfo/{key}")
            body = {"site": "espncricinfo", "delay": 30, "mistakes": 0.5, "corrects_after": 10}
            answer = await visitor.post("/control/told", body)
            assert answer == {**body, "delay": 30.0, "corrects_after": 10.0, "names": False, "sides": False}
            assert await visitor.get("/control/told") == {
                "espncricinfo": {k: v for k, v in answer.items() if k != "site"}
            }
            telling = world.find("espncricinfo", key)
            assert telling is not None
            assert world.index(telling) == world.truth(telling).index_at(
                world.clock.simulated_at(visitor.wall.now - 30)
            )
            assert await visitor.get(f"/truth/matches/espncricinfo/{key}") == before

        visit(scenario, programme=PAIR)

    def test_a_mistake_is_shown_first_and_put_right_later(self, visit: Visit) -> None:
        async def scenario(visitor: Visitor) -> None:
            await visitor.post("/control/told", {"site": "espncricinfo", "mistakes": 0.2, "corrects_after": 15})
            key = (await visitor.first("espncricinfo"))["key"]
            wrong_then, world = set(), visitor.world
            for _ in range(30):
                visitor.wall.now += 5
                telling = world.find("espncricinfo", key)
                assert telling is not None
                shown = world.index(telling)
                limit = telling.times[shown - 1]
                truth = world.truth(telling)
                wrong = {
                    ball.delivery
                    for ball, real in zip(script_of(telling).events[:shown], script_of(truth).events, strict=False)
                    if isinstance(ball, Ball) and ball != real
                }
                old = {
                    event.delivery
                    for event in script_of(truth).events[:shown]
                    if isinstance(event, Ball) and truth.starts_at + event.at <= limit - 15 * world.clock.pace - 60
                }
                assert not wrong & old
                wrong_then |= wrong
            assert len(wrong_then) > 3
            await visitor.post("/control/reset", {})
            assert await visitor.get("/control/told") == {}

        visit(scenario, programme=PAIR)

    @pytest.mark.parametrize("body", [{}, {"site": "nowhere"}, {"site": "espn", "delay": "long"}])
    def test_refuses_nonsense(self, visit: Visit, body: dict[str, Any]) -> None:
        async def scenario(visitor: Visitor) -> None:
            assert "error" in await visitor.post("/control/told", body, 400)

        visit(scenario, programme=PAIR)
