"""Innings from the live response, the recent overs and the scorecard, in order, with targets."""

from __future__ import annotations

from typing import Any

import pytest

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Payload, Phase, Status
from scraping.sources.base import Document
from scraping.sources.crex.texts import parse_total
from tests.scraping.sources import builders as build
from tests.scraping.sources.test_crex_parse import direct, visit


def recent(innings: int, batting: str, over: int, score: str, *codes: str) -> dict[str, Any]:
    """An over of `rb`."""
    balls = [{"d": place, "t": 0, "u": code, "bf": "B1"} for place, code in enumerate(codes, start=1)]
    return {"i": innings, "o": over, "r": 0, "ts": score, "bt": batting, "b": balls}


def card(*innings: tuple[str, str]) -> Document:
    return build.document("scorecard", [{"c": team, "d": score, "b": [], "a": [], "e": ""} for team, score in innings])


def innings_of(payload: Payload) -> list[tuple[int, str, int, str]]:
    return [(one.number, one.team, one.runs, one.overs) for one in payload.state.innings]


class TestScoreStrings:
    @pytest.mark.parametrize(
        ("score", "expected"),
        [
            ("92/10(14.4", (92, 10, "14.4")),
            ("92/10(14.4)", (92, 10, "14.4")),
            ("69/4(48", (69, 4, "8.0")),
            ("69/4(50", (69, 4, "8.2")),
            ("0/0(0.0", (0, 0, "0.0")),
            ("421/5d(120.3", (421, 5, "120.3")),
            ("96-3", (96, 3, "0.0")),
            ("10:4.0.2.1", None),
            ("", None),
            ("\u0663/\u0661(2.0", None),
        ],
    )
    def test_are_read(self, score: str, expected: tuple[int, int, str] | None) -> None:
        total = parse_total(score)
        assert (None if total is None else (total.runs, total.wickets, total.overs)) == expected


class TestInnings:
    def test_the_next_innings_opens_at_the_break_as_on_the_site(self) -> None:
        state = direct(build.live(k="0/0(0.0", B="Innings Break", h="1")).state
        assert (state.phase, state.current_innings, state.score.team_b.runs) == (Phase.INNINGS_BREAK, 2, 0)

    def test_the_next_innings_shown_during_the_first_has_not_begun(self) -> None:
        state = direct(build.live(j="40/1(5.0", k="0/0(0.0", h="0")).state
        assert (state.current_innings, state.score.team_b.runs) == (1, None)

    def test_an_innings_that_waits_for_its_first_ball_has_begun(self) -> None:
        state = direct(build.live(k="0/0(0.0", B="", h="1")).state
        assert (state.phase, state.current_innings, state.score.team_b.runs) == (Phase.PLAY, 2, 0)

    def test_recent_overs_are_not_taken_for_third_and_fourth_innings(self) -> None:
        assert len(direct(build.live(l="9:0.1.0.2", m="10:1.1.0.0")).state.innings) == 2

    @pytest.mark.requirement("EC-7")
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param(
                {"j": "350/10(98.0", "k": "200/10(61.2", "l": "120/3(40.1", "m": ""},
                [("team_a", 350), ("team_b", 200), ("team_a", 120)],
                id="third innings",
            ),
            pytest.param(
                {"j": "350/10(98.0&120/3d(40.1", "k": "200/10(61.2&17/0(4.0"},
                [("team_a", 350), ("team_b", 200), ("team_a", 120), ("team_b", 17)],
                id="both in one string",
            ),
            pytest.param(
                {"j": "450/6(98.0", "k": "120/10(41.2,180/9(60.0"},
                [("team_a", 450), ("team_b", 120), ("team_b", 180)],
                id="follow-on",
            ),
            pytest.param(
                {"j": "450/6(98.0,4/0(1.0", "k": "120/10(41.2,400/10(99.0", "rb": [recent(3, "OR", 1, "4/0", "4")]},
                [("team_a", 450), ("team_b", 120), ("team_b", 400), ("team_a", 4)],
                id="chase after a follow-on",
            ),
        ],
    )
    def test_of_a_long_match_are_in_the_order_they_were_played(
        self, changes: dict[str, Any], expected: list[tuple[str, int]]
    ) -> None:
        state = direct(build.live(**changes)).state
        assert [(one.team, one.runs) for one in state.innings] == expected
        assert [one.number for one in state.innings] == list(range(1, len(expected) + 1))


