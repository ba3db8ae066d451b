"""Match data without a token: only where STATUS_PAGE_PUBLIC_SCORES permits it. Metrics: networks and a token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from monitoring.alerts import alert_keys
from monitoring.alerts.registry import raise_alert
from monitoring.health.grade_changes import update_grade
from monitoring.models import Severity
from monitoring.views import published_status
from monitoring.watchdogs.matches import watch_staleness
from scraping.models import Match, Scraper
from tests.api.test_security import _served
from tests.factories import cricket_state, make_match, make_ref
from tests.monitoring.rows import make_watched, make_worker

pytestmark = pytest.mark.django_db
SECRET_WORDS = ("Ruritania", "95/3", "12.3 overs", "Zenda Ground")


@pytest.fixture
def match(settings: Any) -> Any:
    use(settings, status_page_public_scores="false")
    state = cricket_state(title="Ruritania vs Australia", venue="Zenda Ground")
    now = timezone.now()
    make_ref(make_match(state=state, lifecycle="PAUSED", pause_until=now + timedelta(minutes=5)))
    found = make_watched(state=state)[0]
    published_status.forget()
    return found


def use(settings: Any, **values: Any) -> None:
    settings.CONFIG = settings.CONFIG.model_copy(update=values)


@pytest.mark.requirement("FR-026")
class TestScores:
    def test_no_open_address_shows_a_match(self, client: Client, match: Any) -> None:
        for place in sorted(set(_served(get_resolver().url_patterns))):
            if "<" in place or "(" in place or place.startswith("admin/"):
                continue
            text = client.get(f"/{place}").content.decode(errors="replace")
            assert not [word for word in SECRET_WORDS if word in text], place

    @pytest.mark.parametrize("age", [1, 400])  # the reason names a rule and an alert, or the stalest match
    def test_no_reason_and_no_alert_names_the_teams(self, client: Client, match: Any, age: int) -> None:
        make_worker()
        now, key = timezone.now(), match.key
        read = now - timedelta(seconds=age)
        Match.objects.filter(pk=match.pk).update(last_scraper_update=read)
        Scraper.objects.filter(ref__match=match).update(last_update_time=read)
        watch_staleness(now)
        for kind, severity in ((alert_keys.LAYOUT, Severity.CRITICAL), (alert_keys.DEAD, Severity.WARNING)):
            raise_alert(kind.of(match.pk), severity, f"The page of {match} has changed", {"match_id": match.pk}, now)
        update_grade(now)
        self.test_no_open_address_shows_a_match(client, match)
        status, health = client.get("/status").json(), client.get("/health").json()
        assert "crex_T" in status["reason"]
        assert "crex_T" in health["reason"]
        texts = [f"The page of {key} has changed", f"A task of {key} is dead"]
        stale = [f"{key} has had no update for too long"] if age > 1 else []
        assert sorted(alert["summary"] for alert in status["alerts"]) == sorted(texts + stale)

    def test_visitors_see_counts_and_health(self, client: Client, match: Any) -> None:
        status = client.get("/status").json()
        assert (status["matches"], status["match_counts"]) == ([], {"live": 2, "upcoming": 0, "finished": 0})
        assert (status["freshness_stats"]["count"], list(status["paused_matches"][0])) == (1, ["id", "until"])
        page = client.get("/").content.decode()
        assert "2 live, 0 coming up, 0 finished" in page
        assert "No matches yet" in page  # hidden, as in the template of a page with matches

    def test_staff_sees_matches(self, client: Client, match: Any) -> None:
        client.force_login(User.objects.create_user("viewer"))
        assert client.get("/status").json()["matches"] == []
        client.force_login(User.objects.create_user("ann", is_staff=True))
        assert client.get("/status").json()["matches"][0]["title"] == "Ruritania vs Australia"
        assert "95/3" in client.get("/").content.decode() or "Ruritania" in client.get("/").content.decode()

    @pytest.mark.parametrize(("values", "shown"), [(("true", False), 2), (("demo", True), 2), (("demo", False), 0)])
    def test_follow_the_setting(self, client: Client, settings: Any, values: tuple[str, bool], shown: int) -> None:
        make_watched()
        make_watched()
        use(settings, status_page_public_scores=values[0], demo=values[1])
        assert len(client.get("/status").json()["matches"]) == shown


class TestMetrics:
    @pytest.mark.parametrize(
        ("address", "status"),
        [
            ("127.0.0.1", 200), ("10.1.2.3", 200), ("::1", 200), ("fd12::7", 200), ("::ffff:192.168.0.9", 200),
            ("203.0.113.9", 401), ("2001:db8::1", 401), ("", 401),
        ],
    )  # fmt: skip
    def test_are_for_the_allowed_networks(self, client: Client, address: str, status: int) -> None:
        answer = client.get("/metrics", REMOTE_ADDR=address)
        assert answer.status_code == status
        if status == 401:
            assert answer["WWW-Authenticate"] == 'Bearer realm="metrics"'
            assert answer["Content-Type"] == "application/problem+json"

    def test_are_for_any_address_with_the_token(self, client: Client, settings: Any) -> None:
        use(settings, metrics_token="long-secret", metrics_allowed_networks=())
        for offered, status in (("Bearer long-secret", 200), ("Bearer other", 401), ("", 401), ("Bearer ", 401)):
            assert client.get("/metrics", headers={"Authorization": offered}).status_code == status
        use(settings, metrics_token="")
        assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401
