"""Parsing of a match by the Crex adapter: the document of each field, fallbacks and refusals."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest

from scraping.errors import Blocked, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, ReadMode
from scraping.sources.crex import details
from tests.scraping.sources import builders as build

ADAPTER = adapter_for("crex")
CHALLENGE = "<html><head><title>Just a moment...</title></head><body><form id='challenge-form'></form></body></html>"


COMMENT = (
    '<div class="cm-b-roundcard"><span class="cm-b-over"> 10.2 </span><span class="cm-b-ballupdate"> 1nb </span>'
    '<span class="cm-b-comment-c1">A to B</span></div>'
)


def visit(*documents: Document, captured_at: datetime = build.DURING) -> Payload:
    return ADAPTER.parse(build.reading(build.CREX, *documents, captured_at=captured_at))


def direct(data: Any, *documents: Document, captured_at: datetime = build.DURING) -> Payload:
    """Returns a direct read: the live response with the last visit's page, unless the test passes one."""
    carried = documents or (build.page(name="static_page"),)
    read = build.reading(
        build.CREX, build.document("live", data), *carried, mode=ReadMode.DIRECT, captured_at=captured_at
    )
    return ADAPTER.parse(read)


class TestMatchState:
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
    def test_comes_in_a_versioned_envelope_with_missing_fields(self) -> None:
        bare = build.state()
        del bare["match-9XA"]["v"]
        payload = visit(build.page(bare), build.document("live", build.live()))
        assert (payload.source, payload.schema_version, payload.source_event_id) == ("crex", 1, "9XA")
        assert payload.captured_at == build.DURING
        assert payload.integrity.missing_fields == ("venue",)
        assert payload.integrity.null_field_rate == pytest.approx(1 / 9, abs=0.001)
        assert payload.normalized()["score"]["team_a"]["runs"] == 151
        assert payload.payload_schema == "crex.live.v1"

    @pytest.mark.requirement("FS-8")
    def test_names_the_schema_of_the_way_it_was_read(self) -> None:
        drawn = build.page_html(None, build.HEADER.format(said="PEL need 64 runs"))
        assert visit(build.page()).payload_schema == "crex.page.v1"
        assert visit(build.document("page", drawn)).payload_schema == "crex.dom.v1"

    def test_keeps_the_order_of_the_live_answer_although_the_page_swaps_the_sides(self) -> None:
        named_by_rendering_only = {key: value for key, value in build.state().items() if "getHomeMapData" not in key}
        state = visit(build.page(named_by_rendering_only)).state
        assert (state.teams.team_a.name, state.teams.team_a.short_name) == ("Orchard City", "ORC")
        assert (state.teams.team_b.name, state.teams.team_b.short_name) == ("Pelican Town", "PEL")


class TestPrecedence:
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
        before = details.details_in_page.cache_info()
        for _ in range(5):
            direct(build.live(), page)
        after = details.details_in_page.cache_info()
        assert (after.misses - before.misses, after.hits - before.hits) == (1, 4)


