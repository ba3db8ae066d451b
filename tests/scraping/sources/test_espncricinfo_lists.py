"""Line-ups, player figures and lists of matches of ESPNcricinfo."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from scraping.errors import Drift
from scraping.payloads import Status
from scraping.sources import ADAPTERS
from scraping.sources.base import RefInfo
from scraping.sources.espncricinfo.adapter import EspncricinfoAdapter
from tests.scraping.sources import builders as build
from tests.scraping.sources import espncricinfo_pages as pages
from tests.scraping.sources.espncricinfo_pages import ADAPTER, read


class TestPlayers:
    def test_sides_come_from_the_team_and_roles_from_the_letter(self) -> None:
        found = ADAPTER.parse_lineups(read(pages.page(name="scorecard")))
        assert (found.payload_schema, found.kickoff) == ("espncricinfo.scorecard.v1", build.START)
        sides = {one.side: one for one in found.lineups}
        bo, cy = sides["team_b"].players
        assert (bo.player_id, bo.name, bo.position, bo.is_captain) == ("70002", "Bo Finch", "opening batter", True)
        assert (cy.position, cy.is_captain, cy.is_starter) == ("WK", False, True)
        assert sides["team_a"].is_confirmed

    def test_a_squad_is_no_eleven_and_withdrawn_players_do_not_start(self) -> None:
        squads = [
            {"type": "SQUAD", "team": pages.ORCHARD, "players": [pages.squad_player(pages.ADA)]},
            {"type": "PLAYING", "team": pages.PELICAN, "players": [pages.squad_player(pages.BO, isWithdrawn=True)]},
        ]
        inside = pages.content(matchPlayers={"teamPlayers": squads})
        found = ADAPTER.parse_lineups(read(pages.page(None, inside, name="scorecard")))
        assert [(one.is_confirmed, len(one.starters)) for one in found.lineups] == [(False, 0), (True, 0)]
        assert [word.value for word in found.unknown] == ["SQUAD"]

    def test_a_twelfth_player_is_listed_and_does_not_start(self) -> None:
        """A substitute for a concussed player."""
        people = [pages.BO | {"id": 500 + place, "objectId": 900 + place} for place in range(12)]
        squad = {"type": "PLAYING", "team": pages.PELICAN, "players": [pages.squad_player(one) for one in people]}
        inside = pages.content(matchPlayers={"teamPlayers": [squad]})
        (lineup,) = ADAPTER.parse_lineups(read(pages.page(None, inside, name="scorecard"))).lineups
        assert (len(lineup.players), len(lineup.starters), lineup.players[-1].is_starter) == (12, 11, False)
        squad["players"][3]["isWithdrawn"] = True
        (lineup,) = ADAPTER.parse_lineups(read(pages.page(None, inside, name="scorecard"))).lineups
        assert (len(lineup.starters), lineup.players[3].is_starter, lineup.players[-1].is_starter) == (11, False, True)

    def test_a_substitute_who_is_listed_first_does_not_start_where_the_page_says_so(self) -> None:
        people = [pages.BO | {"id": 500 + place, "objectId": 900 + place} for place in range(12)]
        rows = [pages.squad_player(one) for one in people]
        rows[0]["note"] = "Concussion substitute"
        squad = {"type": "PLAYING", "team": pages.PELICAN, "players": rows}
        inside = pages.content(matchPlayers={"teamPlayers": [squad]})
        (lineup,) = ADAPTER.parse_lineups(read(pages.page(None, inside, name="scorecard"))).lineups
        assert [one.is_starter for one in lineup.players] == [False] + [True] * 11

    def test_none_yet_is_an_answer(self) -> None:
        assert ADAPTER.parse_lineups(build.reading(pages.REF)).lineups == ()
        empty = pages.page(None, pages.content(matchPlayers=None), name="scorecard")
        assert ADAPTER.parse_lineups(read(empty)).lineups == ()

    def test_figures_are_of_those_who_batted_and_bowled(self) -> None:
        batter = {
            "player": pages.BO, "battedType": "yes", "runs": 31, "balls": 22, "fours": 3, "sixes": 1, "minutes": 30,
            "isOut": True, "dismissalText": {"short": "bowled", "long": " b Reed"},
        }  # fmt: skip
        idle = batter | {"player": pages.CY, "battedType": "DNB", "runs": None, "balls": None, "dismissalText": None}
        bowler = {"player": pages.ADA, "overs": 3.4, "balls": 22, "maidens": 1, "conceded": 19, "wickets": 2}
        innings = [pages.inning(1, pages.PELICAN, 88, 2, 10.3, inningBatsmen=[batter, idle], inningBowlers=[bowler])]
        found = ADAPTER.parse_figures(read(pages.page(None, pages.content(innings=innings), name="scorecard"))).figures
        assert [(one.side, one.role, one.innings, one.player_id) for one in found] == [
            ("team_b", "batting", 1, "70002"),
            ("team_a", "bowling", 1, "70001"),
        ]
        assert found[0].values == {
            "runs": 31, "balls": 22, "fours": 3, "sixes": 1, "minutes": 30, "is_out": True, "how_out": "b Reed",
        }  # fmt: skip
        assert found[1].values == {"overs": "3.4", "balls": 22, "maidens": 1, "runs": 19, "wickets": 2}

    def test_are_requested_from_the_scorecard(self) -> None:
        (request,) = ADAPTER.lineup_requests(pages.REF, pages.BASE)
        assert request.url == pages.URL.replace("live-cricket-score", "full-scorecard")
        assert ADAPTER.figure_requests(pages.REF, pages.BASE) == (request,)


class TestLists:
    def test_a_list_has_its_matches_once_with_teams_and_series(self) -> None:
        rows = [
            pages.match(),
            pages.match(),
            pages.match(objectId=800201, state="PRE", startTime=None, **pages.NO_PLAY),
            {},
        ]
        listed = build.document("page", pages.html({"content": {"matches": rows}}))
        first, second = ADAPTER.parse_list(build.reading(RefInfo("", pages.BASE), listed), pages.BASE)
        assert (first.source_event_id, first.url, first.status) == ("800200", pages.URL, Status.LIVE)
        assert first.title == "Orchard City v Pelican Town, 4th Match"
        assert ([team.short_name for team in first.teams], first.series) == (["ORC", "PEL"], "Lantern Cup")
        assert (second.source_event_id, second.status, second.start_time) == ("800201", Status.UPCOMING, None)

    def test_a_day_has_the_matches_that_start_on_it(self) -> None:
        rows = [pages.match(), pages.match(objectId=800201, startTime="2026-05-03T00:30:00.000Z")]
        listed = build.document("page", pages.html({"content": {"matches": rows}}))
        day, base = date(2026, 5, 2), f"{pages.BASE}/"
        found = ADAPTER.parse_fixtures(build.reading(RefInfo("", base), listed), base, day)
        assert [match.source_event_id for match in found] == ["800200"]
        (request,) = ADAPTER.fixture_plan(base, day).requests
        assert request.url.startswith(f"{pages.BASE}/live-cricket-match-schedule-fixtures?")
        assert "2026-05-02" in request.url

    @pytest.mark.parametrize("data", [{}, {"content": {}}, {"content": {"matches": [{"objectId": 1}]}}])
    def test_no_list_is_not_an_empty_list(self, data: Any) -> None:
        with pytest.raises(Drift):
            ADAPTER.parse_list(read(build.document("page", pages.html(data))), pages.BASE)
        empty = build.document("page", pages.html({"content": {"matches": []}}))
        assert ADAPTER.parse_list(read(empty), pages.BASE) == []

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("/series/lc-2026-700100/orc-vs-pel-4th-match-800200", "800200"),
            ("/series/lc-2026-700100/orc-vs-pel-4th-match-800200/full-scorecard", "800200"),
            ("/series/lc-2026-700100/orc-vs-pel-4th-match-800200/ball-by-ball-commentary?innings=2", "800200"),
            ("/series/lc-2026-700100", None),
            ("/series/lc-2026-700100/match-results", None),
            ("/live-cricket-score", None),
            ("/team/orchard-51", None),
        ],
    )
    def test_any_tab_is_the_address_of_a_match(self, path: str, expected: str | None) -> None:
        found = ADAPTER.match_at(pages.BASE + path, pages.BASE)
        assert (found and found.source_event_id) == expected
        if found is not None:
            assert found.url == f"{pages.BASE}/series/lc-2026-700100/orc-vs-pel-4th-match-800200/live-cricket-score"
            (request,) = ADAPTER.requests(RefInfo("800200", pages.BASE + path), pages.BASE)
            assert (request.name, request.url) == ("page", found.url)

    def test_it_is_registered(self) -> None:
        assert isinstance(ADAPTERS["espncricinfo"], EspncricinfoAdapter)
