"""Line-ups and ratings at Sofascore: predicted first, confirmed an hour before the start, rated after the match."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from scraping.errors import Blocked, PayloadRejected, SchemaBreak
from scraping.payloads import Figures, Lineups
from scraping.sources.base import RefInfo
from scraping.sources.sofascore.adapter import SofascoreAdapter
from scraping.sources.sofascore.cricket_adapter import SofascoreCricketAdapter
from tests.scraping.sources import builders as build
from tests.scraping.sources.sofa_stadium import Site

FOOTBALL, CRICKET = SofascoreAdapter(), SofascoreCricketAdapter()
FOLDER = os.environ.get("VICTORYLINE_RECORDINGS", "")
recorded = pytest.mark.skipif(not Path(FOLDER, "sofascore").is_dir(), reason="VICTORYLINE_RECORDINGS names no folder")


def row(number: int, *, team: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "player": {"id": number, "name": f"Player {number}", "shortName": f"P. {number}"}, "teamId": team,
        "position": "M", "substitute": False, "shirtNumber": number, "jerseyNumber": str(number),
    } | changes  # fmt: skip


def side(team: int, first: int, **changes: Any) -> dict[str, Any]:
    players = [row(first + place, team=team, substitute=place > 10) for place in range(14)]
    return {"formation": "4-4-2", "players": players, "missingPlayers": [], "supportStaff": []} | changes


def lineups(**changes: Any) -> dict[str, Any]:
    return {"confirmed": True, "home": side(1, 100), "away": side(2, 200), "statisticalVersion": 1} | changes


def parse(body: Any, event: dict[str, Any] | None = None, status: int = 200) -> Lineups:
    about = build.document("event", {"event": event or build.event()})
    return FOOTBALL.parse_lineups(build.reading(build.SOFA, build.document("lineups", body, status), about))


def figures(body: Any) -> Figures:
    return FOOTBALL.parse_figures(build.reading(build.SOFA, build.document("lineups", body)))


@pytest.mark.requirement("FS-19")
class TestLineups:
    def test_the_adapters_have_line_ups(self) -> None:
        for adapter in (FOOTBALL, CRICKET):
            assert adapter.lineup_schema
            assert adapter.figure_schema

    def test_are_requested_with_the_event(self) -> None:
        urls = [request.url for request in FOOTBALL.lineup_requests(build.SOFA, "https://www.sofascore.com/")]
        event = "https://www.sofascore.com/api/v1/event/7001"
        assert urls == [f"{event}/lineups", event]

    def test_have_both_sides(self) -> None:
        home = side(1, 100)
        home["players"][3] |= {"captain": True, "statistics": {"rating": 7, "minutesPlayed": 90}}
        found = parse(lineups(home=home))
        first, second = found.lineups
        assert (found.payload_schema, found.kickoff) == ("sofascore.lineups.v1", build.START)
        assert (first.side, first.formation, first.is_confirmed, len(first.starters)) == ("team_a", "4-4-2", True, 11)
        assert (second.side, len(second.players), second.is_xi_missing) == ("team_b", 14, False)
        captain = first.players[3]
        assert (captain.player_id, captain.shirt, captain.is_captain, captain.rating, captain.minutes) == (
            "103", "103", True, 7.0, 90,
        )  # fmt: skip

    def test_predicted_ones_are_not_confirmed(self) -> None:
        assert not any(lineup.is_confirmed for lineup in parse(lineups(confirmed=False)).lineups)

    def test_that_the_source_does_not_have_yet_are_none(self) -> None:
        assert parse({"error": {"code": 404, "message": "Not Found"}}, status=404).lineups == ()
        about = build.document("event", {"event": build.event()})
        assert FOOTBALL.parse_lineups(build.reading(build.SOFA, about)).lineups == ()

    def test_a_side_with_fewer_than_eleven_starters_is_incomplete(self) -> None:
        found = parse(lineups(away=side(2, 200, players=[row(200, team=2)])))
        assert [one.is_xi_missing for one in found.lineups] == [False, True]

    @pytest.mark.requirement("BX-6")
    @pytest.mark.parametrize("swapped", [lineups(home=side(9, 100)), lineups(home=side(2, 100), away=side(1, 200))])
    def test_of_another_team_are_refused(self, swapped: dict[str, Any]) -> None:
        with pytest.raises(PayloadRejected, match="home line-up is of team"):
            parse(swapped)
        with pytest.raises(PayloadRejected, match="7002 instead of 7001"):
            parse(lineups(), build.event(id=7002))

    def test_national_players_may_be_listed_with_their_clubs(self) -> None:
        clubs = [row(100 + place, team=50 + place % 4, substitute=place > 10) for place in range(14)]
        assert len(parse(lineups(home=side(1, 100, players=clubs))).lineups[0].starters) == 11
        national = build.event()
        national["homeTeam"]["national"] = True
        assert parse(lineups(home=side(9, 100)), national).lineups[0].side == "team_a"

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("spoil", "path"),
        [
            (lambda body: body["home"].pop("players"), r"home\.players"),
            (
                lambda body: [row.pop("substitute") for row in body["away"]["players"]],
                r"away\.players\[0\]\.substitute",
            ),
            (lambda body: body.update(home=[]), "home"),
        ],
    )
    def test_a_break_names_the_field(self, spoil: Any, path: str) -> None:
        body = lineups()
        spoil(body)
        with pytest.raises(SchemaBreak, match=rf"sofascore\.lineups\.v1: {path} "):
            parse(body)

    @pytest.mark.requirement("SO-12")
    def test_a_player_that_cannot_be_read_costs_that_player(self) -> None:
        body = lineups()
        body["home"]["players"][2].pop("substitute")
        body["away"]["players"][0]["player"].pop("id")
        body["away"]["players"][1]["statistics"] = {"rating": "high"}
        found, whole = parse(body), parse(lineups())
        counts = [len(side.players) for side in whole.lineups]
        assert [len(side.players) for side in found.lineups] == [number - 1 for number in counts]
        assert [part.path for part in found.integrity.broken_parts] == [
            "away.players[].player.id", "away.players[].statistics.rating", "home.players[].substitute",
        ]  # fmt: skip

    def test_a_challenge_is_not_an_absent_lineup(self) -> None:
        with pytest.raises(Blocked):
            parse({"error": {"code": 403, "reason": "challenge"}})

    @pytest.mark.requirement("ZT-5")
    def test_an_impossible_rating_is_left_out(self) -> None:
        home = side(1, 100)
        home["players"][0]["statistics"] = {"rating": 77.0}
        found = parse(lineups(home=home))
        assert found.lineups[0].players[0].rating is None
        assert [one.path for one in found.integrity.broken_parts] == ["home.players[].statistics.rating"]

    def test_an_unknown_position_is_noted(self) -> None:
        home = side(1, 100)
        home["players"][0]["position"] = "SW"
        assert [word.value for word in parse(lineups(home=home)).unknown] == ["SW"]


@pytest.mark.requirement("FS-19")
class TestFigures:
    def test_are_of_those_who_played(self) -> None:
        home = side(1, 100)
        home["players"][0]["statistics"] = {"rating": 7.7, "minutesPlayed": 90, "goals": 1, "ratingVersions": {}}
        home["players"][12]["statistics"] = {}
        [figure] = figures(lineups(home=home)).figures
        assert (figure.side, figure.role, figure.player_id, figure.name) == ("team_a", "rating", "100", "Player 100")
        assert figure.values == {"rating": 7.7, "minutes": 90, "goals": 1}

    def test_of_a_match_without_lineups_are_none(self) -> None:
        assert FOOTBALL.parse_figures(build.reading(build.SOFA)).figures == ()


@pytest.mark.requirement("FS-19")
class TestAgainstTheStadium:
    def test_football_lineups_are_none_then_predicted_confirmed_and_rated(self) -> None:
        site = Site(programme="only:sofascore:2", seed=7)
        match = site.simulation.programme.match(site.simulation.programme.slots[0], 3, "sofascore")
        seen: list[tuple[bool, ...]] = []
        for seconds in (-5 * 3600.0, -2 * 3600.0, -1800.0, 600.0, match.script.ends_at + 1):
            site.move_to(match, seconds)
            found = FOOTBALL.parse_lineups(site.football_lineups(match))
            seen.append(tuple(lineup.is_confirmed for lineup in found.lineups))
            assert all(len(lineup.starters) == 11 and len(lineup.players) == 19 for lineup in found.lineups)
        assert seen == [(), (False, False), (True, True), (True, True), (True, True)]
        rated = FOOTBALL.parse_figures(site.football_lineups(match)).figures
        assert len(rated) >= 22
        goals = sum(int(figure.values["goals"] or 0) for figure in rated)
        own = sum(event["description"].startswith("ownGoal") for event in site.truth(match)["events"])
        assert goals + own == sum(score["goals"] for score in site.truth(match)["score"].values())

    def test_predicted_lineups_differ_from_confirmed_ones(self) -> None:
        site = Site(programme="only:sofascore:2", seed=7)
        match = site.simulation.programme.match(site.simulation.programme.slots[0], 3, "sofascore")
        elevens = []
        for seconds in (-2 * 3600.0, -60.0):
            site.move_to(match, seconds)
            elevens.append(
                {p.player_id for p in FOOTBALL.parse_lineups(site.football_lineups(match)).lineups[0].starters}
            )
        assert len(elevens[0] & elevens[1]) == 10

    def test_cricket_has_teams_and_a_scorecard(self) -> None:
        site = Site(programme="only:sofascorecricket:1", seed=7)
        match = site.simulation.programme.match(site.simulation.programme.slots[0], 0, "sofascorecricket")
        site.move_to(match, -60)
        assert [len(one.starters) for one in CRICKET.parse_lineups(site.cricket(match, "lineups")).lineups] == [11, 11]
        assert CRICKET.parse_figures(site.cricket(match)).figures == ()
        site.move_to(match, match.script.ends_at + 60)
        found = CRICKET.parse_figures(site.cricket(match, "innings"))
        assert found.payload_schema == "sofascore.innings.v1"
        for innings in site.truth(match)["innings"]:
            bats = [f for f in found.figures if (f.innings, f.role) == (innings["number"], "batting")]
            bowls = [f for f in found.figures if (f.innings, f.role) == (innings["number"], "bowling")]
            assert {f.side for f in bats} == {innings["batting"]}
            assert [(f.name, f.values["runs"], f.values["balls"]) for f in bats] == [
                (one["player"], one["runs"], one["balls"]) for one in innings["batting_card"]
            ]
            assert sum(f.values["is_out"] is True for f in bats) == innings["wickets"]
            assert [(f.name, f.values["overs"], f.values["wickets"]) for f in bowls] == [
                (one["player"], one["overs"], one["wickets"]) for one in innings["bowling_card"]
            ]


@recorded
@pytest.mark.requirement("FS-19")
class TestRecordings:
    def recorded(self, name: str) -> Any:
        file = Path(FOLDER, "sofascore", f"{name}.json")
        if not file.exists():
            pytest.skip(f"the recordings have no {name}")
        return json.loads(file.read_text())

    def test_a_brazilian_match(self) -> None:
        body = self.recorded("stefanordc_lineups_atletico-mg")
        read = build.reading(RefInfo("1", ""), build.document("lineups", body))
        found = FOOTBALL.parse_lineups(read)
        assert [(one.formation, len(one.starters), len(one.players)) for one in found.lineups] == [
            ("4-2-2-2", 11, 22),
            ("4-3-3", 11, 23),
        ]
        assert [sum(player.rating is not None for player in one.players) for one in found.lineups] == [15, 16]
        assert [player.name for player in found.lineups[0].players if player.is_captain] == ["Hulk"]
        keeper = found.lineups[0].players[0]
        assert (keeper.name, keeper.position, keeper.shirt, keeper.rating, keeper.minutes) == (
            "Everson",
            "G",
            "22",
            7.7,
            90,
        )
        assert found.unknown == ()
        for lineup, at in zip(found.lineups, ("home", "away"), strict=True):
            for player, listed in zip(lineup.players, body[at]["players"], strict=True):
                assert (player.player_id, player.name) == (str(listed["player"]["id"]), listed["player"]["name"])
                assert player.is_starter is not listed["substitute"]
                assert player.rating == listed["statistics"].get("rating")
        played = [one for at in ("home", "away") for one in body[at]["players"] if "minutesPlayed" in one["statistics"]]
        assert len(FOOTBALL.parse_figures(read).figures) == len(played)

    def test_a_cricket_match_has_neither_formation_nor_ratings(self) -> None:
        body = self.recorded("tunjayoff_cricket_lineups_16526539_trimmed")
        found = CRICKET.parse_lineups(build.reading(RefInfo("16526539", ""), build.document("lineups", body)))
        assert [(one.formation, [player.position for player in one.players]) for one in found.lineups] == [
            ("", ["AR", "AR", "AR"]),
            ("", ["BM", "AR", "B"]),
        ]
        assert found.unknown == ()