class TestFallbacks:
    @pytest.mark.requirement("EC-1")
    @pytest.mark.parametrize("cut", [0.5, 0.9])
    def test_half_a_live_answer_gives_way_to_the_pages_copy(self, cut: float) -> None:
        whole = json.dumps(build.live()).encode()
        payload = visit(build.page(), build.document("live", whole[: int(len(whole) * cut)]))
        assert payload.state.score.team_b.runs == 88

    @pytest.mark.requirement("EC-1")
    def test_an_incomplete_page_state_gives_way_to_the_rendered_page(self) -> None:
        html = build.page_html(build.state(), build.HEADER.format(said="PEL need 64 runs"))
        payload = visit(build.document("page", html[: len(html) - 400]))
        assert payload.is_partial_state
        assert [team.name for team in (payload.state.teams.team_a, payload.state.teams.team_b)] == ["PEL", "ORC"]
        assert payload.state.score.team_a.overs == "10.3"
        assert payload.state.score.team_b.runs == 151, "the second side prints its overs before its score"
        assert payload.state.status is Status.LIVE
        assert payload.state.last_event is not None
        assert payload.state.last_event.type == "four"

    @pytest.mark.parametrize(
        ("body", "kind", "said"),
        [("", "", ""), (COMMENT, "no_ball", "10.2 A to B")],
    )
    def test_the_rendered_last_ball_is_in_the_commentary(self, body: str, kind: str, said: str) -> None:
        header = build.HEADER.split('<div class="cm-b-roundcard">')[0].format(said="4")
        last = visit(build.document("page", build.page_html(None, header + body))).state.last_event
        assert (last.type, last.description) == (kind, said) if last else not kind

    def test_the_rendered_info_tab_is_read(self) -> None:
        info = (
            '<div class="toss-wrap"><p>ORC opt to bat</p></div><div class="match-venue">Lantern Field</div>'
            '<div class="match-date">2026-05-02T14:00:00.000Z</div><div class="s-name">Lantern Cup</div>'
        )
        state = visit(build.document("page", build.page_html(None, build.HEADER.format(said="4") + info))).state
        assert state.toss is not None
        assert (state.toss.winner, state.venue, state.start_time) == ("ORC", "Lantern Field", build.START)
        assert state.metadata == {"series": "Lantern Cup"}

    def test_a_drawn_declaration_and_a_second_innings_are_read(self) -> None:
        header = build.HEADER.format(said="Stumps").replace("151-10 ", "350-10 & 120-3 d").replace("(19.2)", "(40.0)")
        payload = visit(build.document("page", build.page_html(None, header)))
        assert (payload.state.score.team_b.runs, payload.state.phase) == (120, Phase.STUMPS)
        assert payload.state.innings[0].is_declared

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
    @pytest.mark.parametrize("gone", ["a", "j", "k"])
    def test_a_live_response_without_a_required_field(self, gone: str) -> None:
        data = build.live()
        data[f"v2_{gone}"] = data.pop(gone)
        with pytest.raises(SchemaBreak, match=rf"crex\.live\.v1: {gone} \(field required\)"):
            direct(data)

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"a": "OR"}, "a"),
            ({"j": 151}, "j"),
            ({"k": 88}, "k"),
            ({"k": "many runs"}, "k"),
            ({"a": None, "comment1": 5}, "a"),
        ],
    )
    def test_name_the_path_of_the_invalid_field(self, changes: dict[str, Any], path: str) -> None:
        with pytest.raises(SchemaBreak, match=re.escape(f"crex.live.v1: {path} (")):
            direct(build.live(**changes))

    @pytest.mark.requirement("FS-2")
    def test_a_page_whose_own_entry_changed(self) -> None:
        changed = build.state()
        changed["match-9XA"]["team1"] = "Orchard City"
        with pytest.raises(SchemaBreak, match=r"crex\.page\.v1: match\.team1 \("):
            direct(build.live(), build.page(changed, name="static_page"))

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
        with pytest.raises(SchemaBreak, match="no response"):
            ADAPTER.parse(read)

    def test_a_direct_read_that_knows_no_names(self) -> None:
        with pytest.raises(SchemaBreak, match="no name is known for team OR"):
            direct(build.live(), build.document("feed", []))

    def test_before_the_start_the_scores_may_be_absent(self) -> None:
        payload = direct({"a": "OR.PE"}, captured_at=build.BEFORE)
        assert payload.state.status is Status.UPCOMING


@pytest.mark.requirement("SO-12")
class TestBrokenParts:
    """A part of the live response that cannot be read costs that part."""

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"B": None}, "B"),
            ({"B": ["4"]}, "B"),
            ({"rb": [{"i": 1, "o": 9, "bt": "PE", "ts": "64/2", "b": [{"d": 1}]}]}, "rb[].b[].u"),
            ({"rb": [{"i": 1}]}, "rb[].o"),
            ({"rb": "none"}, "rb"),
            ({"comment1": 3}, "comment1"),
            ({"comment1": {"text": "PEL won"}}, "comment1"),
            ({"res": [], "fo": 20, "C": 1}, "res"),
            ({"h": "first"}, "h"),
            ({"inning": 10**12}, "inning"),
            ({"target": "soon"}, "target"),
        ],
    )
    def test_of_another_type(self, changes: dict[str, Any], path: str) -> None:
        payload = direct(build.live(**changes))
        assert payload.state.score == direct(build.live()).state.score
        assert path in build.broken(payload)

    def test_a_missing_last_ball_is_noted(self) -> None:
        without = {name: value for name, value in build.live().items() if name != "B"}
        payload = direct(without)
        assert (payload.state.score.team_b.runs, payload.state.last_event) == (88, None)
        assert build.broken(payload) == {"B": 1}

    @pytest.mark.parametrize("changes", [{"B": 4}, {"h": 1, "inning": "2", "target": "152"}, {"h": "", "rb": {}}])
    def test_a_number_as_text_or_an_empty_value_is_none(self, changes: dict[str, Any]) -> None:
        payload = direct(build.live(**changes))
        assert payload.state.last_event is not None
        assert (payload.state.score.team_b.runs, payload.state.last_event.type) == (88, "four")
        assert payload.integrity.broken_parts == ()

    @pytest.mark.parametrize("k", [None, "", "-", "Yet to bat"])
    def test_a_side_without_a_score_has_not_batted(self, k: Any) -> None:
        payload = direct(build.live(j="40/1(5.0", k=k, h="0"))
        assert (payload.state.score.team_a.runs, payload.state.score.team_b.runs) == (40, None)
        assert payload.integrity.broken_parts == ()
        assert "innings" not in payload.integrity.missing_fields

    @pytest.mark.parametrize("k", [None, "-", "Yet to bat"])
    def test_a_missing_score_of_the_innings_at_hand_is_noted(self, k: Any) -> None:
        payload = direct(build.live(k=k))
        assert (payload.state.score.team_a.runs, payload.state.score.team_b.runs) == (151, None)
        assert "innings" in payload.integrity.missing_fields
        assert build.broken(payload) == {"k": 1}

    def test_a_missing_score_of_the_innings_at_hand_is_in_the_recent_overs(self) -> None:
        overs = [{"i": 1, "o": 11, "bt": "PE", "ts": "88/2", "b": [{"u": "1"}, {"u": "0"}, {"u": "4"}]}]
        payload = direct(build.live(k=None, rb=overs))
        assert payload.state.innings == direct(build.live()).state.innings

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize("changes", [{"h": "0"}, {"k": None, "h": "1"}])
    def test_the_first_score_is_needed_once_play_has_begun(self, changes: dict[str, Any]) -> None:
        with pytest.raises(SchemaBreak, match=r"crex\.live\.v1: j \(no score, although play has begun\)"):
            direct(build.live(**{"j": None, **changes}))

    @pytest.mark.parametrize("captured_at", [build.BEFORE, build.DURING])
    def test_before_the_first_ball_both_scores_may_be_null(self, captured_at: datetime) -> None:
        payload = direct(build.live(j=None, k=None, h="0", B=""), captured_at=captured_at)
        assert (payload.state.innings, payload.integrity.broken_parts) == ((), ())

    def test_of_a_cached_page_are_noted_at_every_read(self) -> None:
        page = build.page(build.state(**{"https://live.test/api/v3/getSC4": [None]}), name="static_page")
        assert [build.broken(direct(build.live(), page)) for _ in range(2)] == [{"innings": 1, "innings[]": 1}] * 2


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


