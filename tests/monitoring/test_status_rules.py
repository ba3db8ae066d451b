"""The status of /health, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitoring.health.status_rules import StatusInputs, SystemStatus, system_status

CALM = StatusInputs(matches_to_watch=5, active_scrapers=5, workers=1, errors_last_minute=0)
IDLE = StatusInputs(matches_to_watch=0, active_scrapers=0, workers=0, errors_last_minute=0)


@pytest.mark.requirement("DM-3")
@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        pytest.param(CALM, SystemStatus.HEALTHY, id="all scrapers healthy"),
        pytest.param(IDLE, SystemStatus.HEALTHY, id="nothing to watch"),
        pytest.param(replace(CALM, errors_last_minute=4), SystemStatus.HEALTHY, id="4 errors a minute"),
        pytest.param(replace(CALM, errors_last_minute=5), SystemStatus.DEGRADED, id="5 errors a minute"),
        pytest.param(replace(CALM, errors_last_minute=10), SystemStatus.DEGRADED, id="10 errors a minute"),
        pytest.param(replace(CALM, errors_last_minute=11), SystemStatus.DOWN, id="11 errors a minute"),
        pytest.param(replace(CALM, unhealthy_scrapers=1), SystemStatus.DEGRADED, id="one scraper stale"),
        pytest.param(replace(CALM, unhealthy_scrapers=5), SystemStatus.DEGRADED, id="all scrapers stale"),
        pytest.param(replace(CALM, paused_live_matches=1), SystemStatus.DEGRADED, id="a live match paused"),
        pytest.param(replace(CALM, frozen_matches=1), SystemStatus.DEGRADED, id="a live match frozen"),
        pytest.param(replace(CALM, sources_without_token=1), SystemStatus.DEGRADED, id="a source without a token"),
        pytest.param(replace(CALM, active_scrapers=0), SystemStatus.DOWN, id="matches, but no scraper"),
        pytest.param(replace(CALM, workers=0), SystemStatus.DOWN, id="scrapers, but no worker"),
        pytest.param(replace(IDLE, errors_last_minute=11), SystemStatus.DOWN, id="errors without matches"),
    ],
)
def test_status(inputs: StatusInputs, status: SystemStatus) -> None:
    result = system_status(inputs)
    assert result.status is status
    assert bool(result.reasons) == (status is not SystemStatus.HEALTHY)


def test_uses_singular_and_plural() -> None:
    assert system_status(replace(CALM, paused_live_matches=1)).reasons == ("1 live match is paused",)
    assert system_status(replace(CALM, paused_live_matches=2)).reasons == ("2 live matches are paused",)
