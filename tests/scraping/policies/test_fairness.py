"""The fairness policy: the due matches that get a place when there are too few."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scraping.policies.fairness import STARVED_SHARE, DueMatch, choose, places_for_starved
from tests.factories import NOW

LIVE, IMMINENT, COMPLETED = 0, 1, 2
HIGH, NORMAL, LOW = 0, 1, 2
MINUTE = 60.0


def due_match(
    ref_id: int,
    *,
    priority: int = LIVE,
    importance: int = NORMAL,
    late: float = 1.0,
    interval: float = 2.5,
    age: float | None = None,
) -> DueMatch:
    """Returns a match that has been due for `late` seconds and was read one interval before."""
    due_at = NOW - timedelta(seconds=late)
    heard_at = NOW - timedelta(seconds=late + interval if age is None else age)
    return DueMatch(ref_id, 1, priority, importance, due_at, interval, heard_at)


def ids(chosen: list[DueMatch]) -> list[int]:
    return [one.ref_id for one in chosen]


NEVER_READ = replace(due_match(9), last_read_at=None)
CASES = [
    ("none is due", [], 3, []),
    ("no room at all", [due_match(1)], 0, []),
    ("less than no room: a limit was lowered", [due_match(1)], -2, []),
    ("room for all: the most urgent first all the same", [due_match(1, priority=2), due_match(2)], 5, [2, 1]),
    (
        "live before imminent before completed",
        [due_match(1, priority=2), due_match(2, priority=1), due_match(3)],
        2,
        [3, 2],
    ),
    ("priority before importance", [due_match(1, priority=1, importance=HIGH), due_match(2, importance=LOW)], 1, [2]),
    (
        "of one priority what matters most",
        [due_match(1, importance=LOW), due_match(2), due_match(3, importance=HIGH)],
        2,
        [3, 2],
    ),
    ("importance before age", [due_match(1, age=50), due_match(2, importance=HIGH, age=3)], 1, [2]),
    ("of equal importance the stalest", [due_match(1, age=5), due_match(2, age=9), due_match(3, age=7)], 2, [2, 3]),
    ("what was never read is the stalest", [due_match(1, age=500), NEVER_READ], 1, [9]),
    (
        "late, but not yet starved: live first",
        [due_match(1, priority=2, late=MINUTE, interval=300), due_match(2)],
        1,
        [2],
    ),
    ("starved by its own interval", [due_match(1, priority=2, late=21 * MINUTE, interval=300), due_match(2)], 1, [1]),
    (
        "starved after a minute at the soonest",
        [due_match(1, importance=LOW, late=61), due_match(2, importance=HIGH)],
        1,
        [1],
    ),
]


@pytest.mark.requirement("FR-025")
@pytest.mark.parametrize(("label", "waiting", "room", "expected"), CASES, ids=[case[0] for case in CASES])
def test_places_go_to_the_most_urgent(label: str, waiting: list[DueMatch], room: int, expected: list[int]) -> None:
    assert ids(choose(waiting, room, now=NOW)) == expected


@pytest.mark.parametrize(
    ("given", "room", "kept"),
    [(0, 1, 0), (1, 1, 0), (2, 1, 0), (3, 1, 1), (4, 1, 0), (0, 3, 0), (0, 4, 1), (3, 4, 1), (3, 5, 2), (0, 40, 10)],
)
def test_the_starved_have_one_place_in_four(given: int, room: int, kept: int) -> None:
    assert places_for_starved(given, room) == kept


def test_single_places_are_shared_over_time() -> None:
    """Places become free one by one: starved matches get exactly their share."""
    starved = [due_match(number, priority=COMPLETED, interval=300, late=7200) for number in range(50)]
    live = [due_match(number) for number in range(100, 200)]
    got = Counter(choose([*starved, *live], 1, now=NOW, given=turn)[0].priority for turn in range(40))
    assert got == {LIVE: 30, COMPLETED: 10}


SOME = st.builds(
    due_match,
    ref_id=st.integers(1, 10_000),
    priority=st.sampled_from([LIVE, IMMINENT, COMPLETED]),
    importance=st.sampled_from([HIGH, NORMAL, LOW]),
    late=st.floats(0, 5000),
    interval=st.sampled_from([2.0, 2.5, 5.0, 30.0, 300.0]),
)
CROWDS = st.lists(SOME, max_size=40, unique_by=lambda one: one.ref_id)


@given(CROWDS, st.integers(-3, 45), st.integers(0, 12))
def test_properties_of_every_choice(waiting: list[DueMatch], room: int, before: int) -> None:
    chosen = choose(waiting, room, now=NOW, given=before)
    assert len(chosen) == min(len(waiting), max(0, room)), "all places are filled, and no more"
    assert len(set(ids(chosen))) == len(chosen), "none twice"
    assert set(chosen) <= set(waiting)
    left_out = [one for one in waiting if one not in chosen]
    passed_over = [one for one in chosen if one.lateness(NOW) <= 1.0]
    if left_out and passed_over:  # of those that are not starved, none goes before a more urgent one
        best_left = min((one.priority, one.importance, one.last_read_at) for one in left_out)
        assert max((one.priority, one.importance, one.last_read_at) for one in passed_over) <= best_left


@given(CROWDS, st.integers(0, 45))
def test_the_order_of_the_input_does_not_matter(waiting: list[DueMatch], room: int) -> None:
    assert choose(waiting, room, now=NOW) == choose(waiting[::-1], room, now=NOW)


@settings(max_examples=15, deadline=None)
@given(
    live=st.integers(5, 40),
    patient=st.integers(1, 10),
    room=st.integers(1, 4),
    importance=st.sampled_from([HIGH, NORMAL, LOW]),
)
def test_no_match_is_starved_for_ever(live: int, patient: int, room: int, importance: int) -> None:
    """Under a permanent overload every match is read within a bounded time."""
    crowd = [due_match(n, importance=HIGH, interval=2.0, late=0) for n in range(live)]
    crowd += [
        due_match(100 + n, priority=COMPLETED, importance=importance, interval=20, late=0) for n in range(patient)
    ]
    waiting, now, longest = {one.ref_id: one for one in crowd}, NOW, dict.fromkeys((one.ref_id for one in crowd), 0.0)
    patience, turns_of_all = 80.0, STARVED_SHARE * (live + patient) / room
    for turn in range(400):
        now += timedelta(seconds=1)
        for one in choose((one for one in waiting.values() if one.due_at <= now), room, now=now, given=turn * room):
            longest[one.ref_id] = max(longest[one.ref_id], (now - one.due_at).total_seconds())
            due_at = now + timedelta(seconds=one.interval_seconds)
            waiting[one.ref_id] = replace(one, due_at=due_at, last_read_at=now)
    late_now = {one.ref_id: (now - one.due_at).total_seconds() for one in waiting.values()}
    worst = max(max(longest[ref_id], late_now[ref_id]) for ref_id in waiting)
    assert worst <= 2 * (patience + turns_of_all)