class TestInvalidValues:
    @pytest.mark.requirement("ZT-5")
    @pytest.mark.parametrize("score", ["151/11(19.2", "-4/1(3.2", "99999/1(3.2"])
    def test_an_impossible_score_is_refused_with_the_value_named(self, score: str) -> None:
        with pytest.raises(PayloadRejected, match="Innings"):
            direct(build.live(j=score))


class TestThePage:
    """A cached page from before the toss is fetched again once play has begun."""

    def needs_page(self, live: Any, **rendered: Any) -> str:
        early = {"a": "OR.PE", "j": "", "k": "", "B": "", "h": None, "inning": None, "comment1": ""} | rendered
        state = build.state(**{"https://live.test/api/v3/getSV3?key=9XA": early})
        page = build.page(state, name="static_page")
        return ADAPTER.needed_page(build.reading(build.CREX, build.document("live", live), page, mode=ReadMode.DIRECT))

    @pytest.mark.requirement("SO-12")
    def test_is_needed_for_the_toss(self) -> None:
        assert self.needs_page(build.live())
        assert self.needs_page(build.live(j="0/0(0.1", k=""))

    def test_is_the_tab_of_the_details_which_alone_keeps_the_toss(self) -> None:
        assert self.needs_page(build.live(), j="12/0(1.2").endswith("-match-updates-9XA/match-details")

    def test_is_not_needed_after_the_tab_has_been_looked_at(self) -> None:
        state = build.state(**{"https://live.test/api/v3/getSV3?key=9XA": {"a": "OR.PE", "j": "12/0(1.2"}})
        page = build.page(state | {"https://live.test/api/v3/getIV4?key=9XA": {}}, name="static_page")
        read = build.reading(build.CREX, build.document("live", build.live()), page, mode=ReadMode.DIRECT)
        assert not ADAPTER.needed_page(read)

    @pytest.mark.parametrize(
        ("live", "rendered"),
        [
            pytest.param(build.live(j="", k=""), {}, id="play has not begun"),
            pytest.param(build.live(j="0/0(0.0", k=""), {}, id="no ball yet"),
            pytest.param(build.live(), {"comment1": "PEL won the toss and chose to bowl"}, id="the page has the toss"),
            pytest.param([], {}, id="no live response"),
            pytest.param({"j": [5]}, {}, id="rubbish"),
        ],
    )
    def test_is_not_needed(self, live: Any, rendered: dict[str, Any]) -> None:
        assert not self.needs_page(live, **rendered)

    def test_of_another_match_is_left_to_the_parser(self) -> None:
        page = build.page({"match-7QQ": {"fkey": "7QQ"}}, name="static_page")
        read = build.reading(build.CREX, build.document("live", build.live()), page, mode=ReadMode.DIRECT)
        assert not ADAPTER.needed_page(read)
