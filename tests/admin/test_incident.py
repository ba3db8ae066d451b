"""The incident page: everything that happened to a match, a source or an error group on one time line."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring import audit
from monitoring.admin.alerts import cause_url
from monitoring.alerts.alert_keys import incident_path
from monitoring.alerts.message_text import document
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Alert, AuditEntry, AuditOutcome, Channel, Severity
from scraping.models import Breaker, ErrorGroup, Evidence, TaskState, TaskTransition
from tests.admin.rows import EVIL, make_everything
from tests.monitoring.rows import make_error, make_task, make_watched, make_worker

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def page(client: Client, about: str, name: object, **query: str) -> dict[str, object]:
    shown = client.get(reverse("incident", args=[about, name]), query)
    assert shown.status_code == 200
    return {**{each: shown.context[each] for each in ("entries", "subject")}, "html": shown.content.decode()}


def texts(client: Client, about: str, name: object, **query: str) -> list[str]:
    return [entry.text for entry in page(client, about, name, **query)["entries"]]


@pytest.mark.requirement("BX-9")
def test_a_match_shows_cause_reaction_and_outcome_newest_first(admin_client: Client, now: datetime) -> None:
    match, ref, _ = make_watched()

    def at(seconds: float) -> datetime:
        return now - timedelta(seconds=seconds)

    task = make_task(ref, now=at(100), state=TaskState.DEAD, reason="layout", error_class="drift", attempt=2)
    group = ErrorGroup.objects.create(
        fingerprint="f",
        source=ref.source,
        error_class="drift",
        error_code="layout",
        first_seen_at=now,
        last_seen_at=now,
    )
    error = make_error(
        match, now=at(89), task=task, group=group, retry_attempt=2, duration_ms=312, stage="CAPTURED",
        operation="scorecard", error_code="layout", match_key=ref.key, error_message="no score",
    )  # fmt: skip
    Evidence.objects.create(error=error, kind="page", path="p", size_bytes=1, created_at=now)
    TaskTransition.objects.create(
        task=task, from_state="EXECUTING", to_state="DEAD", at=at(90), actor="w-1", attempt=2, reason="layout"
    )
    TaskTransition.objects.create(task=task, from_state="DEAD", to_state="PENDING", at=at(20), actor="Ann", attempt=2)
    raise_alert(f"dead:{match.pk}", Severity.CRITICAL, "A task is dead", {"match_id": match.pk}, at(80))
    close_alert(f"dead:{match.pk}", at(5))
    audit.record(
        actor="breaker",
        action_type="breaker_open",
        trigger_condition="5 failures",
        target=f"{ref.key}_scraper",
        now=at(70),
    )
    step = audit.record(
        actor="scheduler", action_type="soft_restart", trigger_condition="silent", match_id=match.pk, now=at(60)
    )
    AuditEntry.objects.filter(pk=step.pk).update(outcome=AuditOutcome.SUCCESS, judged_at=at(50), duration_seconds=10)
    audit.record(actor="Ann", action_type="resume", trigger_condition="looked", match_id=match.pk, now=at(40))
    make_worker("w-2", now=at(10), started_at=at(30))
    for seconds in (4, 3, 2):
        ended = at(seconds)
        make_task(ref, state=TaskState.SUCCESS, started_at=ended - timedelta(milliseconds=200), finished_at=ended)

    found = page(admin_client, "match", match.pk)
    assert [entry.text for entry in found["entries"]] == [
        "3 reads succeeded, taking 200 ms",
        "Alert closed after 1 min 15 s: A task is dead",
        "scorecard: DEAD → PENDING by Ann",
        "Worker w-2 started",
        "resume by Ann",
        "scraper replaced: success after 10.0 s",
        "scraper replaced",
        f"breaker open: {ref.key}_scraper",
        "Alert opened: A task is dead",
        f"{ref.key}: attempt 2 of scorecard failed after 312 ms at CAPTURED: layout → DEAD",
    ]
    assert {text for text, _ in found["entries"][-1].links} == {"error", f"task {task.pk}", "page"}
    assert texts(admin_client, "match", match.pk, kind="operator") == ["resume by Ann"]
    assert "attempt 2 of scorecard failed after 312 ms at CAPTURED: layout → DEAD" in str(
        texts(admin_client, "source", ref.source.key)
    )
    assert "attempt 2 of scorecard" in str(texts(admin_client, "group", group.pk))


def test_the_window_bounds_the_time_and_other_matches_are_left_out(admin_client: Client, now: datetime) -> None:
    match, _, _ = make_watched()
    other, _, _ = make_watched()
    make_error(match, age=7200, error_code="old")
    make_error(other, age=60, error_code="foreign")
    assert texts(admin_client, "match", match.pk) == []
    (entry,) = texts(admin_client, "match", match.pk, window="6h")
    assert "old" in entry


def test_the_number_of_entries_is_bounded(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitoring.admin.incident_entries.MAX_OF_A_KIND", 3)
    match, _, _ = make_watched()
    for age in range(5):
        make_error(match, age=age + 1)
    found = page(admin_client, "match", match.pk)
    assert len(found["entries"]) == 3
    assert "Older entries are left out" in found["html"]


class TestAccess:
    def test_scraped_text_is_escaped(self, admin_client: Client) -> None:
        make_everything()
        for kind, name in (("match", 1), ("source", "crex"), ("group", ErrorGroup.objects.get().pk)):
            answer = admin_client.get(reverse("incident", args=[kind, name]), {"window": "24h"})
            assert EVIL not in answer.content.decode()

    @pytest.mark.parametrize("path", ["match/99999", "match/x", "source/none", "group/x", "planet/1"])
    def test_an_unknown_subject_is_not_found(self, admin_client: Client, path: str) -> None:
        assert admin_client.get(f"/admin/incident/{path}/").status_code == 404

    def test_needs_the_permissions_of_its_tables(self, client: Client) -> None:
        match, _, _ = make_watched()
        url = reverse("incident", args=["match", match.pk])
        assert client.get(url).status_code == 302
        client.force_login(User.objects.create_user("nobody", is_staff=True))
        assert client.get(url).status_code == 403


class TestActions:
    def test_are_those_of_the_page_of_the_subject(self, admin_client: Client) -> None:
        match, ref, _ = make_watched()
        actions = {"match": "scraping_match_read_now_one", "source": "scraping_source_pause_one"}
        for kind, row in (("match", match), ("source", ref.source)):
            found = page(admin_client, kind, match.pk if kind == "match" else ref.source.key)["html"]
            assert reverse(f"admin:{actions[kind]}", args=[row.pk]) in str(found)

    def test_are_not_offered_without_their_permission(self, client: Client) -> None:
        match, _, _ = make_watched()
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
        client.force_login(viewer)
        assert "read-now" not in str(page(client, "match", match.pk)["html"]).replace("_", "-")

    @pytest.mark.parametrize("key", ["blocked:crex", "challenge:crex", "robots:crex"])
    def test_the_alert_of_a_source_leads_to_them(self, admin_client: Client, key: str) -> None:
        make_watched()
        raise_alert(key, Severity.CRITICAL, "trouble", {"source": "crex"}, timezone.now())
        alert = Alert.objects.get()
        assert cause_url(alert) == reverse("incident", args=["source", "crex"])

    def test_the_alert_of_a_breaker_leads_to_the_breaker(self) -> None:
        alert = raise_of("breaker:crex_source")
        assert cause_url(alert) == reverse("admin:monitoring_alert_change", args=[alert.pk])
        breaker = Breaker.objects.create(name="crex_source", last_state_change=timezone.now())
        assert cause_url(alert) == reverse("admin:scraping_breaker_change", args=[breaker.pk])


def raise_of(key: str) -> Alert:
    raise_alert(key, Severity.CRITICAL, "trouble", {}, timezone.now())
    return Alert.objects.get(key=key)


class TestLinks:
    def test_every_page_of_the_trouble_links_here(self, admin_client: Client) -> None:
        match, ref, _ = make_watched()
        task = make_task(ref, state=TaskState.DEAD, reason="x")
        raise_alert(f"dead:{match.pk}", Severity.CRITICAL, "dead", {"match_id": match.pk}, timezone.now())
        here, source = (
            reverse("incident", args=["match", match.pk]),
            reverse("incident", args=["source", ref.source.key]),
        )
        for row, url in ((match, here), (task, here), (Alert.objects.get(), here), (ref.source, source)):
            table = f"{row._meta.app_label}_{row._meta.model_name}"
            assert url in admin_client.get(reverse(f"admin:{table}_change", args=[row.pk])).content.decode()

    @pytest.mark.parametrize(
        ("key", "detail", "path"),
        [
            ("blocked:crex", {"source": "crex"}, "/admin/incident/source/crex/"),
            ("breaker:crex_source", {"source": "CREX", "match_id": None}, "/admin/incident/source/crex/"),
            ("dead-discovery:crex", {"match_id": None}, "/admin/incident/source/crex/"),
            ("stale:17", {"match_id": 17}, "/admin/incident/match/17/"),
            ("queue", {}, ""),
        ],
    )
    def test_an_alert_has_the_path_of_its_subject(self, key: str, detail: dict[str, object], path: str) -> None:
        alert = Alert(key=key, detail=detail, summary="x", severity=Severity.WARNING, opened_at=timezone.now())
        assert incident_path(alert) == path
        message = document([alert], Channel.WEBHOOK.sent_column, base_url="https://here.example", now=timezone.now())
        entry = message["alerts"][0]
        assert entry.get("incident_url", "") == ("" if not path else f"https://here.example{path}")
