from __future__ import annotations

import json
from pathlib import Path

import pytest

from stadium.matches.clock import StadiumClock

from .conftest import START, Wall


class TestPace:
    def test_runs_simulated_time_at_the_pace(self) -> None:
        wall = Wall()
        clock = StadiumClock(10, wall_clock=wall)
        wall.now += 6
        assert clock.now() == pytest.approx(60)

    def test_converts_times_before_the_start_to_wall_time(self) -> None:
        clock = StadiumClock(10, wall_clock=Wall())
        assert clock.wall_at(-100) == pytest.approx(START - 10)

    def test_a_change_of_pace_keeps_past_times(self) -> None:
        wall = Wall()
        clock = StadiumClock(10, wall_clock=wall)
        wall.now += 60
        before = [clock.wall_at(moment) for moment in (-50, 0, 300, 600)]
        clock.set_pace(50)
        wall.now += 10
        assert [clock.wall_at(moment) for moment in (-50, 0, 300, 600)] == before
        assert clock.now() == pytest.approx(1100)
        assert clock.wall_at(1100) == pytest.approx(wall.now)

    def test_time_freezes_at_pace_zero_and_resumes(self) -> None:
        wall = Wall()
        clock = StadiumClock(10, wall_clock=wall)
        wall.now += 10
        clock.set_pace(0)
        wall.now += 100
        assert clock.now() == pytest.approx(100)
        clock.set_pace(10)
        wall.now += 1
        assert clock.now() == pytest.approx(110)
        assert clock.wall_at(100) == pytest.approx(START + 10)
        assert clock.wall_at(110) == pytest.approx(START + 111)

    def test_a_skip_gives_all_skipped_events_the_same_wall_time(self) -> None:
        wall = Wall()
        clock = StadiumClock(10, wall_clock=wall)
        wall.now += 10
        clock.skip(500)
        assert clock.now() == pytest.approx(600)
        assert clock.wall_at(400) == pytest.approx(wall.now)

    @pytest.mark.parametrize("pace", [-1, 4_001, float("nan")])
    def test_refuses_an_invalid_pace(self, pace: float) -> None:
        with pytest.raises(ValueError, match="pace must be between"):
            StadiumClock(pace)


class TestStateFile:
    def test_time_continues_across_a_restart(self, tmp_path: Path) -> None:
        wall, file = Wall(), tmp_path / "deep" / "state.json"
        clock = StadiumClock(10, file, wall)
        wall.now += 30
        clock.set_pace(20)
        wall.now += 45
        again = StadiumClock(99, file, wall)
        assert again.now() == clock.now() == pytest.approx(1200)
        assert again.anchors == clock.anchors

    def test_leaves_no_half_written_file(self, tmp_path: Path) -> None:
        file = tmp_path / "state.json"
        StadiumClock(10, file).set_pace(20)
        assert [path.name for path in tmp_path.iterdir()] == ["state.json"]
        assert len(json.loads(file.read_text())["anchors"]) == 2
