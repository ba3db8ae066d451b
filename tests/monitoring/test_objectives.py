"""The objectives, measured from the health log; and the log itself, its rows and its thinning."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitoring import objectives
from monitoring.health.log import THINNING, log_health
from monitoring.models import HealthLog
from monitoring.objectives import Totals, last_hour, objectives_of
from scraping.models import HealthStatus, Scraper
from tests.monitoring.rows import make_error, make_watched, make_worker

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
UP, DOWN = HealthStatus.HEALTHY, HealthStatus.FAILING


def sample(
    at: datetime = NOW, *, health: HealthStatus = UP, interval: float = 2.5, age: int = 2, match_id: str = ""
) -> HealthLog:
    return HealthLog(
        scraper_id=uuid.UUID(int=1),
        match_id=match_id,
        timestamp=at,
        health_status=health,
        polling_interval_seconds=Decimal(str(interval)),
        last_update_age_seconds=age,
    )


@pytest.mark.parametrize(
    ("totals", "are_met"),
    [
        pytest.param(Totals(), [None, None], id="an empty log"),
        pytest.param(Totals(1000, 1000, 1000, 1000), [True, True], id="all up and fresh"),
        pytest.param(Totals(1000, 995, 1000, 990), [True, True], id="exactly the targets"),
        pytest.param(Totals(1000, 994, 1000, 990), [False, True], id="down for too long"),
        pytest.param(Totals(1000, 1000, 1000, 989), [True, False], id="stale too often"),
        pytest.param(Totals(1000, 1000, 0, 0), [True, None], id="only breaks"),
    ],
)
def test_objectives(totals: Totals, are_met: list[bool | None]) -> None:
    assert [each.is_met for each in objectives_of(totals)] == are_met


@pytest.mark.django_db
@pytest.mark.both
class TestTotals:
    @pytest.mark.parametrize(
        ("row", "counted"),
        [
            pytest.param({}, Totals(1, 1, 1, 1), id="fresh in play"),
            pytest.param({"age": 9}, Totals(1, 1, 1, 1), id="just fresh"),
            pytest.param({"age": 10}, Totals(1, 1, 1, 0), id="ten seconds is not fresh"),
            pytest.param({"interval": 5.0}, Totals(1, 1, 1, 1), id="five seconds is play"),
            pytest.param({"interval": 30.0, "age": 25}, Totals(1, 1, 0, 0), id="a break counts for uptime only"),
            pytest.param(
                {"interval": 10.0, "age": 9}, Totals(1, 1, 1, 1), id="slowed by errors, and fresh all the same"
            ),
            pytest.param({"interval": 20.0, "age": 19}, Totals(1, 1, 1, 0), id="slowed by errors and old"),
            pytest.param({"health": HealthStatus.DEGRADED}, Totals(1, 1, 1, 1), id="degraded is up"),
            pytest.param({"health": DOWN, "age": 400}, Totals(1, 0, 1, 0), id="failing"),
            pytest.param({"at": NOW - timedelta(hours=2)}, Totals(), id="before the window"),
            pytest.param({"at": NOW + timedelta(seconds=1)}, Totals(), id="after it"),
        ],
    )
    def test_counts_a_sample(
        self, row: dict[str, object], counted: Totals, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        sample(**row).save()  # type: ignore[arg-type]
        with django_assert_num_queries(1):
            assert objectives.count(NOW - timedelta(hours=1), NOW + timedelta(milliseconds=1)) == counted

    def test_keeps_the_last_hour_for_a_minute(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        with django_assert_num_queries(1):
            first = last_hour(NOW)
            assert last_hour(NOW + timedelta(seconds=2)) is first


@pytest.mark.django_db
@pytest.mark.both
class TestThroughTheRealSteps:
    def test_half_an_hour_of_samples_gives_the_objectives_of_status(self, client: Client) -> None:
        """Two scrapers, a sample every 15 s: one of them is silent for the last 10 of 30 minutes."""
        now = timezone.now()
        make_worker(now=now)
        scrapers = [make_watched(now=now - timedelta(hours=1))[2] for _ in range(2)]
        for number in range(120):
            at = now - timedelta(seconds=15 * (120 - number))
            healthy = scrapers[: 1 if number >= 80 else 2]
            Scraper.objects.filter(pk__in=[each.pk for each in healthy]).update(
                last_update_time=at - timedelta(seconds=2)
            )
            assert log_health(at) == 2
        found = client.get("/status").json()["objectives"]["1h"]
        # Silent for more than 300 s at 21 of the 40 samples; its data ten seconds old or older at all 40.
        assert found["uptime"] == {"target": 0.995, "ratio": 0.9125, "is_met": False, "measurements": 240}
        assert found["freshness"] == {"target": 0.99, "ratio": 0.83333, "is_met": False, "measurements": 240}


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("DM-4")
class TestLog:
    def test_has_the_specified_fields_a_row_an_active_scraper(self) -> None:
        now = timezone.now()
        make_worker(now=now)
        match, ref, scraper = make_watched(now=now, age=125)
        make_error(match)
        Scraper.objects.filter(pk=scraper.pk).update(
            error_count=1, last_latency_ms=42, polling_interval=2.5, start_time=now - timedelta(seconds=3600)
        )
        make_watched(now=now)
        Scraper.objects.exclude(pk=scraper.pk).update(stopped_at=now)
        assert log_health(now) == 1
        row = HealthLog.objects.values().get()
        assert row == {
            "id": row["id"],
            "scraper_id": scraper.scraper_id,
            "match_id": ref.key,
            "timestamp": now,
            "health_status": "degraded",
            "error_count": 1,
            "memory_mb": Decimal("400.00"),
            "cpu_percent": Decimal("20.00"),
            "update_latency_ms": 42,
            "polling_interval_seconds": Decimal("2.50"),
            "uptime_seconds": 3600,
            "last_update_age_seconds": 125,
        }

    def test_makes_few_queries_for_any_number_of_scrapers(
        self, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(30):
            make_watched()
        with django_assert_max_num_queries(5):
            assert log_health(timezone.now()) == 30


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("DM-4")
class TestThinning:
    def test_keeps_one_sample_in_five_minutes_after_a_day(self) -> None:
        day_old = NOW - timedelta(hours=25)
        samples = [day_old + timedelta(seconds=15 * number) for number in range(60)]  # 15 minutes, from a full slot
        recent = [NOW - timedelta(hours=23) + timedelta(seconds=15 * number) for number in range(20)]
        HealthLog.objects.bulk_create([sample(at) for at in [*samples, *recent] for _ in range(2)])
        assert THINNING.outstanding(NOW) == 57 * 2
        assert [THINNING.step(NOW) for _ in range(2)] == [114, 0]
        assert THINNING.outstanding(NOW) == 0
        left = HealthLog.objects.order_by("timestamp").values_list("timestamp", flat=True).distinct()
        assert list(left) == [samples[0], samples[20], samples[40], *recent]
