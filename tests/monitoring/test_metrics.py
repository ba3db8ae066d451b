"""GET /metrics, read with Prometheus' own parser, and the port of workers."""

from __future__ import annotations

import socket
import time
import urllib.request
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from monitoring.metrics.exposition import DatabaseCollector, start_worker_metrics
from scraping.models import MatchLifecycle, Scraper, TaskState
from tests.monitoring.rows import make_error, make_task, make_watched, make_worker
from tests.patience import stretched

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(client: Client) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


@pytest.mark.django_db
@pytest.mark.both
@pytest.mark.requirement("FR-015", "NFR-018")
class TestOfMatches:
    def test_have_the_specified_names_labels_and_values(self, client: Client) -> None:
        make_worker()
        began = time.monotonic()
        match, ref, scraper = make_watched(age=3)
        Scraper.objects.filter(pk=scraper.pk).update(total_updates=10, latency_total_ms=2500)
        make_error(match)
        make_error(match, error_type="parsing")
        samples, key = read(client), ("match_id", ref.key)
        assert samples["scraper_errors_total", (("error_type", "network"), key)] == 1
        assert samples["scraper_errors_total", (("error_type", "parsing"), key)] == 1
        assert samples["scraper_updates_total", (key,)] == 10
        assert samples["scraper_update_latency_seconds_count", (key,)] == 10
        assert samples["scraper_update_latency_seconds_sum", (key,)] == 2.5
        assert samples["scraper_memory_bytes", (key,)] == 400 * 1024 * 1024
        assert samples["active_scrapers_count", ()] == 1
        elapsed = time.monotonic() - began
        assert samples["data_staleness_seconds", (key,)] == pytest.approx(3 + elapsed / 2, abs=elapsed / 2 + 0.1)

    def test_keep_counting_over_a_restart_of_the_scraper(self, client: Client) -> None:
        _, ref, scraper = make_watched()
        Scraper.objects.filter(pk=scraper.pk).update(total_updates=10, stopped_at=timezone.now())
        Scraper.objects.create(ref=ref, start_time=timezone.now(), total_updates=5)
        assert read(client)["scraper_updates_total", (("match_id", ref.key),)] == 15

    def test_leave_archived_matches_out(self, client: Client) -> None:
        match, _, _ = make_watched(lifecycle=MatchLifecycle.ARCHIVED)
        make_error(match)
        assert not [name for name, _ in read(client) if name in {"scraper_errors_total", "scraper_updates_total"}]

    def test_escape_labels(self, client: Client) -> None:
        match, ref, _ = make_watched()
        make_error(match, error_type='quote" back\\slash')
        labels = (("error_type", 'quote" back\\slash'), ("match_id", ref.key))
        assert read(client)["scraper_errors_total", labels] == 1


@pytest.mark.django_db
@pytest.mark.both
class TestOfTheSystem:
    def test_queue_workers_freshness_breakers_and_grade(self, client: Client) -> None:
        make_worker("w1", process_count=9, context_count=2, page_count=3)
        _, ref, _ = make_watched(age=3)
        make_task(ref, state=TaskState.PENDING, run_at=timezone.now() - timedelta(seconds=12))
        samples = read(client)
        assert samples["scraper_queue_depth", (("priority", "live"),)] == 1
        assert samples["scraper_queue_depth", (("priority", "imminent"),)] == 0
        worker = (("instance", "w1"),)
        assert samples["scraper_pids_current", worker] == 9
        assert samples["scraper_contexts_active", worker] == 2
        assert samples["scraper_pages_open", worker] == 3
        assert samples["scraper_browser_uptime_seconds", worker] == 0
        assert samples["scraper_freshness_seconds_bucket", (("le", "10.0"),)] == 1
        assert samples["scraper_freshness_seconds_bucket", (("le", "1.0"),)] == 0
        assert samples["scraper_freshness_seconds_count", ()] == 1
        assert samples["scraper_scrapes_total", (("domain", "crex"), ("status", "success"))] == 0
        assert samples["scraper_breakers", (("state", "open"),)] == 0
        assert samples["scraper_grade", (("grade", "healthy"),)] == 1
        assert samples["scraper_alerts_open", (("severity", "warning"),)] == 0
        assert samples["scraper_alerts_open", (("severity", "critical"),)] == 0
        assert 12 <= samples["scraper_queue_oldest_age_seconds", ()] < 60

    def test_include_the_metrics_of_the_process(self, client: Client) -> None:
        assert any(name.startswith("django_http_") for name, _ in read(client))

    def test_can_be_switched_off(self, client: Client, settings: Settings) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"enable_prometheus_metrics": False})
        assert client.get("/metrics").status_code == 404

    def test_make_few_queries_for_any_number_of_matches(
        self, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(20):
            make_error(make_watched()[0])
        with django_assert_max_num_queries(36):
            list(DatabaseCollector().collect())


@pytest.mark.requirement("FR-015")
@pytest.mark.django_db(transaction=True)
class TestOfWorkers:
    def test_are_served_on_the_configured_port(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = django_settings.CONFIG.model_copy(update={"prometheus_port": port})
        assert start_worker_metrics(config)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=stretched(10)) as answer:
            assert b"active_scrapers_count" in answer.read()

    def test_a_taken_port_is_a_warning_that_names_it(self, caplog: pytest.LogCaptureFixture) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            assert not start_worker_metrics(django_settings.CONFIG.model_copy(update={"prometheus_port": port}))
        assert f"127.0.0.1:{port}" in caplog.text
        assert "PROMETHEUS_PORT" in caplog.text
