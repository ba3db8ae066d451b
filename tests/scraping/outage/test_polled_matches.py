"""Novelty of a reading, and the matches that a worker polls without a database."""

from __future__ import annotations

import pytest

from scraping.outage.polled_matches import (
    KEPT_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Novelty,
    PolledMatches,
    novelty,
)
from scraping.outage.spool import HeldMatch
from scraping.payloads import MatchState, Payload, Phase
from scraping.readings import Site
from tests.factories import NOW
from tests.scraping.builders import ball, balls, chasing

MATCH = HeldMatch(7, "crex_13KM", "cricket", Site("crex"), "13KM", "http://crex.test/13KM", 0.5)


def reading(state: MatchState | None = None, *events: object) -> Payload:
    return Payload(
        source="crex", captured_at=NOW, source_event_id="13KM", state=state or chasing(100), events=tuple(events)
    )


BEFORE = reading(chasing(100), *balls(1, 2, 3))


@pytest.mark.requirement("EC-2", "FR-011")
@pytest.mark.parametrize(
    ("label", "now", "expected"),
    [
        ("the same", BEFORE, Novelty.NOTHING_NEW),
        ("runs", reading(chasing(101), *balls(1, 2, 3)), Novelty.CRITICAL),
        ("a wicket", reading(chasing(100, wickets=4), *balls(1, 2, 3)), Novelty.CRITICAL),
        ("a dot ball: only the overs move", reading(chasing(100, overs="12.4"), *balls(1, 2, 3)), Novelty.CRITICAL),
        ("a new ball in the list", reading(chasing(100), *balls(1, 2, 3, 4)), Novelty.CRITICAL),
        ("a corrected ball", reading(chasing(100), *balls(1, 2), ball(3, runs=4)), Novelty.CRITICAL),
        ("a drinks break", reading(chasing(100, phase=Phase.DRINKS), *balls(1, 2, 3)), Novelty.MINOR),
        ("a comment", reading(chasing(100), *balls(1, 2, 3), ball(9, is_critical=False)), Novelty.MINOR),
        ("a shorter list of the same balls", reading(chasing(100), *balls(2, 3)), Novelty.NOTHING_NEW),
    ],
)
def test_novelty(label: str, now: Payload, expected: Novelty) -> None:
    assert novelty(BEFORE, now) is expected, label


def test_a_first_reading_is_critical() -> None:
    assert novelty(None, BEFORE) is Novelty.CRITICAL


class TestPolledMatches:
    def test_a_match_that_was_read_is_due(self) -> None:
        held = PolledMatches()
        held.stored(MATCH, BEFORE, interval_seconds=2.5, now=100.0)
        assert [one.match for one in held.due(100.0)] == [MATCH]

    def test_a_stored_reading_is_not_new(self) -> None:
        held = PolledMatches()
        held.stored(MATCH, BEFORE, interval_seconds=2.5, now=100.0)
        assert held.due(100.0)[0].add_reading(BEFORE, 101.0) is Novelty.NOTHING_NEW

    def test_an_old_match_is_removed(self) -> None:
        held = PolledMatches()
        held.stored(MATCH, BEFORE, interval_seconds=2.5, now=0.0)
        held.forget_old(KEPT_SECONDS)
        assert len(held) == 1
        held.forget_old(KEPT_SECONDS + 1)
        assert len(held) == 0

    def test_a_rarely_read_match_is_kept_longer(self) -> None:
        held = PolledMatches()
        held.stored(MATCH, BEFORE, interval_seconds=300, now=0.0)
        held.forget_old(800.0)
        assert len(held) == 1

    def test_failures_slow_a_match_down_up_to_a_minute(self) -> None:
        held = PolledMatches()
        held.get_or_add(MATCH, interval_seconds=2.5, now=0.0)
        one = held.due(0.0)[0]
        pauses = []
        for _ in range(8):
            one.add_failure(0.0)
            pauses.append(one.due_at)
        assert pauses == sorted(pauses)
        assert pauses[0] == 5.0
        assert pauses[-1] == LONGEST_PAUSE_SECONDS

    def test_honours_retry_after(self) -> None:
        held = PolledMatches()
        held.get_or_add(MATCH, interval_seconds=2.5, now=0.0)
        held.due(0.0)[0].add_failure(0.0, retry_after_seconds=90)
        assert held.due(89.0) == []
        assert len(held.due(90.0)) == 1

    def test_restoring_does_not_replace_a_known_match(self) -> None:
        held = PolledMatches()
        held.stored(MATCH, BEFORE, interval_seconds=2.5, now=0.0)
        held.get_or_add(MATCH, interval_seconds=9.0, now=0.0)
        assert held.due(0.0)[0].interval_seconds == 2.5
