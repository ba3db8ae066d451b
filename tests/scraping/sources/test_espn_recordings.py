"""ESPN's adapters on recorded responses, which are not in the repository: VICTORYLINE_RECORDINGS names their folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from scraping import event_keys
from scraping.payloads import Phase, Status, Team
from scraping.sources.base import Document, Reading, ReadMode, RefInfo
from scraping.sources.cricket import toss_in
from scraping.sources.espn.cricket import EspnAdapter
from scraping.sources.espn.plays import events_of, page_of
from scraping.sources.espn.soccer import EspnSoccerAdapter

FOLDER = os.environ.get("VICTORYLINE_RECORDINGS", "")
pytestmark = pytest.mark.skipif(
    not FOLDER or not Path(FOLDER).is_dir(), reason="VICTORYLINE_RECORDINGS names no folder of recordings"
)
BASE = "https://site.api.espn.com"
SOCCER = EspnSoccerAdapter()
WEST_INDIES = Team(name="West Indies", short_name="WI")


def recordings(pattern: str) -> list[Any]:
    """Returns every recorded response of a kind."""
    files = sorted(Path(FOLDER).glob(f"espn/{pattern}"))
    if not files:
        pytest.skip(f"the recordings have no espn/{pattern}")
    return [json.loads(file.read_text()) for file in files]


def reading(name: str, body: Any, ref: RefInfo) -> Reading:
    document = Document(name, BASE, 200, "application/json", json.dumps(body).encode())
    return Reading(ref, ReadMode.DIRECT, datetime(2026, 3, 22, tzinfo=UTC), {name: document})


class TestPlays:
    def test_every_delivery_is_read_as_it_is_listed(self) -> None:
        for body in recordings("*playbyplay*.json"):
            listed = body["commentary"]["items"]
            page = page_of(body, "")
            events = [event for event in reversed(events_of(page.items)) if event.kind != "dismissal"]
            assert (page.count, page.page_count) == (body["commentary"]["count"], body["commentary"]["pageCount"])
            assert [event.id for event in events] == [item["id"] for item in listed]
            assert [event.runs for event in events] == [item["scoreValue"] for item in listed]
            assert [event.innings for event in events] == [item["period"] for item in listed]
            assert [event.over for event in events] == [f"{item['over']['actual']:.1f}" for item in listed]
            assert [event.detail["score"] for event in events] == [
                f"{item['innings']['runs']}/{item['innings']['wickets']}" for item in listed
            ]
            assert all(event.slot and event.ordinal for event in events)

    def test_their_sequence_is_the_place_that_we_give_them(self) -> None:
        for body in recordings("*playbyplay*.json"):
            items = {item["id"]: item for item in body["commentary"]["items"]}
            for event in events_of(page_of(body, "").items):
                if event.kind != "dismissal":
                    assert event.ordinal == items[event.id]["sequence"]
                    assert event_keys.is_position(event.ordinal)

    def test_the_batting_sides_score_is_not_taken_from_the_home_score(self) -> None:
        (body, *_) = recordings("pycricinfo_playbyplay_1031439_1_1.json")
        first = events_of(page_of(body, "").items)[-1]
        assert (first.kind, first.detail["batter"], first.detail["bowler"]) == ("runs", "Dean Elgar", "James Anderson")
        assert (first.slot, first.happened_at) == ("b:1:0:1", None)


def test_the_toss_is_read_from_the_notes_of_a_match() -> None:
    (body, *_) = recordings("pycricinfo_match_basic_1225249.json")
    teams = (Team(name="England", short_name="ENG"), WEST_INDIES)
    (text,) = [one["text"] for one in body["competitions"][0]["notes"] if one["type"] == "toss"]
    toss = toss_in(text, teams)
    assert toss is not None
    assert (toss.winner, toss.decision) == ("West Indies", "field")
    assert EspnAdapter.key == "espn"


class TestScoreboards:
    def test_every_match_is_found_and_read(self) -> None:
        for body in recordings("*soccer_scoreboard*.json"):
            found = SOCCER.parse_list(reading("list", body, RefInfo("", "")), BASE)
            assert [one.source_event_id for one in found] == [event["id"] for event in body["events"]]
            for match, event in zip(found, body["events"], strict=True):
                self.check(body, event, RefInfo(match.source_event_id, match.url))

    def check(self, body: Any, event: Any, ref: RefInfo) -> None:
        payload = SOCCER.parse(reading("board", body, ref))
        state, listed = payload.state, event["competitions"][0]
        home = next(one for one in listed["competitors"] if one["homeAway"] == "home")
        away = next(one for one in listed["competitors"] if one["homeAway"] == "away")
        assert (state.teams.team_a.name, state.teams.team_b.name) == (
            home["team"]["displayName"],
            away["team"]["displayName"],
        )
        if event["status"]["type"]["completed"]:
            assert (state.status, state.clock) == (Status.COMPLETED, "FT")
            assert (state.score.team_a.goals, state.score.team_b.goals) == (int(home["score"]), int(away["score"]))
        else:
            assert (state.status, state.score.team_a.goals) == (Status.UPCOMING, None)
        assert len(payload.events) == len(listed["details"])
        assert payload.events_are_complete
        assert (payload.unknown, payload.integrity.missing_fields) == ((), ())
        assert state.metadata["series"] == body["leagues"][0]["name"]

    def test_a_finished_match_field_by_field(self) -> None:
        (body, *_) = recordings("eirikeg1_soccer_scoreboard_finished.json")
        payload = SOCCER.parse(reading("board", body, RefInfo("740898", BASE)))
        state = payload.state
        assert (state.title, state.result) == ("Brighton & Hove Albion v Liverpool", "Brighton & Hove Albion won 2-1")
        assert (state.venue, state.start_time) == (
            "American Express Stadium, Falmer",
            datetime(2026, 3, 21, 12, 45, tzinfo=UTC),
        )
        assert Counter(event.kind for event in payload.events) == {"goal": 3, "yellow_card": 11}
        goals = [(one.slot, one.minute, one.detail["player"]) for one in payload.events if one.kind == "goal"]
        assert goals == [
            ("g:team_a:2", "56", "Danny Welbeck"),
            ("g:team_b:1", "30", "Milos Kerkez"),
            ("g:team_a:1", "14", "Danny Welbeck"),
        ]

    def test_a_postponed_match_is_over_for_the_source_and_to_come_for_us(self) -> None:
        (body, *_) = recordings("eirikeg1_soccer_scoreboard_finished.json")
        state = SOCCER.parse(reading("board", body, RefInfo("740902", BASE))).state
        assert (state.status, state.phase, state.score.team_a.goals) == (Status.UPCOMING, Phase.POSTPONED, None)

    def test_the_fixtures_of_a_day(self) -> None:
        (body, *_) = recordings("eirikeg1_soccer_scoreboard_scheduled.json")
        found = SOCCER.parse_fixtures(reading("list", body, RefInfo("", "")), BASE, date(2026, 4, 4))
        assert len(found) == len(body["events"])
        assert found[0].url.startswith(f"{BASE}/apis/site/v2/sports/soccer/esp.1/scoreboard?dates=20260403-20260404#")
