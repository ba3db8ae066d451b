"""What the Crex adapter makes of a match: which document it believes for what, and what it refuses."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from scraping.errors import Blocked, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, ReadMode
from scraping.sources.crex import facts
from scraping.sources.crex.live import parse_total
from tests.scraping.sources import builders as build

ADAPTER = adapter_for("crex")
CHALLENGE = "<html><head><title>Just a moment...</title></head><body><form id='challenge-form'></form></body></html>"


def visit(*documents: Document, captured_at: datetime = build.DURING) -> Payload:
    return ADAPTER.parse(build.reading(build.CREX, *documents, captured_at=captured_at))


def direct(data: Any, *documents: Document, captured_at: datetime = build.DURING) -> Payload:
    """A direct read: the live answer, and the last visit's page carried along unless the test brings its own."""
    carried = documents or (build.page(name="static_page"),)
    read = build.reading(
        build.CREX, build.document("live", data), *carried, mode=ReadMode.DIRECT, captured_at=captured_at
    )
    return ADAPTER.parse(read)


class TestTheUnifiedMatch:
    @pytest.mark.requirement("SO-12")
    def test_is_filled_from_live_answer_page_and_feed(self) -> None:
        payload = visit(build.page(), build.document("live", build.live()), build.document("feed", build.feed()))
        state = payload.state
        assert state.title == "Orchard City v Pelican Town, match 4"
        assert (state.status, state.phase) == (Status.LIVE, Phase.PLAY)
        assert [team.short_name for team in (state.teams.team_a, state.teams.team_b)] == ["ORC", "PEL"]
        assert (state.score.team_b.runs, state.score.team_b.wickets, state.score.team_b.overs) == (88, 2, "10.3")
        assert [(one.number, one.team, one.overs) for one in state.innings] == [
            (1, "team_a", "19.2"),
            (2, "team_b", "10.3"),
        ]
        assert state.current_innings == 2
        assert state.venue == "Lantern Field, Orchard"
        assert state.start_time == build.START
        assert state.metadata == {"series": "Lantern Cup & Shield", "match_type": "T20", "round": "4"}
        assert state.last_event is not None
        assert state.last_event.type == "four"

    @pytest.mark.requirement("FS-8")
    def test_comes_in_a_versioned_envelope_that_says_what_is_missing(self) -> None:
        bare = build.state()
        del bare["match-9XA"]["v"]
        payload = visit(build.page(bare), build.document("live", build.live()))
        assert (payload.source, payload.schema_version, payload.source_event_id) == ("crex", 1, "9XA")
        assert payload.captured_at == build.DURING
        assert payload.integrity.missing_fields == ("venue",)
        assert payload.integrity.null_field_rate == pytest.approx(1 / 9, abs=0.001)
        assert payload.normalized()["score"]["team_a"]["runs"] == 151

    def test_keeps_the_order_of_the_live_answer_although_the_page_swaps_the_sides(self) -> None:
        named_by_rendering_only = {key: value for key, value in build.state().items() if "getHomeMapData" not in key}
        state = visit(build.page(named_by_rendering_only)).state
        assert (state.teams.team_a.name, state.teams.team_a.short_name) == ("Orchard City", "ORC")
        assert (state.teams.team_b.name, state.teams.team_b.short_name) == ("Pelican Town", "PEL")


class TestWhichDocumentIsBelieved:
    def test_scores_come_from_the_live_answer_not_from_the_page(self) -> None:
        payload = visit(build.page(), build.document("live", build.live(k="95/3(11.1")))
        assert payload.state.score.team_b.runs == 95

    def test_a_direct_read_takes_names_from_the_last_visit_and_nothing_that_moves(self) -> None:
        payload = direct(build.live(k="120/4(14.5", B="6"))
        assert payload.state.teams.team_b.name == "Pelican Town"
        assert payload.state.score.team_b.runs == 120
        assert payload.events == ()
        assert payload.state.last_event is not None
        assert payload.state.last_event.type == "six"

    def test_a_direct_read_and_a_visit_of_the_same_moment_agree(self) -> None:
        feed = build.document("feed", build.feed())
        visited = visit(build.page(), build.document("live", build.live()), feed)
        assert direct(build.live(), build.page(name="static_page"), feed).state == visited.state

    def test_the_page_alone_gives_the_whole_state_and_the_feed(self) -> None:
        payload = visit(build.page())
        assert payload.state.score.team_b.runs == 88
        assert len(payload.events) == 5
        assert not payload.is_partial_state
        assert payload.integrity.missing_fields == ("live_answer",)

    def test_a_visit_whose_page_lost_its_state_uses_the_names_of_the_visit_before(self) -> None:
        spoilt = build.document("page", build.page_html(None, "<p>new design</p>"))
        payload = visit(spoilt, build.page(name="static_page"), build.document("live", build.live()))
        assert payload.state.teams.team_a.name == "Orchard City"

    def test_a_result_printed_on_the_last_visit_stays_true(self) -> None:
        ended = build.state()
        ended["https://live.test/api/v3/getSV3?key=9XA"]["comment1"] = "PEL won by 7 wickets"
        payload = direct(build.live(), build.page(ended, name="static_page"))
        assert (payload.state.status, payload.state.result) == (Status.COMPLETED, "PEL won by 7 wickets")

    def test_the_page_of_the_last_visit_is_decoded_once(self) -> None:
        page = build.page(build.state(extra="once"), name="static_page")
        before = facts.facts_of_page.cache_info()
        for _ in range(5):
            direct(build.live(), page)
        after = facts.facts_of_page.cache_info()
        assert (after.misses - before.misses, after.hits - before.hits) == (1, 4)


