"""A second site shows a match later, with other names and with mistakes; the ground truth is not affected."""

from __future__ import annotations

from typing import Any

import pytest

from stadium.cricket.script import Ball, CricketScript
from stadium.cricket.state import fold
from stadium.matches.distortion import Distortion
from stadium.matches.programme import Match, Programme

from .conftest import Visitor, visiting

PAIR = "pair:2"


def versions(distortion: Distortion, corrected: int = 0, text: str = PAIR) -> tuple[Match, Match]:
    """Returns the first match of a programme, undistorted and in ESPNcricinfo's version."""
    programme = Programme(text, 7)
    programme.distortions["espncricinfo"] = distortion
    slot = programme.slots[0]
    return programme.match(slot, 0), programme.match(slot, 0, "espncricinfo", corrected)


def cricket_script(match: Match) -> CricketScript:
    assert isinstance(match.script, CricketScript)
    return match.script


def wrong_balls(truth: Match, distorted: Match) -> list[int]:
    pairs = zip(cricket_script(truth).events, cricket_script(distorted).events, strict=True)
    return [one.delivery for one, other in pairs if isinstance(one, Ball) and one != other]


class TestMistakes:
    def test_are_reproducible_and_have_the_requested_share(self) -> None:
        truth, distorted = versions(Distortion(mistakes=0.1))
        wrong = wrong_balls(truth, distorted)
        balls = sum(isinstance(event, Ball) for event in cricket_script(truth).events)
        assert 0.03 * balls < len(wrong) < 0.15 * balls
        assert wrong == wrong_balls(*versions(Distortion(mistakes=0.1)))

    def test_are_in_the_runs_of_plain_balls_only(self) -> None:
        truth, distorted = versions(Distortion(mistakes=1.0))
        for one, other in zip(cricket_script(truth).events, cricket_script(distorted).events, strict=True):
            assert one.at == other.at
            if isinstance(one, Ball) and isinstance(other, Ball):
                assert (one.label, one.index, one.wickets, one.extras) == (
                    other.label, other.index, other.wickets, other.extras,
                )  # fmt: skip
                assert (one.runs != other.runs) == (not one.wickets and not one.extras)

    def test_are_corrected_in_order(self) -> None:
        distortion = Distortion(mistakes=0.1, corrects_after=20)
        truth, _ = versions(distortion)
        wrong = wrong_balls(*versions(distortion))
        assert wrong_balls(*versions(distortion, 3)) == wrong[3:]
        assert wrong_balls(*versions(distortion, len(wrong))) == []
        assert fold(cricket_script(truth), cricket_script(truth).events).result

    def test_the_first_site_has_no_mistakes(self) -> None:
        programme = Programme(PAIR, 7)
        programme.distortions["crex"] = Distortion(delay_seconds=2.0, mistakes=0.5, other_names=True, swaps_sides=True)
        slot = programme.slots[0]
        assert programme.match(slot, 0, "crex").script == programme.match(slot, 0).script
        assert programme.match(slot, 0, "crex").delay_seconds == 2.0


