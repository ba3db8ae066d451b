"""Groups of errors: trend, affected matches, resolve, resolve in the next release, assign, mute."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import Alert, AuditEntry
from scraping.errors import Transient
from scraping.journal import error_log
from scraping.models import ErrorGroup, Match, ScrapeTask, TaskState
from scraping.signals import task_died
from tests.admin.test_actions import act
from tests.monitoring.rows import make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("BX-9")]


def fail(match: Match, task: ScrapeTask | None = None) -> ErrorGroup:
    """Records an error of the match; all are of one group."""
    source = match.refs.get().source_id
    error = error_log.ErrorReport(
        *(source, Transient("no answer", url="https://crex.example/x"), "scorecard", 1, timezone.now()),
        match_id=match.pk,
        task_id=task.pk if task else None,
    )
    group = error_log.record(error).group
    assert group is not None
    return group


@pytest.fixture
def match() -> Match:
    return make_watched(title="Kenya vs Nepal")[0]


@pytest.fixture
def group(match: Match) -> ErrorGroup:
    return fail(match)


def page_of(client: Client, group: ErrorGroup) -> str:
    return client.get(reverse("admin:scraping_errorgroup_change", args=[group.pk])).content.decode()


def test_shows_trend_affected_matches_and_times(admin_client: Client, group: ErrorGroup, match: Match) -> None:
    fail(match)
    other = make_watched(title="Oman vs Fiji")[0]
    fail(other)
    group.errors.filter(match=other).update(timestamp=timezone.now() - timedelta(days=2))
    page = page_of(admin_client, group)
    assert "2 in the last day" in page
    assert f'{reverse("admin:scraping_match_change", args=[match.pk])}">Kenya vs Nepal</a> (2)' in page
    assert "Oman vs Fiji</a> (1)" in page


class TestResolve:
    def test_the_next_error_reopens_the_group(self, admin_client: Client, group: ErrorGroup, match: Match) -> None:
        act(admin_client, "scraping_errorgroup", "resolve_selected", group)
        group.refresh_from_db()
        assert group.resolved_at is not None
        assert not group.errors.filter(resolved=False).exists()
        fail(match)
        group.refresh_from_db()
        assert group.resolved_at is None
        actions = AuditEntry.objects.order_by("pk").values_list("action_type", "actor")
        assert list(actions) == [("group_resolved", "admin"), ("group_reopened", "worker")]

    @pytest.mark.parametrize(("version", "is_open"), [("0.9.1", False), ("0.9.2", False), ("0.10.0", True)])
    def test_in_the_next_release(
        self, group: ErrorGroup, match: Match, settings: LazySettings, version: str, is_open: bool
    ) -> None:
        error_log.resolve_group(group.pk, in_version="0.9.2", actor="ann", now=timezone.now())
        settings.VERSION = version
        fail(match)
        group.refresh_from_db()
        assert (group.resolved_at is None) is is_open
        assert group.count == 2


def test_is_assigned_to_a_member_of_staff_only(admin_client: Client, group: ErrorGroup) -> None:
    User.objects.create_user("bob", is_staff=True)
    User.objects.create_user("eve")
    url = reverse("admin:scraping_errorgroup_assign_one", args=[group.pk])
    for name, expected in (("eve", None), ("bob", "bob"), ("eve", "bob"), ("", None)):
        admin_client.post(url, {"_form_submitted": "on", "user": name})
        group.refresh_from_db()
        assert (group.assigned_to.username if group.assigned_to else None) == expected
    assert list(AuditEntry.objects.order_by("pk").values_list("trigger_condition", flat=True)) == [
        "to bob",
        "to nobody",
    ]


@pytest.mark.parametrize("is_muted", [True, False])
def test_a_dead_task_of_a_muted_group_raises_a_muted_alert(admin_client: Client, match: Match, is_muted: bool) -> None:
    task = make_task(match.refs.get(), state=TaskState.DEAD)
    group = fail(match, task)
    if is_muted:
        page = act(admin_client, "scraping_errorgroup", "mute_selected", group, minutes=60, reason="known")
        assert "1 applied, 0 refused" in page
    task_died.send_robust(sender=ScrapeTask, task_id=task.pk, match_id=match.pk, reason="no answer")
    assert (Alert.objects.get().muted_until is not None) is is_muted
