"""Parsing of a match page by the ESPNcricinfo adapter: special cases and refusals."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scraping.errors import Blocked, Drift, LayoutChanged, PayloadRejected, SchemaBreak
from scraping.payloads import Phase, Status
from scraping.sources.base import Document, ReadMode
from tests.scraping.sources import builders as build
from tests.scraping.sources import espncricinfo_pages as pages
from tests.scraping.sources.espncricinfo_pages import ADAPTER, parse, read

DENIED = "<html><head><title>Access Denied</title></head><body><h1>Access Denied</h1>Reference #18</body></html>"


class TestMatchState:
    @pytest.mark.requirement("SO-12", "FS-8")
    def test_is_filled_from_the_page_alone(self) -> None:
        payload = parse()
        state = payload.state
        assert state.title == "Orchard City v Pelican Town, 4th Match"
        assert (state.status, state.phase, state.result) == (Status.LIVE, Phase.PLAY, "")
        assert [team.short_name for team in (state.teams.team_a, state.teams.team_b)] == ["ORC", "PEL"]
        assert state.score.team_a.model_dump(exclude_none=True) == {"runs": 151, "wickets": 10, "overs": "19.2"}
        assert state.score.team_b.model_dump(exclude_none=True) == {"runs": 88, "wickets": 2, "overs": "10.3"}
        assert [(one.number, one.team, one.target) for one in state.innings] == [
            (1, "team_a", None),
            (2, "team_b", 152),
        ]
        assert (state.current_innings, state.venue) == (2, "Lantern Field, Orchard")
        assert state.toss is not None
        assert (state.toss.winner, state.toss.decision) == ("Pelican Town", "field")
        assert state.start_time == build.START
        assert state.metadata == {"series": "Lantern Cup", "match_type": "T20", "round": "4th Match"}
        assert state.last_event is not None
        assert state.last_event.type == "four"
        assert (payload.integrity.missing_fields, payload.unknown, payload.is_partial_state) == ((), (), False)
        assert (payload.source, payload.payload_schema) == ("espncricinfo", "espncricinfo.match.v1")
        assert payload.source_event_id == "800200"

    @pytest.mark.parametrize("mode", ReadMode)
    def test_is_the_same_for_direct_reads_and_visits(self, mode: ReadMode) -> None:
        assert ADAPTER.parse(build.reading(pages.REF, pages.page(), mode=mode)).state == parse().state

    @pytest.mark.parametrize(
        ("winner", "choice", "expected"),
        [
            (51, 1, ("Orchard City", "bat")),
            (52, 2, ("Pelican Town", "field")),
            (52, None, ("Pelican Town", "")),  # abandoned after the toss
            (None, None, None),
            (9051, 1, None),  # the public number is not the one that is meant
        ],
    )
    def test_finds_the_toss_winner_by_the_internal_number(self, winner: Any, choice: Any, expected: Any) -> None:
        toss = parse(tossWinnerTeamId=winner, tossWinnerChoice=choice).state.toss
        assert (toss and (toss.winner, toss.decision)) == expected

    def test_has_super_overs_after_the_innings_and_declarations_from_the_header(self) -> None:
        inside = pages.content(
            innings=[
                pages.inning(2, pages.PELICAN, 150, 4, 20),
                pages.inning(1, pages.ORCHARD, 150, 5, 20),
            ],
            superOverInnings=[
                pages.inning(1, pages.PELICAN, 9, 1, 1),
                pages.inning(2, pages.ORCHARD, 4, 0, 0.3, target=10),
            ],
        )
        sides = [pages.side(pages.ORCHARD, "150/5d"), pages.side(pages.PELICAN, "150/4")]
        state = parse(None, inside, teams=sides, isSuperOver=True, statusText="Match tied").state
        assert [(one.team, one.runs, one.is_super_over, one.is_declared) for one in state.innings] == [
            ("team_a", 150, False, True), ("team_b", 150, False, False), ("team_b", 9, True, False),
            ("team_a", 4, True, False),
        ]  # fmt: skip
        assert [one.number for one in state.innings] == [1, 2, 3, 4]
        assert (state.current_innings, state.status) == (4, Status.LIVE)
        assert [one.overs for one in state.innings] == ["20.0", "20.0", "1.0", "0.3"]

    def test_leaves_out_innings_without_play(self) -> None:
        to_come = pages.inning(2, pages.PELICAN, 0, 0, 0, isBatted=False) | {"runs": None, "overs": None}
        inside = pages.content(innings=[pages.inning(1, pages.ORCHARD, 12, 0, 1.2), to_come])
        assert [one.number for one in parse(None, inside, liveInning=1).state.innings] == [1]

    def test_is_partial_where_only_the_header_has_the_score(self) -> None:
        payload = parse(None, pages.content(innings=None))
        assert payload.is_partial_state
        assert payload.state.score.team_a.model_dump(exclude_none=True) == {"runs": 151, "wickets": 10}
        assert payload.state.score.team_b.model_dump(exclude_none=True) == {"runs": 88, "wickets": 2, "overs": "10.3"}


DELAYED = "Match delayed by"


class TestStatus:
    @pytest.mark.parametrize(
        ("changes", "status", "phase"),
        [
            ({"status": "Live"}, Status.LIVE, Phase.PLAY),
            ({"status": "Innings break"}, Status.LIVE, Phase.INNINGS_BREAK),
            ({"status": "Drinks"}, Status.LIVE, Phase.DRINKS),
            ({"status": "Lunch"}, Status.LIVE, Phase.LUNCH),
            ({"status": "Tea"}, Status.LIVE, Phase.TEA),
            ({"status": "Stumps"}, Status.LIVE, Phase.STUMPS),
            ({"status": f"{DELAYED} rain"}, Status.LIVE, Phase.RAIN),
            ({"status": f"{DELAYED} bad light"}, Status.LIVE, Phase.RAIN),
            ({"status": f"{DELAYED} a wet outfield"}, Status.LIVE, Phase.RAIN),
            ({"status": "लंच", "statusEng": "Lunch"}, Status.LIVE, Phase.LUNCH),
            ({"statusText": "Day 2 - Session 1 abandoned"}, Status.LIVE, Phase.PLAY),
            ({"statusText": "PEL won the toss and chose to field"}, Status.LIVE, Phase.PLAY),
            ({"statusText": "PEL won by 8 wickets"}, Status.COMPLETED, Phase.FINISHED),  # before the state says so
            ({"statusText": "Match drawn"}, Status.COMPLETED, Phase.FINISHED),
            ({"statusText": "Match tied"}, Status.COMPLETED, Phase.FINISHED),
            ({"statusText": "Match tied", "isSuperOver": True}, Status.LIVE, Phase.PLAY),
            ({"statusText": "No result"}, Status.ABANDONED, Phase.FINISHED),
            ({"status": "RESULT", "statusText": "भारत जीता"}, Status.COMPLETED, Phase.FINISHED),
            ({"state": "POST", "status": "RESULT", "statusText": "ORC won by a run"}, Status.COMPLETED, Phase.FINISHED),
            ({"state": "POST", "status": "NO RESULT", "statusText": "No result"}, Status.ABANDONED, Phase.FINISHED),
            ({"state": "POST", "statusText": "Match abandoned without a ball"}, Status.ABANDONED, Phase.FINISHED),
            ({"isCancelled": True}, Status.ABANDONED, Phase.FINISHED),
        ],
    )  # fmt: skip
    def test_follows_from_state_and_texts(self, changes: dict[str, Any], status: Status, phase: Phase) -> None:
        word = {"statusEng": changes["status"]} if "status" in changes else {}
        payload = parse(**(word | changes))
        assert (payload.state.status, payload.state.phase) == (status, phase)
        assert bool(payload.state.result) == (phase is Phase.FINISHED)
        assert payload.unknown == ()

    @pytest.mark.parametrize(
        ("changes", "phase"),
        [
            (
                {"status": "{{MATCH_START_TIME}}", "statusText": "Match starts in {{MATCH_START_HOURS}}"},
                Phase.SCHEDULED,
            ),
            ({"status": "{{MATCH_START_TIME}}", "statusText": "Match yet to begin"}, Phase.SCHEDULED),
            ({"status": f"{DELAYED} rain", "statusText": ""}, Phase.RAIN),
            ({"status": "Postponed", "statusText": "Match postponed"}, Phase.POSTPONED),
        ],
    )
    def test_before_the_start(self, changes: dict[str, Any], phase: Phase) -> None:
        empty: dict[str, Any] = {"innings": [], "recentBallCommentary": None}
        payload = parse(None, pages.content(**empty), state="PRE", statusEng=None, **changes, **pages.NO_PLAY)
        assert (payload.state.status, payload.state.phase) == (Status.UPCOMING, phase)
        assert (payload.state.innings, payload.state.current_innings, payload.state.result) == ((), None, "")
        assert payload.integrity.missing_fields == ()

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"state": "PAUSED"}, "match.state"),
            ({"status": "Bees", "statusEng": "Bees"}, "match.status"),
            ({"tossWinnerChoice": 7}, "match.tossWinnerChoice"),
            ({"tossWinnerTeamId": 99}, "match.tossWinnerTeamId"),
        ],
    )
    def test_unknown_texts_are_counted_and_the_match_goes_on(self, changes: Any, path: str) -> None:
        payload = parse(**changes)
        assert [word.path for word in payload.unknown] == [path]
        assert payload.state.status is Status.LIVE


class TestRefusal:
    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (lambda d: d["match"].pop("state"), "espncricinfo.match.v1: match.state (field required)"),
            (lambda d: d["match"]["teams"][1]["team"].pop("id"), "match.teams[1].team.id (field required)"),
            (lambda d: d["match"].update(objectId="800200"), "match.objectId (input should be a valid integer)"),
            (lambda d: d["content"]["innings"][0].pop("runs"), "content.innings[0].runs (field required)"),
            (lambda d: d["content"]["innings"][1].update(overs="10.3"), "content.innings[1].overs"),
            (
                lambda d: d["content"]["recentBallCommentary"]["ballComments"][2].pop("totalRuns"),
                "espncricinfo.commentary.v1: content.recentBallCommentary.ballComments[2].totalRuns (field required)",
            ),
        ],
    )
    def test_a_changed_schema_is_a_break_with_the_fields_path(self, spoil: Any, said: str) -> None:
        data = copy.deepcopy({"match": pages.match(), "content": pages.content()})
        spoil(data)
        with pytest.raises(SchemaBreak) as broken:
            ADAPTER.parse(read(build.document("page", pages.html(data))))
        assert said in str(broken.value)

    @pytest.mark.parametrize(
        ("html", "error"),
        [
            (DENIED, Blocked),
            ("<html><head><title>Just a moment...</title></head></html>", Blocked),
            ("<html><body>Something else</body></html>", LayoutChanged),
            ('<script id="__NEXT_DATA__" type="application/json">{"props": {</script>', LayoutChanged),
            ('<script id="__NEXT_DATA__" type="application/json">{"props": {}}</script>', LayoutChanged),
            ("", LayoutChanged),
        ],
    )
    def test_a_page_without_data_is_a_challenge_or_another_page(self, html: str, error: type[Exception]) -> None:
        with pytest.raises(error):
            ADAPTER.parse(read(build.document("page", html)))

    @pytest.mark.parametrize(
        "changes",
        [
            {"objectId": 800201},
            {"id": 800200, "objectId": 4200},  # the inner number is not the match's
            {"teams": [pages.side(pages.ORCHARD, "151")]},
        ],
    )
    def test_another_match_is_rejected(self, changes: dict[str, Any]) -> None:
        with pytest.raises(PayloadRejected):
            parse(**changes)
        card = read(pages.page(name="scorecard", **changes))
        for ask in (ADAPTER.parse_lineups, ADAPTER.parse_figures):
            with pytest.raises(PayloadRejected):
                ask(card)

    def test_absurd_values_are_rejected(self) -> None:
        with pytest.raises(PayloadRejected, match="wickets"):
            parse(None, pages.content(innings=[pages.inning(1, pages.ORCHARD, 151, 11, 19.2)]))

    def test_an_innings_of_a_third_team_is_a_break(self) -> None:
        stranger = pages.ORCHARD | {"id": 53}
        with pytest.raises(SchemaBreak, match="none of the match's two"):
            parse(None, pages.content(innings=[pages.inning(1, stranger, 151, 3, 19.2)]))


@pytest.mark.requirement("SO-12", "FS-2")
class TestDepthOfTheData:
    """Live pages and lists have `data` once more than the scorecard of the same build."""

    @pytest.mark.parametrize("depth", [0, 1, 2])
    def test_does_not_matter_for_any_page(self, depth: int) -> None:
        def page(name: str, data: Any) -> Document:
            for _ in range(depth):
                data = {"data": data}
            return build.document(name, pages.html(data), url=pages.URL)

        whole = {"match": pages.match(), "content": pages.content()}
        assert ADAPTER.parse(read(page("page", whole))) == parse()
        assert len(ADAPTER.parse_lineups(read(page("scorecard", whole))).lineups) == 2
        assert ADAPTER.parse_figures(read(page("scorecard", whole))).figures == ()
        listed = ADAPTER.parse_list(read(page("page", {"content": {"matches": [pages.match()]}})), pages.BASE)
        assert [one.source_event_id for one in listed] == ["800200"]

    @pytest.mark.parametrize("data", [None, 5, {"data": {"data": {}}}, {"data": []}])
    def test_a_page_without_a_match_is_drift(self, data: Any) -> None:
        with pytest.raises(Drift):
            ADAPTER.parse(read(build.document("page", pages.html(data), url=pages.URL)))
