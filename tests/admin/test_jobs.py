"""Jobs in the admin: start, view, retry. The functions are those of the API, with the operator's name."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from monitoring.models import AuditEntry
from scraping import jobs
from scraping.errors import LayoutChanged, Transient
from scraping.models import ErrorGroup, ScrapeJob, ScrapeTask, TaskState
from scraping.scheduler.upkeep import close_finished_jobs
from tests.admin.rows import EVIL
from tests.factories import make_source
from tests.scraping.rounds import ASKED, IDS, RoundReader, engine_of, make_due, round_of, row, run_due, start, url_of

pytestmark = [pytest.mark.django_db, pytest.mark.both]

SUBMITTED = {"_form_submitted": "on"}
CHANGED = LayoutChanged("the page has changed")


def address(name: str, *args: Any) -> str:
    return reverse(f"admin:scraping_{name}", args=args)


def page_of(client: Client, job: ScrapeJob) -> str:
    return client.get(address("scrapejob_change", job.pk)).content.decode()


def ended_job(outcomes: Any = None) -> ScrapeJob:
    """A round after all its attempts."""
    job, engine = start(), engine_of(RoundReader(outcomes=outcomes))
    for _ in range(4):
        run_due(engine)
        make_due()
    close_finished_jobs(timezone.now())
    job.refresh_from_db()
    return job


@pytest.mark.requirement("ZT-7")
class TestStart:
    def test_of_a_round_uses_a_form_and_redirects_to_the_job(self, admin_client: Client) -> None:
        make_source("sofascore")
        make_source("crex")
        dialog = admin_client.get(address("scrapejob_start_round"), headers={"HX-Request": "true"}).content.decode()
        for name in ("source", "tournament", "season", "round", "matches"):
            assert f'name="{name}"' in dialog
        assert "Crex" not in dialog, "it has no rounds"
        fields = {**SUBMITTED, "source": "sofascore", **ASKED, "matches": 10}
        answer = admin_client.post(address("scrapejob_start_round"), fields)
        job = ScrapeJob.objects.get()
        assert (answer.status_code, answer["Location"]) == (302, address("scrapejob_change", job.pk))
        assert (job.requested_by, job.parameters) == ("admin", {"round": ASKED, "matches": 10})
        assert "Its matches are being looked up" in page_of(admin_client, job)

    def test_of_an_open_round_redirects_to_its_existing_job(self, admin_client: Client) -> None:
        job = start()
        fields = {**SUBMITTED, "source": "sofascore", **ASKED}
        answer = admin_client.post(address("scrapejob_start_round"), fields, follow=True)
        assert "nothing new was started" in answer.content.decode()
        assert list(ScrapeJob.objects.all()) == [job]

    def test_invalid_addresses_are_named_at_their_field(self, admin_client: Client) -> None:
        make_source("sofascore")
        fields = {**SUBMITTED, "urls": f"{url_of(IDS[0])}\nhttps://evil.example/{EVIL}\n"}
        dialog = admin_client.post(address("scrapejob_start_urls"), fields)
        assert dialog.status_code == 200
        assert "it is at none of our sources" in dialog.content.decode()
        assert EVIL not in dialog.content.decode()
        assert not ScrapeJob.objects.exists()
        admin_client.post(address("scrapejob_start_urls"), {**SUBMITTED, "urls": url_of(IDS[0])})
        assert ScrapeJob.objects.get().items.count() == 1

    def test_gives_the_reason_of_a_refusal(self, admin_client: Client) -> None:
        make_source("sofascore", is_enabled=False)
        fields = {**SUBMITTED, "source": "sofascore", **ASKED}
        said = admin_client.post(address("scrapejob_start_round"), fields).content.decode()
        assert "Sofascore is switched off" in said

    @pytest.mark.parametrize("dialog", ["start_round", "start_urls"])
    def test_needs_the_permission(self, client: Client, dialog: str) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_scrapejob"))
        client.force_login(viewer)
        assert client.post(address(f"scrapejob_{dialog}"), SUBMITTED).status_code == 403
        assert "Start a round" not in client.get(address("scrapejob_changelist")).content.decode()


class TestPage:
    def test_shows_progress_and_missing_matches_first(self, admin_client: Client) -> None:
        job = ended_job({IDS[5]: CHANGED, IDS[6]: Transient(EVIL)})
        page = page_of(admin_client, job)
        assert "8 of 10 matches are there" in page
        assert "8 done, 1 failed, 1 dead" in page
        assert 'value="80.0"' in page
        assert "next attempt at" in page
        assert EVIL not in page
        assert page.index(f"sofascore_{IDS[5]}") < page.index(f"sofascore_{IDS[0]}")
        assert 'data-live="2"' in page

    def test_shows_why_a_round_could_not_be_discovered(self, admin_client: Client) -> None:
        job, engine = start(), engine_of(RoundReader(round_of(row(IDS[0], season={"id": 1}))))
        for _ in range(2):
            run_due(engine)
            make_due()
        close_finished_jobs(timezone.now())
        page = page_of(admin_client, job)
        assert "could not be looked up" in page
        assert "received a match of season 1" in page
        assert 'data-live="2"' not in page

    def test_list_counts_many_jobs_with_few_queries(
        self, admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        make_source("sofascore")
        for number in range(15):
            jobs.start_urls(urls=[url_of(str(15_000_100 + number))], requested_by="Ann", now=timezone.now())
        with django_assert_max_num_queries(12):
            page = admin_client.get(address("scrapejob_changelist")).content.decode()
        assert "0 of 1" in page


@pytest.mark.requirement("BX-9", "BX-11")
class TestRetry:
    def test_of_a_job_reopens_its_failed_tasks(self, admin_client: Client) -> None:
        job = ended_job({IDS[0]: CHANGED})
        url = address("scrapejob_retry_one", job.pk)
        assert "Retry what failed" in admin_client.get(url, headers={"HX-Request": "true"}).content.decode()
        assert "Retried 1 task." in admin_client.post(url, SUBMITTED, follow=True).content.decode()
        job.refresh_from_db()
        assert job.finished_at is None
        assert AuditEntry.objects.filter(actor="admin", action_type="retry").count() == 1
        assert "Retried 0 tasks." in admin_client.post(url, SUBMITTED, follow=True).content.decode()

    def test_of_an_error_group_reopens_all_its_tasks(self, admin_client: Client) -> None:
        ended_job({IDS[0]: CHANGED, IDS[1]: CHANGED, IDS[2]: RuntimeError("a bug")})
        group = ErrorGroup.objects.get(error_code="layout")
        url = address("errorgroup_retry_one", group.pk)
        assert "Retried 2 tasks." in admin_client.post(url, SUBMITTED, follow=True).content.decode()
        assert ScrapeTask.objects.filter(state=TaskState.DEAD).count() == 1

    def test_of_selected_groups(self, admin_client: Client) -> None:
        ended_job({IDS[0]: CHANGED, IDS[2]: RuntimeError("a bug")})
        chosen = {"action": "retry_selected", "_selected_action": [group.pk for group in ErrorGroup.objects.all()]}
        admin_client.post(address("errorgroup_changelist"), chosen)
        assert not ScrapeTask.objects.filter(state=TaskState.DEAD).exists()

    def test_needs_the_permission_to_change_tasks(self, client: Client) -> None:
        job = ended_job({IDS[0]: CHANGED})
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
        client.force_login(viewer)
        group = ErrorGroup.objects.get()
        for url in (address("scrapejob_retry_one", job.pk), address("errorgroup_retry_one", group.pk)):
            assert client.post(url, SUBMITTED).status_code == 403
        assert ScrapeTask.objects.filter(state=TaskState.DEAD).count() == 1
