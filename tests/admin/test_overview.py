"""The overview of the admin: one verdict, bounded figures, charts from the rates of sources."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitoring import audit, views
from monitoring.alerts.registry import raise_alert
from monitoring.models import AuditEntry, AuditOutcome, Severity
from scraping.models import Breaker, Priority, ScrapeTask, TaskState
from scraping.recovery.breakers import Outcomes
from tests.factories import make_ref, make_source
from tests.monitoring.rows import make_task, make_watched, make_worker
from victoryline.lib.admin import bounded_count

pytestmark = pytest.mark.django_db


def overview(client: Client, **query: str) -> dict[str, object]:
    page = client.get(reverse("admin:index"), query)
    assert page.status_code == 200
    return page.context["console"] | {"html": page.content.decode()}


class TestVerdict:
    @pytest.mark.parametrize("age", [1.0, 400.0])
    def test_is_that_of_health_and_names_the_match(self, admin_client: Client, client: Client, age: float) -> None:
        make_worker()
        match, ref, _ = make_watched(age=age)
        views.published_health.forget()
        health = client.get("/health").json()
        shown = overview(admin_client)["verdict"]
        assert shown["status"] == health["status"] == ("healthy" if age == 1 else "degraded")
        if age > 1:  # the age may have grown by a second between the two requests
            reasons = [re.sub(r"\d+ s", "", text) for text in ("; ".join(shown["reasons"]), health["reason"])]
            assert reasons[0] == reasons[1]
        cause = (ref.key, reverse("incident", args=["match", match.pk]))
        assert shown["cause"] == (None if age == 1 else cause)

    def test_names_the_match_of_an_alert_and_links_to_what_happened(self, admin_client: Client) -> None:
        match, ref, _ = make_watched()
        raise_alert(f"dead:{match.pk}", Severity.CRITICAL, "dead", {"match_id": match.pk}, timezone.now())
        shown = overview(admin_client)
        assert shown["alerts"]["rows"][0]["match"] == ref.key
        assert reverse("incident", args=["match", match.pk]) in shown["html"]


class TestFigures:
    def test_the_queue_shows_depth_and_delay_of_each_priority(self, admin_client: Client) -> None:
        now = timezone.now()
        make_task(make_ref(), run_at=now - timedelta(seconds=90))
        make_task(make_ref(), run_at=now + timedelta(seconds=90), priority=Priority.IMMINENT)
        queue = {name: (number, age) for name, number, age in overview(admin_client)["queue"]}
        assert queue["live"][0] == 1
        assert queue["live"][1].startswith("1 min 3")
        assert queue["imminent"] == (1, "-")

    def test_counts_end_at_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("victoryline.lib.admin.COUNTED_AT_MOST", 2)
        for number, text in enumerate(["0", "1", "2", "2+", "2+"]):
            assert bounded_count(ScrapeTask.objects.all()) == text, number
            make_task(make_ref(), state=TaskState.DEAD, reason="x")

    def test_cost_a_constant_number_of_queries(
        self, admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(12):
            match, ref, _ = make_watched(age=200)
            make_task(ref, state=TaskState.DEAD, reason="x")
            raise_alert(f"dead:{match.pk}", Severity.CRITICAL, "dead", {"match_id": match.pk}, timezone.now())
        with django_assert_max_num_queries(45):
            overview(admin_client)


class TestCharts:
    def test_show_the_rates_of_each_source(self, admin_client: Client) -> None:
        counted, then = Outcomes(), timezone.now() - timedelta(minutes=16)
        for is_bad in (True, False):
            counted.count(make_source().pk, is_bad=is_bad, now=then)
        counted.flush(now=then)
        for span, periods, rate in (("1h", 60, 2.0), ("24h", 96, 0.13)):
            charts = {chart.title: chart for chart in overview(admin_client, span=span)["charts"]}
            data = json.loads(charts["Throughput"].data)
            assert len(data["labels"]) == periods
            assert max(data["datasets"][0]["data"]) == rate
            assert 50 in json.loads(charts["Failed reads"].data)["datasets"][0]["data"]
            assert len(json.loads(charts["Read latency"].data)["datasets"]) == 2

    def test_an_unknown_span_is_an_hour(self, admin_client: Client) -> None:
        assert overview(admin_client, span="<x>")["spans"][0] == ("1h", "1 h", True)


class TestTrouble:
    def test_shows_breakers_that_are_not_closed_and_why(self, admin_client: Client) -> None:
        now = timezone.now()
        for state, name in (("CLOSED", "fine"), ("OPEN", "torn")):
            Breaker.objects.create(
                name=name,
                state=state,
                reason="5 failures",
                last_state_change=now,
                open_until=now + timedelta(minutes=5),
            )
        (row,) = overview(admin_client)["breakers"]["rows"]
        assert (row["name"], row["state"], row["reason"]) == ("torn", "open", "5 failures")

    def test_shows_what_did_not_recover_by_itself(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        for outcome in (AuditOutcome.SUCCESS, AuditOutcome.FAILED):
            audit.record(
                actor="scheduler", action_type=audit.SOFT_RESTART, trigger_condition="silent", match_id=match.pk,
                target=f"the {outcome} one", outcome=outcome, now=timezone.now(),
            )  # fmt: skip
        (lost,) = overview(admin_client)["unrecovered"]
        assert lost["target"] == "the failed one"
        assert lost["url"] == reverse("incident", args=["match", match.pk])
        assert AuditEntry.objects.count() == 2
