"""ESPN cricket: parsing of the summary, with its special cases."""

from __future__ import annotations

import copy
import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from scraping.errors import Blocked, Gone, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import ReadMode, RefInfo
from scraping.sources.espn.cricket import EspnAdapter
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn

ESPN = EspnAdapter()
PLAYS_URL = f"{espn.BASE}/apis/site/v2/sports/cricket/8100/playbyplay?event=1500001"


def parsed(answer: dict[str, Any], *pages: dict[str, Any]) -> Payload:
    names = ["plays", *(f"plays:{number}" for number in range(1, len(pages)))]
    documents = [build.document(name, body) for name, body in zip(names, pages, strict=False)]
    return ESPN.parse(build.reading(espn.CRICKET, build.document("summary", answer), *documents, mode=ReadMode.DIRECT))


def test_needs_no_visit_and_has_line_ups() -> None:
    adapter = adapter_for("espn")
    assert adapter.requests(espn.CRICKET, espn.CRICKET.url)
    assert adapter.lineup_schema


LINES = "header.competitions[].competitors[].linescores"


def first_line(competition: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = competition["competitors"][0]["linescores"][0]
    return line


class TestSummary:
    @pytest.mark.requirement("SO-12")
    def test_gives_the_match(self) -> None:
        payload = parsed(espn.summary(), espn.page([espn.play()]))
        state = payload.state
        assert (state.teams.team_a.name, state.teams.team_b.short_name) == ("Orchard & City", "PEL")
        assert (state.status, state.phase, state.current_innings) == (Status.LIVE, Phase.PLAY, 2)
        assert [(one.team, one.runs, one.wickets, one.overs, one.target) for one in state.innings] == [
            ("team_a", 151, 10, "19.2", None),
            ("team_b", 88, 2, "10.3", 152),
        ]
        assert (state.score.team_b.runs, state.score.team_b.overs) == (88, "10.3")
        assert state.toss is not None
        assert (state.toss.winner, state.toss.decision) == ("Pelican Town", "field")
        assert (state.venue, state.metadata["series"]) == ("Lantern Field, Orchard", "Lantern Cup & Shield")
        assert (state.metadata["match_type"], state.start_time) == ("T20", datetime(2026, 5, 2, 14, tzinfo=UTC))
        assert (payload.payload_schema, payload.integrity.missing_fields) == ("espn.summary.v1", ())

    @pytest.mark.parametrize(
        ("standing", "expected"),
        [
            pytest.param(espn.status(), (Status.LIVE, Phase.PLAY), id="play"),
            pytest.param(espn.status(description="Innings break"), (Status.LIVE, Phase.INNINGS_BREAK), id="break"),
            pytest.param(espn.status(description="Lunch"), (Status.LIVE, Phase.LUNCH), id="lunch"),
            pytest.param(espn.status(description="Tea"), (Status.LIVE, Phase.TEA), id="tea"),
            pytest.param(espn.status(description="Drinks"), (Status.LIVE, Phase.DRINKS), id="drinks"),
            pytest.param(espn.status(description="Stumps", detail="Live"), (Status.LIVE, Phase.STUMPS), id="stumps"),
            pytest.param(espn.status(description="Match delayed by rain"), (Status.LIVE, Phase.RAIN), id="rain"),
            pytest.param(
                espn.status(summary="Day 3 - Match delayed by bad light"), (Status.LIVE, Phase.RAIN), id="bad light"
            ),
            pytest.param(
                espn.status(summary="Day 2: play abandoned for the day"), (Status.LIVE, Phase.PLAY), id="one lost day"
            ),
            pytest.param(
                espn.status("in", summary="Pelican Town won by 8 wkts (32b rem)"),
                (Status.COMPLETED, Phase.FINISHED),
                id="the result comes before the status",
            ),
            pytest.param(
                espn.status("in", summary="Match tied, Super Over in progress"),
                (Status.LIVE, Phase.PLAY),
                id="a tie that a super over follows",
            ),
            pytest.param(
                espn.status("in", summary="Pelican Town won the toss and elected to field"),
                (Status.LIVE, Phase.PLAY),
                id="winning the toss is no result",
            ),
            pytest.param(espn.status("post", "Result", "Match drawn"), (Status.COMPLETED, Phase.FINISHED), id="a draw"),
            pytest.param(espn.status("post", "Result"), (Status.COMPLETED, Phase.FINISHED), id="over, nothing said"),
            pytest.param(espn.status("post", "No result"), (Status.ABANDONED, Phase.FINISHED), id="no result"),
            pytest.param(espn.status("post", "Abandoned"), (Status.ABANDONED, Phase.FINISHED), id="abandoned"),
        ],
    )
    def test_gives_status_and_phase(self, standing: dict[str, Any], expected: tuple[Status, Phase]) -> None:
        state = parsed(espn.summary(status=standing)).state
        assert (state.status, state.phase) == expected

    @pytest.mark.parametrize(
        ("standing", "expected"),
        [
            pytest.param(espn.status("pre", "Scheduled"), (Status.UPCOMING, Phase.SCHEDULED), id="scheduled"),
            pytest.param(
                espn.status("post", "Match postponed", name="STATUS_POSTPONED", completed=False),
                (Status.UPCOMING, Phase.POSTPONED),
                id="postponed is over and not completed",
            ),
            pytest.param(
                espn.status("post", "Match cancelled without a ball bowled", completed="false"),
                (Status.ABANDONED, Phase.FINISHED),
                id="cancelled",
            ),
        ],
    )
    def test_gives_status_without_play(self, standing: dict[str, Any], expected: tuple[Status, Phase]) -> None:
        answer = espn.summary(status=standing)
        for side in answer["header"]["competitions"][0]["competitors"]:
            side["linescores"] = None
        state = parsed(answer).state
        assert (state.status, state.phase, state.innings) == (*expected, ())

    def test_takes_the_result_from_its_sentence(self) -> None:
        ended = espn.status("post", "Result", "Pelican Town won by 8 wkts (32b rem)")
        assert parsed(espn.summary(status=ended)).state.result == "Pelican Town won by 8 wkts (32b rem)"

    @pytest.mark.parametrize(
        ("note", "phase"),
        [
            pytest.param("day 1 - Pelican Town 1st innings 88/2 (C Moss 31*, 10.3 ov)", Phase.STUMPS, id="stands"),
            pytest.param("day 1 - Pelican Town 1st innings 80/2 (C Moss 25*, 9 ov)", Phase.PLAY, id="play went on"),
            pytest.param("day 1 - no play", Phase.PLAY, id="no play"),
        ],
    )
    def test_a_close_of_play_holds_until_the_next_ball(self, note: str, phase: Phase) -> None:
        notes = [{"type": "closeofplay", "text": "day 0 - 1/0 (1 ov)"}, {"type": "closeofplay", "text": note}]
        assert parsed(espn.summary(notes)).state.phase is phase

    def test_innings_come_in_match_order_with_their_flags(self) -> None:
        answer = espn.summary(limitedOvers=False, **{"class": {"eventType": "Test"}})
        home, away = answer["header"]["competitions"][0]["competitors"]
        home["linescores"] = [
            espn.line(1, bats=True, runs=421, wickets=5, overs=100, score="421/5d"),
            espn.line(2, bats=False, overs=60.0),
            espn.line(3, bats=True, runs=130, wickets=10, overs=49.6, description="all out"),
            espn.line(4, bats=False),
        ]
        away["linescores"] = [
            espn.line(2, bats=True, runs=150, wickets=10, overs=60.0),
            espn.line(4, bats=True, runs=9, wickets=1, overs=2.0, target=402, description="declared"),
        ]
        innings = parsed(answer).state.innings
        assert [(one.number, one.team, one.is_declared, one.is_super_over) for one in innings] == [
            (1, "team_a", True, False), (2, "team_b", False, False), (3, "team_a", False, False),
            (4, "team_b", True, False),
        ]  # fmt: skip
        assert [one.overs for one in innings] == ["100.0", "60.0", "50.0", "2.0"]

    def test_a_declaration_may_be_in_the_side_score_alone(self) -> None:
        answer = espn.summary(limitedOvers=False)
        home = answer["header"]["competitions"][0]["competitors"][0]
        home["linescores"].append(espn.line(3, bats=True, runs=130, wickets=4, overs=50.3))
        home["score"] = "151 &amp; 130/4d (50.3 ov)"
        assert [one.is_declared for one in parsed(answer).state.innings] == [False, False, True]

    def test_a_third_innings_of_a_short_match_is_a_super_over(self) -> None:
        answer = espn.summary()
        answer["header"]["competitions"][0]["competitors"][1]["linescores"].append(
            espn.line(3, bats=True, runs=12, wickets=1, overs=1.0)
        )
        assert [one.is_super_over for one in parsed(answer).state.innings] == [False, False, True]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("West Indies , elected to bat first", ("West Indies", "bat")),
            ("PEL, elected to field first", ("Pelican Town", "field")),
            ("Orchard &amp; City won the toss and chose to bowl", ("Orchard & City", "field")),
            ("Toss delayed", None),
        ],
    )
    def test_reads_the_toss_from_its_note(self, text: str, expected: tuple[str, str] | None) -> None:
        toss = parsed(espn.summary([{"type": "toss", "text": text}])).state.toss
        assert (toss and (toss.winner, toss.decision)) == expected

    def test_an_answer_about_another_match_is_refused(self) -> None:
        answer = espn.summary()
        answer["header"]["id"] = "1500002"
        with pytest.raises(PayloadRejected, match="another match: 1500002 instead of 1500001"):
            parsed(answer)

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("path", "named"),
        [
            (("status", "type", "state"), r"header\.competitions\[0\]\.status\.type\.state \(field required\)"),
            (("competitors",), r"header\.competitions\[0\]\.competitors"),
        ],
    )
    def test_a_missing_field_is_named_with_its_path(self, path: tuple[str, ...], named: str) -> None:
        answer = espn.summary()
        *way, last = path
        holder = answer["header"]["competitions"][0]
        for step in way:
            holder = holder[step]
        del holder[last]
        with pytest.raises(SchemaBreak, match=f"espn.summary.v1: {named}"):
            parsed(answer)

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("spoil", "named"),
        [
            (lambda c: first_line(c).update(runs="15 1"), r"linescores\[0\]\.runs \(input should be a valid integer"),
            (
                lambda c: first_line(c).update(overs="19.2.1"),
                r"linescores\[0\]\.overs \(input should be a valid number",
            ),
            (lambda c: first_line(c).update(isBatting=None), r"linescores\[0\]\.isBatting \(input should be"),
            (lambda c: first_line(c).pop("isBatting"), r"linescores: the score of an innings cannot be read"),
            (lambda c: first_line(c).pop("period"), r"linescores: the score of an innings cannot be read"),
            (lambda c: c["competitors"][0].update(linescores=[None]), r"linescores: the score of an innings"),
            (lambda c: c["competitors"][0].update(linescores={}), r"linescores: the score of an innings"),
            (lambda c: c["competitors"][1]["team"].pop("displayName"), r"competitors\[1\]\.team\.displayName"),
            (lambda c: c["competitors"].append(None), r"header\.competitions\[0\]\.competitors \(list"),
        ],
    )
    def test_a_score_or_a_team_that_cannot_be_read_is_a_break(self, spoil: Any, named: str) -> None:
        answer = copy.deepcopy(espn.summary())
        spoil(answer["header"]["competitions"][0])
        with pytest.raises(SchemaBreak, match=named):
            parsed(answer)

    def test_a_competition_before_the_matchs_own_is_not_left_out(self) -> None:
        answer = espn.summary()
        answer["header"]["competitions"].insert(0, None)
        with pytest.raises(SchemaBreak, match=r"header\.competitions\[0\]"):
            parsed(answer)

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("spoil", "path"),
        [
            (lambda c, a: a.update(notes=None), ""),
            (lambda c, a: c.update(notes=None), ""),
            (lambda c, a: a.update(leagues=None), ""),
            (lambda c, a: a["header"].update(leagues=None), ""),
            (lambda c, a: a["header"].update(id=1500001), ""),
            (lambda c, a: c["competitors"][0]["team"].update(id=11), ""),
            (lambda c, a: c.pop("date"), ""),
            (lambda c, a: c.update(date=None), ""),
            (lambda c, a: c.update(date="soon"), "header.competitions[].date"),
            (lambda c, a: c.update(date=5), "header.competitions[].date"),
            (lambda c, a: c["competitors"][0].pop("homeAway"), ""),
            (lambda c, a: c["competitors"][1].update(homeAway=None), ""),
            (lambda c, a: c["competitors"][0].update(score={}), "header.competitions[].competitors[].score"),
            (lambda c, a: c["competitors"][0]["linescores"].append(None), f"{LINES}[]"),
            (lambda c, a: first_line(c).update(fow=[None]), f"{LINES}[].fow[]"),
            (lambda c, a: a.update(notes=[{"type": 5}, None]), "notes[]"),
            (lambda c, a: a["header"].update(league={"name": 5}), "header.league.name"),
            (lambda c, a: a["gameInfo"]["venue"].update(fullName=[]), "gameInfo.venue.fullName"),
        ],
    )  # fmt: skip
    def test_any_other_part_costs_itself(self, spoil: Any, path: str) -> None:
        answer = copy.deepcopy(espn.summary())
        spoil(answer["header"]["competitions"][0], answer)
        payload = parsed(answer, espn.page([espn.play()]))
        assert [one.runs for one in payload.state.innings] == [151, 88]
        assert payload.state.teams.team_a.name == "Orchard & City"
        assert (path in {one.path for one in payload.integrity.broken_parts}) == bool(path)

    @pytest.mark.parametrize("stated", [(None, "home"), ("away", None)])
    def test_one_stated_side_decides_both(self, stated: tuple[Any, Any]) -> None:
        answer = espn.summary()
        for side, home_away in zip(answer["header"]["competitions"][0]["competitors"], stated, strict=True):
            side["homeAway"] = home_away
        assert parsed(answer).state.teams.team_a.name == "Pelican Town"

    def test_unknown_texts_are_counted(self) -> None:
        odd = espn.play(playType={"id": "77", "description": "moon ball"})
        payload = parsed(espn.summary(status=espn.status(description="Bees on the pitch")), espn.page([odd]))
        assert {(one.path.rpartition(".")[2], one.value) for one in payload.unknown} == {
            ("description", "Bees on the pitch"), ("description", "moon ball"),
        }  # fmt: skip
        assert payload.state.status is Status.LIVE

    @pytest.mark.requirement("FS-8")
    def test_the_payload_has_schema_source_time_and_integrity(self) -> None:
        payload = parsed(espn.summary(status=espn.status(description="Bees on the pitch")))
        assert (payload.source, payload.payload_schema) == ("espn", "espn.summary.v1")
        assert (payload.source_event_id, payload.captured_at) == ("1500001", build.DURING)
        assert payload.normalized()["score"]["team_b"]["runs"] == 88
        assert payload.integrity.missing_fields == ("last_event", "events")
        assert [one.value for one in payload.unknown] == ["Bees on the pitch"]

    def test_an_unknown_state_is_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="unknown state 'limbo'"):
            parsed(espn.summary(status=espn.status("limbo")))

    def test_a_page_that_shows_the_response_is_accepted(self) -> None:
        shown = json.dumps(espn.summary()).replace("&", "&amp;").replace("<", "&lt;")
        html = f'<html><head></head><body><pre style="x">{shown}</pre></body></html>'
        payload = ESPN.parse(build.reading(espn.CRICKET, build.document("page", html)))
        assert (payload.state.score.team_b.runs, payload.integrity.missing_fields) == (88, ("last_event", "events"))

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            ({"code": 404, "message": "Failed to get events endpoint."}, Gone),
            ("<title>Just a moment...</title>", Blocked),
            ("half of it", SchemaBreak),
        ],
    )
    def test_distinguishes_challenges_and_errors_from_responses(self, body: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            ESPN.parse(build.reading(espn.CRICKET, build.document("summary", body), mode=ReadMode.DIRECT))


class TestLineups:
    def read(self, answer: dict[str, Any]) -> Any:
        return ESPN.parse_lineups(build.reading(espn.CRICKET, build.document("summary", answer), mode=ReadMode.DIRECT))

    def test_are_the_rosters(self) -> None:
        found = self.read(espn.summary())
        assert [(one.side, one.is_confirmed, len(one.starters), len(one.players)) for one in found.lineups] == [
            ("team_a", True, 11, 12), ("team_b", True, 11, 12),
        ]  # fmt: skip
        assert found.lineups[0].players[0].model_dump(exclude_defaults=True) == {
            "player_id": "3100", "name": "Player 3100", "position": "BT", "is_starter": True, "is_captain": True,
        }  # fmt: skip
        assert (found.payload_schema, found.kickoff) == ("espn.rosters.v1", datetime(2026, 5, 2, 14, tzinfo=UTC))

    def test_are_none_where_the_source_has_none(self) -> None:
        assert self.read({**espn.summary(), "rosters": []}).lineups == ()
        assert ESPN.parse_lineups(build.reading(espn.CRICKET)).lineups == ()

    @pytest.mark.parametrize(("starters", "is_confirmed"), [(10, False), (11, True), (12, True)])
    def test_are_confirmed_with_eleven_starters_or_more(self, starters: int, is_confirmed: bool) -> None:
        roster = espn.roster("11", 3100)
        for place, entry in enumerate(roster["roster"]):
            entry["starter"] = place < starters
        (found,) = self.read({**espn.summary(), "rosters": [roster]}).lineups
        assert (found.is_confirmed, len(found.starters)) == (is_confirmed, starters)

    def test_lose_what_cannot_be_read(self) -> None:
        first, second = espn.roster("11", 3100), espn.roster("12", 3200)
        first["roster"][11] = {"starter": False}
        second["roster"][0]["athlete"]["id"] = 3200
        found = self.read({**espn.summary(), "rosters": [None, first, second, {"roster": []}]})
        assert [(one.side, len(one.players)) for one in found.lineups] == [("team_a", 11), ("team_b", 12)]
        assert "rosters[].roster[].athlete.id" in {one.path for one in found.integrity.broken_parts}
        assert self.read({**espn.summary(), "rosters": None}).lineups == ()

    def test_do_not_depend_on_status_and_score(self) -> None:
        answer = espn.summary(status=None)
        answer["header"]["competitions"][0]["competitors"][0].update(linescores=5, score={})
        found = self.read(answer)
        assert len(found.lineups) == 2
        assert [one.path for one in found.integrity.broken_parts] == ["header.competitions[].competitors[].score"]

    def test_of_another_match_are_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="team 99"):
            self.read({**espn.summary(), "rosters": [espn.roster("99", 1)]})


