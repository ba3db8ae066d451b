"""Responses whose values have another type, case, wrapper or limit than those in the recordings."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from scraping.errors import SchemaBreak
from scraping.payloads import Payload, Phase, Status
from scraping.readings import ReadMode, RefInfo
from scraping.sources import adapter_for, parsing
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn
from tests.scraping.sources import espncricinfo_pages as cricinfo
from tests.scraping.sources import test_sofascore_cricket as sofa_cricket

SOFA, CREX = adapter_for("sofascore"), adapter_for("crex")
ESPN, SOCCER = adapter_for("espn"), adapter_for("espnsoccer")

pytestmark = [pytest.mark.requirement("FS-16"), pytest.mark.requirement("NFR-009")]


def unknown(payload: Payload) -> dict[str, str]:
    return {one.path: one.value for one in payload.unknown}


def espn_match(summary: Any, plays: Any = None) -> Payload:
    documents = [build.document("summary", summary), *([] if plays is None else [build.document("plays", plays)])]
    return ESPN.parse(build.reading(espn.CRICKET, *documents, mode=ReadMode.DIRECT))


def soccer(body: Any) -> Payload:
    return SOCCER.parse(build.reading(espn.SOCCER, build.document("board", body), mode=ReadMode.DIRECT))


def sofa(*incidents: Any, **changes: Any) -> Payload:
    documents = [build.document("event", {"event": build.event(**changes)})]
    documents += [build.document("incidents", build.incidents(*incidents))] if incidents else []
    return SOFA.parse(build.reading(build.SOFA, *documents, mode=ReadMode.DIRECT))


def sofa_lineups(body: Any) -> Any:
    document = build.document("lineups", body)
    event = build.document("event", {"event": build.event()})
    return SOFA.parse_lineups(build.reading(build.SOFA, event, document, mode=ReadMode.DIRECT))


def side(first: int, **changes: Any) -> dict[str, Any]:
    rows = [{"player": {"id": first + n, "name": f"Player {n}"}, "substitute": False} for n in range(11)]
    return {"players": [rows[0] | changes, *rows[1:]]}


class TestTypes:
    """Numbers and flags as text are read, and counted as unknown values."""

    def test_score_of_espncricinfo(self) -> None:
        inside = cricinfo.content()
        inside["innings"][0] |= {"runs": "151", "overs": "19.2", "wickets": 10.0}
        payload = cricinfo.parse(inside=inside, objectId="800200", tossWinnerTeamId="52")
        assert payload == cricinfo.parse().model_copy(update={"unknown": payload.unknown})
        assert unknown(payload) == {
            "match.objectId": "str in place of int",
            "match.tossWinnerTeamId": "str in place of int",
            "content.innings[].runs": "str in place of int",
            "content.innings[].overs": "str in place of float",
            "content.innings[].wickets": "float in place of int",
        }

    def test_score_and_wicket_of_espn(self) -> None:
        summary = espn.summary()
        for competitor in summary["header"]["competitions"][0]["competitors"]:
            for line in competitor["linescores"]:
                line |= {name: str(line[name]) for name in ("period", "runs", "wickets", "overs")}
                line["isBatting"] = str(line["isBatting"])
        assert espn_match(summary).state == espn_match(espn.summary()).state
        out = espn.play(1, 0, scoreValue="0", innings={"wickets": "1"}, dismissal=espn.out() | {"dismissal": "true"})
        assert [one.kind for one in espn_match(espn.summary(), espn.page([out])).events] == ["dismissal", "wicket"]

    def test_ids_and_ratings_of_sofascore(self) -> None:
        assert sofa(id="7001").state == sofa().state
        found = sofa_lineups({
            "confirmed": "true",
            "home": side(1, player={"id": "1", "name": "A"}, statistics={"rating": "7.4"}),
            "away": side(101),
        })  # fmt: skip
        first = found.lineups[0].players[0]
        assert (first.player_id, first.rating, found.lineups[0].is_confirmed) == ("1", 7.4, True)

    def test_innings_of_crex_feed(self) -> None:
        feed = [item | {"inning": "1"} for item in build.feed()]
        documents = build.document("live", build.live()), build.document("feed", feed), build.page({})
        blob = {name: value for name, value in build.state().items() if "getBallFeeds" not in name}
        reading = build.reading(build.CREX, *documents[:2], build.page(blob))
        assert [one.innings for one in CREX.parse(reading).events] == [2] * 5

    @pytest.mark.parametrize(
        "value", ["\uff11\uff15\uff11", "1e3", "0x10", "15 1", "1_000", "", "--", "9" * 30, True, [151], None]
    )
    def test_anything_else_is_no_number(self, value: Any) -> None:
        inside = cricinfo.content()
        inside["innings"][0]["runs"] = value
        if value is None:  # it has not begun
            assert [one.runs for one in cricinfo.parse(inside=inside).state.innings] == [88]
            return
        with pytest.raises(SchemaBreak, match=r"content\.innings\[0\]\.runs"):
            cricinfo.parse(inside=inside)


class TestLimits:
    """A value that no match can have costs its own part and not the reading."""

    def test_a_delivery_and_a_target_of_espn(self) -> None:
        summary = espn.summary()
        summary["header"]["competitions"][0]["competitors"][1]["linescores"][1]["target"] = 10**9
        payload = espn_match(summary, espn.page([espn.play(1, 0), espn.play(2, 0, scoreValue=10**6)]))
        assert [one.target for one in payload.state.innings] == [None, None]
        assert len(payload.events) == 1
        assert {"commentary.items[].scoreValue"} < build.broken(payload).keys()

    @pytest.mark.parametrize("name", ["over", "totalRuns", "inningNumber", "ball"])
    def test_a_delivery_of_sofascore(self, name: str) -> None:
        rows = [sofa_cricket.ball(2, 1, 2) | {name: 10**9}, sofa_cricket.ball(1, 1, 1)]
        payload = sofa_cricket.parse(sofa_cricket.event(), build.document("incidents", {"incidents": rows}))
        assert f"incidents[].{name}" in build.broken(payload)
        assert payload.state.innings

    def test_a_rating_of_sofascore(self) -> None:
        found = sofa_lineups({"confirmed": True, "home": side(1, statistics={"rating": 70}), "away": side(101)})
        assert [len(one.players) for one in found.lineups] == [11, 11]
        assert found.lineups[0].players[0].rating is None

    def test_a_player_without_a_name_of_espncricinfo(self) -> None:
        inside = cricinfo.content()
        inside["matchPlayers"]["teamPlayers"][0]["players"][0]["player"] = cricinfo.BO | {"longName": " "}
        scorecard = cricinfo.page(inside=inside, name="scorecard")
        assert [len(one.players) for one in cricinfo.ADAPTER.parse_lineups(cricinfo.read(scorecard)).lineups] == [1, 1]


class TestWrappers:
    @pytest.mark.parametrize("path", [
        ("appPageProps", "data"), ("appPageProps", "data", "data", "data"), ("pageProps", "data"),
        ("pageProps", "appPageProps", "data"), ("initialProps", "pageProps"),
    ])  # fmt: skip
    def test_of_a_page(self, path: tuple[str, ...]) -> None:
        def blob(data: Any) -> str:
            for name in reversed(("props", *path)):
                data = {name: data, "match": None, "event": {}}
            return f'<script id="__NEXT_DATA__">{json.dumps(data)}</script>'

        data = {"match": cricinfo.match(), "content": cricinfo.content()}
        page = build.document("page", blob(data), url=cricinfo.URL)
        assert cricinfo.ADAPTER.parse(cricinfo.read(page)).state == cricinfo.parse().state
        page = build.document("page", blob({"event": build.event()}), url=build.SOFA.url)
        assert SOFA.parse(build.reading(build.SOFA, page)).state == sofa().state

    def test_of_a_response(self) -> None:
        document = build.document("event", {"data": {"event": build.event()}})
        assert SOFA.parse(build.reading(build.SOFA, document, mode=ReadMode.DIRECT)).state == sofa().state

    def test_do_not_hide_that_there_is_nothing(self) -> None:
        assert parsing.unwrapped({"props": {"data": [{"event": {"id": 1}}], "event": None}}, "event") == {}


class TestStatus:
    def test_in_another_case(self) -> None:
        assert sofa(status={"code": 7, "type": "inProgress"}).state.status is Status.LIVE
        ended = espn.status("POST", "Result", "ORC won by 3 runs")
        assert espn_match(espn.summary(status=ended)).state.status is Status.COMPLETED
        live = espn.soccer_status("STATUS_NEW", "IN")
        assert soccer(espn.board(espn.soccer_event(status=live))).state.status is Status.LIVE

    def test_without_a_name_follows_the_state(self) -> None:
        status = espn.soccer_status(state="post", completed=True, name=None)
        assert soccer(espn.board(espn.soccer_event(status=status))).state.status is Status.COMPLETED

    def test_of_a_listed_match_may_be_beside_its_competition(self) -> None:
        body = espn.competition(status=None)
        event = {"id": "1500001", "status": espn.status("pre", "Scheduled"), "competitions": [body]}
        document = build.document("list", {"leagues": [{"id": "8100", "name": "Cup"}], "events": [event]})
        (match,) = ESPN.parse_list(build.reading(espn.CRICKET, document, mode=ReadMode.DIRECT), espn.BASE)
        assert (match.status, len(match.teams)) == (Status.UPCOMING, 2)


class TestResult:
    """Without a stated winner the score decides, and only a level score is a draw."""

    @pytest.mark.parametrize(
        ("goals", "kicks", "result"),
        [((2, 1), None, "Alder Athletic won 2-1"), ((0, 3), None, "Birch Rovers won 3-0"), ((1, 1), None, "Draw 1-1"),
         ((1, 1), (3, 4), "Birch Rovers won 4-3 on penalties after 1-1")],
    )  # fmt: skip
    def test_of_sofascore(self, goals: tuple[int, int], kicks: tuple[int, int] | None, result: str) -> None:
        home, away = (
            {"display": goal} | ({"penalties": kick} if kick is not None else {})
            for goal, kick in zip(goals, kicks or (None, None), strict=True)
        )
        status = {"code": 120 if kicks else 100, "type": "finished"}
        assert sofa(status=status, homeScore=home, awayScore=away).state.result == result

    def test_of_espn(self) -> None:
        status = espn.soccer_status("STATUS_FULL_TIME", "post", completed=True)
        assert soccer(espn.board(espn.soccer_event(("0", "2"), [], status=status))).state.result == "Birch SC won 2-0"

    def test_of_a_match_that_was_cut_short_keeps_the_goals(self) -> None:
        status = espn.soccer_status("STATUS_ABANDONED", "post", detail="Abandoned")
        state = soccer(espn.board(espn.soccer_event(("1", "0"), status=status))).state
        assert (state.status, state.phase, state.score.team_a.goals) == (Status.ABANDONED, Phase.FINISHED, 1)
        state = soccer(espn.board(espn.soccer_event(("0", "0"), [], status=status))).state
        assert state.score.team_a.goals is None

    @pytest.mark.parametrize("score", [1.0, 1, {"value": 1.0, "displayValue": "1"}])
    def test_score_of_another_type(self, score: Any) -> None:
        assert soccer(espn.board(espn.soccer_event((score, "0")))).state.score.team_a.goals == 1


class TestParts:
    def test_no_key_events_retract_nothing(self) -> None:
        event = espn.soccer_event(("1", "0"), [espn.summary_detail("14'", "Bo Finch", scoringPlay=True)])
        for key_events in ([], None):
            assert not soccer({"header": event, "keyEvents": key_events}).events_are_complete

    @pytest.mark.parametrize("confirmed", [None, False, "no"])
    def test_lineups_are_confirmed_only_where_it_is_said(self, confirmed: Any) -> None:
        found = sofa_lineups({"confirmed": confirmed, "home": side(1), "away": side(101)})
        assert [one.is_confirmed for one in found.lineups] == [False, False]

    def test_the_line_up_of_one_side_is_read(self) -> None:
        assert [one.side for one in sofa_lineups({"confirmed": True, "home": None, "away": side(101)}).lineups] == [
            "team_b"
        ]
        with pytest.raises(SchemaBreak, match="home, away"):
            sofa_lineups({"confirmed": True, "home": None})

    def test_a_wicket_of_crex_without_its_manner_is_a_wicket(self) -> None:
        feed = [item | {"wicketDesc": None} if item["type"] == "w" else item for item in build.feed()]
        reading = build.reading(build.CREX, build.document("live", build.live()), build.document("feed", feed),
                                build.page())  # fmt: skip
        assert [one.detail["player"] for one in CREX.parse(reading).events if one.kind == "dismissal"] == ["Cy Moss"]

    def test_overs_of_crex_as_numbers(self) -> None:
        feed = [item | {"o": float(item["o"])} if item["type"] == "b" else item for item in build.feed()]
        reading = build.reading(build.CREX, build.document("live", build.live()), build.document("feed", feed),
                                build.page())  # fmt: skip
        assert [one.over for one in CREX.parse(reading).events] == ["10.3", "10", "9.6", "9.6", "9.6"]

    def test_a_ball_of_a_later_over_is_of_no_super_over(self) -> None:
        """The site numbers super overs anew, and the page still has the last balls of the second innings."""
        over = cricinfo.inning(1, cricinfo.PELICAN, 5, 0, 0.2)
        inside = cricinfo.content(
            cricinfo.comment(cricinfo.ball(1, over=0, inningNumber=1)),
            cricinfo.comment(cricinfo.ball(6, over=19, inningNumber=2)),
            superOverInnings=[over],
        )
        assert [one.innings for one in cricinfo.parse(inside=inside, isSuperOver=True).events] == [3, 2]

    def test_a_declaration_may_be_text(self) -> None:
        home = sofa_cricket.score(sofa_cricket.inning(421, 5, 110.0, inningDeclare="true"))
        event = sofa_cricket.event(homeScore=home, awayScore=sofa_cricket.score())
        assert [one.is_declared for one in sofa_cricket.parse(event).state.innings] == [True]


def test_the_response_itself_is_not_changed() -> None:
    summary = espn.summary()
    summary["header"]["id"] = 1500001
    summary["header"]["competitions"][0]["competitors"][0]["linescores"][0]["runs"] = "151"
    before = copy.deepcopy(summary)
    parsing.validated(dict[str, dict[str, Any]], {"a": {"b": 1}}, schema="test")
    espn_match(summary)
    assert summary == before


def test_another_match_is_still_refused_where_its_id_is_text() -> None:
    other = RefInfo("7002", build.SOFA.url)
    document = build.document("event", {"event": build.event(id="7001")})
    with pytest.raises(parsing.PayloadRejected, match="7001 instead of 7002"):
        SOFA.parse(build.reading(other, document, mode=ReadMode.DIRECT))
