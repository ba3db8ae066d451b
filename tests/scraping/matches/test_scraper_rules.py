"""Health and restart rules of a scraper: tables of cases."""

from __future__ import annotations

from typing import Any

import pytest

from scraping.models import HealthStatus, Match, MatchRef, Scraper
from scraping.scheduler.recover import restart_reason
from tests.factories import NOW
from tests.scraping.builders import POLICIES, later


@pytest.mark.requirement("DM-1")
class TestScraperRules:
    @staticmethod
    def scraper(**fields: Any) -> Scraper:
        values: dict[str, Any] = {"start_time": later(-600), "last_update_time": NOW}
        return Scraper(ref=MatchRef(match=Match()), **values | fields)

    @pytest.mark.parametrize(
        ("what", "fields", "expected"),
        [
            ("all well", {}, "healthy"),
            ("two errors in a row", {"error_count": 2}, "healthy"),
            ("three", {"error_count": 3}, "degraded"),
            ("five", {"error_count": 5}, "degraded"),
            ("six", {"error_count": 6}, "failing"),
            ("silent for two minutes", {"last_update_time": later(-120)}, "healthy"),
            ("and a second", {"last_update_time": later(-121)}, "degraded"),
            ("for five minutes", {"last_update_time": later(-300)}, "degraded"),
            ("and a second more", {"last_update_time": later(-301)}, "failing"),
            ("never updated since its start", {"last_update_time": None}, "failing"),
            ("just started", {"start_time": later(-1), "last_update_time": None}, "healthy"),
        ],
    )
    def test_health(self, what: str, fields: dict[str, Any], expected: str) -> None:
        assert self.scraper(**fields).health_status(NOW) == HealthStatus(expected)

    @pytest.mark.parametrize(
        ("what", "fields", "expected"),
        [
            ("all well", {}, ""),
            ("ten errors in a row", {"error_count": 10}, ""),
            ("eleven", {"error_count": 11}, "11 errors in a row"),
            ("silent for five minutes", {"last_update_time": later(-300)}, ""),
            ("and a second", {"last_update_time": later(-301)}, "no update for 301 s"),
            ("six hours old", {"start_time": later(-6 * 3600)}, ""),
            ("and a second more", {"start_time": later(-6 * 3600 - 1)}, "lifetime of 6 h is over"),
        ],
    )
    def test_restart(self, what: str, fields: dict[str, Any], expected: str) -> None:
        assert restart_reason(self.scraper(**fields), POLICIES, 0.0, NOW) == expected

    def test_serialised_form(self) -> None:
        scraper = self.scraper(error_count=1, total_errors=4, total_updates=240, polling_interval=2.0)
        document = scraper.as_document(NOW, match_id="crex_13KM", url="https://x/13KM", memory_mb=412.34, cpu=7.26)
        assert document == {
            "scraper_id": str(scraper.pk),
            "match_id": "crex_13KM",
            "url": "https://x/13KM",
            "start_time": "2026-01-10T11:50:00.000Z",
            "last_update": "2026-01-10T12:00:00.000Z",
            "uptime_seconds": 600.0,
            "error_count": 1,
            "total_errors": 4,
            "total_updates": 240,
            "health_status": "healthy",
            "memory_mb": 412.3,
            "cpu_percent": 7.3,
            "polling_interval": 2.0,
        }
