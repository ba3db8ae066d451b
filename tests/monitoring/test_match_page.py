"""The page of one match: score card, events with their marks, ages, sources; and the filters of the status page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from monitoring import match_page as page_values
from monitoring.models import HealthLog
from monitoring.views import published_status
from scraping.models import Match
from tests.factories import cricket_state, make_event, make_snapshot
from tests.monitoring.rows import make_watched, make_worker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh() -> None:
    page_values.match_page.cache.clear()
    published_status.forget()


def use(settings: Any, **values: str) -> None:
    settings.CONFIG = settings.CONFIG.model_copy(update=values)


class TestMatchPage:
    def test_shows_score_events_ages_and_sources(self, client: Client) -> None:
        make_worker()
        now = timezone.now()
        match, ref, scraper = make_watched(state=cricket_state(venue="Zenda Ground"))
        make_snapshot(match, now=now)
        make_event(match, now=now, kind="wicket", over="12.3", description="<b>bowled</b>")
        for seconds, age in ((60, 4), (30, 9)):
            HealthLog.objects.create(
                scraper_id=scraper.pk, match_id=ref.key, timestamp=now - timedelta(seconds=seconds),
                health_status="healthy", last_update_age_seconds=age,
            )  # fmt: skip
        page = client.get(f"/match/{ref.key}").content.decode()
        for text in ("Zenda Ground", "12.3", "&lt;b&gt;bowled", "at most 9 s", "95", ref.source.name, 'data-live="2"'):
            assert text in page, text
        assert "<b>bowled" not in page

    @pytest.mark.parametrize(("minute", "mark"), [("45+2", "45+2&#x27;"), ("67", "67&#x27;")])
    def test_minutes_of_football_have_their_mark(self, client: Client, minute: str, mark: str) -> None:
        match, ref, _ = make_watched(sport="football")
        Match.objects.filter(pk=match.pk).update(payload={"clock": minute, "score": {"team_a": {"goals": 1}}})
        make_event(match, now=timezone.now(), kind="goal", minute=minute, over="", description="Goal: Pedro")
        page = client.get(f"/match/{ref.key}").content.decode()
        assert page.count(mark) >= 2  # of the event and of the clock

    @pytest.mark.parametrize("name", ["crex_NONE", "99999", "x", "%00"])
    def test_of_an_unknown_match_is_not_found(self, client: Client, name: str) -> None:
        assert client.get(f"/match/{name}").status_code == 404

    def test_is_for_those_who_may_see_scores(self, client: Client, admin_client: Client, settings: Any) -> None:
        use(settings, status_page_public_scores="false")
        _, ref, _ = make_watched(title="Ruritania vs Australia")
        refused = client.get(f"/match/{ref.key}")
        assert (refused.status_code, "Ruritania" in refused.content.decode()) == (403, False)
        assert client.get("/match/crex_NONE").status_code == 403  # and does not tell which matches exist
        assert "Ruritania" in admin_client.get(f"/match/{ref.key}").content.decode()
        use(settings, status_page_public_scores="true")
        assert "Ruritania" in client.get(f"/match/{ref.key}").content.decode()


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "shown"),
        [
            ("", {"One", "Two"}),
            ("?sport=football", {"Two"}),
            ("?status=live&source=none", set()),
            ("?source=CREX", {"One", "Two"}),
            ("?sport=<script>", set()),
        ],
    )
    def test_choose_matches(self, client: Client, query: str, shown: set[str]) -> None:
        make_worker()
        match, _, _ = make_watched(title="One")
        make_watched(title="Two", sport="football")
        page = client.get(f"/{query.replace('CREX', match.refs.get().source.name)}").content.decode()
        assert {title for title in ("One", "Two") if f'data-field="title">{title}<' in page} == shown
        assert "<script>" not in page.replace('<script src="', "")
