"""Admin pages of usage and of the access log."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apiauth import usage
from apiauth.admin.usage import charts, consumers_table, requests_chart, routes_table
from apiauth.models import AccessLog, Consumer, UsageHour
from tests.factories import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("FR-028")]
LOG, USAGE = "admin:apiauth_accesslog_changelist", "admin:apiauth_usagehour_changelist"


def consumer(name: str = "acme") -> Consumer:
    return Consumer.objects.get_or_create(name=name, defaults={"created_at": NOW})[0]


def asked(name: str, hours_ago: int, requests: int, *, now: datetime = NOW, route: str = "match", **more: Any) -> None:
    hour = usage.hour_of(now) - timedelta(hours=hours_ago)
    UsageHour.objects.create(consumer=consumer(name), hour=hour, route=route, requests=requests, **more)


class TestCharts:
    def test_a_bar_is_divided_by_the_outcome_of_the_requests(self) -> None:
        asked("acme", 0, 100, not_modified=40, refused=5, throttled=10, failed=5)
        asked("acme", 3, 50)
        by_hour, by_day, *_ = charts(NOW, None)
        data = json.loads(by_hour["data"])
        assert [(each["label"], each["data"][-1]) for each in data["datasets"]] == [
            ("answered", 40), ("unchanged (304)", 40), ("refused (4xx)", 5), ("throttled (429)", 10),
            ("failed (5xx)", 5),
        ]  # fmt: skip
        assert data["datasets"][0]["data"][-4:] == [50, 0, 0, 40]
        assert (data["labels"][0], data["labels"][-1], len(data["labels"])) == ("13:00", "12:00", 24)
        days = json.loads(by_day["data"])
        assert (days["labels"][-1], len(days["labels"]), days["datasets"][0]["data"][-1]) == ("10 Jan", 30, 90)
        assert by_hour["summary"].startswith("150 requests: 90 answered, 40 unchanged (304)")

    def test_show_one_consumer_or_all(self) -> None:
        asked("acme", 0, 100)
        asked("other", 0, 11)
        assert charts(NOW, None)[0]["summary"].startswith("111 requests")
        assert charts(NOW, consumer("other").pk)[0]["summary"].startswith("11 requests")
        assert [row["name"] for row in consumers_table(NOW)] == ["acme", "other"]

    def test_report_that_there_are_no_requests(self) -> None:
        assert requests_chart("Requests", [("now", UsageHour())])["summary"] == "no requests"

    def test_a_table_lists_the_most_requested_addresses(self) -> None:
        asked("acme", 0, 5, route="")
        asked("acme", 1, 50, route="match", aged=10, age_seconds_total=25.0, age_seconds_most=9.0)
        asked("acme", 24 * 40, 900, route="matches")
        first, second = routes_table(NOW, None)
        assert (first["name"], first["cells"][0], first["cells"][-2:]) == ("match", "50", ("2.5 s", "9.0 s"))
        assert second["name"] == "(no such address)"


class TestUsagePage:
    def test_shows_charts_of_all_and_links_to_each(self, admin_client: Client) -> None:
        now = timezone.now()
        asked("acme", 0, 100, now=now, throttled=10)
        page = admin_client.get(reverse(USAGE)).content.decode()
        assert "100 requests: 90 answered, 10 throttled (429)" in page
        assert f"?consumer__id__exact={consumer().pk}" in page
        assert "<script>" not in page.partition("usage-page")[2].partition("</section>")[0]

    def test_of_one_consumer_leaves_the_others_out(self, admin_client: Client) -> None:
        now = timezone.now()
        asked("acme", 0, 100, now=now)
        asked("other", 0, 7, now=now)
        page = admin_client.get(reverse(USAGE), {"consumer__id__exact": consumer("other").pk}).content.decode()
        assert "7 requests: 7 answered" in page
        assert "100 requests" not in page

    @pytest.mark.parametrize("chosen", ["0", "x", "99999999999999999999", "9" * 5000, "²"])
    def test_survives_any_filter_value(self, admin_client: Client, chosen: str) -> None:
        answer = admin_client.get(reverse(USAGE), {"consumer__id__exact": chosen})
        assert answer.status_code in {200, 302}

    def test_is_linked_from_the_consumers_page(self, admin_client: Client) -> None:
        page = admin_client.get(reverse("admin:apiauth_consumer_change", args=[consumer().pk])).content.decode()
        assert f"{reverse(USAGE)}?consumer__id__exact={consumer().pk}" in page


class TestLogPage:
    @pytest.fixture
    def log(self, admin_client: Client) -> Any:
        now = timezone.now()
        rows = [
            ("one", 200, "match", 0), ("two", 304, "match", 0), ("three", 404, "", 0), ("four", 429, "matches", 0),
            ("five", 503, "match", 2), ("six", 201, "match", 30),
        ]  # fmt: skip
        for name, status, route, hours in rows:
            AccessLog.objects.create(
                consumer=consumer() if route else None, timestamp=now - timedelta(hours=hours), method="GET",
                endpoint=f"/api/v1/{name}", route=route, response_status=status, request_id=f"id-{name}",
            )  # fmt: skip
            asked("acme", hours + len(name) + status, 1, now=now, route=route)

        def shown(**filters: str) -> set[str]:
            page = admin_client.get(reverse(LOG), filters).content.decode()
            return {name for name, *_ in rows if f"/api/v1/{name}<" in page}

        return shown

    @pytest.mark.parametrize(
        ("filters", "names"),
        [
            ({}, {"one", "two", "three", "four", "five", "six"}),
            ({"outcome": "answered"}, {"one", "six"}),
            ({"outcome": "unchanged"}, {"two"}),
            ({"outcome": "refused"}, {"three"}),
            ({"outcome": "throttled"}, {"four"}),
            ({"outcome": "failed"}, {"five"}),
            ({"when": "1h"}, {"one", "two", "three", "four"}),
            ({"when": "24h"}, {"one", "two", "three", "four", "five"}),
            ({"route": "matches"}, {"four"}),
            ({"route": "-"}, {"three"}),
            ({"when": "24h", "outcome": "failed", "route": "match"}, {"five"}),
            ({"q": "id-two"}, {"two"}),
            ({"q": "/api/v1/f"}, {"four", "five"}),
        ],
    )
    def test_filters_rows(self, log: Any, filters: dict[str, str], names: set[str]) -> None:
        assert log(**filters) == names

    def test_of_one_consumer(self, log: Any) -> None:
        assert log(consumer__id__exact=str(consumer().pk)) == {"one", "two", "four", "five", "six"}

    def test_runs_no_count_query(self, log: Any, admin_client: Client, django_assert_max_num_queries: Any) -> None:
        with django_assert_max_num_queries(10) as asked_for:
            admin_client.get(reverse(LOG), {"outcome": "failed"})
        about_the_log = [each["sql"] for each in asked_for.captured_queries if "apiauth_accesslog" in each["sql"]]
        assert not [each for each in about_the_log if "COUNT(" in each]


def test_pages_make_a_constant_number_of_queries(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for hours in range(40):
        asked("acme", hours, 3, now=timezone.now())
    with django_assert_max_num_queries(16):
        admin_client.get(reverse(USAGE))
