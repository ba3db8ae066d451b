"""Operator actions in the admin: retry, pause, resume, disable a source. Each is written to the audit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models import Q
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.models import Match, MatchLifecycle, ScrapeTask, Source, TaskState
from tests.factories import make_source
from tests.monitoring.rows import make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]


def act(client: Client, table: str, action: str, *rows: Any, **values: Any) -> str:
    """Runs an action on rows of a list; returns the messages of the page. Its audit entries are complete.

    `values`: the fields of the page that previews an action with a form.
    """
    url = reverse(f"admin:{table}_changelist")
    page = client.post(url, {"action": action, "_selected_action": [row.pk for row in rows]}, follow=True)
    if values:
        page = client.post(page.redirect_chain[-1][0], {"_form_submitted": "on", **values}, follow=True)
    nameless = list(
        AuditEntry.objects.filter(Q(actor="") | Q(trigger_condition="")).values_list("action_type", flat=True)
    )
    assert not nameless, "the signal of the action carries no actor or no reason, or AUDITED no default for it"
    return page.content.decode()


@pytest.mark.requirement("BX-11")
class TestRetry:
    def test_reopens_failed_and_dead_tasks_and_gives_reasons_for_the_others(self, admin_client: Client) -> None:
        refs = [make_watched()[1] for _ in range(3)]
        dead = make_task(refs[0], state=TaskState.DEAD)
        failed = make_task(refs[1], state=TaskState.FAILED)
        done = make_task(refs[2], state=TaskState.SUCCESS)
        page = act(admin_client, "scraping_scrapetask", "retry_selected", dead, failed, done)
        states = dict(ScrapeTask.objects.values_list("pk", "state"))
        assert (states[dead.pk], states[failed.pk], states[done.pk]) == ("PENDING", "PENDING", "SUCCESS")
        assert "Retried 2 tasks." in page
        assert f"1 refused: task {done.pk}: it is SUCCESS" in page
        assert set(AuditEntry.objects.values_list("actor", "action_type")) == {("admin", "retry")}

    def test_needs_confirmation_on_the_page_of_the_task(self, admin_client: Client) -> None:
        task = make_task(make_watched()[1], state=TaskState.DEAD)
        url = reverse("admin:scraping_scrapetask_retry_one", args=[task.pk])
        assert "The task is due at once" in admin_client.get(url, headers={"HX-Request": "true"}).content.decode()
        task.refresh_from_db()
        assert task.state == TaskState.DEAD
        answer = admin_client.post(url, {"_form_submitted": "on"})
        task.refresh_from_db()
        assert (answer.status_code, task.state) == (302, TaskState.PENDING)

    def test_needs_the_permission_to_change_tasks(self, client: Client) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_scrapetask"))
        client.force_login(viewer)
        task = make_task(make_watched()[1], state=TaskState.DEAD)
        act(client, "scraping_scrapetask", "retry_selected", task)
        answer = client.post(reverse("admin:scraping_scrapetask_retry_one", args=[task.pk]), {"_form_submitted": "on"})
        task.refresh_from_db()
        assert (answer.status_code, task.state) == (403, TaskState.DEAD)


@pytest.mark.requirement("BX-11")
class TestPause:
    def test_pauses_and_resumes_a_match(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        page = act(admin_client, "scraping_match", "pause_selected", match, minutes=30, reason="rain")
        assert "1 applied, 0 refused" in page
        match.refresh_from_db()
        assert match.lifecycle == MatchLifecycle.PAUSED
        assert match.pause_until is not None
        assert match.pause_until > timezone.now() + timedelta(minutes=29)
        assert "Resumed 1 match." in act(admin_client, "scraping_match", "resume_selected", match)
        match.refresh_from_db()
        assert match.lifecycle == MatchLifecycle.ACTIVE
        assert list(AuditEntry.objects.order_by("pk").values_list("actor", "action_type")) == [
            ("admin", "bulk_started"),
            ("admin", "pause"),
            ("admin", "bulk_done"),
            ("admin", "resume"),
        ]

    def test_gives_the_reason_of_a_refusal(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        assert "is not paused but ACTIVE" in act(admin_client, "scraping_match", "resume_selected", match)

    def test_needs_duration_and_reason_on_the_page_of_the_match(self, admin_client: Client) -> None:
        match, _, _ = make_watched()
        url = reverse("admin:scraping_match_pause_one", args=[match.pk])
        assert admin_client.post(url, {"_form_submitted": "on", "minutes": 0, "reason": "x"}).status_code == 200
        assert Match.objects.get().lifecycle == MatchLifecycle.ACTIVE
        admin_client.post(url, {"_form_submitted": "on", "minutes": 5, "reason": "rain"})
        assert Match.objects.get().pause_reason == "rain (by admin)"


def test_disables_a_source(admin_client: Client) -> None:
    source = make_source()
    url = reverse("admin:scraping_source_change", args=[source.pk])
    fields = {
        "name": source.name,
        "max_concurrency": 10,
        "min_interval_seconds": 1,
        "burst_allowance": 5,
        "robots_policy": "obey",
        "precedence_weight": 50,
        "read_way": "auto",
        "selectors": "{}",
        "daily_megabytes": 0,
    }
    assert admin_client.post(url, fields).status_code == 302
    saved = Source.objects.get()
    assert (saved.is_enabled, saved.max_concurrency, saved.key) == (False, 10, "crex")


@pytest.mark.requirement("BX-11")
class TestWatch:
    def test_is_stopped_and_started_again_with_audit_entries(self, admin_client: Client) -> None:
        match, ref = make_watched()[:2]
        page = act(admin_client, "scraping_match", "end_watch_selected", match, reason="a friendly")
        assert "1 applied, 0 refused" in page
        ref.refresh_from_db()
        assert not ref.is_watched
        page = act(admin_client, "scraping_match", "end_watch_selected", match, reason="a friendly")
        assert "0 applied, 1 refused" in page
        assert "not watched" in page
        assert "Watching 1 match." in act(admin_client, "scraping_match", "watch_selected", match)
        ref.refresh_from_db()
        assert ref.is_watched
        done = AuditEntry.objects.exclude(action_type__startswith="bulk").order_by("pk")
        assert list(done.values_list("actor", "action_type", "trigger_condition")) == [
            ("admin", "watch_end", "a friendly"),
            ("admin", "watch", "requested"),
        ]


def _actions() -> list[Any]:
    from django.contrib import admin

    from victoryline.lib.operator_actions import OperatorActionsMixin

    tables = [one for one in admin.site._registry.values() if isinstance(one, OperatorActionsMixin)]
    return [pytest.param(table, one, id=one.name) for table in tables for one in table.operator_actions]


@pytest.mark.parametrize(("table", "action"), _actions())
def test_every_action_has_a_description_and_a_permission(table: Any, action: Any) -> None:
    assert action.label
    assert action.applied
    assert action.explanation.endswith(".")
    app, _, codename = table.operate_permission.partition(".")
    assert Permission.objects.filter(content_type__app_label=app, codename=codename).exists()
