"""The status of /health, case by case."""

from __future__ import annotations

import pytest

from monitoring.health.status_rules import SystemStatus, system_status

CALM = {"matches_to_watch": 5, "active_scrapers": 5, "workers": 1, "errors_last_minute": 0}
IDLE = {"matches_to_watch": 0, "active_scrapers": 0, "workers": 0, "errors_last_minute": 0}


@pytest.mark.requirement("DM-3")
@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        pytest.param(CALM, SystemStatus.HEALTHY, id="all scrapers healthy"),
        pytest.param(IDLE, SystemStatus.HEALTHY, id="nothing to watch"),
        pytest.param(CALM | {"errors_last_minute": 4}, SystemStatus.HEALTHY, id="4 errors a minute"),
        pytest.param(CALM | {"errors_last_minute": 5}, SystemStatus.DEGRADED, id="5 errors a minute"),
        pytest.param(CALM | {"errors_last_minute": 10}, SystemStatus.DEGRADED, id="10 errors a minute"),
        pytest.param(CALM | {"errors_last_minute": 11}, SystemStatus.DOWN, id="11 errors a minute"),
        pytest.param(CALM | {"errors_last_minute": 15, "polls_last_minute": 300}, SystemStatus.DEGRADED, id="5 %"),
        pytest.param(CALM | {"errors_last_minute": 16, "polls_last_minute": 300}, SystemStatus.DOWN, id="over 5 %"),
        pytest.param(CALM | {"unhealthy_scrapers": 1}, SystemStatus.DEGRADED, id="one scraper stale"),
        pytest.param(CALM | {"unhealthy_scrapers": 5}, SystemStatus.DEGRADED, id="all scrapers stale"),
        pytest.param(CALM | {"paused_live_matches": 1}, SystemStatus.DEGRADED, id="a live match paused"),
        pytest.param(CALM | {"frozen_matches": 1}, SystemStatus.DEGRADED, id="a live match frozen"),
        pytest.param(CALM | {"sources_without_token": 1}, SystemStatus.DEGRADED, id="a source without a token"),
        pytest.param(CALM | {"active_scrapers": 0}, SystemStatus.DOWN, id="matches, but no scraper"),
        pytest.param(CALM | {"workers": 0}, SystemStatus.DOWN, id="scrapers, but no worker"),
        pytest.param(IDLE | {"errors_last_minute": 11}, SystemStatus.DOWN, id="errors without matches"),
    ],
)
def test_status(inputs: dict[str, int], status: SystemStatus) -> None:
    result = system_status(**inputs)
    assert result.status is status
    assert bool(result.reasons) == (status is not SystemStatus.HEALTHY)


def test_uses_singular_and_plural() -> None:
    assert system_status(**(CALM | {"paused_live_matches": 1})).reasons == ("1 live match is paused",)
    named = system_status(**CALM | {"errors_last_minute": 6}, names={"errors_last_minute": "India vs Australia"})
    assert named.reasons == ("6 errors in the last minute: India vs Australia",)
    assert system_status(**(CALM | {"paused_live_matches": 2})).reasons == ("2 live matches are paused",)