class TestInningsAfterTheSecond:
    """`j` and `k` are the first two innings; the recent overs have the current one, the scorecard has all."""

    FIRST_TWO = [(1, "team_a", 350, "98.0"), (2, "team_b", 200, "61.2")]
    TEST = build.live(fo="TEST", j="350/10(98.0", k="200/10(61.2", h="2", l="", m="", n="")

    def page(self, **changes: Any) -> Document:
        """Returns the last visit's page of a Test in its third innings."""
        state = build.state()
        state["https://live.test/api/v3/getSV3?key=9XA"] |= {"fo": "TEST", "h": "2", "inning": 3} | changes
        return build.page(state, name="static_page")

    @pytest.mark.parametrize(
        ("over", "overs"),
        [
            (recent(2, "OR", 15, "44/1", "1", "0", "4"), "14.3"),
            (recent(2, "OR", 15, "44/1", "1", "wd1", "nb", "4"), "14.2"),
            (recent(2, "OR", 15, "44/1", *"104010"), "15.0"),
        ],
    )
    def test_the_one_at_hand_is_in_the_recent_overs(self, over: dict[str, Any], overs: str) -> None:
        payload = direct(self.TEST | {"rb": [over]}, self.page())
        assert innings_of(payload) == [*self.FIRST_TWO, (3, "team_a", 44, overs)]
        assert payload.state.current_innings == 3

    def test_the_one_at_hand_is_in_the_readable_fields_of_the_page(self) -> None:
        state = build.state()
        state["https://live.test/api/v3/getSV3?key=9XA"] |= self.TEST | {
            "inning": 3, "team1flag": "/flags/OR.png", "score1": "44-1", "over1": "14.3", "rb": [],
        }  # fmt: skip
        assert innings_of(visit(build.page(state))) == [*self.FIRST_TWO, (3, "team_a", 44, "14.3")]

    def test_all_of_them_are_on_the_scorecard_where_a_bare_number_counts_balls(self) -> None:
        scored = card(("OR", "350/10(588"), ("PE", "200/10(368"), ("PE", "90/3d(25.3"), ("OR", "12/0(11"))
        payload = direct(self.TEST | {"h": "3"}, self.page(), scored)
        assert innings_of(payload) == [*self.FIRST_TWO, (3, "team_b", 90, "25.3"), (4, "team_a", 12, "1.5")]
        assert [one.is_declared for one in payload.state.innings] == [False, False, True, False]
        assert payload.integrity.missing_fields == ("events",)

    def test_the_fresher_of_recent_overs_and_scorecard_counts(self) -> None:
        ahead = {"rb": [recent(2, "OR", 15, "48/1", "1", "0", "4", "4")]}
        for score, expected in (("44/1(87", 48), ("52/1(89", 52)):
            payload = direct(
                self.TEST | ahead, self.page(), card(("OR", "350/10(588"), ("PE", "200/10(368"), ("OR", score))
            )
            assert payload.state.innings[2].runs == expected

    def test_a_missing_innings_is_a_missing_field(self) -> None:
        over = recent(3, "PE", 2, "9/0", "4")
        payload = direct(self.TEST | {"h": "3", "rb": [over]}, self.page(h="3", inning=4))
        assert [one.number for one in payload.state.innings] == [1, 2, 4]
        assert "innings" in payload.integrity.missing_fields

    def test_a_direct_read_without_them_gives_way_to_a_visit_once_an_innings(self) -> None:
        data = self.TEST | {"h": "3", "rb": [recent(3, "PE", 2, "9/0", "4")]}
        with pytest.raises(SchemaBreak, match="innings 4 is being played"):
            direct(data, self.page())
        assert direct(data, self.page(h="3", inning=4)).state.current_innings == 4

    @pytest.mark.requirement("BX-6")
    def test_a_scorecard_of_another_match_is_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="team ZZ is none of OR/PE"):
            direct(self.TEST, self.page(), card(("OR", "350/10(588"), ("ZZ", "200/10(368")))

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize(
        ("answer", "path"),
        [
            ([{"c": "OR"}], "innings[].d"), ([{"c": "OR", "d": "many"}], "innings[].d"), ({}, "innings"),
            ([None], "innings"), ({"innings": 5}, "innings"), ("Request Payload Error!", "scorecard"),
            ([{"c": "OR", "d": "151/11(19.2"}], "innings[].d"),
        ],
    )  # fmt: skip
    def test_a_scorecard_that_cannot_be_read_costs_only_its_innings(self, answer: Any, path: str) -> None:
        payload = direct(self.TEST, self.page(), build.document("scorecard", answer))
        assert innings_of(payload) == self.FIRST_TWO
        assert "innings" in payload.integrity.missing_fields
        assert build.broken(payload).keys() >= {path}

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize("row", [None, {"c": None}, {"c": "PE", "d": "-"}, {"c": "PE"}])
    def test_an_innings_that_cannot_be_read_leaves_the_others_their_numbers(self, row: Any) -> None:
        rows = [{"c": "OR", "d": "350/10(588"}, row, {"c": "OR", "d": "44/1(87"}]
        payload = direct(self.TEST, self.page(), build.document("scorecard", rows))
        assert innings_of(payload) == [*self.FIRST_TWO, (3, "team_a", 44, "14.3")]

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize(
        "spoilt",
        [
            {"i": 2},
            None,
            recent(2, "OR", 15, "44/1", "1") | {"b": [{"u": "1"}, None]},
            {"i": 10**9},
            recent(2, "OR", 16, "44/12", "1"),
        ],
    )
    def test_recent_overs_with_a_broken_row_say_nothing_about_the_score(self, spoilt: Any) -> None:
        payload = direct(self.TEST | {"rb": [recent(2, "OR", 14, "40/1", *"104010"), spoilt]}, self.page())
        assert innings_of(payload) == self.FIRST_TWO
        assert "innings" in payload.integrity.missing_fields

    @pytest.mark.requirement("SO-12")
    def test_second_innings_of_unknown_order_are_left_out(self) -> None:
        scores = {"j": "450/6(98.0,4/0(1.0", "k": "120/10(41.2,400/10(99.0", "h": "3", "rb": [None]}
        payload = direct(self.TEST | scores, self.page(h="3", inning=4))
        assert len(payload.state.innings) == 2
        assert "innings" in payload.integrity.missing_fields

    def test_after_two_of_a_short_match_are_super_overs(self) -> None:
        tied = build.live(j="151/10(19.2", k="151/6(20.0", h="3", comment1="Match tied")
        scored = card(("OR", "151/10(116"), ("PE", "151/6(120"), ("PE", "11/1(6"), ("OR", "4/0(2"))
        payload = direct(tied, build.page(name="static_page"), scored)
        assert [(one.is_super_over, one.target) for one in payload.state.innings] == [
            (False, None), (False, 152), (True, None), (True, 12),
        ]  # fmt: skip
        assert (payload.state.status, payload.state.result) == (Status.LIVE, "")
        assert payload.state.score.team_b.runs == 151, "a super over is no side's score"

    @pytest.mark.parametrize(
        ("fourth", "target"),
        [(("PE", "12/0(11"), 350 + 120 - 200 + 1), (("OR", "12/0(11"), 1)],
    )
    def test_the_last_of_a_long_match_has_a_target(self, fourth: tuple[str, str], target: int) -> None:
        third = ("OR", "120/4d(240") if fourth[0] == "PE" else ("PE", "150/10(240")
        payload = direct(
            self.TEST | {"h": "3"}, self.page(), card(("OR", "350/10(588"), ("PE", "200/10(368"), third, fourth)
        )
        assert [one.target for one in payload.state.innings] == [None, None, None, target]


