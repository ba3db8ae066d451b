"""Admin pages: traffic by day, fill rates, read mode of each match."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.alerts import alert_keys
from monitoring.alerts.registry import raise_alert
from monitoring.models import Severity
from scraping.admin.stats import charts
from scraping.models import Source
from scraping.policies.drift import BUCKET_SECONDS
from scraping.stats import fill_rates, read_stats
from scraping.stats.read_stats import Cost
from scraping.stats.traffic import EARLIER, MEGABYTE
from tests.factories import NOW, make_source
from tests.monitoring.rows import make_watched
from victoryline.lib.bulk_sql import bucket_start

pytestmark = [pytest.mark.django_db, pytest.mark.both]
PLAY = "cricket/v1/play"


def spend(source: Source, megabytes: float, *, now: datetime = NOW, days_ago: int = 0) -> None:
    day = (now - timedelta(days=days_ago)).date()
    read_stats.add_costs({(source.pk, day): Cost(bytes_in=int(megabytes * MEGABYTE), visits=3)})


@pytest.mark.requirement("FS-3")
class TestTraffic:
    def test_a_day_is_coloured_by_its_share_of_the_budget(self) -> None:
        source = make_source(daily_megabytes=100)
        for days_ago, megabytes in ((0, 110), (1, 85), (2, 40)):
            spend(source, megabytes, days_ago=days_ago)
        (chart,) = charts(NOW)
        data = json.loads(chart.data)
        bars, budget = data["datasets"]
        colours = [f"var(--color-{name}-500)" for name in ("green", "green", "amber", "red")]
        assert bars["backgroundColor"][-4:] == colours
        assert bars["data"][-4:] == [0, 40, 85, 110]
        assert set(budget["data"]) == {100}
        assert data["labels"][0] == "12 Dec"
        assert "direct reads only for another 12.0 h" in chart.summary

    def test_without_a_budget_there_is_no_line(self) -> None:
        spend(make_source(), 5)
        (chart,) = charts(NOW)
        assert len(json.loads(chart.data)["datasets"]) == 1
        assert chart.summary == "5.0 MB today, without a limit"

    def test_the_page_shows_chart_and_days(self, admin_client: Client) -> None:
        now = timezone.now()
        source = make_source(daily_megabytes=100)
        spend(source, 85, now=now)
        read_stats.add_costs({(source.pk, EARLIER): Cost(bytes_in=7 * MEGABYTE)})
        page = admin_client.get(reverse("admin:scraping_sourceday_changelist")).content.decode()
        assert "--color-amber-500" in page
        assert "85.0 of 100 MB today (85 %)" in page
        assert "earlier days" in page


@pytest.mark.requirement("BX-16")
def test_the_list_of_fill_rates_shows_since_when_a_field_has_fallen(admin_client: Client) -> None:
    now, source = timezone.now(), make_source()
    for minutes_ago, fill in ((120, (100, 98)), (0, (40, 10))):
        at = bucket_start(now - timedelta(minutes=minutes_ago), BUCKET_SECONDS)
        fill_rates.add({(source.pk, PLAY, "venue", at): fill})
    page = admin_client.get(reverse("admin:scraping_fieldfill_changelist"), {"field": "venue"}).content.decode()
    assert page.index("25 %") < page.index("98 %"), "the newest first"


@pytest.mark.requirement("FR-019")
def test_a_match_page_shows_its_read_mode_and_the_reason(admin_client: Client) -> None:
    match, ref, _ = make_watched()
    type(ref).objects.filter(pk=ref.pk).update(
        read_mode="visit", read_mode_reason="auth: live answered 401", read_mode_since=NOW
    )
    page = admin_client.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()
    assert "auth: live answered 401" in page


@pytest.mark.parametrize(
    ("key", "table"),
    [
        (alert_keys.TRAFFIC.of("crex"), "scraping_sourceday"),
        (alert_keys.DRIFT.of("crex", PLAY, "venue"), "scraping_fieldfill"),
        (alert_keys.SPARSE.of("crex"), "scraping_fieldfill"),
        (alert_keys.CHANGED.of("crex"), "scraping_scrapeerror"),
    ],
)
def test_an_alert_links_to_its_subject(admin_client: Client, key: str, table: str) -> None:
    raise_alert(key, Severity.WARNING, "look here", {"source": "crex"}, timezone.now())
    page = admin_client.get(reverse("admin:index")).content.decode()
    listed = page.split("look here")[0].rpartition("<a ")[2]
    assert reverse(f"admin:{table}_changelist") in listed
