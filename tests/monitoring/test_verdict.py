"""The word of /health, case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitoring.health.verdict import Signs, Status, judge

CALM = Signs(matches_to_watch=5, active_scrapers=5, workers=1, errors_last_minute=0)
IDLE = Signs(matches_to_watch=0, active_scrapers=0, workers=0, errors_last_minute=0)


@pytest.mark.requirement("DM-3")
@pytest.mark.parametrize(
    ("signs", "status"),
    [
        pytest.param(CALM, Status.HEALTHY, id="all scrapers well"),
        pytest.param(IDLE, Status.HEALTHY, id="nothing to watch"),
        pytest.param(replace(CALM, errors_last_minute=4), Status.HEALTHY, id="4 errors a minute"),
        pytest.param(replace(CALM, errors_last_minute=5), Status.DEGRADED, id="5 errors a minute"),
        pytest.param(replace(CALM, errors_last_minute=10), Status.DEGRADED, id="10 errors a minute"),
        pytest.param(replace(CALM, errors_last_minute=11), Status.DOWN, id="11 errors a minute"),
        pytest.param(replace(CALM, unwell_scrapers=1), Status.DEGRADED, id="one scraper stale"),
        pytest.param(replace(CALM, unwell_scrapers=5), Status.DEGRADED, id="all scrapers stale"),
        pytest.param(replace(CALM, paused_live_matches=1), Status.DEGRADED, id="a live match paused"),
        pytest.param(replace(CALM, frozen_matches=1), Status.DEGRADED, id="a live match frozen"),
        pytest.param(replace(CALM, sources_without_token=1), Status.DEGRADED, id="a source without a token"),
        pytest.param(replace(CALM, active_scrapers=0), Status.DOWN, id="matches, but no scraper"),
        pytest.param(replace(CALM, workers=0), Status.DOWN, id="scrapers, but nobody to run them"),
        pytest.param(replace(IDLE, errors_last_minute=11), Status.DOWN, id="errors without matches"),
    ],
)
def test_status(signs: Signs, status: Status) -> None:
    verdict = judge(signs)
    assert verdict.status is status
    assert bool(verdict.reasons) == (status is not Status.HEALTHY)


def test_counts_in_good_grammar() -> None:
    assert judge(replace(CALM, paused_live_matches=1)).reasons == ("1 live match is paused",)
    assert judge(replace(CALM, paused_live_matches=2)).reasons == ("2 live matches are paused",)