class TestLists:
    def listed(self, body: Any) -> list[Any]:
        return ESPN.parse_list(
            build.reading(RefInfo("", espn.BASE), build.document("list", body), mode=ReadMode.DIRECT), espn.BASE
        )

    def row(self, **changes: Any) -> dict[str, Any]:
        return {"id": "1500001", "date": "2026-05-02T14:00Z", "competitions": [espn.competition(**changes)]}

    @pytest.mark.parametrize("shape", ["a panel of series", "one series"])
    def test_name_the_match_with_teams_and_series(self, shape: str) -> None:
        group = {"leagues": [{"id": "8100", "name": "Lantern Cup"}], "events": [self.row()]}
        found = self.listed({"scores": [group]} if shape == "a panel of series" else group)
        assert [(one.source_event_id, one.url, one.series) for one in found] == [
            ("1500001", espn.CRICKET.url, "Lantern Cup")
        ]
        assert [team.name for team in found[0].teams] == ["Orchard & City", "Pelican Town"]
        assert (found[0].status, found[0].title) == (Status.LIVE, "Orchard & City v Pelican Town")

    @pytest.mark.parametrize(
        ("own", "series"),
        [
            ({"leagueId": "8100"}, ""),
            ({"league": 8100}, ""),
            ({"uid": "s:200~l:8100~e:1500001"}, ""),
            ({"league": {"id": "8100", "name": "Lantern Cup"}}, "Lantern Cup"),
            ({"leagues": [{"id": "8100", "name": "Lantern Cup"}]}, "Lantern Cup"),
        ],
    )
    def test_a_match_listed_under_another_league_has_its_own(self, own: dict[str, Any], series: str) -> None:
        group = {"leagues": [{"id": "9999", "name": "Tour of Pelican"}], "events": [self.row() | own]}
        (found,) = self.listed({"scores": [group]})
        assert (found.url, found.series) == (espn.CRICKET.url, series)

    @pytest.mark.parametrize("own_first", [True, False])
    def test_a_match_in_two_groups_has_the_name_of_its_own_series(self, own_first: bool) -> None:
        row = self.row() | {"uid": "s:200~l:8100~e:1500001"}
        groups = [
            {"leagues": [{"id": "8100", "name": "Lantern Cup"}], "events": [row]},
            {"leagues": [{"id": "9999", "name": "Tour of Pelican"}], "events": [row]},
        ]
        (found,) = self.listed({"scores": groups if own_first else groups[::-1]})
        assert (found.url, found.series) == (espn.CRICKET.url, "Lantern Cup")

    def test_a_row_without_a_league_has_that_of_its_competition_or_group(self) -> None:
        group = {"leagues": [{"id": "9999", "name": "Tour of Pelican"}], "events": [self.row()]}
        (found,) = self.listed({"scores": [group]})
        assert found.series == "Tour of Pelican"
        group["events"] = [self.row(uid="s:200~l:8100~e:1500001~c:1500001")]
        (found,) = self.listed({"scores": [group]})
        assert found.url == espn.CRICKET.url

    def test_an_invalid_row_hides_no_other(self) -> None:
        group = {"leagues": [{"id": "8100"}], "events": [{"id": "7"}, self.row()]}
        assert [one.source_event_id for one in self.listed({"scores": [group]})] == ["1500001"]

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            ({"scores": [{"leagues": [{"id": "8100"}], "events": [{"id": "7"}]}]}, SchemaBreak),
            ({"matches": []}, LayoutChanged),
            ({"scores": [{"leagues": []}]}, LayoutChanged),
        ],
    )
    def test_a_changed_list_is_an_error(self, body: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            self.listed(body)

    def test_the_fixtures_of_a_day_are_those_that_begin_on_it(self) -> None:
        plan = ESPN.fixture_plan(espn.BASE, date(2026, 5, 2))
        assert plan.requests[0].url == f"{espn.BASE}/apis/site/v2/sports/cricket/scorepanel?dates=20260502"
        running = self.row(date="2026-05-01T14:00Z") | {"id": "1500007"}
        group = {"leagues": [{"id": "8100"}], "events": [running, self.row()]}
        read = build.reading(RefInfo("", espn.BASE), build.document("list", {"scores": [group]}), mode=ReadMode.DIRECT)
        found = ESPN.parse_fixtures(read, espn.BASE, date(2026, 5, 2))
        assert [one.source_event_id for one in found] == ["1500001"]

    def test_have_no_page(self) -> None:
        plan = ESPN.list_plan(espn.BASE)
        assert (plan.url, [one.url for one in plan.requests]) == (
            "", [f"{espn.BASE}/apis/site/v2/sports/cricket/scorepanel"]
        )  # fmt: skip


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (espn.CRICKET.url, "1500001"),
        (f"{espn.BASE}/apis/site/v2/sports/cricket/8100/summary?lang=en&event=1500001", "1500001"),
        (PLAYS_URL, "1500001"),
        (f"{espn.BASE}/apis/site/v2/sports/cricket/8100/summary?event=x", None),
        (f"{espn.BASE}/apis/site/v2/sports/cricket/ipl/summary?event=1500001", None),
        (f"{espn.BASE}/apis/site/v2/sports/soccer/8100/summary?event=1500001", None),
        (f"{espn.BASE}/apis/site/v2/sports/cricket/8100/summary", None),
    ],
)
def test_a_matchs_address_is_the_answer_about_it(url: str, expected: str | None) -> None:
    match = ESPN.match_at(url, espn.BASE)
    assert (match and match.source_event_id) == expected
    if match is not None:
        assert match.url == espn.CRICKET.url
        ref = RefInfo(match.source_event_id, match.url)
        requests = ESPN.requests(ref, espn.BASE)
        assert [one.url for one in requests] == [espn.CRICKET.url, PLAYS_URL]
        for request, endpoint in zip(requests, ESPN.endpoints(ref), strict=True):
            assert endpoint.pattern.search(request.url)
