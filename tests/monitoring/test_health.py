"""GET /health: the specified document, from the database alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from monitoring.health.documents import health_document, status_document
from monitoring.health.evaluation import Evaluation
from monitoring.metrics import exposition
from scraping.models import Breaker, BreakerState, JobKind, ScrapeJob, Scraper, TaskState
from scraping.payloads import Resource, Status
from tests.factories import make_ref, make_snapshot, make_unread_match
from tests.monitoring.rows import MEGABYTE, make_error, make_task, make_watched, make_worker
from tests.unreachable_database import known_to_be_away  # noqa: F401 - a fixture
from victoryline.lib.times import as_utc_iso

pytestmark = [pytest.mark.django_db, pytest.mark.both]

TOP = [
    "status",
    "timestamp",
    "active_scraper_count",
    "total_matches_scraping",
    "scrapers",
    "resources",
    "errors",
    "performance",
]
SCRAPER = [
    "scraper_id",
    "match_id",
    "url",
    "start_time",
    "last_update",
    "uptime_seconds",
    "error_count",
    "total_errors",
    "total_updates",
    "health_status",
    "memory_mb",
    "cpu_percent",
    "polling_interval",
]
RESOURCES = ["total_memory_mb", "average_memory_mb", "peak_memory_mb", "total_cpu_percent"]
ERRORS = ["last_minute", "last_hour", "circuit_breakers"]
PERFORMANCE = ["average_latency_ms", "p95_latency_ms", "updates_per_minute"]
BREAKER = {"name", "state", "failure_count", "total_calls", "total_successes", "total_failures"}


def ask(client: Client) -> dict[str, Any]:
    answer: dict[str, Any] = client.get("/health").json()
    return answer


@pytest.mark.requirement("DM-3")
class TestDocument:
    def test_has_the_specified_keys_in_their_order(self, client: Client) -> None:
        make_worker()
        _, ref, _ = make_watched()
        Breaker.objects.create(name=f"{ref.key}_scraper", ref=ref, last_state_change=timezone.now())
        document = ask(client)
        assert list(document)[: len(TOP)] == TOP
        assert list(document["scrapers"][0]) == SCRAPER
        assert list(document["resources"]) == RESOURCES
        assert list(document["errors"]) == ERRORS
        assert list(document["performance"]) == PERFORMANCE
        assert set(document["errors"]["circuit_breakers"][0]) >= BREAKER

    def test_adds_the_figures_of_the_health_requirement(self, client: Client) -> None:
        make_worker()
        make_watched()
        document = ask(client)
        assert list(document["per_match_status"][0]) == [
            "match_id",
            "url",
            "last_update_iso8601",
            "error_count",
            "memory_mb",
        ]
        assert document["total_memory_mb"] == 400
        assert document["uptime_seconds"] == pytest.approx(3600, abs=5)

    def test_names_matches_by_their_public_key(self, client: Client) -> None:
        _, ref, _ = make_watched()
        assert ask(client)["scrapers"][0]["match_id"] == f"crex_{ref.source_event_id}"

    def test_divides_a_workers_memory_among_its_scrapers(self, client: Client) -> None:
        make_worker("one")
        make_worker("two")
        for worker_id in ("one", "one", "two"):
            make_watched(worker_id=worker_id)
        document = ask(client)
        assert [row["memory_mb"] for row in document["scrapers"]] == [200, 200, 400]
        assert document["resources"]["total_memory_mb"] == 800
        assert document["resources"]["average_memory_mb"] == pytest.approx(266.7)
        assert document["resources"]["peak_memory_mb"] == 500

    def test_counts_errors_of_the_last_minute_and_hour(self, client: Client) -> None:
        match, _, _ = make_watched()
        for age in (1, 40, 61, 3500, 3700):  # with room for a slow machine
            make_error(match, age=age)
        errors = ask(client)["errors"]
        assert (errors["last_minute"], errors["last_hour"]) == (2, 4)

    @pytest.mark.requirement("NFR-002", "DM-1")
    def test_memory_and_cpu_are_those_of_the_own_page_and_a_share_of_the_rest(self, client: Client) -> None:
        _, read_directly, _ = make_watched()
        _, attached, _ = make_watched()
        make_worker(renderers={attached.key: [100 * MEGABYTE, 8.0], "crex_ended": [50 * MEGABYTE, 1.0]})
        rows = {row["match_id"]: (row["memory_mb"], row["cpu_percent"]) for row in ask(client)["scrapers"]}
        assert rows == {read_directly.key: (150, 6), attached.key: (250, 14)}

    @pytest.mark.requirement("DM-3")
    def test_wrong_addresses_of_a_job_do_not_count(self, client: Client) -> None:
        """Twelve failed reads of a job in a minute: of matches without a scraper, and of one that is polled too."""
        make_worker()
        match, ref, scraper = make_watched()
        job = ScrapeJob.objects.create(kind=JobKind.URLS, name="4 addresses", created_at=timezone.now())
        task = make_task(ref, job=job, resource=Resource.FULL)
        wrong = make_task(make_ref(make_unread_match()), job=job)
        for _ in range(6):
            make_error(match, task=task, scraper_id=scraper.pk)
            make_error(wrong.ref.match, task=wrong)
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (200, "healthy")
        assert answer.json()["errors"]["last_minute"] == 0
        for _ in range(11):
            make_error(match)
        document = health_document(Evaluation(timezone.now()))
        assert (document["status"], document["reason"]) == ("down", f"11 errors in the last minute: {ref.key}")

    def test_measures_latency_and_updates(self, client: Client) -> None:
        match, ref, _ = make_watched()
        for sequence, latency in enumerate((100, 200, 300), start=1):
            make_snapshot(match, now=timezone.now(), sequence=sequence, update_latency_ms=latency)
        for _ in range(3):
            make_task(ref, state=TaskState.SUCCESS)
        assert ask(client)["performance"] == {
            "average_latency_ms": 200,
            "p95_latency_ms": 300,
            "updates_per_minute": 3,
        }

    def test_shows_an_open_breaker_without_a_scraper(self, client: Client) -> None:
        now = timezone.now()
        Breaker.objects.create(name="crex", state=BreakerState.OPEN, open_until=now, last_state_change=now)
        assert [row["state"] for row in ask(client)["errors"]["circuit_breakers"]] == ["OPEN"]


class TestStatus:
    @pytest.mark.requirement("DM-3")
    def test_is_healthy_with_nothing_to_watch(self, client: Client) -> None:
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (200, "healthy", "")

    @pytest.mark.requirement("US3.2", "FR-001")
    def test_is_degraded_and_still_200_when_a_match_is_silent_for_five_minutes(self, client: Client) -> None:
        make_worker()
        make_watched(age=301)
        make_watched()
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert "1 of 2 scrapers" in answer.json()["reason"]

    @pytest.mark.requirement("US3.2", "BX-18")
    def test_is_degraded_while_a_match_is_frozen_even_with_a_fresh_scraper(self, client: Client) -> None:
        make_worker()
        match, _, _ = make_watched(frozen_at=timezone.now())
        answer = client.get("/health").json()
        assert answer["status"] == "degraded"
        assert answer["reason"] == (
            f"1 live match is frozen, every recovery step was tried without success: {match.key}"
        )

    @pytest.mark.requirement("DM-3")
    def test_is_down_and_503_when_no_worker_is_alive(self, client: Client) -> None:
        make_watched()
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "down")

    def test_ignores_the_age_of_an_upcoming_match(self, client: Client) -> None:
        make_worker()
        make_watched(age=900, status=Status.UPCOMING)
        document = ask(client)
        assert document["status"] == "healthy"
        assert document["scrapers"][0]["health_status"] == "healthy"

    def test_can_be_switched_off(self, client: Client, settings: Settings) -> None:
        settings.CONFIG = settings.CONFIG.model_copy(update={"health_check_enabled": False})
        assert client.get("/health").status_code == 404


def no_database(*_: Any) -> None:
    raise OperationalError("connection refused")


class TestWithoutDatabase:
    def test_answers_503_in_the_same_shape(self, client: Client) -> None:
        with connection.execute_wrapper(no_database):
            answer = client.get("/health")
        document = answer.json()
        assert (answer.status_code, document["status"]) == (503, "down")
        assert list(document)[: len(TOP)] == TOP
        assert document["reason"] == "the database is away (OperationalError)"

    @pytest.mark.requirement("EC-2")
    def test_shows_the_last_evaluation_with_ages_as_of_now(self, client: Client) -> None:
        make_worker()
        make_watched(age=3)
        assert client.get("/health").json()["status"] == "healthy"
        later = timezone.now() + timedelta(seconds=400)
        with connection.execute_wrapper(no_database):
            document = health_document(Evaluation(later))
        assert (document["status"], document["active_scraper_count"]) == ("down", 1)
        assert document["reason"].startswith("the database is away (OperationalError); the other figures are those of ")
        assert document["scrapers"][0]["health_status"] != "healthy"
        assert document["timestamp"] == as_utc_iso(later)

    @pytest.mark.requirement("EC-2")
    def test_metrics_report_it_and_keep_those_of_the_process(self, client: Client) -> None:
        assert "victoryline_database_up 1\n" in client.get("/metrics").content.decode()
        exposition.whole.forget()
        with connection.execute_wrapper(no_database):
            answer = client.get("/metrics")
        assert answer.status_code == 200
        assert "python_info" in answer.content.decode()
        assert "active_scrapers_count" not in answer.content.decode()

    @pytest.mark.usefixtures("known_to_be_away")
    @pytest.mark.requirement("EC-2")
    def test_makes_no_query_while_it_is_known_to_be_away(
        self, client: Client, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        with django_assert_num_queries(0):
            assert client.get("/health").status_code == 503
            assert client.get("/health/ready").json()["reasons"] == ["the database is away (OperationalError)"]
            assert client.get("/health/live").status_code == 200
            assert "the database is away" in client.get("/status").json()["reason"]
            assert "victoryline_database_up 0\n" in client.get("/metrics").content.decode()
            console = client.get("/admin/")
        assert (console.status_code, console["Retry-After"]) == (503, "5")
        assert "Nothing is lost" in console.content.decode()

    @pytest.mark.requirement("EC-2")
    def test_status_shows_the_last_matches_with_growing_ages(self) -> None:
        match, *_ = make_watched(age=3)
        status_document(Evaluation(timezone.now()))
        with connection.execute_wrapper(no_database):
            summary = status_document(Evaluation(timezone.now() + timedelta(seconds=100)))
        assert (summary["grade"], [shown["id"] for shown in summary["matches"]]) == ("FAILING", [match.pk])
        assert 103 <= summary["matches"][0]["age_seconds"] < 110

    def test_status_and_page_are_served(self, client: Client) -> None:
        with connection.execute_wrapper(no_database):
            assert client.get("/status").json()["grade"] == "FAILING"
            assert "the database is away" in client.get("/").content.decode()


@pytest.mark.requirement("US3.1", "FR-012")
class TestWithManyScrapers:
    @pytest.mark.parametrize("scrapers", [1, 10, 60])
    def test_makes_equally_many_queries_for_any_number(
        self, scrapers: int, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        make_worker()
        for _ in range(scrapers):
            make_watched()
        with django_assert_num_queries(16):
            health_document(Evaluation(timezone.now()))

    def test_shows_update_memory_and_errors_of_each_match(self, client: Client) -> None:
        now = timezone.now()
        make_worker()
        watched = [make_watched(now=now, age=age) for age in (1, 2, 3)]
        Scraper.objects.filter(pk=watched[1][2].pk).update(error_count=2)
        answer = client.get("/health").json()
        assert (answer["status"], answer["active_scraper_count"]) == ("healthy", 3)
        assert (answer["uptime_seconds"], answer["total_memory_mb"]) == (pytest.approx(3600, abs=5), 400)
        assert answer["per_match_status"] == [
            {
                "match_id": ref.key,
                "url": ref.url,
                "last_update_iso8601": as_utc_iso(now - timedelta(seconds=age)),
                "error_count": errors,
                "memory_mb": pytest.approx(133.3),
            }
            for (_, ref, _), age, errors in zip(watched, (1, 2, 3), (0, 2, 0), strict=True)
        ]

    def test_shows_the_age_of_the_queue(self, client: Client) -> None:
        _, ref, _ = make_watched()
        make_task(ref, run_at=timezone.now() - timedelta(seconds=12))
        assert ask(client)["queue"] == {"depth": 1, "oldest_age_seconds": pytest.approx(12, abs=2)}


def test_is_built_once_a_second(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.get("/health")
    with django_assert_num_queries(0):
        client.get("/health")


class TestReadiness:
    def test_live_makes_no_query(self, client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        with django_assert_num_queries(0):
            assert client.get("/health/live").status_code == 200

    def test_ready_with_a_worker(self, client: Client) -> None:
        make_worker()
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready", "reasons": []})

    def test_not_ready_without_a_worker(self, client: Client) -> None:
        make_worker(heartbeat_at=timezone.now() - timedelta(seconds=16))
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()["reasons"]) == (503, ["no worker has sent a heartbeat for 15 s"])

    def test_not_ready_without_a_database(self, client: Client) -> None:
        with connection.execute_wrapper(no_database):
            answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()["reasons"]) == (503, ["the database is away (OperationalError)"])


@pytest.mark.parametrize("path", ["/", "/health", "/health/live", "/health/ready", "/status", "/metrics"])
def test_rejects_writing_methods(path: str) -> None:
    assert Client(enforce_csrf_checks=True).post(path).status_code == 405