class TestNamesAndSides:
    def test_the_same_team_has_another_name(self) -> None:
        truth, distorted = versions(Distortion(other_names=True))
        for ours, theirs in zip(truth.teams, distorted.teams, strict=True):
            assert (ours.key, ours.players) == (theirs.key, theirs.players)
            assert ours.name != theirs.name
            assert ours.name in theirs.name
        state = fold(cricket_script(distorted), distorted.script.events)  # type: ignore[arg-type]
        assert state.winner is None or state.result_long.startswith(state.winner.name)
        assert state.toss_winner in distorted.teams
        assert state.toss_winner is not None
        assert state.toss.startswith(state.toss_winner.short)

    def test_sides_are_swapped_in_some_matches(self) -> None:
        programme = Programme("pair:20", 7)
        programme.distortions["espncricinfo"] = Distortion(swaps_sides=True)
        swapped = 0
        for slot in programme.slots:
            truth, distorted = programme.match(slot, 0), programme.match(slot, 0, "espncricinfo")
            one, other = (fold(cricket_script(match), cricket_script(match).events) for match in (truth, distorted))
            scores = [[(i.batting.key, i.score, i.target) for i in state.innings] for state in (one, other)]
            assert scores[0] == scores[1]
            assert truth.venue == distorted.venue
            swapped += truth.teams == distorted.teams[::-1]
        assert 4 <= swapped <= 16

    def test_a_football_team_has_its_other_name_and_keeps_its_side(self) -> None:
        programme = Programme("many:1", 7)
        programme.distortions["espnsoccer"] = Distortion(other_names=True, swaps_sides=True)
        slot = programme.slots[-1]
        truth, distorted = programme.match(slot, 0), programme.match(slot, 0, "espnsoccer")
        assert [team.key for team in truth.teams] == [team.key for team in distorted.teams]
        assert all(team.name.endswith(" FC") and team.name.isascii() for team in distorted.teams)


class TestDistortion:
    @pytest.mark.parametrize(
        "changes", [{"delay": -1}, {"delay": "x"}, {"mistakes": 2}, {"names": 1}, {"corrects_after": True}, {"what": 1}]
    )
    def test_refuses_invalid_fields(self, changes: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(changes))):
            Distortion.model_validate(changes)


class TestControl:
    @visiting(programme=PAIR)
    async def test_a_delay_affects_the_site_and_not_the_truth(self, visitor: Visitor) -> None:
        visitor.wall.now += 60
        key = (await visitor.first("espncricinfo"))["key"]
        simulation = visitor.simulation
        before = await visitor.get(f"/truth/matches/espncricinfo/{key}")
        body = {"site": "espncricinfo", "delay": 30, "mistakes": 0.5, "corrects_after": 10}
        response = await visitor.post("/control/distortions", body)
        assert response == {**body, "delay": 30.0, "corrects_after": 10.0, "names": False, "sides": False}
        assert await visitor.get("/control/distortions") == {
            "espncricinfo": {k: v for k, v in response.items() if k != "site"}
        }
        distorted = simulation.find("espncricinfo", key)
        assert distorted is not None
        assert simulation.event_count(distorted) == simulation.undistorted(distorted).event_count_at(
            simulation.clock.simulated_at(visitor.wall.now - 30)
        )
        assert await visitor.get(f"/truth/matches/espncricinfo/{key}") == before

    @visiting(programme=PAIR)
    async def test_a_mistake_is_corrected_later(self, visitor: Visitor) -> None:
        await visitor.post("/control/distortions", {"site": "espncricinfo", "mistakes": 0.2, "corrects_after": 15})
        key = (await visitor.first("espncricinfo"))["key"]
        wrong_then, simulation = set(), visitor.simulation
        for _ in range(30):
            visitor.wall.now += 5
            distorted = simulation.find("espncricinfo", key)
            assert distorted is not None
            shown = simulation.event_count(distorted)
            limit = distorted.times[shown - 1]
            truth = simulation.undistorted(distorted)
            wrong = {
                ball.delivery
                for ball, real in zip(
                    cricket_script(distorted).events[:shown], cricket_script(truth).events, strict=False
                )
                if isinstance(ball, Ball) and ball != real
            }
            old = {
                event.delivery
                for event in cricket_script(truth).events[:shown]
                if isinstance(event, Ball) and truth.starts_at + event.at <= limit - 15 * simulation.clock.pace - 60
            }
            assert not wrong & old
            wrong_then |= wrong
        assert len(wrong_then) > 3
        await visitor.post("/control/reset", {})
        assert await visitor.get("/control/distortions") == {}

    @pytest.mark.parametrize("body", [{}, {"site": "nowhere"}, {"site": "espn", "delay": "long"}])
    @visiting(programme=PAIR)
    async def test_refuses_invalid_fields(self, visitor: Visitor, body: dict[str, Any]) -> None:
        assert "error" in await visitor.post("/control/distortions", body, 400)
