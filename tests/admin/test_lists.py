"""Lists of the console: searched by what stands in logs, no count of the table, times and sizes that can be read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from scraping.admin import search
from scraping.models import ErrorGroup, Match, ScrapeError, ScrapeTask, TaskState
from tests.admin.rows import make_everything
from tests.factories import make_source
from tests.monitoring.rows import make_error, make_task, make_watched, make_worker
from victoryline.lib.shown import exact

pytestmark = pytest.mark.django_db
FINGERPRINT = "0123456789abcdef" * 4


@pytest.fixture
def task() -> ScrapeTask:
    """A dead task with an error, among others."""
    make_task(make_watched(title="Another v Match")[1], state=TaskState.SUCCESS)
    match, ref, _ = make_watched(title="Sri Lanka v Kenya")
    Match.objects.filter(pk=match.pk).update(team_a="Sri Lanka", team_b="Kenya")
    now = timezone.now()
    group = ErrorGroup.objects.create(
        fingerprint=FINGERPRINT, source=ref.source, error_class="drift", error_code="layout", first_seen_at=now,
        sample_message="the score board has moved", last_seen_at=now,
    )  # fmt: skip
    task = make_task(ref, state=TaskState.DEAD, reason="the score board has moved")
    make_error(match, task=task, group=group, error_message=group.sample_message)
    return task


class TestSearch:
    @pytest.mark.parametrize(
        "term",
        [
            *("{pk}", "{request}", "{key}", "{lower}", "{url}", "{url}/", "kenya sri", "score board", "LAYOUT"),
            FINGERPRINT[:12],
        ],
    )
    def test_finds_a_task(self, admin_client: Client, task: ScrapeTask, term: str) -> None:
        assert task.ref is not None
        given = term.format(
            pk=task.pk, request=task.request_id, key=task.ref.key, lower=task.ref.key.lower(), url=task.ref.url
        )
        page = admin_client.get(reverse("admin:scraping_scrapetask_changelist"), {"q": given})
        assert [row.pk for row in page.context["cl"].result_list] == [task.pk]

    @pytest.mark.parametrize("term", ["{key}", "score board", "layout", FINGERPRINT])
    def test_finds_an_error(self, admin_client: Client, task: ScrapeTask, term: str) -> None:
        assert task.ref is not None
        make_error(make_watched()[0])
        page = admin_client.get(reverse("admin:scraping_scrapeerror_changelist"), {"q": term.format(key=task.ref.key)})
        assert [row.task_id for row in page.context["cl"].result_list] == [task.pk]

    @pytest.mark.parametrize("term", ["nothing like it", "99999999999999999999999", "%", "crex_", "://"])
    def test_a_search_without_a_result_lists_nothing(self, admin_client: Client, task: ScrapeTask, term: str) -> None:
        for table in ("scrapetask", "scrapeerror"):
            page = admin_client.get(reverse(f"admin:scraping_{table}_changelist"), {"q": term})
            assert not page.context["cl"].result_list

    @pytest.mark.parametrize("term", ["crex_V4KX", "the text of an error", "123456"])
    def test_reads_the_large_tables_through_indexes(self, task: ScrapeTask, term: str) -> None:
        """The plan of each statement scans no table that grows by the million."""
        with CaptureQueriesContext(
            connection,
        ) as caught:
            list(ScrapeTask.objects.filter(search.tasks_by(term)).order_by("-pk")[:50])
            list(ScrapeError.objects.filter(search.errors_by(term)).order_by("-timestamp")[:50])
        if connection.vendor != "sqlite":
            pytest.skip("an empty table is scanned by PostgreSQL")
        for query in caught.captured_queries:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                plan = [row[3] for row in cursor.fetchall()]
            scans = [step for step in plan if step.startswith(("SCAN scrape_tasks", "SCAN scraper_errors"))]
            assert not [step for step in scans if "INDEX" not in step], (query["sql"], plan)


@pytest.mark.parametrize(
    "query", ["", "?state__exact=SUCCESS", "?state__exact=DEAD", "?resource__exact=lineups", "?error_class__exact=auth"]
)
def test_no_list_of_tasks_sorts_or_counts_the_table(admin_client: Client, query: str) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("its planner decides by statistics")
    with CaptureQueriesContext(connection) as caught:
        page = admin_client.get(reverse("admin:scraping_scrapetask_changelist") + query).content.decode()
    assert "9999999999" not in page
    of_tasks = [one["sql"] for one in caught.captured_queries if 'FROM "scrape_tasks"' in one["sql"]]
    assert not [sql for sql in of_tasks if "COUNT(" in sql]
    for sql in of_tasks:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            plan = " ".join(row[3] for row in cursor.fetchall())
        assert "TEMP B-TREE" not in plan or query == "?state__exact=DEAD", plan  # few rows are dead


class TestReadable:
    def test_times_are_relative_with_the_exact_one_on_hover(self, admin_client: Client) -> None:
        now = timezone.now()
        make_task(make_watched()[1], state=TaskState.SUCCESS, run_at=now - timedelta(hours=3))
        page = admin_client.get(reverse("admin:scraping_scrapetask_changelist")).content.decode()
        assert f'title="{exact(now - timedelta(hours=3))} UTC">3 h ago</time>' in page

    def test_the_page_of_a_worker_has_no_raw_bytes(self, admin_client: Client) -> None:
        worker = make_worker(memory_bytes=512 * 1024 * 1024)
        page = admin_client.get(reverse("admin:scraping_worker_change", args=[worker.pk])).content.decode()
        assert "512.0\xa0MB" in page
        assert str(512 * 1024 * 1024) not in page

    def test_an_action_on_all_rows_is_not_offered_with_a_made_up_number(self, admin_client: Client) -> None:
        make_everything()
        for table in ("scrapetask", "scrapeerror", "match"):
            assert "999999" not in admin_client.get(reverse(f"admin:scraping_{table}_changelist")).content.decode()


def test_a_search_of_the_audit_reads_the_newest_rows(admin_client: Client) -> None:
    make_source()
    page = admin_client.get(reverse("admin:monitoring_auditentry_changelist"), {"q": "x"})
    assert "Searches the newest 50,000 rows." in page.content.decode()
