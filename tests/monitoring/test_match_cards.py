"""The cards of the status page."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from monitoring.health.match_cards import card, score, shown_matches
from scraping.payloads import Phase, Status
from tests.factories import NOW, cricket_state, football_state, make_match, make_ref, make_source, make_unread_match
from tests.monitoring.rows import make_watched
from victoryline.lib.times import as_utc_iso


def turn(number: int, team: str, runs: int, wickets: int, overs: str) -> dict[str, Any]:
    return {"number": number, "team": team, "runs": runs, "wickets": wickets, "overs": overs}


@pytest.mark.parametrize(
    ("payload", "text", "main"),
    [
        pytest.param({"innings": [turn(1, "team_a", 182, 5, "18.3")]}, "182/5 (18.3)", "182/5", id="one innings"),
        pytest.param({"innings": [turn(1, "team_a", 182, 10, "18.3")]}, "182 (18.3)", "182", id="all out"),
        pytest.param(
            {"innings": [turn(1, "team_a", 412, 10, "121.3"), turn(3, "team_a", 45, 2, "12.1")]},
            "412 & 45/2 (12.1)",
            "45/2",
            id="a Test's second innings",
        ),
        pytest.param({"score": {"team_a": {"runs": 9, "wickets": 1, "overs": "2.0"}}}, "9/1 (2.0)", "9/1", id="totals"),
        pytest.param({"score": {"team_a": {"goals": 0}}}, "0", "0", id="no goals"),
        pytest.param({"score": {"team_a": {"goals": 1, "penalties": 4}}}, "1 (4 pens)", "1", id="penalties"),
        pytest.param({"innings": [turn(1, "team_b", 10, 0, "1.0")]}, "", "", id="has not batted"),
        pytest.param({}, "", "", id="nothing read"),
    ],
)
def test_score(payload: dict[str, Any], text: str, main: str) -> None:
    assert score(payload, "team_a")[:2] == (text, main)


@pytest.mark.django_db
class TestCard:
    def test_of_a_live_match(self) -> None:
        match = make_match(state=cricket_state())
        ref = make_ref(match)
        shown = card(match, NOW)
        assert (shown["key"], shown["group"], shown["moment"], shown["state"]) == (ref.key, "live", "Live", "fresh")
        assert [team["score"] for team in shown["teams"]] == ["187/5 (20.0)", "95/3 (12.3)"]
        assert [team["is_batting"] for team in shown["teams"]] == [False, True]
        assert shown["next_update_in"] == 2.5

    def test_of_a_match_without_some_parts(self) -> None:
        match = make_match(state=cricket_state())
        make_ref(match, integrity={"missing_fields": ["events"]})
        shown = card(match, NOW)
        assert (shown["state"], shown["care"]) == ("partial", "Some details could not be read")

    def test_names_all_sources_the_heaviest_first(self) -> None:
        match = make_match(state=cricket_state())
        make_ref(match, source=make_source("espn", name="ESPN", precedence_weight=80))
        make_ref(match, source=make_source("crex", name="Crex", precedence_weight=100))
        (shown,) = shown_matches()
        assert card(shown, NOW)["source"] == "Crex, ESPN"

    @pytest.mark.parametrize(
        ("status", "phase", "moment"),
        [
            (Status.LIVE, Phase.HALFTIME, "Half-time"),
            (Status.LIVE, Phase.PLAY, "67'"),
            (Status.COMPLETED, Phase.FINISHED, "Final"),
            (Status.ABANDONED, Phase.FINISHED, "Abandoned"),
            (Status.UPCOMING, Phase.SCHEDULED, "10 Jan, 10:00 UTC"),
        ],
    )
    def test_shows_the_phase_or_time_of_the_match(self, status: Status, phase: Phase, moment: str) -> None:
        match = make_match(state=football_state(status=status, phase=phase))
        assert card(match, NOW)["moment"] == moment

    def test_of_a_match_that_was_never_read(self) -> None:
        match = make_unread_match()
        shown = card(match, NOW)
        assert (shown["age_seconds"], shown["state"], shown["key"]) == (None, "unknown", str(match.pk))
        assert [team["name"] for team in shown["teams"]] == ["To be decided", "To be decided"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (NOW - timedelta(minutes=5), "paused until 12:30 UTC, read 5 min ago"),
        (None, "paused until 12:30 UTC, not read yet"),
    ],
)
def test_a_paused_match_shows_end_and_age(read: datetime | None, expected: str) -> None:
    until = NOW.replace(hour=12, minute=30)
    match, _, _ = make_watched(now=NOW, lifecycle="PAUSED", pause_until=until, last_scraper_update=read)
    shown = card(match, NOW)
    assert (shown["age_text"], shown["paused_until"]) == (expected, as_utc_iso(until))
