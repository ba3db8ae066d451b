"""Actions on all rows that match a filter: preview, batches, abort, a process that dies, undo."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.jobs import operations
from scraping.models import BulkOperation, Match, MatchLifecycle, OperationState, ScrapeTask, TaskState, TaskTransition
from scraping.scheduler.loop import load_steps
from tests.monitoring.rows import make_task, make_watched
from victoryline.lib.operators import OperationRefused

pytestmark = [pytest.mark.django_db, pytest.mark.both]
SUBMITTED = {"_form_submitted": "on"}


def start_page(table: str, action: str, query: str) -> str:
    return f"{reverse('admin:scraping_bulkoperation_start', args=[table, action])}?{query}"


def dead_tasks(number: int) -> list[int]:
    """Adds dead tasks, each of its own source and job-free list, so that all of them can be retried."""
    ref = make_watched()[1]
    return [make_task(ref, state=TaskState.DEAD, resource=f"scorecard{place}").pk for place in range(number)]


def begin(ids: list[int], action: str = "retry", **values: Any) -> BulkOperation:
    return operations.begin(
        "scraping.scrapetask", action, ids, filter_text="state: DEAD", values=values, actor="ann", now=timezone.now()
    )


def retried() -> list[int]:
    """Returns the tasks in the order of their retries; one that was retried twice is in it twice."""
    return list(TaskTransition.objects.filter(to_state="PENDING").order_by("pk").values_list("task_id", flat=True))


@pytest.mark.requirement("BX-10")
class TestBatches:
    def test_a_process_that_dies_in_a_batch_leaves_no_row_twice_and_none_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = dead_tasks(operations.ROWS_IN_A_BATCH * 2 + 3)
        operation = begin(ids)
        operations.work(operation.pk, seconds=0)

        def die(_: str) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as dying:
            dying.setattr(operations, "crash_point", die)
            with pytest.raises(KeyboardInterrupt):
                operations.work(operation.pk, seconds=0)
        assert len(retried()) == operations.ROWS_IN_A_BATCH, "the batch was undone as a whole"
        (step,) = load_steps([("scraping.jobs.operations.work_off", 0.0)])  # as a new scheduler does
        while step.run(timezone.now()):
            pass
        operation.refresh_from_db()
        assert (operation.state, operation.position, operation.applied) == (OperationState.DONE, len(ids), len(ids))
        assert sorted(retried()) == ids

    def test_an_abort_stops_before_the_next_batch(self) -> None:
        operation = begin(dead_tasks(operations.ROWS_IN_A_BATCH + 1))
        operations.work(operation.pk, seconds=0)
        operations.abort(operation.pk, actor="bob", now=timezone.now())
        assert operations.work_off(timezone.now()) == 0
        operation.refresh_from_db()
        assert (operation.state, operation.applied, operation.error) == ("ABORTED", 25, "aborted by bob")
        assert list(AuditEntry.objects.filter(action_type="bulk_aborted").values_list("actor", flat=True)) == ["bob"]
        with pytest.raises(OperationRefused, match="it is ABORTED"):
            operations.abort(operation.pk, actor="bob", now=timezone.now())

    def test_gives_the_first_reasons_of_refused_rows(self) -> None:
        done = make_task(make_watched()[1], state=TaskState.SUCCESS)
        operation = begin([*dead_tasks(2), done.pk])
        operations.work_off(timezone.now())
        operation.refresh_from_db()
        assert (operation.applied, operation.refused) == (2, 1)
        assert operation.refusals == [f"task {done.pk}: it is SUCCESS; only FAILED and DEAD tasks can be retried"]

    def test_an_error_of_the_action_ends_it_as_failed(self) -> None:
        match = make_watched()[0]
        operation = operations.begin(
            "scraping.match", "pause", [match.pk], filter_text="", values={}, actor="ann", now=timezone.now()
        )
        assert operations.work_off(timezone.now()) == 0
        operation.refresh_from_db()
        assert (operation.state, operation.position, operation.error) == ("FAILED", 0, "KeyError: 'minutes'")
        assert operations.work_off(timezone.now()) == 0, "it is not tried for ever"

    def test_too_many_rows_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(operations, "MOST_ROWS", 2)
        with pytest.raises(OperationRefused, match="narrow the filter"):
            begin([1, 2, 3])


@pytest.mark.requirement("BX-10", "BX-11")
class TestPages:
    def test_the_list_offers_its_actions_with_the_present_filter(self, admin_client: Client) -> None:
        page = admin_client.get(reverse("admin:scraping_scrapetask_changelist"), {"state__exact": "DEAD"})
        assert start_page("scraping.scrapetask", "retry", "state__exact=DEAD") in page.content.decode()

    def test_previews_and_applies_to_the_rows_of_the_filter_only(self, admin_client: Client) -> None:
        ids, other = dead_tasks(3), make_task(make_watched()[1], state=TaskState.FAILED)
        url = start_page("scraping.scrapetask", "retry", "state__exact=DEAD&o=1")
        preview = admin_client.get(url).content.decode()
        assert "Retry: 3 tasks" in preview
        assert "Selected by state: DEAD." in preview
        assert ScrapeTask.objects.filter(state=TaskState.DEAD).count() == 3
        page = admin_client.post(url, SUBMITTED | {"reason": "the site is back"}, follow=True).content.decode()
        assert "3 of 3 rows" in page
        assert set(ScrapeTask.objects.filter(pk__in=ids).values_list("state", flat=True)) == {"PENDING"}
        other.refresh_from_db()
        assert other.state == TaskState.FAILED
        entry = AuditEntry.objects.get(action_type="bulk_started")
        assert (entry.actor, entry.trigger_condition) == ("admin", "the site is back")

    def test_the_page_of_an_operation_renews_itself_until_its_end(self, admin_client: Client) -> None:
        operation = begin(dead_tasks(2))
        page = reverse("admin:scraping_bulkoperation_change", args=[operation.pk])
        is_live = 'id="operation-live" class="console-section flex flex-col gap-4 mb-8" data-live="2"'
        assert is_live in admin_client.get(page).content.decode()
        operations.work(operation.pk, seconds=60)
        ended = admin_client.get(page).content.decode()
        assert 'id="operation-live"' in ended
        assert is_live not in ended

    def test_a_sensitive_action_needs_a_reason_and_pausing_can_be_undone(self, admin_client: Client) -> None:
        before, match = (make_watched(title=title)[0] for title in ("Kenya vs Nepal", "India vs Oman"))
        Match.objects.filter(pk=before.pk).update(lifecycle=MatchLifecycle.PAUSED, pause_until=timezone.now())
        url = start_page("scraping.match", "pause", "")
        assert "This field is required" in admin_client.post(url, SUBMITTED | {"minutes": 5}).content.decode()
        page = admin_client.post(url, SUBMITTED | {"minutes": 5, "reason": "rain"}, follow=True).content.decode()
        assert "1 applied, 1 refused" in page
        operation = BulkOperation.objects.get()
        undo = start_page("scraping.match", "resume", f"of={operation.pk}")
        assert undo in page
        admin_client.post(undo, SUBMITTED)
        states = dict(Match.objects.values_list("pk", "lifecycle"))
        assert states == {before.pk: "PAUSED", match.pk: "ACTIVE"}, "what was paused before stays so"

    @pytest.mark.parametrize(
        ("table", "action"),
        [("scraping.nothing", "retry"), ("scraping.lease", "x"), ("scraping.match", "x"), ("x", "x")],
    )
    def test_unknown_names_are_not_found(self, admin_client: Client, table: str, action: str) -> None:
        assert admin_client.get(start_page(table, action, "")).status_code == 404

    def test_needs_the_permission_of_the_table(self, client: Client) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_scrapetask"))
        client.force_login(viewer)
        dead_tasks(1)
        url = start_page("scraping.scrapetask", "retry", "state__exact=DEAD")
        assert [client.get(url).status_code, client.post(url, SUBMITTED).status_code] == [403, 403]
        assert not BulkOperation.objects.exists()
        page = client.get(reverse("admin:scraping_scrapetask_changelist")).content.decode()
        assert "All that match" not in page
