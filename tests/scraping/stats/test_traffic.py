"""Traffic of readings: counted by workers, added up in the database, compared with the daily budget."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from monitoring.health.documents import health_document
from monitoring.health.evaluation import Evaluation
from monitoring.metrics.families import families
from monitoring.models import Alert
from monitoring.watchdogs.sources import watch_traffic
from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.errors import OverBudget
from scraping.models import MatchRef, ScrapeTask, Source, SourceDay, TaskState
from scraping.payloads import Payload
from scraping.readings import Reading, ReadMode, RefInfo
from scraping.scheduler import retention
from scraping.stats import read_stats, traffic
from scraping.stats.read_stats import SUMS, Cost, ReadStats
from scraping.stats.traffic import EARLIER, MEGABYTE, Budget
from scraping.worker.engine import TrafficBudgets
from scraping.worker.heartbeat import Heartbeat
from scraping.worker.scrape import scrape
from tests.factories import NOW, cricket_state, make_ref, make_source
from tests.scraping.builders import engine_with, open_task, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]

TODAY = NOW.date()


def reading(*, at: datetime = NOW, mode: ReadMode = ReadMode.DIRECT, **costs: Any) -> Reading:
    return Reading(RefInfo("T1", "https://crex.example/T1"), mode, at, documents={}, **costs)


def spend(source: Source, megabytes: float, *, day: date = TODAY) -> None:
    read_stats.add_costs({(source.pk, day): Cost(bytes_in=int(megabytes * MEGABYTE))})


def sample(name: str, **labels: str) -> float | None:
    """Returns the value of a metric of this process."""
    from prometheus_client import REGISTRY

    return REGISTRY.get_sample_value(name, labels)


@pytest.mark.requirement("FS-3", "FS-16")
class TestReadStats:
    def test_add_every_reading_to_its_source_and_day(self) -> None:
        source, counted = make_source(), ReadStats()
        counted.reading("crex", reading(bytes_in=1000, requests_made=2))
        counted.reading("crex", reading(mode=ReadMode.VISIT, bytes_in=90_000, requests_made=7, requests_blocked=30))
        counted.reading("crex", reading(mode=ReadMode.ATTACHED, bytes_in=10))
        counted.reading("crex", reading(mode=ReadMode.IN_PAGE, bytes_in=20, requests_made=3))
        counted.reading("crex", reading(at=NOW + timedelta(days=1), bytes_in=5))
        counted.flush(now=NOW)
        day = SourceDay.objects.get(source=source, day=TODAY)
        assert [getattr(day, name) for name in SUMS] == [91_030, 12, 30, 1, 1, 1, 1]
        assert SourceDay.objects.get(source=source, day=TODAY + timedelta(days=1)).bytes_in == 5

    def test_of_all_workers_are_added_up_and_nothing_is_written_twice(self) -> None:
        source, one, other = make_source(), ReadStats(), ReadStats()
        for counted in (one, other, one):
            counted.reading("crex", reading(bytes_in=100))
            counted.flush(now=NOW)
        one.flush(now=NOW)
        assert SourceDay.objects.get(source=source).bytes_in == 300

    def test_are_written_again_after_a_failed_write(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source, counted = make_source(), ReadStats()
        before = sample("scraper_requests_total", type="document") or 0.0
        counted.reading("crex", reading(mode=ReadMode.VISIT, bytes_in=100, requests_by_type={"document": 1}))
        counted.payload("crex", payload_of(make_ref()))

        def away(*_: object) -> int:
            raise OperationalError("the database is away")

        with monkeypatch.context() as patched:
            patched.setattr(read_stats, "_write", away)
            with pytest.raises(OperationalError):
                counted.flush(now=NOW)
        counted.reading("crex", reading(bytes_in=11))
        counted.flush(now=NOW + timedelta(seconds=3))
        assert SourceDay.objects.get(source=source).bytes_in == 111
        assert source.field_fills.filter(field="score").get().seen == 1
        assert sample("scraper_requests_total", type="document") == before + 1

    def test_are_written_by_the_heartbeat_which_reloads_the_budgets(self, tmp_path: Path) -> None:
        source, engine = make_source(daily_megabytes=1), engine_with(ValueError("never read"))
        host = BrowserHost(BrowserOptions(executable=tmp_path / "chromium", owner="w-1"))
        engine.read_stats.reading("crex", reading(bytes_in=MEGABYTE))
        assert engine.traffic.visits_from(source.pk, NOW) is None
        Heartbeat(engine, Sessions(host), every_seconds=1).beat(now=NOW)
        assert engine.traffic.visits_from(source.pk, NOW) == NOW + timedelta(minutes=1)

    def test_of_a_deleted_source_are_dropped(self) -> None:
        counted = ReadStats()
        counted.reading("deleted", reading(bytes_in=100))
        assert counted.flush(now=NOW) == 0

    def test_are_metrics(self) -> None:
        source, counted = make_source(), ReadStats()
        before = {kind: sample("scraper_requests_blocked_total", type=kind) or 0.0 for kind in ("image", "font")}
        counted.reading(
            "crex",
            reading(
                mode=ReadMode.VISIT,
                bytes_in=5_000,
                requests_made=3,
                requests_blocked=5,
                requests_by_type={"document": 1, "script": 2},
                blocked_by_type={"image": 4, "font": 1},
            ),
        )
        counted.reading("crex", reading(bytes_in=500, requests_made=2))
        counted.flush(now=NOW)
        assert sample("scraper_requests_blocked_total", type="image") == before["image"] + 4
        assert sample("scraper_requests_blocked_total", type="font") == before["font"] + 1
        found = {
            (one.name, *one.labels.values()): one.value
            for family in families(Evaluation(NOW))
            for one in family.samples
        }
        assert found["scraper_bytes_in_est_total", source.key] == 5_500
        assert found["scraper_source_requests_total", "crex"] == 5
        assert found["scraper_source_requests_blocked_total", "crex"] == 5
        assert found["scraper_reads_total", "crex", "visit"] == 1
        assert found["scraper_reads_total", "crex", "direct"] == 1

    def test_of_a_payload_name_the_missing_fields(self) -> None:
        ref, counted = make_ref(), ReadStats()
        of_series = {"endpoint_family": "score", "league_id": "The Hundred"}
        missing = partial(sample, "integrity_required_missing_total", source="crex", field="venue", **of_series)
        before = missing() or 0.0
        lacking = {"missing_fields": ("venue", "last_event"), "null_field_rate": 0.2222}
        counted.payload("crex", payload_of(ref, cricket_state(metadata={"series": "The Hundred"}), integrity=lacking))
        counted.flush(now=NOW)
        assert missing() == before + 1
        assert sample("integrity_null_rate", match_id=ref.key, **of_series) == 0.2222

    def test_need_no_statement_between_heartbeats(self, django_assert_num_queries: Any) -> None:
        ref, counted = make_ref(), ReadStats()
        with django_assert_num_queries(0):
            for _ in range(100):
                counted.reading("crex", reading(bytes_in=100))
                counted.payload("crex", payload_of(ref))
        with django_assert_num_queries(6):  # which sources, savepoint, latencies, days, fills, and its release
            counted.flush(now=NOW)


@pytest.mark.requirement("FS-3")
@pytest.mark.django_db(transaction=True)
def test_workers_that_add_at_the_same_moment_lose_nothing() -> None:
    source = make_source()
    threads = [threading.Thread(target=_add_often, args=(source.pk,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert SourceDay.objects.get(source=source, day=TODAY).bytes_in == 4 * 20 * 3


def _add_often(source_id: int) -> None:
    try:
        for _ in range(20):
            with transaction.atomic():
                read_stats.add_costs(
                    {(source_id, TODAY): Cost(bytes_in=3), (source_id, TODAY + timedelta(days=1)): Cost(1)}
                )
    finally:
        connection.close()


@pytest.mark.requirement("FS-3")
class TestBudget:
    def test_without_a_limit_is_never_spent(self) -> None:
        source, worker = make_source(), TrafficBudgets()
        spend(source, 1_000_000)
        worker.refresh(now=NOW)
        assert traffic.budgets(TODAY).get(source.pk, Budget()) == Budget()
        assert worker.visits_from(source.pk, NOW) is None

    @pytest.mark.parametrize(
        ("megabytes", "is_scarce", "is_spent"),
        [(79.9, False, False), (80, True, False), (99.9, True, False), (100, True, True)],
    )
    def test_warns_at_80_percent_and_is_spent_at_100(self, megabytes: float, is_scarce: bool, is_spent: bool) -> None:
        source, worker = make_source(daily_megabytes=100), TrafficBudgets()
        spend(source, megabytes)
        worker.refresh(now=NOW)
        budget = traffic.budgets(TODAY)[source.pk]
        assert (budget.is_scarce, budget.is_spent) == (is_scarce, is_spent)
        assert (worker.visits_from(source.pk, NOW) is not None) is is_spent

    def test_is_that_of_all_workers(self) -> None:
        source, worker = make_source(daily_megabytes=10), TrafficBudgets()
        for counted in (ReadStats(), ReadStats()):
            counted.reading("crex", reading(bytes_in=5 * MEGABYTE))
            counted.flush(now=NOW)
        worker.refresh(now=NOW)
        assert worker.visits_from(source.pk, NOW) is not None

    def test_starts_again_at_midnight_however_old_the_last_refresh(self) -> None:
        source, worker = make_source(daily_megabytes=1), TrafficBudgets()
        late = datetime(2026, 1, 10, 23, 59, 50, tzinfo=UTC)
        spend(source, 2, day=late.date())
        worker.refresh(now=late)
        assert worker.visits_from(source.pk, late) == datetime(2026, 1, 11, tzinfo=UTC)
        assert worker.visits_from(source.pk, late + timedelta(seconds=11)) is None

    def test_a_raised_limit_counts_from_the_next_heartbeat(self) -> None:
        source, worker = make_source(daily_megabytes=1), TrafficBudgets()
        spend(source, 2)
        worker.refresh(now=NOW)
        until = worker.visits_from(source.pk, NOW)
        assert until is not None
        assert until <= NOW + timedelta(minutes=1), "a waiting match is tried again soon"
        Source.objects.update(daily_megabytes=10)
        worker.refresh(now=NOW)
        assert worker.visits_from(source.pk, NOW) is None

    def test_a_spent_budget_postpones_a_match_without_charge(self) -> None:
        ref = make_ref()
        task_id, until = open_task(ref), NOW + timedelta(minutes=1)
        scrape([task_id], engine_with(OverBudget("crex has used up its traffic of today", until=until)))
        task = ScrapeTask.objects.get(pk=task_id)
        assert (task.state, task.run_at, task.charged_attempts) == (TaskState.PENDING, until, 0)
        assert not ref.match.errors.exists()


@pytest.mark.requirement("FS-3", "FS-17")
class TestAlert:
    def watch(self, now: datetime = NOW) -> Alert | None:
        watch_traffic(now)
        return Alert.objects.filter(key="traffic:crex", closed_at__isnull=True).first()

    def test_is_raised_once_at_80_percent_grows_at_100_and_ends_at_midnight(self) -> None:
        source = make_source(daily_megabytes=50)
        spend(source, 39)
        assert self.watch() is None
        spend(source, 2)
        warned = self.watch()
        assert warned is not None
        assert (warned.severity, warned.summary) == ("warning", "Crex has used 82 % of its 50 MB of today")
        spend(source, 10)
        spent = self.watch()
        assert spent is not None
        assert (spent.pk, spent.severity) == (warned.pk, "critical")
        assert "only direct reads" in spent.summary
        assert self.watch(NOW + timedelta(hours=12)) is None
        assert Alert.objects.count() == 1

    def test_shows_in_health(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = make_source(daily_megabytes=50)
        spend(source, 49)
        assert "traffic" not in health_document(Evaluation(NOW))["reason"]
        spend(source, 1)
        document = health_document(Evaluation(NOW))
        assert (document["status"], document["reason"]) == (
            "degraded",
            "1 source has used up today's traffic budget: only direct reads",
        )


@pytest.mark.requirement("FS-16")
def test_old_days_are_folded_into_one_so_that_the_counter_never_falls() -> None:
    source, now = make_source(), NOW
    for age in (0, 1, 89, 91, 200, 365):
        spend(source, 1, day=(now - timedelta(days=age)).date())
    before = traffic.totals()["crex"]
    rule = next(one for one in retention.rules() if one.table == "traffic")
    assert rule.outstanding(now) == 3
    assert rule.step(now) == 3
    assert rule.step(now) == 0
    assert traffic.totals()["crex"] == before
    assert SourceDay.objects.get(day=EARLIER).bytes_in == 3 * MEGABYTE
    assert SourceDay.objects.count() == 4


def test_a_payload_of_a_ref_needs_no_ref(django_assert_num_queries: Any) -> None:
    """It is counted without a query, also while the database is away."""
    payload: Payload = payload_of(MatchRef(source=Source(key="crex"), source_event_id="T1"))
    with django_assert_num_queries(0):
        ReadStats().payload("crex", payload)
