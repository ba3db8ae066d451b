"""The rung that is due for a silent match: the policy as a table, and its properties."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scraping.policies.ladder import RUNGS, Rung, Silence, next_rung
from tests.factories import NOW

pytestmark = pytest.mark.requirement("BX-18")
THRESHOLD = 300.0
LADDER = (Rung.HINT, Rung.SESSION, Rung.BROWSER, Rung.OTHER_SOURCE, Rung.FROZEN)


def silence(late: float, rung: Rung = Rung.GROUND, stood: float = 0.0, **fields: bool) -> Silence:
    return Silence(NOW - timedelta(seconds=late), rung, NOW - timedelta(seconds=stood), **fields)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(silence(-2), Rung.GROUND, id="not even due"),
        pytest.param(silence(14.9), Rung.GROUND, id="a little late"),
        pytest.param(silence(15), Rung.HINT, id="late: hinted again"),
        pytest.param(silence(44, Rung.HINT, 29), Rung.HINT, id="the hint has its time"),
        pytest.param(silence(45, Rung.HINT, 30), Rung.SESSION, id="then a fresh session"),
        pytest.param(silence(90, Rung.SESSION, 45), Rung.BROWSER, id="then a fresh browser"),
        pytest.param(silence(150, Rung.BROWSER, 60), Rung.OTHER_SOURCE, id="then another source"),
        pytest.param(silence(300, Rung.OTHER_SOURCE, 150), Rung.FROZEN, id="then it is frozen"),
        pytest.param(silence(9000, Rung.FROZEN, 8000), Rung.FROZEN, id="there is nothing above"),
        pytest.param(silence(9000), Rung.HINT, id="an old silence begins below too"),
        pytest.param(silence(9000, Rung.HINT, 5), Rung.HINT, id="and gives each rung its time"),
        pytest.param(silence(1, Rung.FROZEN, 100), Rung.GROUND, id="read again"),
        pytest.param(silence(7.5, is_important=True), Rung.HINT, id="an important match: twice as soon"),
        pytest.param(silence(150, Rung.OTHER_SOURCE, 75, is_important=True), Rung.FROZEN, id="frozen twice as soon"),
        pytest.param(silence(100, is_held_back=True), Rung.GROUND, id="breaker open: no request"),
        pytest.param(silence(150, is_held_back=True), Rung.OTHER_SOURCE, id="breaker open: another source"),
        pytest.param(silence(300, Rung.OTHER_SOURCE, 150, is_held_back=True), Rung.FROZEN, id="breaker open: frozen"),
        pytest.param(silence(200, Rung.SESSION, 60, is_held_back=True), Rung.SESSION, id="each rung has its time"),
        pytest.param(silence(200, Rung.SESSION, 105, is_held_back=True), Rung.OTHER_SOURCE, id="what is left of it"),
    ],
)
def test_the_next_rung(found: Silence, expected: Rung) -> None:
    assert next_rung(found, staleness_threshold=THRESHOLD, now=NOW) is expected


@given(look_every=st.floats(1, 20), threshold=st.floats(20, 3600), is_important=st.booleans())
def test_one_rung_after_the_other_and_frozen_in_time(look_every: float, threshold: float, is_important: bool) -> None:
    """A match that stays silent takes every rung in order and is frozen on time."""
    rung, rung_at, taken = Rung.GROUND, None, []
    limit = threshold * (0.5 if is_important else 1.0)
    now, end = NOW, NOW + timedelta(seconds=limit + look_every * (len(LADDER) + 1))
    while now <= end:
        found = Silence(NOW, rung, rung_at, is_important)
        higher = next_rung(found, staleness_threshold=threshold, now=now)
        if higher is not rung:
            taken.append(higher)
            rung, rung_at = higher, now
        now += timedelta(seconds=look_every)
    assert tuple(taken) == LADDER
    assert (rung_at - NOW).total_seconds() >= limit - 1e-3


def test_the_rungs_are_in_the_order_of_what_they_cost() -> None:
    assert RUNGS == LADDER
    assert sorted(RUNGS, key=lambda rung: rung.share) == list(RUNGS)