class TestFallbacks:
    @pytest.mark.requirement("EC-1")
    @pytest.mark.parametrize("cut", [0.5, 0.9])
    def test_half_a_live_answer_gives_way_to_the_pages_copy(self, cut: float) -> None:
        whole = json.dumps(build.live()).encode()
        payload = visit(build.page(), build.document("live", whole[: int(len(whole) * cut)]))
        assert payload.state.score.team_b.runs == 88

    @pytest.mark.requirement("EC-1")
    def test_half_a_page_state_gives_way_to_what_is_drawn(self) -> None:
        html = build.page_html(build.state(), build.HEADER.format(said="PEL need 64 runs"))
        payload = visit(build.document("page", html[: len(html) - 400]))
        assert payload.is_partial_state
        assert [team.name for team in (payload.state.teams.team_a, payload.state.teams.team_b)] == ["PEL", "ORC"]
        assert payload.state.score.team_a.overs == "10.3"
        assert payload.state.score.team_b.runs == 151, "the second side prints its overs before its score"
        assert payload.state.status is Status.LIVE
        assert payload.state.last_event is not None
        assert payload.state.last_event.type == "four"

    def test_the_drawn_result_ends_the_match(self) -> None:
        html = build.page_html(None, build.HEADER.format(said="Pelican Town won by 8 wickets"))
        payload = visit(build.document("page", html))
        assert (payload.state.status, payload.state.result) == (Status.COMPLETED, "Pelican Town won by 8 wickets")

    @pytest.mark.requirement("EC-1", "FS-2")
    def test_nothing_recognisable_is_a_changed_layout_with_evidence(self) -> None:
        html = build.page_html(None, '<div class="nx-score">88-2</div>')
        with pytest.raises(LayoutChanged, match=r"\.team-inning") as caught:
            visit(build.document("page", html))
        assert "nx-score" in caught.value.evidence

    def test_an_empty_page_is_a_changed_layout(self) -> None:
        with pytest.raises(LayoutChanged):
            visit(build.document("page", ""))


class TestSchemaBreaks:
    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize("gone", ["a", "j", "k", "B"])
    def test_a_live_answer_without_a_field_that_we_live_on(self, gone: str) -> None:
        data = build.live()
        data[f"v2_{gone}"] = data.pop(gone)
        with pytest.raises(SchemaBreak, match=rf"lacks {gone}"):
            direct(data)

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(build.live(j="many runs"), id="score in words"),
            pytest.param(build.live(a="OR"), id="one team"),
            pytest.param([], id="a list"),
            pytest.param({"error": "Invalid Host header"}, id="an error sentence"),
        ],
    )
    def test_a_live_answer_of_another_shape(self, data: Any) -> None:
        with pytest.raises(SchemaBreak):
            direct(data)

    @pytest.mark.requirement("FS-2")
    def test_a_direct_read_without_a_live_answer(self) -> None:
        read = build.reading(build.CREX, build.page(name="static_page"), mode=ReadMode.DIRECT)
        with pytest.raises(SchemaBreak, match="no answer"):
            ADAPTER.parse(read)

    def test_a_direct_read_that_knows_no_names(self) -> None:
        with pytest.raises(SchemaBreak, match="no name is known for team OR"):
            direct(build.live(), build.document("feed", []))

    def test_before_the_start_the_scores_may_be_absent(self) -> None:
        payload = direct({"a": "OR.PE"}, captured_at=build.BEFORE)
        assert payload.state.status is Status.UPCOMING


class TestIdentity:
    @pytest.mark.requirement("BX-6")
    def test_a_live_answer_with_other_teams_is_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="another match"):
            direct(build.live(a="OR.ZZ"))

    @pytest.mark.requirement("BX-6")
    def test_the_same_teams_on_another_day_are_refused_by_document_id(self) -> None:
        with pytest.raises(PayloadRejected, match="another match: 6000"):
            direct(build.live(dt_id="6000"))

    @pytest.mark.requirement("BX-6")
    def test_a_feed_of_another_match_is_refused(self) -> None:
        feed = build.document("feed", [build.ball(5, mfkey="8QQ")])
        with pytest.raises(PayloadRejected, match="8QQ instead of 9XA"):
            visit(build.page(), build.document("live", build.live()), feed)

    @pytest.mark.requirement("BX-6")
    @pytest.mark.parametrize("name", ["page", "static_page"])
    def test_a_page_of_another_match_is_refused(self, name: str) -> None:
        other = build.state()
        other["match-8QQ"] = other.pop("match-9XA") | {"fkey": "8QQ"}
        with pytest.raises(PayloadRejected, match="8QQ"):
            visit(build.page(other, name=name), build.document("live", build.live()))


