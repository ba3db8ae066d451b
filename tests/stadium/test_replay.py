"""Replay of recordings: played once, at any speed, at the chosen sites, and found by their keys."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from stadium.config import StadiumConfig, add_options, config_from
from stadium.cricsheet.document import CricsheetError
from stadium.matches.programme import Programme
from stadium.matches.programme_parser import ReplayOptions
from stadium.matches.simulation import Simulation

from .conftest import Visit, Visitor, Wall
from .cricsheet_files import TEAMS, document, innings, write

A, B = TEAMS
SIX = "0 1 4 W 1wd 2 6"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chase = innings(B, SIX, target={"overs": 20, "runs": 29})
    content = document(innings(A, SIX, SIX), chase, outcome={"winner": A, "by": {"runs": 14}})
    for name in ("one", "two", "three"):
        write(tmp_path, content, name)
    return tmp_path


def options(*given: str) -> StadiumConfig:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return config_from(parser.parse_args(given))


class TestProgramme:
    def test_each_recording_is_played_once_and_stays(self, folder: Path) -> None:
        programme = Programme(f"replay:{folder}", 7, ReplayOptions(pace=100))
        for moment in (0.0, 500.0, 5_000.0, 1e9):
            matches = programme.listed_matches(moment)
            assert [match.slot.recording.name for match in matches if match.slot.recording] == [
                "one", "three", "two",
            ]  # fmt: skip

    def test_recordings_start_staggered_or_at_once(self, folder: Path) -> None:
        staggered = Programme(f"replay:{folder}", 7, ReplayOptions(pace=100)).listed_matches(0)
        together = Programme(f"replay:{folder}", 7, ReplayOptions(pace=100, is_at_once=True)).listed_matches(0)
        assert [match.starts_at for match in staggered] == [300.0, 500.0, 700.0]
        assert [match.starts_at for match in together] == [300.0] * 3

    def test_keys_depend_on_file_names_only(self, folder: Path) -> None:
        def keys() -> dict[str, str]:
            shown = Programme(f"replay:{folder}", 7).listed_matches(0)
            return {match.slot.recording.name: match.key for match in shown if match.slot.recording}

        before = keys()
        write(folder, document(innings(B, SIX)), "a-new-one")
        after = keys()
        assert before.items() <= after.items()
        assert len(set(after.values())) == 4

    def test_a_match_is_found_by_its_number_and_no_other_is(self, folder: Path) -> None:
        programme = Programme(f"replay:{folder}", 7)
        for match in programme.listed_matches(0):
            assert programme.find(match.number, 0.0) == match
            assert programme.find(match.number + 1, 0.0) is None
        assert programme.find(3, 0.0) is None

    def test_summary_lists_recordings_invented_parts_and_rejected_files(self, folder: Path) -> None:
        write(folder, "{", "bad")
        lines = Programme(f"replay:{folder}", 7, ReplayOptions(("crex", "espncricinfo"))).replay_summary()
        assert lines[0].startswith(f"left out: {folder / 'bad.json'}: ")
        assert lines[1].startswith("plays one: India v Sri Lanka, T20 (crex ")
        assert ", espncricinfo " in lines[1]
        assert lines[2].startswith("  made up: the time of every ball, ")

    def test_a_folder_with_nothing_to_play_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(CricsheetError, match=str(tmp_path)):
            Programme(f"replay:{tmp_path}", 7)


class TestOptions:
    def test_a_replay_at_some_sites(self, folder: Path) -> None:
        config = options("--replay", str(folder), "--speed", "2000", "--sites", "crex,espncricinfo", "--at-once")
        assert (config.programme, config.pace) == (f"replay:{folder}", 2000)
        assert config.replay == ReplayOptions(("crex", "espncricinfo"), is_at_once=True, pace=2000)
        shown = Simulation(config, Wall()).listed_matches("espncricinfo")
        assert [match.site for match in shown] == ["espncricinfo"] * 3

    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            (("--sites", "nowhere"), "--sites must be some of crex"),
            (("--sites", "crex,sofascore"), "--sites must be"),
            (("--speed", "4001"), r"--pace \(or --speed\) must be between 0 and 4000"),
            (("--programme", "replays"), "programme must be demo"),
        ],
    )
    def test_invalid_input_is_refused(self, given: tuple[str, ...], complaint: str) -> None:
        with pytest.raises(ValueError, match=complaint):
            options(*given)


ODD = {
    "super overs": document(
        innings(A, SIX), innings(B, SIX), innings(B, "6 W W", super_over=True), innings(A, "6", super_over=True),
        innings(A, "1nb+4b 1", super_over=True), innings(B, "6", super_over=True),
        outcome={"result": "tie", "eliminator": B},
    ),
    "not a ball": document(outcome={"result": "no result"}, toss={}, players={}),
    "followed on": document(
        innings(A, SIX, declared=True), innings(B, "0 W"), innings(B, "1 1"), innings(A, forfeited=True), overs=None,
        match_type="Test", dates=["2024-01-01", "2024-01-02"],
    ),
    "penalties": document(
        innings(A, "5pen 1+5pen 1wd+5pen"), innings(B, "2", penalty_runs={"pre": 5, "post": 10}), match_type="ODM",
        overs=50, outcome={"winner": B, "method": "Awarded"},
    ),
    "five balls an over": document(innings(A, "0 0 0 0 0", "0 0 0 0 1"), balls_per_over=5),
}  # fmt: skip
CRICKET_SITES = ("crex", "crexpro", "board", "espncricinfo", "espn", "sofascorecricket")


@pytest.mark.parametrize("name", ODD)
def test_every_site_plays_every_kind_of_match(visit: Visit, tmp_path: Path, name: str) -> None:
    async def scenario(visitor: Visitor) -> None:
        ends_at = visitor.simulation.programme.listed_matches(0)[0].ends_at
        for _ in range(8):
            visitor.wall.now += ends_at / 7 / 100
            for match in await visitor.get("/truth/matches"):
                answer = await visitor.ask(match["url"][match["url"].index("/", 8) :])
                assert answer.status == 200, (match["site"], await answer.text())
        assert (match["status"], match["played"]) == ("abandoned" if name == "not a ball" else "completed", 1.0)

    write(tmp_path, ODD[name])
    visit(scenario, programme=f"replay:{tmp_path}", pace=100, sites=CRICKET_SITES)


def courses(visit: Visit, folder: Path, pace: float) -> list[list[tuple[str, float]]]:
    """Returns state and progress of the matches at ten simulated moments from the first start to the last end."""
    seen: list[list[tuple[str, float]]] = []

    async def scenario(visitor: Visitor) -> None:
        matches = visitor.simulation.programme.listed_matches(0)
        first, last = min(one.starts_at for one in matches), max(one.ends_at for one in matches) + 1
        for tenth in range(10):
            visitor.wall.now = began + (first + (last - first) * tenth / 9) / pace
            seen.append([(one["status"], one["played"]) for one in await visitor.get("/truth/matches")])

    began = Wall().now
    visit(scenario, programme=f"replay:{folder}", pace=pace, at_once=True, sites=("crex",))
    return seen
    return seen


@pytest.mark.requirement("BX-19")
@pytest.mark.parametrize("pace", [1, 30, 1000])
def test_a_recording_takes_the_same_course_at_any_speed(visit: Visit, folder: Path, pace: float) -> None:
    usual, other = courses(visit, folder, 100), courses(visit, folder, pace)
    assert {status for moment in usual for status, _ in moment} == {"upcoming", "live", "completed"}
    assert [[(status, pytest.approx(played, abs=0.01)) for status, played in moment] for moment in usual] == other


class TestSites:
    def test_plays_through_and_stays_as_finished(self, visit: Visit, folder: Path) -> None:
        async def scenario(visitor: Visitor) -> None:
            listed = await visitor.get("/truth/matches")
            assert [match["status"] for match in listed] == ["upcoming"] * 3
            seen: dict[str, set[str]] = {match["key"]: set() for match in listed}
            for _ in range(60):
                visitor.wall.now += 1
                for match in await visitor.get("/truth/matches"):
                    seen[match["key"]].add(match["phase"])
            visitor.wall.now += 100_000
            for match in await visitor.get("/truth/matches"):
                assert match["status"] == "completed"
                assert {"in_play", "innings_break", "finished"} <= seen[match["key"]]
                await self._is_complete_in_truth_and_feed(visitor, match["key"])

        visit(scenario, programme=f"replay:{folder}", pace=100)

    async def _is_complete_in_truth_and_feed(self, visitor: Visitor, key: str) -> None:
        truth: dict[str, Any] = await visitor.get(f"/truth/matches/crex/{key}")
        assert truth["result_long"] == "India won by 14 runs"
        assert [(part["runs"], part["wickets"], part["overs"], part["target"]) for part in truth["innings"]] == [
            (28, 2, "2.0", None), (14, 1, "1.0", 29),
        ]  # fmt: skip
        assert truth["winner"] == "team_a"
        await visitor.enter("crex")
        feed = await visitor.whole_feed(key)
        assert [str(item["id"]) for item in feed] == [event["id"] for event in truth["events"]]
