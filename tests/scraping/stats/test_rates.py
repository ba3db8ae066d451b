"""Rates of sources: counted by workers, sampled by the scheduler, read back as points of a chart."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from scraping.models import SourceRate
from scraping.models.traffic import MINUTE, QUARTER
from scraping.readings import Reading, ReadMode, RefInfo
from scraping.recovery.breakers import Outcomes
from scraping.scheduler import retention
from scraping.stats.rates import Point, sample_ages, series
from scraping.stats.read_stats import ReadStats
from tests.factories import NOW, make_source
from tests.monitoring.rows import make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]
LATER = NOW + timedelta(minutes=15)


def read(*durations_ms: int) -> None:
    counted = ReadStats()
    for duration in durations_ms:
        counted.reading("crex", Reading(RefInfo("1", ""), ReadMode.DIRECT, NOW, {}, duration_ms=duration))
    counted.flush(now=NOW)


def call(*are_bad: bool) -> None:
    counted = Outcomes()
    for number, is_bad in enumerate(are_bad):
        counted.count(make_source().pk, is_bad=is_bad, now=NOW + timedelta(seconds=11 * (number % 5)))
    counted.flush(now=NOW)


def only_point(seconds: int) -> Point:
    _, found = series(seconds, periods=15, now=LATER)
    (points,) = found.values()
    (point,) = [each for each in points if each != Point()]
    return point


def test_calls_and_latencies_of_all_workers_are_added_up_by_minute_and_quarter() -> None:
    for _ in range(2):
        call(True, False, False, False)
        read(20, 90, 90, 1000)
    minute, quarter = only_point(MINUTE), only_point(QUARTER)
    assert (minute.calls_per_minute, minute.bad_percent) == (8, 25)
    assert quarter.calls_per_minute == pytest.approx(8 / 15)
    assert minute.p50_ms == quarter.p50_ms == 75  # half of the readings between 50 and 100 ms
    assert minute.p95_ms == 1440  # of the two slowest of eight, between 800 and 1600 ms


def test_an_outage_shows_as_data_that_ages() -> None:
    for age in (5, 10, 200):
        make_watched(now=NOW, age=age)
    type(make_watched(now=NOW)[1]).objects.update(captured_at=NOW - timedelta(seconds=30))
    assert sample_ages(NOW) == 1
    assert sample_ages(NOW + timedelta(seconds=10)) == 1
    point = only_point(MINUTE)
    assert (point.median_age_seconds, point.oldest_age_seconds) == (35, 40)
    assert (point.calls_per_minute, point.p50_ms, point.bad_percent) == (0, None, None)


def test_a_series_ends_with_the_last_complete_period() -> None:
    call(False)
    starts, found = series(MINUTE, periods=5, now=NOW + timedelta(seconds=30))
    assert (starts[-1], found) == (NOW - timedelta(minutes=1), {})


def test_a_chart_reads_one_statement(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    call(True)
    with django_assert_num_queries(1):
        assert series(QUARTER, periods=96, now=LATER)[1]


def test_old_periods_are_pruned() -> None:
    call(True)
    retention.prune_often(NOW + timedelta(hours=3))
    assert SourceRate.objects.get().seconds == QUARTER
    retention.prune_often(NOW + timedelta(hours=26))
    assert not SourceRate.objects.exists()
