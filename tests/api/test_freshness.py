"""Freshness of data: one table of cases."""

from datetime import datetime, timedelta

import pytest

from scraping.documents.cached_match import CachedMatch, CachedRef
from scraping.documents.freshness import DataState, Freshness, measure
from scraping.models import MatchLifecycle
from scraping.payloads import Status
from tests.factories import NOW

pytestmark = pytest.mark.requirement("BX-1")
STALE_AFTER = 300


def freshness(
    status: Status = Status.LIVE,
    age: float | None = 4.9,
    paused_for: float | None = None,
    due: float | None = 2,
    frozen_before: float | None = None,
) -> Freshness:
    """Of a match at one source, with all times relative to now."""
    ref = CachedRef(source="crex", event_id="1", planned_at=at(due), scraper_id=None)
    match = CachedMatch(
        id=1,
        sport="cricket",
        title="",
        status=status.value,
        phase="play",
        lifecycle=MatchLifecycle.ACTIVE if paused_for is None else MatchLifecycle.PAUSED,
        team_a="",
        team_b="",
        team_a_id=None,
        team_b_id=None,
        series="",
        sequence=1,
        start_time=None,
        scraped_at=None if age is None else at(-age),
        changed_at=None,
        pause_until=at(paused_for),
        frozen_at=None if frozen_before is None else at(-frozen_before),
        data_source="scraper",
        payload={},
        refs=(ref,),
    )
    return measure(match, NOW, stale_after=STALE_AFTER)


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("status", "is_paused", "age", "expected"),
    [
        pytest.param("live", False, 0, "fresh", id="live, just read"),
        pytest.param("live", False, 10, "fresh", id="live, ten seconds"),
        pytest.param("live", False, 10.1, "aging", id="live, a little more"),
        pytest.param("live", False, 300, "aging", id="live, at the threshold"),
        pytest.param("live", False, 300.1, "stale", id="live, past the threshold"),
        pytest.param("live", True, 1, "paused", id="paused, though just read"),
        pytest.param("live", True, None, "unknown", id="paused, never read"),
        pytest.param("upcoming", False, 200, "fresh", id="upcoming"),
        pytest.param("upcoming", False, 301, "stale", id="upcoming, forgotten"),
        pytest.param("upcoming", False, None, "unknown", id="never read"),
        pytest.param("completed", False, 9999, "final", id="completed"),
        pytest.param("completed", True, 9999, "final", id="completed while paused"),
        pytest.param("abandoned", False, 1, "final", id="abandoned"),
    ],
)
def test_data_state(status: str, is_paused: bool, age: float | None, expected: str) -> None:
    pause = 300 if is_paused else None
    assert freshness(Status(status), age, paused_for=pause, due=None).state == DataState(expected)


@pytest.mark.parametrize(
    ("frozen_before", "age", "status", "expected"),
    [
        pytest.param(5, 310, Status.LIVE, "frozen", id="nothing has helped"),
        pytest.param(5, 200, Status.LIVE, "frozen", id="an important match, sooner"),
        pytest.param(5, 3, Status.LIVE, "fresh", id="read since"),
        pytest.param(5, 310, Status.COMPLETED, "final", id="over since"),
    ],
)
def test_a_frozen_match_is_frozen_until_its_next_reading(
    frozen_before: float, age: float, status: Status, expected: str
) -> None:
    assert freshness(status, age, due=None, frozen_before=frozen_before).state == DataState(expected)


class TestMeasure:
    def test_rounds_the_age_down(self) -> None:
        assert freshness(age=4.9).whole_age_seconds == 4

    def test_has_no_age_before_the_first_reading(self) -> None:
        assert freshness(age=None).age_seconds is None

    def test_is_never_negative(self) -> None:
        assert freshness(age=-5).age_seconds == 0

    @pytest.mark.requirement("BX-2")
    def test_shows_when_the_next_update_is_due(self) -> None:
        assert freshness(due=2.5).next_update_in == 2.5
        assert freshness(due=-4).next_update_in == 0
        assert freshness(paused_for=60).next_update_in == 60
        assert freshness(paused_for=60, due=90).next_update_in == 90
        assert freshness(status=Status.COMPLETED).next_update_in is None


@pytest.mark.parametrize(
    ("age", "due", "expected"),
    [
        pytest.param(299, 1, "fresh", id="read every five minutes, as planned"),
        pytest.param(310, -10, "fresh", id="a little late"),
        pytest.param(601, -301, "stale", id="late by more than the threshold"),
        pytest.param(601, 9999, "stale", id="planned for the far future: it is not polled"),
    ],
)
def test_a_match_that_has_not_begun_is_stale_when_it_is_late(age: float, due: float, expected: str) -> None:
    assert freshness(status=Status.UPCOMING, age=age, due=due).state == DataState(expected)


class TestIsOlderThan:
    @pytest.mark.parametrize(
        ("found", "expected"),
        [
            (freshness(age=5), False),
            (freshness(age=5.1), True),
            (freshness(age=None), True),
            (freshness(age=1, paused_for=9), False),
            (freshness(age=9999, status=Status.COMPLETED), False),
        ],
    )
    def test_five_seconds(self, found, expected: bool) -> None:
        assert found.is_older_than(5) is expected
