"""Line-ups, player figures, and the fixtures of a day."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Status
from scraping.sources import parsing
from scraping.sources.base import Document, Reading, RefInfo
from scraping.sources.crex.adapter import CrexAdapter
from stadium.sites.crex.details import fixtures
from stadium.sites.crex.listing import names
from tests.scraping.sources import builders as build
from tests.scraping.sources.crex_site import CrexSite

ADAPTER = CrexAdapter()
NAMES = {"p": [{"f_key": "A1", "n": "Ada Reed"}, {"f_key": "B1", "n": "Bo Finch"}], "t": [], "s": []}
MAPPING = "https://names.test/mapping/getHomeMapDatascorecard"
XI = "/".join("-".join(f"{side}{number}.12.{number % 4}.0.0.0" for number in range(1, 12)) for side in "AB")
SQUADS = {"t": "OR-PE", "tp": XI, "tb": "A12.3.1.0.0.0/", "x": "A2/A1/B3/B1"}
CARD = [
    {"c": "OR", "d": "151/10(116", "b": ["A1.40.31.4.1.2.B1./22-129.03", "A2.0.0.0.0"], "a": ["B1.30.24.1.3"], "e": ""},
    {"c": "PE", "d": "88/2(63", "b": ["B1.50.30.5.2"], "a": ["A1.12.7.0.0"], "e": ""},
]


def reading(name: str, answer: Any = None, **changes: Any) -> Reading:
    page = build.page(build.state(**({MAPPING: NAMES} | changes)))
    documents = (page,) if answer is None else (build.document(name, answer), page)
    return build.reading(build.CREX, *documents)


def test_the_adapter_has_all_three() -> None:
    assert ADAPTER.lineup_schema
    assert ADAPTER.figure_schema
    assert ADAPTER.fixture_plan(build.CREX_BASE, date(2026, 5, 2))


class TestRequests:
    def test_are_for_the_response_and_the_tab_with_the_names(self) -> None:
        asked = ADAPTER.lineup_requests(build.CREX, build.CREX_BASE)
        assert [(one.name, one.url) for one in asked] == [
            ("squads", "http://site.test/crex/api/v3/getIV4?key=9XA"),
            ("page", f"{build.CREX.url}/match-details"),
        ]
        asked = ADAPTER.figure_requests(build.CREX, "https://crex.com")
        assert asked[0].url == "https://api.goscorer.com/api/v3/getSC4?key=9XA"
        assert asked[0].headers == {"Origin": "https://crex.com", "Referer": "https://crex.com/"}


class TestFigures:
    def test_are_given_by_innings_with_names(self) -> None:
        parsed = ADAPTER.parse_figures(reading("scorecard", CARD))
        assert (parsed.source, parsed.payload_schema, parsed.source_event_id) == ("crex", "crex.scorecard.v1", "9XA")
        assert [(one.side, one.role, one.innings, one.name) for one in parsed.figures] == [
            ("team_a", "batting", 1, "Ada Reed"),
            ("team_a", "batting", 1, "A2"),
            ("team_b", "bowling", 1, "Bo Finch"),
            ("team_b", "batting", 2, "Bo Finch"),
            ("team_a", "bowling", 2, "Ada Reed"),
        ]
        assert parsed.figures[0].values == {"runs": 40, "balls": 31, "fours": 4, "sixes": 1, "strike_rate": 129.03}
        assert parsed.figures[1].values["strike_rate"] == 0.0
        assert parsed.figures[2].values == {"runs": 30, "balls": 24, "maidens": 1, "wickets": 3, "overs": "4.0"}
        assert [(one.path, one.value) for one in parsed.unknown] == [("p[].f_key", "A2")]

    def test_come_from_the_pages_copy_where_the_answer_is_missing(self) -> None:
        parsed = ADAPTER.parse_figures(reading("scorecard", **{"https://live.test/api/v3/getSC4": CARD}))
        assert len(parsed.figures) == 5

    def test_are_none_where_the_source_has_none(self) -> None:
        assert ADAPTER.parse_figures(reading("scorecard")).figures == ()

    @pytest.mark.requirement("BX-6")
    def test_of_another_match_are_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="team ZZ"):
            ADAPTER.parse_figures(reading("scorecard", [CARD[0] | {"c": "ZZ"}]))
        other = build.state()
        other["match-8QQ"] = other.pop("match-9XA") | {"fkey": "8QQ"}
        with pytest.raises(PayloadRejected, match="8QQ instead of 9XA"):
            ADAPTER.parse_figures(build.reading(build.CREX, build.document("scorecard", CARD), build.page(other)))

    @pytest.mark.requirement("BX-6")
    def test_of_another_match_between_the_same_teams_are_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="between these teams"):
            ADAPTER.parse_figures(reading("scorecard", [CARD[0] | {"d": "170/4(120"}, CARD[1]]))

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"b": ["A1.40.31"], "a": ["B1"]}, "innings[].b[]"),
            ({"b": 5, "a": [5]}, "innings[].b"),
            ({"c": None}, "innings[0].c"),
        ],
    )
    def test_of_which_none_can_be_read_break_with_the_path(self, changes: dict[str, Any], path: str) -> None:
        with pytest.raises(SchemaBreak, match=re.escape(f"crex.scorecard.v1: {path}")):
            ADAPTER.parse_figures(reading("scorecard", [CARD[0] | changes]))
        with pytest.raises(SchemaBreak, match=re.escape("crex.scorecard.v1: innings (")):
            ADAPTER.parse_figures(reading("scorecard", {"error": "Request Payload Error!"}))

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize(
        ("changes", "path", "lost"),
        [
            ({"b": ["A1.40.31", *CARD[0]["b"][1:]]}, "innings[].b[]", 1),
            ({"b": [None, *CARD[0]["b"][1:]]}, "innings[].b[]", 1),
            ({"a": ["B1.x.24.1.3"]}, "innings[].a[]", 1),
            ({"b": "A1.40.31.4.1"}, "innings[].b", 2),
            ({"c": None}, "innings[]", 3),
            ({"d": "-"}, "", 0),
        ],
    )
    def test_one_that_cannot_be_read_costs_itself(self, changes: dict[str, Any], path: str, lost: int) -> None:
        parsed = ADAPTER.parse_figures(reading("scorecard", [CARD[0] | changes, CARD[1]]))
        assert len(parsed.figures) == 5 - lost
        assert [(one.innings, one.player_id) for one in parsed.figures][-2:] == [(2, "B1"), (2, "A1")]
        assert build.broken(parsed) == ({path: 1} if path else {})

    def test_without_a_page_the_teams_are_unknown(self) -> None:
        with pytest.raises(LayoutChanged, match="which teams"):
            ADAPTER.parse_figures(build.reading(build.CREX, build.document("scorecard", CARD)))


class TestLineups:
    def test_have_the_eleven_with_roles_captain_and_keeper(self) -> None:
        parsed = ADAPTER.parse_lineups(reading("squads", SQUADS))
        assert (parsed.payload_schema, parsed.kickoff) == ("crex.squads.v1", build.START)
        first, second = parsed.lineups
        assert (first.side, first.is_confirmed, len(first.starters), len(first.players)) == ("team_a", True, 11, 12)
        assert [player.player_id for player in first.players if player.is_captain] == ["A2"]
        assert [player.position for player in first.players[:4]] == ["WK", "BOWL", "AR", "WK"]
        assert first.players[0].name == "Ada Reed"
        assert not first.players[11].is_starter
        assert (second.side, second.starters[2].is_captain) == ("team_b", True)

    def test_are_in_the_order_of_the_match(self) -> None:
        swapped = SQUADS | {"t": "PE-OR"}
        first, _ = ADAPTER.parse_lineups(reading("squads", swapped)).lineups
        assert (first.side, first.players[0].player_id) == ("team_a", "B1")

    @pytest.mark.parametrize("nobody", ["", None])
    def test_before_the_toss_are_unconfirmed_squads(self, nobody: Any) -> None:
        parsed = ADAPTER.parse_lineups(reading("squads", SQUADS | {"tp": nobody, "tb": XI, "x": nobody}))
        assert [(side.is_confirmed, side.is_xi_missing, len(side.players)) for side in parsed.lineups] == [
            (False, True, 11)
        ] * 2

    def test_are_none_where_the_source_has_none(self) -> None:
        assert ADAPTER.parse_lineups(reading("squads")).lineups == ()

    def test_an_unknown_role_is_counted(self) -> None:
        parsed = ADAPTER.parse_lineups(reading("squads", SQUADS | {"tp": "A1.12.7.0.0.0/", "tb": ""}))
        assert ("tp.role", "7") in [(one.path, one.value) for one in parsed.unknown]
        assert parsed.lineups[0].players[0].name == "Ada Reed"

    @pytest.mark.requirement("BX-6")
    def test_of_another_match_are_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="OR/ZZ instead of OR/PE"):
            ADAPTER.parse_lineups(reading("squads", SQUADS | {"t": "OR-ZZ"}))

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(("changes", "path"), [({"t": "OR"}, "t"), ({"tp": 5}, "tp"), ({"tp": "A1"}, "tp")])
    def test_of_another_shape_break_with_the_path(self, changes: dict[str, Any], path: str) -> None:
        with pytest.raises(SchemaBreak, match=re.escape(f"crex.squads.v1: {path} (")):
            ADAPTER.parse_lineups(reading("squads", SQUADS | changes))

    @pytest.mark.requirement("SO-12")
    def test_a_player_that_cannot_be_read_costs_itself(self) -> None:
        spoilt = {"tp": XI.replace("A5.12.1.0.0.0", "A5"), "tb": "A12/", "x": 5}
        parsed = ADAPTER.parse_lineups(reading("squads", SQUADS | spoilt))
        first, second = parsed.lineups
        assert (first.is_confirmed, len(first.starters), len(second.starters)) == (True, 10, 11)
        assert build.broken(parsed) == {"tb": 1, "tp": 1, "x": 1}

    @pytest.mark.requirement("SO-12")
    def test_an_order_that_cannot_be_read_is_that_of_the_squads(self) -> None:
        state = build.state()["https://live.test/api/v3/getSV3?key=9XA"] | {"a": "OR.PE.OR"}
        parsed = ADAPTER.parse_lineups(reading("squads", SQUADS, **{"https://live.test/api/v3/getSV3?key=9XA": state}))
        assert [one.side for one in parsed.lineups] == ["team_a", "team_b"]


class TestFixtures:
    DAY = build.START.date()

    def item(self, key: str, **changes: Any) -> dict[str, Any]:
        when = int(build.START.timestamp() * 1000)
        return {"mf": key, "b": "OR", "c": "PE", "ti": when, "q": "^LC", "fo": "T20"} | changes

    def parse(self, *pages: Any, **state: Any) -> dict[str, Any]:
        mapping = build.state()["https://names.test/mapping/getHomeMapDataliveparsing"]
        page = build.page({"https://names.test/mapping/getHomeMapDatafixture": mapping} | state)
        answers = (build.document(f"fixtures{number}", rows) for number, rows in zip((-1, 0, 1), pages, strict=False))
        read = build.reading(RefInfo("", ""), page, *answers, captured_at=build.BEFORE)
        return {one.source_event_id: one for one in ADAPTER.parse_fixtures(read, build.CREX_BASE, self.DAY)}

    def test_are_requested_with_the_body_of_the_site(self) -> None:
        plan = ADAPTER.fixture_plan(build.CREX_BASE, self.DAY)
        posted = [json.loads(one.body or b"") for one in plan.requests if one.method == "POST"]
        assert [body["page"] for body in posted] == [-1, 0, 1]
        assert posted[0].keys() == {"tl", "type", "page", "wise", "lang", "formatType"}
        assert {one.url for one in plan.requests[1:]} == {f"{build.CREX_BASE}/fixture/getFixture"}

    def test_of_the_day_are_found_on_all_pages_however_they_are_grouped(self) -> None:
        tomorrow = int((build.START + timedelta(days=1)).timestamp() * 1000)
        found = self.parse(
            [self.item("1AA", res="ORC won by 3 runs", j="12/0(1.2")],
            {"2026-05-02": {"LC": [self.item("2BB"), self.item("3CC", ti=tomorrow)]}},
            [self.item("2BB")],
        )
        assert {key: match.status for key, match in found.items()} == {"1AA": Status.COMPLETED, "2BB": Status.UPCOMING}
        assert [team.short_name for team in found["2BB"].teams] == ["ORC", "PEL"]
        assert found["2BB"].series == "Lantern Cup & Shield"
        assert found["2BB"].url == f"{build.CREX_BASE}/cricket-live-score/match-updates-2BB"

    def test_come_from_the_pages_state_where_nothing_answered(self) -> None:
        assert self.parse(**{"https://stats.test/fixture/getFixture": [self.item("1AA")]}).keys() == {"1AA"}

    @pytest.mark.parametrize("mf", [{}, {"mf": None}, {"mf": ""}])
    def test_the_key_may_have_another_name(self, mf: dict[str, Any]) -> None:
        row = {name: value for name, value in self.item("1AA").items() if name != "mf"} | mf | {"matchFkey": "1AA"}
        assert self.parse([row]).keys() == {"1AA"}

    def test_a_row_may_name_its_teams_itself(self) -> None:
        row = {
            "matchFkey": "1AA", "team1": "Orchard City", "t1SName": "ORC", "team2": "Quail", "t2SName": "QUA",
            "t": build.START.isoformat(), "status": 0,
        }  # fmt: skip
        found = self.parse([row])["1AA"]
        assert (found.title, found.start_time) == ("Orchard City v Quail", build.START)
        assert [team.short_name for team in found.teams] == ["ORC", "QUA"]

    @pytest.mark.parametrize(
        "start",
        [
            {"ti": int(build.START.timestamp())},
            {"ti": None, "t": int(build.START.timestamp())},
            {"ti": None, "date": f"{build.START:%Y-%m-%d}", "time": f"{build.START:%H:%M}"},
        ],
        ids=["in seconds", "under another name", "date and time"],
    )
    def test_the_start_has_several_forms(self, start: dict[str, Any]) -> None:
        assert self.parse([self.item("1AA", **start)])["1AA"].start_time == build.START

    def test_a_key_of_digits_may_be_a_number(self) -> None:
        assert self.parse([self.item("1AA", mf=4711)]).keys() == {"4711"}

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize("changes", [{"mf": None, "code": "2BB"}, {"ti": None}], ids=["unknown key", "no start"])
    def test_a_row_that_cannot_be_read_is_counted(self, changes: dict[str, Any]) -> None:
        with parsing.noting_unrecognized() as noted:
            assert self.parse([self.item("1AA"), self.item("2BB", **changes)]).keys() == {"1AA"}
        assert [one.path for one in noted] == [parsing.LIST_ROW]

    @pytest.mark.requirement("EC-1", "FS-2")
    def test_a_list_without_any_start_cannot_be_read(self) -> None:
        with pytest.raises(SchemaBreak, match="the start of 1AA"):
            self.parse([self.item("1AA", ti=None)])

    @pytest.mark.requirement("EC-1", "FS-2")
    def test_rows_without_a_known_key_are_a_changed_layout(self) -> None:
        with pytest.raises(LayoutChanged, match="mf, matchFkey"):
            self.parse([{"key": "1AA", "b": "OR", "c": "PE"}])
        assert self.parse([], [], []) == {}

    @pytest.mark.requirement("EC-1", "FS-2")
    def test_no_row_where_the_page_shows_matches_is_a_changed_layout(self) -> None:
        link = '<a href="/crex/cricket-live-score/orc-vs-pel-4th-match-match-updates-9XA">ORC v PEL</a>'
        page = build.document("page", build.page_html({}, link), url=f"{build.CREX_BASE}/schedule")
        read = build.reading(RefInfo("", ""), page, build.document("fixtures0", []))
        with pytest.raises(LayoutChanged, match="the page shows 1 matches"):
            ADAPTER.parse_fixtures(read, build.CREX_BASE, self.DAY)

    @pytest.mark.requirement("EC-1")
    def test_missing_fixtures_are_a_changed_layout(self) -> None:
        with pytest.raises(LayoutChanged, match="getFixture"):
            self.parse()

    @pytest.mark.requirement("FS-2")
    def test_of_another_shape_break_with_the_path(self) -> None:
        with pytest.raises(SchemaBreak, match=re.escape("crex.list.v1: c (")):
            self.parse([self.item("1AA", c="no key")])


class TestAgainstTheStadium:
    """Parsed responses of the simulated site agree with the ground truth."""

    def test_figures_are_those_of_the_cards(self) -> None:
        site = CrexSite.of_programme("single")
        site.move(300)
        parsed = ADAPTER.parse_figures(site.read_tab("scorecard", "match-scorecard"))
        lines = [(one.innings, one.role, one.name, one.values["runs"], one.values["balls"]) for one in parsed.figures]
        assert lines == [
            (innings.number + 1, role, line.player.name, line.runs, line.balls)
            for innings in site.state.innings
            for role, card in (("batting", innings.batters), ("bowling", innings.bowlers))
            for line in card.values()
        ]
        assert parsed.unknown == ()

    def test_squads_become_elevens_at_the_toss(self) -> None:
        site = CrexSite.of_programme("single")
        before = ADAPTER.parse_lineups(site.read_tab("squads", "match-details"))
        site.move()
        after = ADAPTER.parse_lineups(site.read_tab("squads", "match-details"))
        assert ([one.is_confirmed for one in before.lineups], [one.is_confirmed for one in after.lineups]) == (
            [False, False],
            [True, True],
        )
        for lineup, team in zip(after.lineups, site.match.teams, strict=True):
            assert [player.name for player in lineup.starters] == [player.name for player in team.players]
            assert [player.name for player in lineup.players if player.is_captain] == [team.players[1].name]

    def test_fixtures_show_what_is_on(self) -> None:
        simulation = CrexSite.of_programme("mixed:21:0").simulation
        shown = simulation.listed_matches("crex")
        pages = [
            Document(
                f"fixtures{page}", "", 200, "application/json", json.dumps(fixtures(simulation, "crex", page)).encode()
            )
            for page in (-1, 0, 1)
        ]
        assert [len(json.loads(page.body)) for page in pages][1] == 20
        page = build.page({"http://site.test/mapping/getHomeMapData": names(shown)})
        now = datetime.fromtimestamp(simulation.clock.wall(), tz=UTC)
        read = build.reading(RefInfo("", ""), page, *pages, captured_at=now)
        days = {datetime.fromtimestamp(simulation.start_wall(match), tz=UTC).date() for match in shown}
        listed = {
            one.source_event_id: one for day in days for one in ADAPTER.parse_fixtures(read, build.CREX_BASE, day)
        }
        running = {match.key: match for match in shown if match.starts_at <= simulation.clock.now() < match.ends_at}
        assert len(running) > 10
        assert running.keys() <= listed.keys()
        for key, match in running.items():
            assert [team.name for team in listed[key].teams] == [team.name for team in match.teams]
            assert listed[key].status is Status.LIVE
