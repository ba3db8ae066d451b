"""The ESPNcricinfo adapter on recorded pages, field by field. The pages are not in the repository:
VICTORYLINE_RECORDINGS names their folder.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scraping import event_keys
from scraping.payloads import Status
from scraping.sources.base import Reading, ReadMode, RefInfo
from scraping.sources.espncricinfo.adapter import EspncricinfoAdapter
from tests.scraping.sources import builders as build
from tests.scraping.sources import espncricinfo_pages as pages

FOLDER = os.environ.get("VICTORYLINE_RECORDINGS", "")
FILES = sorted(Path(FOLDER).glob("espn/pyespncricinfo_*_next_data.json")) if FOLDER else []
ADAPTER = EspncricinfoAdapter()
SIDES = ("team_a", "team_b")
pytestmark = [
    pytest.mark.skipif(not FILES, reason="VICTORYLINE_RECORDINGS names no folder with pages of ESPNcricinfo"),
    pytest.mark.requirement("NFR-008"),
]


class Recording:
    def __init__(self, file: Path) -> None:
        self.whole = json.loads(file.read_text())
        data = self.whole["props"]["appPageProps"]["data"]
        self.match, self.content = data["match"], data["content"]
        self.ref = RefInfo(str(self.match["objectId"]), f"https://www.espncricinfo.com{self._path}")

    @property
    def _path(self) -> str:
        series = self.match["series"]
        name = f"{self.match['slug']}-{self.match['objectId']}"
        return f"/series/{series['slug']}-{series['objectId']}/{name}/full-scorecard"

    def reading(self, name: str) -> Reading:
        html = f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(self.whole)}</script>'
        captured_at = datetime(2026, 10, 1, tzinfo=UTC)
        document = build.document(name, html, url=self.ref.url)
        return build.reading(self.ref, document, mode=ReadMode.DIRECT, captured_at=captured_at)

    def side(self, team: dict[str, Any]) -> str:
        return SIDES[[side["team"]["id"] for side in self.match["teams"]].index(team["id"])]


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def recorded(request: pytest.FixtureRequest) -> Recording:
    return Recording(request.param)


@pytest.mark.requirement("SO-12")
def test_the_match(recorded: Recording) -> None:
    payload = ADAPTER.parse(recorded.reading("page"))
    state, match = payload.state, recorded.match
    for name, side in zip(SIDES, match["teams"], strict=True):
        team = getattr(state.teams, name)
        assert (team.name, team.short_name) == (side["team"]["longName"], side["team"]["abbreviation"])
    assert state.start_time == datetime.fromisoformat(match["startTime"])
    assert state.venue == f"{match['ground']['name']}, {match['ground']['town']['name']}"
    assert state.metadata == {
        "series": match["series"]["longName"], "match_type": match["format"], "round": match["title"],
    }  # fmt: skip
    if match["status"] == "RESULT":
        assert (state.status, state.result) == (Status.COMPLETED, match["statusText"])
    winners = [side["team"]["longName"] for side in match["teams"] if side["team"]["id"] == match["tossWinnerTeamId"]]
    assert ([state.toss.winner] if state.toss else []) == winners
    if state.toss is not None:
        assert state.toss.decision == {1: "bat", 2: "field"}.get(match["tossWinnerChoice"], "")
    assert state.current_innings == match["liveInning"]
    assert payload.unknown == ()
    assert not payload.is_partial_state


def test_the_innings(recorded: Recording) -> None:
    state = ADAPTER.parse(recorded.reading("page")).state
    played = [one for one in recorded.content["innings"] if one["isBatted"]]
    assert len(state.innings) == len(played) + len(recorded.content["superOverInnings"] or [])
    for ours, theirs in zip(state.innings, played, strict=False):
        assert (ours.number, ours.runs, ours.wickets) == (theirs["inningNumber"], theirs["runs"], theirs["wickets"])
        assert ours.team == recorded.side(theirs["team"])
        assert ours.target == (theirs["target"] or None)
        overs, balls = ours.overs.split(".")
        assert int(overs) * theirs["ballsPerOver"] + int(balls) == theirs["balls"]
    for name, side in zip(SIDES, recorded.match["teams"], strict=True):
        score, printed = getattr(state.score, name), (side["score"] or "").split(" & ")[-1].rstrip("d")
        assert printed in (f"{score.runs}/{score.wickets}", str(score.runs))


def test_the_balls(recorded: Recording) -> None:
    events = {event.id: event for event in ADAPTER.parse(recorded.reading("page")).events}
    for inning in recorded.content["innings"]:
        for over in inning["inningOvers"]:
            for place, ball in enumerate(over["balls"], start=1):
                event = events[str(ball["id"])]
                assert (event.innings, event.runs) == (inning["inningNumber"], ball["totalRuns"])
                assert event.slot == event_keys.ball(inning["inningNumber"], over["overNumber"] - 1, place)
                assert event.over == str(ball["oversActual"])
                assert event.happened_at == datetime.fromisoformat(ball["timestamp"])
                assert event.detail["score"] == f"{ball['totalInningRuns']}/{ball['totalInningWickets']}"


def test_the_players(recorded: Recording) -> None:
    lineups = ADAPTER.parse_lineups(recorded.reading("scorecard"))
    squads = {recorded.side(one["team"]): one for one in recorded.content["matchPlayers"]["teamPlayers"]}
    assert {one.side for one in lineups.lineups} == squads.keys()
    for lineup in lineups.lineups:
        theirs = squads[lineup.side]["players"]
        assert [(one.player_id, one.name) for one in lineup.players] == [
            (str(one["player"]["objectId"]), one["player"]["longName"]) for one in theirs
        ]
        assert [one.is_captain for one in lineup.players] == [one["playerRoleType"] == "C" for one in theirs]
        assert [one.position == "WK" for one in lineup.players] == [one["playerRoleType"] == "WK" for one in theirs]
        assert lineup.is_confirmed == (squads[lineup.side]["type"] == "PLAYING")
    assert lineups.unknown == ()


def test_the_figures(recorded: Recording) -> None:
    figures = {
        (one.role, one.innings, one.player_id): one
        for one in ADAPTER.parse_figures(recorded.reading("scorecard")).figures
    }
    count = 0
    for inning in recorded.content["innings"]:
        number = inning["inningNumber"]
        for batter in inning["inningBatsmen"]:
            key = ("batting", number, str(batter["player"]["objectId"]))
            assert (key in figures) == (batter["battedType"] == "yes")
            if key in figures:
                values, count = figures[key].values, count + 1
                assert [values[name] for name in ("runs", "balls", "fours", "sixes")] == [
                    batter[name] for name in ("runs", "balls", "fours", "sixes")
                ]
                assert values["is_out"] == batter["isOut"]
                assert values["how_out"] == " ".join(batter["dismissalText"]["long"].split())
        for bowler in inning["inningBowlers"]:
            values, count = figures["bowling", number, str(bowler["player"]["objectId"])].values, count + 1
            assert [values[name] for name in ("runs", "wickets", "balls", "maidens", "wides")] == [
                bowler[name] for name in ("conceded", "wickets", "balls", "maidens", "wides")
            ]
    assert count == len(figures)


def test_matches_that_the_page_mentions_can_be_listed(recorded: Recording) -> None:
    """The list page was never recorded; every page has some matches in its header in the same format."""
    mentioned = recorded.whole["props"]["editionDetails"]["trendingMatches"]["matches"]
    document = build.document("page", pages.html({"content": {"matches": mentioned}}))
    found = ADAPTER.parse_list(build.reading(RefInfo("", pages.BASE), document), pages.BASE)
    states = {"PRE": Status.UPCOMING, "LIVE": Status.LIVE}
    for ours, theirs in zip(found, mentioned, strict=True):
        assert (ours.source_event_id, ours.series) == (str(theirs["objectId"]), theirs["series"]["longName"])
        assert [team.name for team in ours.teams] == [side["team"]["longName"] for side in theirs["teams"]]
        assert ours.start_time == datetime.fromisoformat(theirs["startTime"])
        ended = Status.ABANDONED if theirs["status"] == "NO RESULT" else Status.COMPLETED
        assert ours.status is states.get(theirs["state"], ended)