class TestChallenges:
    @pytest.mark.requirement("BX-17")
    def test_a_challenge_page_is_blocked_not_drift(self) -> None:
        with pytest.raises(Blocked):
            visit(build.document("page", CHALLENGE))

    @pytest.mark.requirement("BX-17")
    def test_a_challenge_in_place_of_json_is_blocked_not_drift(self) -> None:
        with pytest.raises(Blocked):
            direct(CHALLENGE)


class TestRubbish:
    @pytest.mark.requirement("ZT-5")
    @pytest.mark.parametrize("score", ["151/11(19.2", "-4/1(3.2", "99999/1(3.2"])
    def test_an_impossible_score_is_refused_with_the_value_named(self, score: str) -> None:
        with pytest.raises(PayloadRejected, match="Innings"):
            direct(build.live(j=score))


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
                {"j": "450/6(98.0,4/0(1.0", "k": "120/10(41.2,400/10(99.0", "rb": [{"i": 3, "bt": "OR"}]},
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


class TestStatus:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            pytest.param({}, (Status.LIVE, Phase.PLAY), id="an ordinary ball"),
            pytest.param({"B": "Lunch Break"}, (Status.LIVE, Phase.LUNCH), id="lunch"),
            pytest.param({"B": "Tea"}, (Status.LIVE, Phase.TEA), id="tea"),
            pytest.param({"B": "Stumps - Day 2"}, (Status.LIVE, Phase.STUMPS), id="stumps"),
            pytest.param({"B": "Drinks"}, (Status.LIVE, Phase.DRINKS), id="drinks"),
            pytest.param({"B": "Match delayed by rain"}, (Status.LIVE, Phase.RAIN), id="rain"),
            pytest.param({"B": "Bad light stopped play"}, (Status.LIVE, Phase.RAIN), id="light"),
            pytest.param({"comment1": "PEL won by 7 wickets"}, (Status.COMPLETED, Phase.FINISHED), id="won"),
            pytest.param({"res": "Match tied"}, (Status.COMPLETED, Phase.FINISHED), id="tied"),
            pytest.param({"res": "Match tied, super over to follow"}, (Status.LIVE, Phase.PLAY), id="super over comes"),
            pytest.param(
                {"res": "Match tied (PEL won super over)"}, (Status.COMPLETED, Phase.FINISHED), id="super over"
            ),
            pytest.param({"res": "Match drawn"}, (Status.COMPLETED, Phase.FINISHED), id="drawn"),
            pytest.param({"B": "Match abandoned due to rain"}, (Status.ABANDONED, Phase.FINISHED), id="abandoned"),
            pytest.param({"res": "No result"}, (Status.ABANDONED, Phase.FINISHED), id="no result"),
            pytest.param({"B": "Day 2 play abandoned"}, (Status.LIVE, Phase.RAIN), id="one day abandoned"),
            pytest.param({"comment1": "ORC won the toss and chose to bat"}, (Status.LIVE, Phase.PLAY), id="toss"),
            pytest.param({"ms": 9, "st": "0", "status": 3}, (Status.LIVE, Phase.PLAY), id="status numbers say nothing"),
        ],
    )
    def test_comes_from_the_texts(self, changes: dict[str, Any], expected: tuple[Status, Phase]) -> None:
        state = direct(build.live(**changes)).state
        assert (state.status, state.phase) == expected

    @pytest.mark.parametrize(
        ("said", "at", "expected"),
        [
            ("", build.BEFORE, (Status.UPCOMING, Phase.SCHEDULED)),
            ("", build.DURING, (Status.LIVE, Phase.PLAY)),
            ("Toss delayed due to rain", build.BEFORE, (Status.UPCOMING, Phase.SCHEDULED)),
            ("Toss delayed due to rain", build.DURING, (Status.LIVE, Phase.RAIN)),
            ("Match postponed", build.DURING, (Status.UPCOMING, Phase.POSTPONED)),
        ],
    )
    def test_without_a_ball_comes_from_the_start_time(
        self, said: str, at: datetime, expected: tuple[Status, Phase]
    ) -> None:
        state = direct(build.live(j="", k="", B=said), captured_at=at).state
        assert (state.status, state.phase) == expected
        assert state.innings == ()

    @pytest.mark.parametrize(
        ("said", "winner", "decision"),
        [
            ("ORC won the toss and chose to bat", "Orchard City", "bat"),
            ("Pelican Town won the toss and elected to field first", "Pelican Town", "field"),
            ("PEL opt to bowl", "Pelican Town", "field"),
        ],
    )
    def test_tells_the_toss_apart_from_the_result(self, said: str, winner: str, decision: str) -> None:
        toss = direct(build.live(comment1=said)).state.toss
        assert toss is not None
        assert (toss.winner, toss.decision) == (winner, decision)
