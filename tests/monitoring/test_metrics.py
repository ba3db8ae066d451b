"""GET /metrics, read with Prometheus' own parser, and the port of workers."""

from __future__ import annotations

import socket
import urllib.request
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone
from prometheus_client import CollectorRegistry, Counter, start_http_server
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from monitoring.health.evaluation import Evaluation
from monitoring.metrics import exposition
from monitoring.metrics.families import families
from scraping.models import TaskState
from tests.monitoring.rows import make_error, make_task, make_watched, make_worker
from tests.patience import stretched
from tests.servers import free_port

ENGINE_PAGE = exposition._engine_page  # before a fixture hides it
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
class TestOfTheSystem:
    def test_queue_workers_freshness_breakers_and_grade(self, client: Client) -> None:
        make_worker()
        _, ref, _ = make_watched(age=3)
        make_task(ref, state=TaskState.PENDING, run_at=timezone.now() - timedelta(seconds=12))
        samples = read(client)
        assert samples["scraper_queue_depth", (("priority", "live"),)] == 1
        assert samples["scraper_queue_depth", (("priority", "imminent"),)] == 0
        assert samples["scraper_worker_heartbeat_age_seconds", (("worker", "engine"),)] < 60
        assert samples["scraper_live_matches", ()] == 1
        assert samples["scraper_memory_bytes", (("match_id", ref.key),)] == 400 * 1024 * 1024
        assert 3 <= samples["data_staleness_seconds", (("match_id", ref.key),)] < 60
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
            list(families(Evaluation(timezone.now())))


@pytest.mark.django_db(transaction=True)
class TestOfTheWeb:
    """The web's page has everything; with ?scope=process only what no other process exports."""

    def test_have_the_page_of_the_embedded_engine_each_metric_once(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        port = free_port()
        config = django_settings.CONFIG.model_copy(update={"prometheus_port": port, "database_url": ""})
        monkeypatch.setattr(exposition, "_engine_page", lambda _: ENGINE_PAGE(config))
        assert exposition.start_server(config)
        make_watched(age=3)
        text = client.get("/metrics").content.decode()
        names = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]
        assert len(names) == len(set(names))
        samples = read(client)
        assert samples["scraper_live_matches", ()] == 1
        assert len([key for key in samples if key[0] == "process_resident_memory_bytes"]) == 1

    def test_of_the_process_have_no_figures_of_the_system(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(exposition.page, "is_leading", lambda: False)
        own, whole = (client.get(f"/metrics{query}").content for query in ("?scope=process", ""))
        assert b"\ndjango_http_" in own
        assert exposition.OF_THE_SYSTEM not in own
        assert exposition.OF_THE_SYSTEM in whole

    def test_are_its_own_while_the_engine_is_away_or_its_port_is_another_program_s(self) -> None:
        foreign = CollectorRegistry()
        Counter("foreign", "Of another program.", registry=foreign)
        server, thread = start_http_server(0, "127.0.0.1", registry=foreign)
        config = django_settings.CONFIG.model_copy(update={"database_url": "", "prometheus_port": server.server_port})
        try:
            assert ENGINE_PAGE(config) == b""
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
        assert ENGINE_PAGE(config) == b""


@pytest.mark.requirement("FR-015")
@pytest.mark.django_db(transaction=True)
class TestOfWorkers:
    def test_are_served_on_the_configured_port(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = django_settings.CONFIG.model_copy(update={"prometheus_port": port})
        assert exposition.start_server(config)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=stretched(10)) as answer:
            assert b"active_scrapers_count" in answer.read()

    def test_a_taken_port_is_a_warning_that_names_it(self, caplog: pytest.LogCaptureFixture) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            assert not exposition.start_server(django_settings.CONFIG.model_copy(update={"prometheus_port": port}))
        assert f"127.0.0.1:{port}" in caplog.text
        assert "PROMETHEUS_PORT" in caplog.text
