"""Parsing of cricket by the Sofascore adapter: order of innings, balls, status and result."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from scraping.errors import LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Event, Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, Reading, RefInfo
from scraping.sources.sofascore.cricket_adapter import SofascoreCricketAdapter
from stadium.cricket.script import Notice
from stadium.matches.distortion import Distortion
from stadium.matches.programme import Match
from tests.scraping.sources import builders as build
from tests.scraping.sources import cricsheets
from tests.scraping.sources.sofa_stadium import PHASES, Site

ADAPTER = SofascoreCricketAdapter()
REF = RefInfo("8001", "http://site.test/sofascorecricket/en/cricket/match/orchard-pelican/XyZ#id:8001")
FOLDER = os.environ.get("VICTORYLINE_RECORDINGS", "")
recorded = pytest.mark.skipif(not Path(FOLDER, "sofascore").is_dir(), reason="VICTORYLINE_RECORDINGS names no folder")
HOME, AWAY = 11, 22
LONG = 600  # events: a match of several days takes seconds


def inning(score: int, wickets: int, overs: float, **more: Any) -> dict[str, Any]:
    return {"score": score, "wickets": wickets, "overs": overs, "runRate": 6.0, **more}


def score(*innings: dict[str, Any]) -> dict[str, Any]:
    total = sum(one["score"] for one in innings)
    named = {"innings": {f"inning{number}": one for number, one in enumerate(innings, 1)}} if innings else {}
    return {"current": total, "display": total, **named}


def event(**changes: Any) -> dict[str, Any]:
    """Returns an event: Orchard, at home, chase 152 and are 88 for 2 after 10.3; they won the toss and bowled."""
    return {
        "id": 8001, "slug": "orchard-pelican", "customId": "XyZ", "startTimestamp": int(build.START.timestamp()),
        "status": {"code": 21, "type": "inprogress", "description": "1st Inning"},
        "homeTeam": {"id": HOME, "name": "Orchard", "nameCode": "ORC"},
        "awayTeam": {"id": AWAY, "name": "Pelican", "shortName": "PEL"},
        "homeScore": score(inning(88, 2, 10.3, targetRunRate=7.6)), "awayScore": score(inning(151, 10, 19.2)),
        "tournament": {
            "name": "Lantern Tour", "category": {"name": "World", "sport": {"slug": "cricket"}},
            "uniqueTournament": {"id": 1, "name": "T20 International"},
        },
        "season": {"year": "2026"}, "venue": {"name": "Lantern Field", "city": {"name": "Copse"}},
        "tossWin": "Orchard", "tossDecision": "Bowling",
    } | changes  # fmt: skip


def ball(number: int, over: int, place: int, label: str = "1", **changes: Any) -> dict[str, Any]:
    return {
        "incidentType": "ball", "id": 5000 + number, "inningNumber": 1, "battingTeamId": AWAY, "number": number,
        "over": over, "ball": place, "runs": 1, "totalRuns": 1, "score": f"{number}/0", "wicket": False,
        "incidentClass": label, "incidentClassLabel": label, "commentary": "1 run.",
        "batsman": {"name": "Bo Finch", "id": 1}, "bowler": {"name": "Ada Reed", "id": 2},
    } | changes  # fmt: skip


def parse(one: dict[str, Any], *documents: Document) -> Payload:
    return ADAPTER.parse(build.reading(REF, build.document("event", {"event": one}), *documents))


def balls(*rows: dict[str, Any], one: dict[str, Any] | None = None) -> list[Event]:
    """The events of these balls, oldest first as they are given here."""
    document = build.document("incidents", {"incidents": list(reversed(rows))})
    return list(reversed(parse(one or event(), document).events))


def order(payload: Payload) -> list[tuple[str, int]]:
    return [(innings.team, innings.runs) for innings in payload.state.innings]


@pytest.mark.requirement("SO-12")
class TestDeclarations:
    """A declared innings is marked in the event, or in the list of innings."""

    def declared(self, first: dict[str, Any], rows: list[dict[str, Any]] | None = None) -> list[bool]:
        one = event(homeScore=score(inning(88, 2, 10.3)), awayScore=score(inning(421, 5, 100, **first)))
        documents = [build.document("innings", {"innings": rows})] if rows else []
        return [innings.is_declared for innings in parse(one, *documents).state.innings]

    @pytest.mark.parametrize(
        "mark",
        [{"inningDeclare": 1}, {"isInningDeclare": 1}, {"declared": True}, {"inningDeclare": 0, "declared": True}],
    )
    def test_are_marked_in_the_event(self, mark: dict[str, Any]) -> None:
        assert self.declared(mark) == [True, False]

    @pytest.mark.parametrize("mark", [{}, {"inningDeclare": 0}, {"inningDeclare": None}, {"inningDeclare": "no"}])
    def test_other_values_are_no_declaration(self, mark: dict[str, Any]) -> None:
        assert self.declared(mark) == [False, False]

    def test_are_marked_in_the_list_of_innings(self) -> None:
        rows = [
            {"number": number, "battingTeam": {"id": team, "name": "x"}, "isInningDeclare": mark}
            for number, team, mark in ((1, AWAY, 1), (2, HOME, 0))
        ]
        assert self.declared({}, rows) == [True, False]

    def test_at_the_simulated_site(self, tmp_path: Path) -> None:
        cricsheets.write(tmp_path, **{"900001": cricsheets.long_match()})
        site = Site(programme=f"replay:{tmp_path}", sites=("sofascorecricket",))
        match = site.simulation.programme.match(site.simulation.programme.slots[0], 0, "sofascorecricket")
        site.move_to(match, match.times[-1] - match.starts_at + 60)
        for besides in ((), ("innings",)):
            innings = ADAPTER.parse(site.cricket(match, *besides)).state.innings
            assert [one.is_declared for one in innings] == [True, False, False, False]


class TestTheMatch:
    @pytest.mark.requirement("FS-8")
    def test_is_filled_from_the_event(self) -> None:
        payload = parse(event(), build.document("incidents", {"incidents": [ball(1, 1, 1)]}))
        state = payload.state
        assert state.title == "Orchard v Pelican"
        assert (state.status, state.phase, state.current_innings) == (Status.LIVE, Phase.PLAY, 2)
        assert (state.score.team_a.runs, state.score.team_a.wickets, state.score.team_a.overs) == (88, 2, "10.3")
        assert [(one.number, one.team, one.overs, one.target) for one in state.innings] == [
            (1, "team_b", "19.2", None),
            (2, "team_a", "10.3", 152),
        ]
        assert state.toss is not None
        assert (state.toss.winner, state.toss.decision) == ("Orchard", "field")
        assert state.metadata == {"series": "Lantern Tour", "match_type": "T20 International", "season": "2026"}
        assert payload.payload_schema == "sofascore.event.v1"
        assert (payload.source, payload.integrity.missing_fields, payload.unknown) == ("sofascorecricket", (), ())

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param({"status": {"type": "notstarted", "code": 0}, "homeScore": {}, "awayScore": {}},
                         (Status.UPCOMING, Phase.SCHEDULED), id="before"),
            pytest.param({"status": {"type": "inprogress", "code": 22}}, (Status.LIVE, Phase.PLAY), id="in play"),
            pytest.param({"status": {"type": "willcontinue", "code": 141, "description": "End of day 1"}},
                         (Status.LIVE, Phase.STUMPS), id="stumps"),
            pytest.param({"note": "Innings break"}, (Status.LIVE, Phase.INNINGS_BREAK), id="innings break"),
            pytest.param({"note": "Lunch"}, (Status.LIVE, Phase.LUNCH), id="lunch"),
            pytest.param({"status": {"type": "interrupted", "code": 80}, "note": "Play delayed by rain"},
                         (Status.LIVE, Phase.RAIN), id="rain"),
            pytest.param({"status": {"type": "interrupted", "code": 80}},
                         (Status.LIVE, Phase.INTERRUPTED), id="stopped"),
            pytest.param({"note": "Orchard beat Pelican by 8 wickets"}, (Status.COMPLETED, Phase.FINISHED),
                         id="the sentence before the status"),
            pytest.param({"note": "Orchard won the toss and chose to bowl"}, (Status.LIVE, Phase.PLAY), id="toss talk"),
            pytest.param({"note": "Match tied"}, (Status.LIVE, Phase.PLAY), id="a tie that a super over may follow"),
            pytest.param({"note": "Day 2: play abandoned"}, (Status.LIVE, Phase.PLAY), id="a day is not the match"),
            pytest.param({"status": {"type": "finished", "code": 100}}, (Status.COMPLETED, Phase.FINISHED), id="over"),
            pytest.param({"status": {"type": "finished", "code": 100}, "note": "No result"},
                         (Status.ABANDONED, Phase.FINISHED), id="no result"),
            pytest.param({"status": {"type": "canceled", "code": 90}, "homeScore": score(), "awayScore": score()},
                         (Status.ABANDONED, Phase.FINISHED), id="abandoned without a ball"),
        ],
    )  # fmt: skip
    def test_status(self, changes: dict[str, Any], expected: tuple[Status, Phase]) -> None:
        state = parse(event(**changes)).state
        assert (state.status, state.phase) == expected

    def test_an_unknown_code_counts_as_its_type_and_is_counted(self) -> None:
        payload = parse(event(status={"type": "inprogress", "code": 29, "description": "Powerplay"}))
        assert payload.state.status is Status.LIVE
        assert [(word.path, word.value) for word in payload.unknown] == [("event.status.code", "inprogress 29")]

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"homeScore": score(inning(88, 2, 10.3)) | {"innings": {"inning1": {"score": 88}}}},
             r"event\.homeScore\.innings\.inning1\.wickets \(field required\)"),
            ({"awayTeam": {"id": 2}}, r"event\.awayTeam\.name"),
        ],
    )  # fmt: skip
    def test_a_break_names_the_field(self, changes: dict[str, Any], path: str) -> None:
        with pytest.raises(SchemaBreak, match=rf"sofascore\.event\.v1: {path}"):
            parse(event(**changes))

    @pytest.mark.requirement("ZT-5")
    def test_an_eleventh_wicket_is_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="wickets"):
            parse(event(homeScore=score(inning(88, 11, 10.3))))

    @pytest.mark.requirement("BX-6")
    def test_another_match_and_another_sport_are_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="8002 instead of 8001"):
            parse(event(id=8002))
        with pytest.raises(PayloadRejected, match="football"):
            parse(event(tournament={"category": {"sport": {"slug": "football"}}}))


class TestTheOrderOfInnings:
    FIRST, SECOND = [("team_b", 151), ("team_a", 88)], [("team_a", 88), ("team_b", 151)]
    BARE = {"tossWin": None, "homeScore": score(inning(88, 2, 10.3)), "awayScore": score(inning(151, 9, 20))}

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, FIRST),
            ({"tossDecision": "Batting"}, SECOND),
            ({"tossWin": "Pelican", "tossDecision": "Batting"}, FIRST),
            ({"tossWin": None}, FIRST),  # by the rate that the chase needs
            (BARE | {"note": "Orchard beat Pelican by 3 wickets", "winnerCode": 1}, FIRST),
            (BARE | {"note": "Pelican beat Orchard by 3 runs", "winnerCode": 2}, FIRST),
            (BARE | {"awayScore": score(inning(151, 10, 19.2))}, FIRST),  # all out while the other goes on
            (BARE | {"awayScore": {"current": 0, "display": 0}}, [("team_a", 88)]),
        ],
    )
    def test_is_inferred_without_the_status(self, changes: dict[str, Any], expected: list[tuple[str, int]]) -> None:
        payload = parse(event(**changes))
        assert order(payload) == expected
        assert "innings_order" not in payload.integrity.missing_fields

    def test_an_assumed_order_is_marked_as_missing(self) -> None:
        assert "innings_order" in parse(event(**self.BARE)).integrity.missing_fields

    def test_follows_the_list_of_innings_with_a_follow_on(self) -> None:
        rows = [
            {"number": number, "battingTeam": {"id": team, "name": "x"}, "score": 1, "wickets": 0, "overs": 1}
            for number, team in enumerate((HOME, AWAY, AWAY, HOME), 1)
        ]
        both = (inning(400, 10, 120), inning(30, 0, 8)), (inning(150, 10, 60), inning(270, 10, 90))
        one = event(homeScore=score(*both[0]), awayScore=score(*both[1]))
        payload = parse(one, build.document("innings", {"innings": rows}))
        assert order(payload) == [("team_a", 400), ("team_b", 150), ("team_b", 270), ("team_a", 30)]
        assert payload.state.score.team_b.runs == 270

    def test_follows_the_balls(self) -> None:
        rows = [ball(1, 1, 1), ball(1, 1, 1, id=1, inningNumber=2, battingTeamId=HOME)]
        document = build.document("incidents", {"incidents": rows})
        assert order(parse(event(**self.BARE), document)) == self.FIRST

    def test_a_super_over_follows_level_scores_and_is_not_the_sides_score(self) -> None:
        one = event(
            homeScore=score(inning(151, 6, 20), inning(9, 1, 1)),
            awayScore=score(inning(151, 10, 19.2), inning(8, 0, 1)),
        )
        state = parse(one).state
        assert [(innings.number, innings.is_super_over) for innings in state.innings] == [
            (1, False),
            (2, False),
            (3, True),
            (4, True),
        ]
        assert (state.score.team_a.runs, state.current_innings) == (151, 4)

    def test_a_revised_target_is_not_computed(self) -> None:
        shortened = event(homeScore=score(inning(40, 2, 5, targetRunRate=11.4)), awayScore=score(inning(214, 4, 20)))
        assert [innings.target for innings in parse(shortened).state.innings] == [None, None]


class TestBalls:
    def test_are_placed_by_order_and_labelled_by_legal_balls(self) -> None:
        found = balls(
            ball(1, 1, 1),
            ball(2, 1, 2, "Wd1", runs=0),
            ball(3, 1, 2, "4", runs=4, totalRuns=4),
            ball(4, 1, 3, "Nb2", totalRuns=2),
            ball(5, 1, 3, "Lb1", runs=0),
            ball(6, 2, 1, "0", runs=0, totalRuns=0),
        )
        assert [(e.over, e.kind, e.runs, e.slot, e.ordinal, e.detail["ball"]) for e in found] == [
            ("0.1", "runs", 1, "b:1:0:1", 100_001, "1"),
            ("0.2", "wide", 1, "b:1:0:2", 100_002, "1wd"),
            ("0.2", "four", 4, "b:1:0:3", 100_003, "4"),
            ("0.3", "no_ball", 2, "b:1:0:4", 100_004, "2nb"),
            ("0.3", "leg_bye", 1, "b:1:0:5", 100_005, "1lb"),
            ("1.1", "dot", 0, "b:1:1:1", 100_101, "0"),
        ]

    def test_whose_source_counts_wides_are_labelled_alike(self) -> None:
        found = balls(ball(1, 1, 1), ball(2, 1, 2, "Wd1"), ball(3, 1, 3), ball(4, 1, 4))
        assert [event.over for event in found] == ["0.1", "0.2", "0.2", "0.3"]

    @pytest.mark.parametrize(
        ("label", "kind"),
        [("0", "dot"), ("1", "runs"), ("4", "four"), ("6", "six"), ("B2", "bye"), ("Wd5", "wide"), ("Zz", "runs")],
    )
    def test_have_kinds(self, label: str, kind: str) -> None:
        assert balls(ball(1, 1, 1, label))[0].kind == kind

    def test_of_an_unknown_label_are_kept_and_counted(self) -> None:
        payload = parse(
            event(), build.document("incidents", {"incidents": [ball(1, 1, 1, "Zz"), {"incidentType": "x"}]})
        )
        assert [(word.path, word.value) for word in payload.unknown] == [
            ("incidents[].incidentType", "x"),
            ("incidents[].incidentClassLabel", "Zz"),
        ]
        assert len(payload.events) == 1

    def test_a_wicket_has_an_event_of_its_own(self) -> None:
        out = ball(
            242, 39, 5, "W", runs=0, totalRuns=0, score="174/10", wicket=True, bowlDetail="Run out",
            dismissedBatsman={"name": "Cy Moss", "id": 3},
        )  # fmt: skip
        delivery, fell = balls(out)
        assert (delivery.kind, delivery.over, delivery.detail["ball"], delivery.detail["score"]) == (
            "wicket",
            "38.5",
            "W",
            "174/10",
        )
        assert (delivery.slot, delivery.ordinal) == ("", None)  # the list begins within the over
        assert (fell.id, fell.kind, fell.slot) == ("5242:w", "dismissal", "w:1:10")
        assert fell.detail == {"player": "Cy Moss", "text": "Cy Moss run out", "wicket": 10}

    @pytest.mark.parametrize(
        ("detail", "falls"), [("Retired hurt", False), ("Retired not out", False), ("Retired out", True)]
    )
    def test_a_batter_who_retires_hurt_is_not_out(self, detail: str, falls: bool) -> None:
        found = balls(ball(1, 1, 1, "0", runs=0, totalRuns=0, wicket=True, bowlDetail=detail, score="0/0"))
        assert ([event.kind for event in found] == ["wicket", "dismissal"]) is falls

    def test_a_wicket_on_a_wide_does_not_count_as_a_ball(self) -> None:
        stumped = ball(1, 1, 1, "W", wicket=True, bowlDetail="Stumped", commentary="Stumped (wide).", score="1/1")
        assert [event.over for event in balls(stumped, ball(2, 1, 1)) if event.kind != "dismissal"] == ["0.1", "0.1"]

    def test_after_a_hole_have_no_place_until_the_next_over(self) -> None:
        found = balls(ball(1, 1, 1), ball(3, 1, 3), ball(4, 1, 4), ball(7, 2, 1), ball(8, 2, 2), ball(9, 3, 1))
        assert [event.slot for event in found] == ["b:1:0:1", "", "", "", "", "b:1:2:1"]
        assert [event.over for event in found][:3] == ["0.1", "0.3", "0.4"]

    @pytest.mark.requirement("BX-3")
    @pytest.mark.parametrize(
        ("numbers", "last", "is_complete"),
        [((1, 2, 3), "3/0", True), ((1, 2), "2/0", False), ((2, 3), "3/0", False), ((1, 3), "3/0", False)],
    )
    def test_are_complete_when_none_is_missing_and_the_score_agrees(
        self, numbers: tuple[int, ...], last: str, is_complete: bool
    ) -> None:
        rows = [ball(number, 1, number) for number in numbers]
        rows[-1]["score"] = last
        one = event(homeScore={"current": 0, "display": 0}, awayScore=score(inning(3, 0, 0.3)))
        document = build.document("incidents", {"incidents": rows[::-1]})
        assert parse(one, document).events_are_complete is is_complete

    @pytest.mark.requirement("BX-6")
    def test_of_other_teams_are_not_used(self) -> None:
        payload = parse(event(), build.document("incidents", {"incidents": [ball(1, 1, 1, battingTeamId=99)]}))
        assert (payload.events, payload.events_are_complete) == ((), False)
        assert "events" in payload.integrity.missing_fields
        assert payload.unknown[0].value == "another match's"

    @pytest.mark.requirement("SO-12")
    def test_one_that_cannot_be_read_costs_itself_and_the_claim_to_be_complete(self) -> None:
        listed = [ball(2, 1, 2), ball(1, 1, 1)]
        one = event(homeScore=score(), awayScore=score(inning(2, 0, 0.2)))
        whole = parse(one, build.document("incidents", {"incidents": listed}))
        assert whole.events_are_complete
        payload = parse(one, build.document("incidents", {"incidents": [None, *listed]}))
        assert payload.events == whole.events
        assert not payload.events_are_complete
        assert [part.path for part in payload.integrity.broken_parts] == ["incidents[]"]


class TestLists:
    @pytest.mark.requirement("ZT-12")
    def test_find_cricket_with_teams_and_tour(self) -> None:
        listed = build.document("live_list", {"events": [event(), build.event()]})
        [match] = ADAPTER.parse_list(build.reading(RefInfo("", ""), listed), "http://site.test/sofascorecricket")
        assert (match.source_event_id, match.url, match.series) == ("8001", REF.url, "Lantern Tour")
        assert [team.name for team in match.teams] == ["Orchard", "Pelican"]

    def test_of_a_day_are_those_of_its_tournaments(self) -> None:
        base, day = "https://www.sofascore.com", date(2026, 5, 3)
        api = f"{base}/api/v1"

        def read(**bodies: Any) -> Reading:
            return build.reading(RefInfo("", ""), *(build.document(name, body) for name, body in bodies.items()))

        def page(*numbers: int | None, has_next: bool = False) -> dict[str, Any]:
            rows = [{"tournament": {"uniqueTournament": {"id": number} if number else None}} for number in numbers]
            return {"scheduled": rows, "hasNextPage": has_next}

        (first,) = ADAPTER.fixture_plan(base, day).requests
        assert first.url == f"{api}/sport/cricket/scheduled-tournaments/2026-05-03/page/1"
        readings = [read(tournaments=page(11, 12, has_next=True))]
        (second,) = ADAPTER.more_fixtures(readings, base, day)
        assert second.url == f"{api}/sport/cricket/scheduled-tournaments/2026-05-03/page/2"
        readings.append(read(tournaments=page(12, None, *range(20, 27))))
        lists = ADAPTER.more_fixtures(readings, base, day)
        assert [one.url for one in lists[:2]] == [
            f"{api}/unique-tournament/{number}/scheduled-events/2026-05-03" for number in (11, 12)
        ]
        assert len(lists) == 8
        readings.append(read(**{one.name: {"events": [event(), event(), build.event()]} for one in lists}))
        (last,) = ADAPTER.more_fixtures(readings, base, day)
        assert last.url.endswith("unique-tournament/26/scheduled-events/2026-05-03")
        readings.append(read(**{last.name: {"events": []}}))
        assert ADAPTER.more_fixtures(readings, base, day) == ()
        found = [match.source_event_id for one in readings for match in ADAPTER.parse_fixtures(one, base, day)]
        assert found == ["8001"]

    @pytest.mark.requirement("FS-2")
    def test_of_a_day_of_another_shape_break_with_the_path(self) -> None:
        base, day = "https://www.sofascore.com", date(2026, 5, 3)
        page, tournament = (build.document(name, {"v2": []}) for name in ("tournaments", "fixtures:11"))
        with pytest.raises(SchemaBreak, match=r"sofascore\.list\.v1: scheduled"):
            ADAPTER.more_fixtures([build.reading(RefInfo("", ""), page)], base, day)
        with pytest.raises(SchemaBreak, match=r"sofascore\.list\.v1: events"):
            ADAPTER.parse_fixtures(build.reading(RefInfo("", ""), tournament), base, day)

    def test_addresses_of_football_are_not_ours(self) -> None:
        base = "https://www.sofascore.com"
        assert ADAPTER.match_at(f"{base}/football/match/a-b/XY#id:7", base) is None
        found = ADAPTER.match_at(f"{base}/cricket/match/a-b/XY#id:7", base)
        assert found is not None
        assert found.url == f"{base}/en/cricket/match/a-b/XY#id:7"

    def test_there_are_no_rounds(self) -> None:
        assert adapter_for("sofascorecricket").round_fields == ()
        with pytest.raises(LayoutChanged, match="no rounds"):
            ADAPTER.round_plan("https://www.sofascore.com", {})


def assert_true(site: Site, match: Match) -> Payload:
    """Asserts that the parsed payload agrees with the ground truth."""
    payload, truth = ADAPTER.parse(site.cricket(match, "incidents", "innings")), site.truth(match)
    state = payload.state
    assert (state.status.value, state.phase.value) == (truth["status"], PHASES.get(truth["phase"], truth["phase"]))
    assert state.teams.model_dump() == truth["teams"]
    for side in ("team_a", "team_b"):
        assert getattr(state.score, side).model_dump(exclude_none=True) == (truth["score"][side] or {})
    assert [(i.number, i.team, i.runs, i.wickets, i.overs, i.is_super_over) for i in state.innings] == [
        (i["number"], i["batting"], i["runs"], i["wickets"], i["overs"], i["is_super_over"]) for i in truth["innings"]
    ]
    assert state.current_innings == truth["current_innings"]
    assert (state.toss.decision if state.toss else None) == {"bat": "bat", "bowl": "field"}.get(truth["toss_decision"])
    is_over = state.status in (Status.COMPLETED, Status.ABANDONED)
    assert state.result == ((truth["result_long"] or truth["result"]) if is_over else "")
    balls_read = [event for event in reversed(payload.events) if event.kind != "dismissal"]
    assert [(e.innings, e.over, e.runs, e.slot, e.detail["score"], e.detail["ball"]) for e in balls_read] == [
        (b["innings"], b["over"], b["runs"], f"b:{b['innings']}:{b['over'].partition('.')[0]}:{b['index']}",
         b["score"], b["value"])
        for b in truth["events"] if b["kind"] == "ball"
    ]  # fmt: skip
    fell = [event for event in reversed(payload.events) if event.kind == "dismissal"]
    assert [(e.slot, e.detail["player"], e.detail["wicket"]) for e in fell] == [
        (f"w:{innings['number']}:{fall['number']}", fall["player"], fall["number"])
        for innings in truth["innings"]
        for fall in innings["falls"]
    ]
    assert payload.integrity.missing_fields == ()
    assert payload.unknown == ()
    assert payload.events_are_complete
    return payload


@pytest.mark.requirement("NFR-008")
class TestAgainstTheStadium:
    def test_every_match_is_read_as_it_is_from_the_toss_to_the_end(self) -> None:
        site = Site(programme="only:sofascorecricket:2", seed=7)
        phases: set[str] = set()
        for slot in site.simulation.programme.slots:
            match = site.simulation.programme.match(slot, slot.number, "sofascorecricket")
            notices = [event.at + 1 for event in match.script.events if isinstance(event, Notice)]
            for seconds in (-1_000.0, 900.0, *notices, match.script.ends_at + 60):
                site.move_to(match, seconds)
                phases.add(assert_true(site, match).state.phase.value)
        assert phases >= {"scheduled", "play", "innings_break", "finished"}

    def test_a_match_balls_read_late_under_other_names_with_sides_swapped_stays_the_same_match(self) -> None:
        distortion = Distortion(delay_seconds=3, other_names=True, swaps_sides=True)
        site = Site(programme="only:crex,sofascorecricket:4", seed=7, distortions=(("sofascorecricket", distortion),))
        swapped = 0
        for slot in site.simulation.programme.slots:
            match = site.simulation.programme.match(slot, 0, "sofascorecricket")
            site.move_to(match, match.script.ends_at + 60)
            state, truth = ADAPTER.parse(site.cricket(match, "incidents", "innings")).state, site.truth(match)
            names = state.teams.model_dump()
            assert [(names[one.team]["name"].removesuffix(" CC"), one.runs) for one in state.innings] == [
                (truth["teams"][one["batting"]]["name"], one["runs"]) for one in truth["innings"]
            ]
            swapped += state.innings[0].team == "team_b"
        assert swapped

    @pytest.mark.skipif(not Path(FOLDER, "cricsheet").is_dir(), reason="VICTORYLINE_RECORDINGS has no cricsheet folder")
    def test_replayed_matches_with_super_overs_too(self) -> None:
        site = Site(programme=f"replay:{FOLDER}/cricsheet", sites=("sofascorecricket",), at_once=True)
        supers = 0
        for match in site.simulation.listed_matches("sofascorecricket"):
            if len(match.script.events) < LONG:
                site.move_to(match, match.script.ends_at + 1)
                supers += sum(one.is_super_over for one in assert_true(site, match).state.innings)
        assert supers


@recorded
class TestRecordings:
    def recorded(self, name: str) -> Any:
        file = Path(FOLDER, "sofascore", f"{name}.json")
        if not file.exists():
            pytest.skip(f"the recordings have no {name}")
        return json.loads(file.read_text())

    def test_a_finished_match(self) -> None:
        data = self.recorded("tunjayoff_cricket_event_15884177_finished")
        payload = ADAPTER.parse(build.reading(RefInfo("15884177", ""), build.document("event", data)))
        state = payload.state
        assert (state.status, state.result) == (Status.COMPLETED, "India beat West Indies by 8 wickets")
        assert [(i.team, i.runs, i.wickets, i.overs, i.target) for i in state.innings] == [
            ("team_b", 171, 10, "19.1", None),
            ("team_a", 172, 2, "14.4", 172),
        ]
        assert (state.teams.team_a.short_name, state.teams.team_b.short_name) == ("IND", "WIN")
        assert state.toss is not None
        assert (state.toss.winner, state.toss.decision) == ("India", "field")
        assert state.metadata["series"] == "West Indies in India, 5 T20I Series"
        assert state.venue.endswith("Ekana Cricket Stadium, Lucknow")
        assert payload.unknown == ()

    @pytest.mark.parametrize(
        ("number", "expected"),
        [
            (15884176, (Status.UPCOMING, Phase.SCHEDULED, [])),
            (16526539, (Status.COMPLETED, Phase.FINISHED, [("team_b", 285), ("team_a", 174)])),
            (16526541, (Status.LIVE, Phase.PLAY, [("team_b", 299), ("team_a", 184)])),
            (16526543, (Status.ABANDONED, Phase.FINISHED, [])),
            (16586046, (Status.LIVE, Phase.STUMPS, [("team_b", 237), ("team_a", 21)])),
            (16894534, (Status.COMPLETED, Phase.FINISHED,
                        [("team_b", 175), ("team_a", 103), ("team_b", 332), ("team_a", 110)])),
            (17062790, (Status.LIVE, Phase.STUMPS, [("team_a", 430)])),
            (17211411, (Status.COMPLETED, Phase.FINISHED, [("team_b", 111), ("team_a", 112)])),
        ],
    )  # fmt: skip
    def test_every_status(self, number: int, expected: tuple[Any, ...]) -> None:
        rows = self.recorded("tunjayoff_cricket_status_rows_2026-10-01")["rows"]
        row = next(row for row in rows if row["id"] == number)
        names = {"homeTeam": {"name": "Home", "id": 1}, "awayTeam": {"name": "Away", "id": 2}, "tournament": {}}
        read = build.reading(RefInfo(str(number), ""), build.document("event", {"event": row | names}))
        payload = ADAPTER.parse(read)
        assert (payload.state.status, payload.state.phase, order(payload)) == expected

    def test_balls_and_innings(self) -> None:
        rows = self.recorded("tunjayoff_cricket_status_rows_2026-10-01")["rows"]
        home, away = {"name": "New South Wales Breakers", "id": 413991}, {"name": "Queensland Fire", "id": 413997}
        row = next(row for row in rows if row["id"] == 16526539)
        one = row | {"homeTeam": home, "awayTeam": away, "tournament": {}}
        incidents = build.document("incidents", self.recorded("tunjayoff_cricket_incidents_16526539_trimmed"))
        innings = build.document("innings", self.recorded("tunjayoff_cricket_innings_16526539_trimmed"))
        read = build.reading(RefInfo("16526539", ""), build.document("event", {"event": one}), incidents, innings)
        payload = ADAPTER.parse(read)
        assert [(event.id, event.kind, event.over) for event in payload.events] == [
            ("6221860:w", "dismissal", "38.5"),
            ("6221860", "wicket", "38.5"),
            ("6221859", "dot", "38.4"),
            ("6221858", "dot", "38.3"),
        ]
        assert payload.events[0].detail["player"] == "Tara French"
        assert (payload.events_are_complete, payload.unknown) == (False, ())
        assert order(payload) == [("team_b", 285), ("team_a", 174)]


@pytest.mark.requirement("SO-12")
@pytest.mark.parametrize("away", [None, {"innings": None}, {"innings": {"inning1": None}}])
def test_an_innings_that_is_null_has_not_begun(away: Any) -> None:
    payload = parse(event(homeScore=score(inning(88, 2, 10.3)), awayScore=away))
    assert order(payload) == [("team_a", 88)]
    assert payload.integrity.broken_parts == ()