class TestTargets:
    @pytest.mark.parametrize(
        ("changes", "target"),
        [
            pytest.param({}, 152, id="one more than the first innings"),
            pytest.param({"C": "Match reduced to 15 overs and revised target 121 runs"}, 121, id="revised"),
            pytest.param({"C": "DLS: revised target is 99"}, 99, id="revised in other words"),
            pytest.param({"over_reduced": 1}, None, id="overs were lost, and no target is given"),
            pytest.param({"C": "Match reduced to 15 overs"}, None, id="reduced, without a target"),
            pytest.param({"C": "Strategic time out"}, 152, id="another announcement"),
        ],
    )
    def test_of_a_chase(self, changes: dict[str, Any], target: int | None) -> None:
        nameless = build.state()
        nameless["https://live.test/api/v3/getSV3?key=9XA"].pop("target")
        state = direct(build.live(**changes), build.page(nameless, name="static_page")).state
        assert [one.target for one in state.innings] == [None, target]
        assert state.metadata.get("announcement") == changes.get("C")

    @pytest.mark.requirement("SO-12")
    def test_is_not_computed_where_the_announcement_cannot_be_read(self) -> None:
        nameless = build.state()
        nameless["https://live.test/api/v3/getSV3?key=9XA"]["target"] = 10**9
        state = direct(build.live(C=["revised"]), build.page(nameless, name="static_page")).state
        assert [one.target for one in state.innings] == [None, None]

    def test_of_a_page_from_before_the_rain_is_forgotten(self) -> None:
        assert direct(build.live(over_reduced=1)).state.innings[1].target is None

    def test_is_the_printed_one_where_the_page_has_it(self) -> None:
        state = build.state()
        state["https://live.test/api/v3/getSV3?key=9XA"]["target"] = 130
        payload = direct(build.live(over_reduced=1), build.page(state, name="static_page"))
        assert payload.state.innings[1].target == 130
