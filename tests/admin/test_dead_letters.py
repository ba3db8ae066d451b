"""A dead letter in the admin: cause, evidence and advice, always escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.models import ErrorGroup, Evidence, ScrapeError, ScrapeTask, TaskState, TaskTransition
from tests.admin.rows import EVIL
from tests.factories import make_source
from tests.monitoring.rows import make_error, make_task, make_watched

pytestmark = [pytest.mark.django_db, pytest.mark.both]
PAGE = f"https://crex.example/13KM\n200 text/html\n\n<html><body>{EVIL}<b>Something new</b></body></html>"
PICTURE = b"\xff\xd8\xff\xe0 a picture"


@pytest.fixture(autouse=True)
def media(settings: LazySettings, tmp_path: Path) -> Path:
    settings.STORAGE_DIR = tmp_path
    return tmp_path


def group_of(name: str = "no header", **fields: Any) -> ErrorGroup:
    now = timezone.now()
    values: dict[str, Any] = {"error_class": "drift", "error_code": "layout", "sample_message": name, "count": 3}
    return ErrorGroup.objects.create(
        fingerprint=name.ljust(64), source=make_source(), first_seen_at=now, last_seen_at=now, **values | fields
    )


def keep(media: Path, error: ScrapeError, kind: str, content: bytes, **fields: Any) -> Evidence:
    path = "errors/picture.png" if kind == "screenshot" else f"error_pages/{kind}.html"
    (media / path).parent.mkdir(parents=True, exist_ok=True)
    (media / path).write_bytes(content)
    return Evidence.objects.create(
        error=error, kind=kind, path=path, size_bytes=len(content), created_at=timezone.now(), **fields
    )


@pytest.fixture
def dead(media: Path) -> ScrapeTask:
    match, ref, _ = make_watched(title=f"India vs {EVIL}")
    task = make_task(
        ref,
        state=TaskState.DEAD,
        stage="CAPTURED",
        attempt=2,
        error_class="drift",
        reason="drift after 2 attempts: no match header found; tried .header",
        error={"message": "no match header found", "http_status": None},
    )
    for before, after in (("EXECUTING", "FAILED"), ("FAILED", "DEAD")):
        TaskTransition.objects.create(
            task=task, from_state=before, to_state=after, at=timezone.now(), attempt=2, actor="worker-7", reason="why"
        )
    error = make_error(
        match, task=task, group=group_of(), error_class="drift", error_type="parsing", error_code="layout"
    )
    keep(media, error, "page", PAGE.encode(), is_truncated=True)
    keep(media, error, "screenshot", PICTURE)
    return task


def page_of(client: Client, task: ScrapeTask) -> str:
    return client.get(reverse("admin:scraping_scrapetask_change", args=[task.pk])).content.decode()


@pytest.mark.requirement("ZT-6")
class TestDeadLetterPage:
    def test_shows_cause_and_advice(self, admin_client: Client, dead: ScrapeTask) -> None:
        page = page_of(admin_client, dead)
        assert "Reading India vs &lt;script&gt;" in page
        assert "was given up at" in page
        assert "after 2 attempts, at the stage CAPTURED: drift after 2 attempts" in page
        assert "correct them, deploy. Then press Retry" in page
        assert "no match header found" in page
        assert "worker-7" in page, "the history"
        assert "Retry" in page
        assert EVIL not in page

    def test_shows_the_evidence(self, admin_client: Client, dead: ScrapeTask) -> None:
        page = page_of(admin_client, dead)
        text, picture = Evidence.objects.order_by("pk")
        assert reverse("admin:scraping_evidence_file", args=[text.pk]) in page
        assert reverse("admin:scraping_evidence_download", args=[text.pk]) in page
        assert (
            f'<img class="console-picture" src="{reverse("admin:scraping_evidence_file", args=[picture.pk])}"' in page
        )
        assert "truncated" in page

    @pytest.mark.requirement("BX-9")
    def test_links_to_the_tasks_of_the_same_error_group(self, admin_client: Client, dead: ScrapeTask) -> None:
        page = page_of(admin_client, dead)
        group = ErrorGroup.objects.get()
        assert reverse("admin:scraping_errorgroup_change", args=[group.pk]) in page
        assert "seen 3 times" in page
        assert "open dead letters: 1" in page
        for address in re.findall(r'href="([^"]*group__id__exact=\d+[^"]*)"', page):
            listed = admin_client.get(address.replace("&amp;", "&"))
            assert listed.status_code == 200
            assert len(listed.context["cl"].result_list) == 1

    def test_a_later_one_shows_the_evidence_of_its_error_group(self, admin_client: Client, dead: ScrapeTask) -> None:
        """Evidence is kept once in ten minutes; the next dead letter of the match shows the same evidence."""
        assert dead.ref is not None
        later = make_task(dead.ref, state=TaskState.DEAD)
        make_error(dead.ref.match, task=later, group=ErrorGroup.objects.get())
        assert "console-picture" in page_of(admin_client, later)

    @pytest.mark.parametrize("state", [state for state in TaskState if state != TaskState.DEAD])
    def test_any_other_task_has_a_summary(self, admin_client: Client, state: TaskState) -> None:
        _, ref, _ = make_watched(title="Kenya vs Nepal")
        held = {"worker_id": "w", "lease_until": timezone.now(), "started_at": timezone.now()}
        task = make_task(ref, state=state, **(held if state == TaskState.EXECUTING else {}))
        assert "Reading Kenya vs Nepal at Crex" in page_of(admin_client, task)

    def test_a_task_without_a_match_has_a_summary(self, admin_client: Client) -> None:
        task = make_task(None, state=TaskState.DEAD, resource="discovery", error_class="drift")
        assert "Looking for matches at Crex was given up" in page_of(admin_client, task)


@pytest.mark.requirement("FS-21")
class TestFiles:
    @pytest.fixture
    def text(self, dead: ScrapeTask) -> Evidence:
        return Evidence.objects.get(kind="page")

    @pytest.fixture
    def picture(self, dead: ScrapeTask) -> Evidence:
        return Evidence.objects.get(kind="screenshot")

    def test_a_page_is_served_as_plain_text(self, admin_client: Client, text: Evidence) -> None:
        answer = admin_client.get(reverse("admin:scraping_evidence_file", args=[text.pk]))
        assert answer.content.decode() == PAGE
        assert answer["Content-Type"] == "text/plain; charset=utf-8"
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
        assert answer["Content-Disposition"].startswith("inline; ")
        assert "no-store" in answer["Cache-Control"]

    def test_downloads_as_a_file(self, admin_client: Client, text: Evidence) -> None:
        answer = admin_client.get(reverse("admin:scraping_evidence_download", args=[text.pk]))
        assert answer["Content-Disposition"] == 'attachment; filename="page.html.txt"'
        assert answer["Content-Type"] == "text/plain; charset=utf-8"

    def test_a_screenshot_is_served_as_an_image(self, admin_client: Client, picture: Evidence) -> None:
        answer = admin_client.get(reverse("admin:scraping_evidence_file", args=[picture.pk]))
        assert (answer["Content-Type"], answer.content) == ("image/png", PICTURE)
        assert answer["X-Content-Type-Options"] == "nosniff"

    def test_content_is_escaped_on_the_evidence_page(self, admin_client: Client, text: Evidence) -> None:
        for page in ("evidence", "scrapeerror"):
            key = text.pk if page == "evidence" else text.error_id
            shown = admin_client.get(reverse(f"admin:scraping_{page}_change", args=[key])).content.decode()
            assert "&lt;b&gt;Something new&lt;/b&gt;" in shown
            assert "<b>Something new" not in shown

    def test_a_large_file_is_truncated_on_the_page(self, admin_client: Client, text: Evidence, media: Path) -> None:
        (media / text.path).write_bytes(b"x" * 100_000 + b"the end")
        Evidence.objects.filter(pk=text.pk).update(size_bytes=100_007)
        shown = admin_client.get(reverse("admin:scraping_evidence_change", args=[text.pk])).content.decode()
        assert "The first 64 kB of 98 kB" in shown
        assert "the end" not in shown

    def test_a_missing_file_is_reported(self, admin_client: Client, text: Evidence, media: Path) -> None:
        (media / text.path).unlink()
        assert admin_client.get(reverse("admin:scraping_evidence_file", args=[text.pk])).status_code == 404
        shown = admin_client.get(reverse("admin:scraping_evidence_change", args=[text.pk])).content.decode()
        assert "The file was deleted" in shown

    def test_need_staff_with_permission(self, client: Client, text: Evidence) -> None:
        addresses = [reverse(f"admin:scraping_evidence_{name}", args=[text.pk]) for name in ("file", "download")]
        assert [client.get(address).status_code for address in addresses] == [302, 302]
        staff = User.objects.create_user("ann", password="long enough 1", is_staff=True)
        client.force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
        assert [client.get(address).status_code for address in addresses] == [403, 403]
        staff.user_permissions.add(Permission.objects.get(codename="view_evidence"))
        assert [client.get(address).status_code for address in addresses] == [200, 200]

    def test_are_not_served_from_the_media_url(self, admin_client: Client, text: Evidence) -> None:
        for address in (f"/media/{text.path}", f"/{text.path}", f"/static/{text.path}"):
            assert admin_client.get(address).status_code == 404


@pytest.mark.requirement("DM-5")
class TestResolving:
    def test_an_operator_marks_errors_as_resolved(self, admin_client: Client, dead: ScrapeTask) -> None:
        error = ScrapeError.objects.get()
        answer = admin_client.post(
            reverse("admin:scraping_scrapeerror_changelist"),
            {"action": "resolve_selected", "_selected_action": [error.pk]},
            follow=True,
        )
        assert "Resolved 1 error." in answer.content.decode()
        error.refresh_from_db()
        assert (error.resolved, error.resolution_method) == (True, "manual")
        assert AuditEntry.objects.get(action_type="errors_resolved").actor == "admin"

    def test_needs_the_permission_to_change_errors(self, client: Client, dead: ScrapeTask) -> None:
        staff = User.objects.create_user("ann", password="long enough 1", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="view_scrapeerror"))
        client.force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
        client.post(
            reverse("admin:scraping_scrapeerror_changelist"),
            {"action": "resolve_selected", "_selected_action": [ScrapeError.objects.get().pk]},
        )
        assert not ScrapeError.objects.get().resolved


def test_a_group_counts_its_open_dead_letters(admin_client: Client, dead: ScrapeTask) -> None:
    group = ErrorGroup.objects.get()
    url = reverse("admin:scraping_errorgroup_changelist")
    assert [row.open_dead_number for row in admin_client.get(url).context["cl"].result_list] == [1]
    group.errors.update(resolved=True)
    assert [row.open_dead_number for row in admin_client.get(url).context["cl"].result_list] == [0]
