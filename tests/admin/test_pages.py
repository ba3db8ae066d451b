"""Every table of the admin can be listed, searched and opened; history is read-only; scraped text is escaped."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import resolve, reverse
from django.utils import timezone
from django.utils.text import capfirst
from pytest_django import DjangoAssertNumQueries

from monitoring.alerts.registry import raise_alert
from monitoring.models import Severity
from scraping.models import ScrapeTask, TaskState
from tests.admin.rows import EVIL, make_everything
from tests.monitoring.rows import make_error, make_task, make_watched

pytestmark = pytest.mark.django_db
# Shown on the page of the row that they belong to; a lease is of no use to operators.
NO_TABLE = {
    *(
        "jobitem",
        "lease",
        "lineupplayer",
        "operationids",
        "outcomebucket",
        "sourceoverride",
        "sourcerate",
        "tasktransition",
    ),
}
OURS = [
    model
    for app in ("scraping", "monitoring", "apiauth")
    for model in apps.get_app_config(app).get_models()
    if model._meta.model_name not in NO_TABLE
]
EDITABLE = {"source", "consumer", "teamalias"}


def name(model: type[Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


@pytest.fixture
def console(admin_client: Client) -> Client:
    make_everything()
    return admin_client


@pytest.mark.parametrize("model", OURS, ids=name)
class TestEveryTable:
    def test_lists_its_rows_and_can_be_searched(self, console: Client, model: type[Model]) -> None:
        url = reverse(f"admin:{name(model)}_changelist")
        page = console.get(url)
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()
        assert admin.site.get_model_admin(model).search_fields
        assert console.get(url, {"q": "alert 1"}).status_code == 200

    def test_shows_a_row(self, console: Client, model: type[Model]) -> None:
        row = model._default_manager.first()
        assert row is not None
        page = console.get(reverse(f"admin:{name(model)}_change", args=[row.pk]))
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()

    def test_history_is_read_only(self, console: Client, model: type[Model]) -> None:
        if model._meta.model_name in EDITABLE:
            pytest.skip("operators edit this one")
        row = model._default_manager.first()
        assert row is not None
        change = reverse(f"admin:{name(model)}_change", args=[row.pk])
        assert console.post(change, {}).status_code == 403
        assert console.get(reverse(f"admin:{name(model)}_add")).status_code == 403
        assert console.post(reverse(f"admin:{name(model)}_delete", args=[row.pk]), {"post": "yes"}).status_code == 403
        assert model._default_manager.filter(pk=row.pk).exists()


def test_only_these_have_no_table() -> None:
    models = [model for app in ("scraping", "monitoring", "apiauth") for model in apps.get_app_config(app).get_models()]
    assert {model._meta.model_name for model in models if model not in admin.site._registry} == NO_TABLE


def test_the_sidebar_and_the_pages_have_the_same_names() -> None:
    items = [item for group in settings.UNFOLD["SIDEBAR"]["navigation"] for item in group["items"]]
    for item in items:
        place = resolve(str(item["link"])).url_name or ""
        if place.endswith("_changelist"):
            model = apps.get_model(*place.removesuffix("_changelist").split("_", 1))
            assert capfirst(model._meta.verbose_name_plural) == item["title"]


def test_escapes_scraped_text(console: Client) -> None:
    task = ScrapeTask.objects.get()
    page = console.get(reverse("admin:scraping_scrapetask_change", args=[task.pk])).content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert EVIL not in page


def test_never_shows_the_hash_of_a_key(console: Client) -> None:
    key = apps.get_model("apiauth", "ApiKey").objects.get()
    assert "s3cr3t" not in console.get(reverse("admin:apiauth_apikey_change", args=[key.pk])).content.decode()


class TestFirstPage:
    def test_shows_the_health_and_links_to_problems(self, console: Client) -> None:
        page = console.get(reverse("admin:index")).content.decode()
        assert "DEGRADED" in page
        assert "state__exact=DEAD" in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>alert" not in page

    def test_groups_the_tables(self, console: Client) -> None:
        page = console.get(reverse("admin:index")).content.decode()
        for group in ("Matches", "Journal", "Sources", "Health", "API access"):
            assert group in page

    def test_has_a_policy_that_allows_no_inline_script(self, console: Client) -> None:
        policy = console.get(reverse("admin:index"))["Content-Security-Policy"]
        scripts = next(part for part in policy.split(";") if "script-src" in part)
        assert "'unsafe-inline'" not in scripts


@pytest.mark.parametrize("table", ["scraping_scrapetask", "scraping_scrapeerror", "scraping_scraper", "scraping_match"])
def test_makes_a_constant_number_of_queries(
    console: Client, table: str, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(15):
        match, ref, _ = make_watched()
        make_error(match, task=make_task(ref, state=TaskState.SUCCESS))
    with django_assert_max_num_queries(12):
        console.get(reverse(f"admin:{table}_changelist"))


def test_needs_a_login(client: Client) -> None:
    answer = client.get(reverse("admin:scraping_scrapetask_changelist"))
    assert (answer.status_code, answer["Location"].split("?")[0]) == (302, reverse("admin:login"))


class TestLinksToAMatch:
    def test_finds_a_match_by_its_full_key(self, console: Client) -> None:
        _, ref, _ = make_watched(title="The one sought")
        make_watched(title="Another")
        page = console.get(reverse("admin:scraping_match_changelist"), {"q": ref.key}).content.decode()
        assert "The one sought" in page
        assert "Another" not in page
        assert ref.key in page

    def test_links_to_its_tasks_and_errors(self, console: Client) -> None:
        match, ref, _ = make_watched()
        mine = make_task(ref, state=TaskState.SUCCESS)
        page = console.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()
        url = f"{reverse('admin:scraping_scrapetask_changelist')}?ref__match__id__exact={match.pk}"
        assert url in page
        listed = console.get(url).context["cl"].result_list
        assert [task.pk for task in listed] == [mine.pk]
        errors = f"{reverse('admin:scraping_scrapeerror_changelist')}?match__id__exact={match.pk}"
        assert errors in page
        assert not console.get(errors).context["cl"].result_list

    def test_an_alert_links_to_its_subject(self, console: Client) -> None:
        match, _, _ = make_watched()
        raise_alert(f"dead:{match.pk}", Severity.CRITICAL, "dead", {"match_id": match.pk}, timezone.now())
        page = console.get(reverse("admin:index")).content.decode()
        assert f"ref__match__id__exact={match.pk}&amp;state__exact=DEAD" in page
