"""The objectives, measured from the health log; and the log itself, its rows and its thinning."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitoring import objectives
from monitoring.health.log import THINNING, log_health
from monitoring.models import HealthLog
from monitoring.objectives import HourlyTotals, Objective, Totals, objectives_of
from scraping.models import HealthStatus, Scraper
from tests.monitoring.rows import make_error, make_watched, make_worker

NOW = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
UP, DOWN = HealthStatus.HEALTHY, HealthStatus.FAILING


@pytest.fixture(autouse=True)
def no_kept_totals() -> Iterator[None]:
    objectives.hourly_totals.forget()
    yield
    objectives.hourly_totals.forget()


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
    ("totals", "results"),
    [
        pytest.param(Totals(), ["nothing measured", "nothing measured"], id="an empty log"),
        pytest.param(Totals(1000, 1000, 1000, 1000), ["met", "met"], id="all up and fresh"),
        pytest.param(Totals(1000, 995, 1000, 990), ["met", "met"], id="exactly the targets"),
        pytest.param(Totals(1000, 994, 1000, 990), ["missed", "met"], id="down for too long"),
        pytest.param(Totals(1000, 1000, 1000, 989), ["met", "missed"], id="stale too often"),
        pytest.param(Totals(1000, 1000, 0, 0), ["met", "nothing measured"], id="only breaks"),
    ],
)
def test_objectives(totals: Totals, results: list[str]) -> None:
    assert [each.result for each in objectives_of(totals)] == results


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
            assert objectives.totals(NOW - timedelta(hours=1), NOW + timedelta(milliseconds=1)) == counted

    def test_counts_one_match_or_each(self) -> None:
        good, bad = "crex_13KM", "crex_14KM"
        HealthLog.objects.bulk_create([sample(match_id=good), sample(match_id=bad, health=DOWN)])
        window = (NOW - timedelta(hours=1), NOW + timedelta(hours=1))
        assert objectives.totals(*window, keys=[bad]) == Totals(1, 0, 1, 1)
        assert objectives.by_match(*window) == {good: Totals(1, 1, 1, 1), bad: Totals(1, 0, 1, 1)}


class TestHourlyTotals:
    def test_reads_a_past_hour_once(self) -> None:
        asked: list[tuple[datetime, datetime]] = []

        def count(start: datetime, end: datetime) -> Totals:
            asked.append((start, end))
            return Totals(1, 1, 1, 1)

        kept = HourlyTotals(count)
        day = kept.windows(NOW)["24h"]
        assert (day.hours_counted, day.totals.measurements, len(asked)) == (24, 24, 25)
        asked.clear()
        kept.windows(NOW + timedelta(seconds=59))
        assert asked == []
        kept.windows(NOW + timedelta(seconds=61))
        assert len(asked) == 2
        asked.clear()
        kept.windows(NOW + timedelta(hours=1))
        assert len(asked) == 3

    def test_counts_past_hours_a_few_at_a_time_and_reports_how_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(objectives, "CATCH_UP_SECONDS", -1.0)
        kept = HourlyTotals(lambda *_: Totals(1, 1, 1, 1))
        counted = [kept.windows(NOW + timedelta(minutes=number))["24h"].hours_counted for number in range(29)]
        assert counted[:3] == [2, 3, 4]
        assert counted[-1] == 24


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
class TestCommand:
    def run(self, *arguments: str) -> tuple[str, int]:
        output, code = StringIO(), 0
        try:
            call_command("objectives", *arguments, stdout=output)
        except SystemExit as end:
            code = int(str(end.code))
        return output.getvalue(), code

    def test_prints_results_and_the_matches_that_missed(self) -> None:
        (_, ref, _), at = make_watched(), timezone.now() - timedelta(minutes=1)
        HealthLog.objects.bulk_create([sample(at) for _ in range(99)] + [sample(at, health=DOWN, match_id=ref.key)])
        output, code = self.run("--hours", "1")
        assert code == 1
        lines = [line.split() for line in output.splitlines()]
        assert ["all", "matches", "uptime", "99.000", "%", "99.5", "%", "100", "missed"] in lines
        assert ["all", "matches", "freshness", "100.000", "%", "99.0", "%", "100", "met"] in lines
        assert [ref.key, "uptime", "0.000", "%", "99.5", "%", "1", "missed"] in lines

    def test_of_one_match(self) -> None:
        _, ref, _ = make_watched()
        sample(timezone.now() - timedelta(minutes=1), match_id=ref.key).save()
        output, code = self.run("--match", ref.key)
        assert (code, output.count(" met")) == (0, 2)

    @pytest.mark.parametrize("arguments", [("--hours", "0"), ("--hours", "169"), ("--match", "crex_none")])
    def test_rejects_wrong_arguments(self, arguments: tuple[str, str]) -> None:
        with pytest.raises(CommandError):
            self.run(*arguments)


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


def test_an_objective_without_measurements_is_neither_met_nor_missed() -> None:
    assert Objective("uptime", 0.995, 0, 0).is_met is None
