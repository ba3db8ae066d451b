"""One match at two sources: every event is served once, in the heavier source's version, under a stable id."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from scraping import event_keys
from scraping.documents import queries
from scraping.matches import events
from scraping.models import EventAction, MatchEvent, MatchRef
from scraping.payloads import Event
from tests.factories import NOW, make_ref, make_source
from tests.scraping.builders import later

pytestmark = [pytest.mark.django_db, pytest.mark.both]


@pytest.fixture
def heavy() -> MatchRef:
    return read_at(make_ref(source=make_source("crex", precedence_weight=100)), NOW)


@pytest.fixture
def light(heavy: MatchRef) -> MatchRef:
    return read_at(make_ref(heavy.match, source=make_source("espncricinfo", adapter="crex", precedence_weight=80)), NOW)


def read_at(ref: MatchRef, at: datetime) -> MatchRef:
    ref.captured_at = at
    ref.save(update_fields=("captured_at",))
    return ref


def ball(source: str, index: int, *, runs: int = 1, score: str = "", slot: bool = True, over: int = 3) -> Event:
    ordinal = over * 6 + index
    return Event(
        id=f"{source}-{over}.{index}",
        kind="runs" if runs else "dot",
        innings=1,
        over=f"{over}.{index}",
        ordinal=ordinal,
        runs=runs,
        slot=event_keys.ball(1, over, index) if slot else "",
        detail={"score": score} if score else {},
    )


def store(ref: MatchRef, *listed: Event, other: MatchRef, at: datetime = NOW, are_complete: bool = False) -> Any:
    other.refresh_from_db()
    return events.store(ref, listed, are_complete=are_complete, now=at, others=[other])


def served(ref: MatchRef) -> list[tuple[str, int, str, int | None]]:
    rows, _ = queries.page_of_events(ref.match_id, since=0, limit=500)
    return [(row.known_as, row.shown_revision, row.action, row.runs) for row in rows]


def current_runs(ref: MatchRef) -> dict[str, int | None]:
    """Returns the events that a consumer of the feed has."""
    found: dict[str, int | None] = {}
    for known_as, _, action, runs in served(ref):
        if action == EventAction.RETRACT:
            found.pop(known_as)
        else:
            found[known_as] = runs
    return found


@pytest.mark.requirement("BX-3")
class TestOneEvent:
    def test_listed_twice_is_served_once(self, heavy: MatchRef, light: MatchRef) -> None:
        store(heavy, ball("a", 1), other=light)
        changes = store(light, ball("b", 1), other=heavy)
        assert served(heavy) == [("a-3.1", 1, "add", 1)]
        assert (changes.added, changes.served) == (1, 0)
        assert MatchEvent.objects.filter(match=heavy.match_id).count() == 2, "the other source's version is stored"

    def test_a_lighter_sources_mistake_is_not_served(self, heavy: MatchRef, light: MatchRef) -> None:
        store(heavy, ball("a", 1, runs=1), other=light)
        store(light, ball("b", 1, runs=4), other=heavy)
        store(light, ball("b", 1, runs=6), other=heavy)
        assert served(heavy) == [("a-3.1", 1, "add", 1)]

    def test_the_faster_one_is_served_and_keeps_its_id_when_the_heavier_agrees(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        store(light, ball("b", 1), other=heavy)
        store(heavy, ball("a", 1), other=light)
        assert served(heavy) == [("b-3.1", 1, "add", 1)]

    def test_the_faster_one_is_corrected_under_that_id_when_the_heavier_differs(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        store(light, ball("b", 1, runs=4), other=heavy)
        store(heavy, ball("a", 1, runs=1), other=light)
        assert served(heavy) == [("b-3.1", 1, "add", 4), ("b-3.1", 2, "update", 1)]
        row = MatchEvent.objects.get(source=heavy.source_id)
        assert (row.event_id, row.reason) == ("a-3.1", "according to crex")

    def test_a_different_score_is_corrected_too(self, heavy: MatchRef, light: MatchRef) -> None:
        store(light, ball("b", 1, score="97/3"), other=heavy)
        store(heavy, ball("a", 1, score="96/3"), other=light)
        assert [action for _, _, action, _ in served(heavy)] == ["add", "update"]

    def test_later_corrections_keep_the_id(self, heavy: MatchRef, light: MatchRef) -> None:
        store(light, ball("b", 1, runs=4), other=heavy)
        store(heavy, ball("a", 1, runs=1), other=light)
        store(heavy, ball("a", 1, runs=2), other=light)
        store(light, ball("b", 1, runs=6), other=heavy)
        assert served(heavy)[1:] == [("b-3.1", 2, "update", 1), ("b-3.1", 3, "update", 2)]

    def test_a_retraction_by_the_heavier_is_served(self, heavy: MatchRef, light: MatchRef) -> None:
        listed = [ball("a", index) for index in range(1, 7)]
        store(light, ball("b", 6), other=heavy)
        store(heavy, *listed, other=light, are_complete=True)
        store(heavy, *listed[:-1], other=light, are_complete=True)
        assert "b-3.6" not in current_runs(heavy)
        assert len(current_runs(heavy)) == 5
        row = MatchEvent.objects.filter(action=EventAction.RETRACT).get()
        assert (row.is_served, row.reason) == (True, "the source no longer lists it")

    def test_an_event_of_the_lighter_only_is_served(self, heavy: MatchRef, light: MatchRef) -> None:
        store(heavy, ball("a", 1), ball("a", 3), other=light)
        store(light, *(ball("b", index) for index in (1, 2, 3)), other=heavy)
        assert current_runs(heavy) == {"a-3.1": 1, "a-3.3": 1, "b-3.2": 1}

    def test_a_silent_heavier_source_keeps_its_versions_and_the_other_adds_the_rest(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        """After an outage of both the lighter source may return first: it must not overwrite correct versions."""
        store(heavy, ball("a", 1, runs=1), other=light)
        read_at(light, later(120))
        store(light, ball("b", 1, runs=4), ball("b", 2, runs=2), other=heavy, at=later(120))
        assert current_runs(heavy) == {"a-3.1": 1, "b-3.2": 2}

    def test_a_source_that_is_polled_rarely_is_not_silent(self, heavy: MatchRef, light: MatchRef) -> None:
        heavy.polling_interval_seconds = 300
        heavy.save(update_fields=("polling_interval_seconds",))
        store(heavy, ball("a", 1, runs=1), other=light)
        store(light, ball("b", 1, runs=4), other=heavy, at=NOW + timedelta(minutes=10))
        assert current_runs(heavy) == {"a-3.1": 1}


class TestLaterChanges:
    """The lighter source was faster and the heavier one agreed, so its version was not served. It still counts."""

    def test_a_retraction_by_the_lighter_is_not_served_while_the_heavier_lists_the_event(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        store(light, ball("b", 1), ball("b", 2, runs=4), other=heavy, are_complete=True)
        store(heavy, ball("a", 1), ball("a", 2, runs=4), other=light)
        store(light, ball("b", 1), other=heavy, at=later(5), are_complete=True)
        assert current_runs(heavy) == {"b-3.1": 1, "b-3.2": 4}

    def test_a_wrong_correction_by_the_lighter_is_not_served(self, heavy: MatchRef, light: MatchRef) -> None:
        store(light, ball("b", 1), other=heavy)
        store(heavy, ball("a", 1), other=light)
        store(light, ball("b", 1, runs=6), other=heavy)
        assert current_runs(heavy) == {"b-3.1": 1}
        store(heavy, ball("a", 1, runs=2), other=light)
        assert current_runs(heavy) == {"b-3.1": 2}

    def test_a_wrong_correction_is_not_served_while_the_heavier_is_silent(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        store(light, ball("b", 1), other=heavy)
        store(heavy, ball("a", 1), other=light)
        read_at(light, later(600))
        store(light, ball("b", 1, runs=6), other=heavy, at=later(600))
        assert current_runs(heavy) == {"b-3.1": 1}

    def test_a_spooled_reading_is_ranked_at_its_own_time(self, heavy: MatchRef, light: MatchRef) -> None:
        store(heavy, ball("a", 1), other=light)
        store(light, ball("b", 1, runs=6), other=heavy, at=later(600))
        assert current_runs(heavy) == {"a-3.1": 1}

    def test_an_event_that_moves_to_another_slot_keeps_its_id(self, heavy: MatchRef, light: MatchRef) -> None:
        """The first of two goals is retracted, so the second one is now the first."""

        def goal(source: str, number: int, slot: int, runs: int) -> Event:
            return Event(id=f"{source}{number}", kind="goal", runs=runs, slot=event_keys.goal("team_a", slot))

        store(light, goal("b", 1, 1, 10), goal("b", 2, 2, 20), other=heavy, are_complete=True)
        store(heavy, goal("a", 1, 1, 10), goal("a", 2, 2, 20), other=light, are_complete=True)
        store(heavy, goal("a", 2, 1, 21), other=light, are_complete=True)
        assert current_runs(heavy) == {"b2": 21}
        store(heavy, goal("a", 2, 1, 22), other=light, are_complete=True)
        store(light, goal("b", 2, 1, 22), other=heavy, are_complete=True)
        assert current_runs(heavy) == {"b2": 22}


class TestWithoutASlot:
    def test_an_event_served_while_the_heavier_was_silent_can_be_retracted(
        self, heavy: MatchRef, light: MatchRef
    ) -> None:
        read_at(light, later(100))
        store(light, ball("b", 1, slot=False), other=heavy, at=later(100), are_complete=True)
        assert current_runs(heavy) == {"b-3.1": 1}
        read_at(heavy, later(105))
        store(light, other=heavy, at=later(105), are_complete=True)
        assert current_runs(heavy) == {}

    def test_of_the_lighter_source_is_not_served(self, heavy: MatchRef, light: MatchRef) -> None:
        store(light, ball("b", 1, slot=False), other=heavy)
        assert served(heavy) == []

    def test_of_the_heavier_source_is_served(self, heavy: MatchRef, light: MatchRef) -> None:
        store(heavy, ball("a", 1, slot=False), other=light)
        assert current_runs(heavy) == {"a-3.1": 1}

    def test_gets_its_slot_from_the_ball_before(self, heavy: MatchRef, light: MatchRef) -> None:
        store(light, ball("b", 1), other=heavy)
        store(light, ball("b", 2, slot=False), ball("b", 3, slot=False), other=heavy)
        assert set(MatchEvent.objects.values_list("slot", flat=True)) == {event_keys.ball(1, 3, n) for n in (1, 2, 3)}
        assert len(current_runs(heavy)) == 3

    def test_gets_its_slot_across_the_end_of_an_over(self, heavy: MatchRef, light: MatchRef) -> None:
        store(light, ball("b", 6), other=heavy)
        following = ball("b", 1, over=4, slot=False).model_copy(update={"ordinal": 3 * 6 + 7})
        store(light, following, other=heavy)
        assert MatchEvent.objects.get(event_id=following.id).slot == event_keys.ball(1, 4, 1)


def test_one_source_needs_no_query_about_others(heavy: MatchRef, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):
        events.store(heavy, [ball("a", 1)], are_complete=False, now=NOW)
    assert current_runs(heavy) == {"a-3.1": 1}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=some.data())
def test_in_any_order_each_ball_is_served_once_in_the_heavier_version(
    heavy: MatchRef, light: MatchRef, data: some.DataObject
) -> None:
    MatchEvent.objects.filter(match=heavy.match_id).delete()
    truth = {index: data.draw(some.integers(0, 6), label="runs") for index in range(1, 6)}
    wrong = {index: data.draw(some.integers(0, 6), label="runs") for index in truth}
    steps = data.draw(some.lists(some.tuples(some.booleans(), some.integers(1, 5)), max_size=8), label="windows")
    for is_heavy, until in [*steps, (True, 5)]:
        ref, other, runs = (heavy, light, truth) if is_heavy else (light, heavy, wrong)
        name = "a" if is_heavy else "b"
        store(ref, *(ball(name, index, runs=runs[index]) for index in range(1, until + 1)), other=other)
    shown = current_runs(heavy)
    assert {int(known_as[-1]): runs for known_as, runs in shown.items()} == truth
    assert len(shown) == len(truth)
