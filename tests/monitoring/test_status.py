"""GET /status and the page at /."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitoring import audit
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import raise_alert
from monitoring.health.documents import status_document
from monitoring.health.evaluation import Evaluation
from monitoring.models import Severity
from scraping import signals
from scraping.models import Priority, TaskState
from scraping.payloads import LastEvent, Status, Team, Teams
from tests.factories import cricket_state, make_match, make_ref
from tests.monitoring.rows import make_task, make_watched, make_worker

pytestmark = [pytest.mark.django_db, pytest.mark.both]
EVIL = "<script>alert(1)</script>"


@pytest.mark.requirement("SO-5")
class TestStatus:
    def test_shows_freshness_of_live_matches(self) -> None:
        now = timezone.now()
        for age in (3, 1, 2, 30):
            make_watched(now=now, age=age)
        fresh = status_document(Evaluation(now))["freshness_stats"]
        assert fresh["median"] == fresh["p50"] == 2
        assert fresh["max"] == fresh["p95"] == fresh["p99"] == 30
        assert (fresh["count"], fresh["samples"]) == (4, [1, 2, 3, 30])

    def test_shows_the_queue_by_priority_and_its_oldest_task(self) -> None:
        now = timezone.now()
        refs = [make_watched()[1] for _ in range(4)]
        make_task(refs[0], run_at=now - timedelta(seconds=7))
        make_task(refs[1])
        make_task(refs[2], priority=Priority.COMPLETED, run_at=now + timedelta(seconds=60))
        make_task(refs[3], state=TaskState.EXECUTING, worker_id="w", lease_until=now)
        status = status_document(Evaluation(now))
        assert status["queue_depth"] == {"live": 2, "imminent": 0, "completed": 1}
        assert status["oldest_queued_seconds"] == 7
        assert status["active_tasks"] == 1

    def test_shows_the_share_of_failures(self, client: Client) -> None:
        _, ref, _ = make_watched()
        for state in (TaskState.SUCCESS, TaskState.SUCCESS, TaskState.SUCCESS, TaskState.DEAD):
            make_task(ref, state=state)
        make_task(ref, state=TaskState.DEAD, finished_at=timezone.now() - timedelta(minutes=11))
        assert client.get("/status").json()["failure_ratio"] == 0.25

    def test_lists_pauses_alerts_and_actions(self, client: Client) -> None:
        now = timezone.now()
        match, _, _ = make_watched(lifecycle="PAUSED", pause_until=now + timedelta(minutes=5))
        raise_alert("k", Severity.WARNING, "something", {}, now)
        for number in range(12):
            audit.record(
                actor="Ann", action_type=f"a{number}", trigger_condition="x", now=now + timedelta(seconds=number)
            )
        status = client.get("/status").json()
        assert [row["id"] for row in status["paused_matches"]] == [match.pk]
        assert [row["summary"] for row in status["alerts"]] == ["something"]
        assert [row["action_type"] for row in status["audit_entries"]] == [f"a{n}" for n in range(11, 1, -1)]

    def test_has_the_specified_fields(self, client: Client) -> None:
        now = timezone.now()
        _, ref, _ = make_watched()
        make_task(ref, state=TaskState.SUCCESS, finished_at=now)
        figures = {"pids_before": 14, "pids_after": 8, "browser_uptime_hours": 6.02, "task_count": 97}
        entry = audit.record(
            actor="worker",
            action_type=audit.BROWSER_RECYCLE,
            trigger_condition="it has run for 6.0 h",
            metadata={**figures, "owner": "host-77"},
            duration_seconds=1.5,
            now=now,
        )
        status = client.get("/status").json()
        names = {"grade", "freshness_stats", "queue_depth", "active_tasks", "failure_ratio", "paused_matches"}
        assert names | {"last_success_time", "config_snapshot", "audit_entries", "generated_at"} <= set(status)
        assert status["last_success_time"] == pytest.approx(now.timestamp(), abs=0.01)
        assert status["config_snapshot"]["staleness_threshold_seconds"] == 300
        assert status["audit_entries"] == [
            {
                "entry_id": str(entry.entry_id),
                "timestamp": pytest.approx(now.timestamp(), abs=0.01),
                "action_type": "browser_recycle",
                "trigger_condition": "it has run for 6.0 h",
                "outcome": "pending",
                "duration_seconds": 1.5,
                "metadata": figures,
            }
        ]

    @pytest.mark.requirement("US3.2")
    @pytest.mark.parametrize("age", [1, 70, 130, 400])
    @pytest.mark.parametrize("has_alert", [True, False])
    def test_status_health_page_and_overview_agree(self, client: Client, age: float, has_alert: bool) -> None:
        """Old data, an open critical alert, both or neither: none is green where another one is not."""
        make_worker()
        match, _, _ = make_watched(age=age)
        if has_alert:
            detail = {"match_id": match.pk}
            raise_alert("layout:7", Severity.CRITICAL, "A page has changed: no score", detail, timezone.now())
        is_calm = age == 1 and not has_alert
        status, health = client.get("/status").json(), client.get("/health").json()
        assert (status["grade"] == "HEALTHY") == (health["status"] == "healthy") == is_calm
        page = client.get("/").content.decode()
        assert f'data-grade="{status["grade"]}"' in page
        client.force_login(get_user_model().objects.create_superuser("ada", password="secret"))
        overview = client.get("/admin/").context["console"]
        assert overview["verdict"]["grade"] == status["grade"]
        assert overview["verdict"]["status"] == health["status"]
        assert (health["reason"] == "") == is_calm
        if age > 1:
            assert match.key in status["reason"]
            assert match.key in "; ".join(overview["verdict"]["reasons"])
            assert match.key in health["reason"]
        shown = [alert["summary"] for alert in overview["alerts"]["rows"]]
        assert shown == ["A page has changed: no score"] * has_alert

    def test_contains_no_address_host_process_or_person(self, client: Client) -> None:
        _, ref, _ = make_watched()
        make_worker("host-77.internal-4242", host="host-77.internal", pid=4242)
        audit.record(actor="Ann Smith", action_type="retry", trigger_condition="Ann asked", now=timezone.now())
        died = {"task_id": 1, "match_id": ref.match_id, "reason": f"timeout at {ref.url}"}
        signals.task_died.send_robust(sender=None, **died)
        raise_alert(
            alert_keys.MEMORY.of("host-77"), Severity.WARNING, "Worker host-77 holds 1300 MB", {}, timezone.now()
        )
        body = client.get("/status").content.decode()
        for secret in ("host-77", "4242", "Ann", ref.url):
            assert secret not in body

    def test_makes_few_queries_for_any_number_of_matches(
        self, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        for _ in range(20):
            make_watched()
            make_ref(make_match(status=Status.UPCOMING))
        with django_assert_max_num_queries(34):
            status_document(Evaluation(timezone.now()))


@pytest.mark.requirement("BX-21")
class TestPage:
    def test_shows_matches_before_any_script_runs(self, client: Client) -> None:
        make_watched(state=cricket_state(title="India vs Australia"))
        page = client.get("/").content.decode()
        assert "95/3" in page
        assert "12.3 overs" in page
        assert re.search(r"\b[1-9]\d? s ago", page)  # a second, or what a slow machine makes of it
        assert 'http-equiv="refresh"' in page

    def test_gives_advice_when_there_is_no_match(self, client: Client) -> None:
        assert "No matches yet" in client.get("/").content.decode()

    def test_escapes_scraped_text(self, client: Client) -> None:
        teams = Teams(team_a=Team(name=EVIL, short_name=EVIL[:24]), team_b=Team(name='"><img src=x onerror=y>'))
        make_watched(
            state=cricket_state(
                title=EVIL, teams=teams, last_event=LastEvent(type="x", description=EVIL), metadata={"series": EVIL}
            )
        )
        page = client.get("/").content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page

    def test_allows_no_inline_script_or_style(self, client: Client) -> None:
        answer = client.get("/")
        policy = answer["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        page = answer.content.decode()
        assert "<style" not in page
        assert " style=" not in page
