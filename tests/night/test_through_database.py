"""The simulator and the system itself, living through the same night: they agree."""

from __future__ import annotations

import pytest

from victoryline.night.comparison import Counts, differences, pure_counts
from victoryline.night.faults import Fault, Kind
from victoryline.night.through_database import DatabaseNight
from victoryline.night.world import Script


@pytest.mark.django_db
def test_the_real_steps_do_what_the_simulator_says() -> None:
    """Two minutes and a half, in which one source is down for one and a half of them."""
    down = tuple(Fault(Kind.OUTAGE, 20.0, 110.0, target=number) for number in (0, 1))
    script = Script(seed=4, matches=4, hours=150 / 3600, is_crowded=False, given=down)
    real, pure = DatabaseNight(script).run(), pure_counts(script)
    assert real.polls > 50
    assert real.breakers_opened > 0
    assert not differences(real, pure), (real, pure)


class TestDifferences:
    def test_are_none_within_chance(self) -> None:
        assert differences(Counts(polls=1000, breakers_opened=10), Counts(polls=1020, breakers_opened=12)) == []

    def test_name_what_differs_and_by_how_much(self) -> None:
        found = differences(Counts(polls=1000), Counts(polls=800))
        assert found == ["polls: 1000 through the database, 800 in the simulator"]
