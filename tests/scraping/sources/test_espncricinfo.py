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
            (lambda d: d["match"]["teams"][1]["team"].pop("longName"), "match.teams[1].team.longName (field required)"),
            (lambda d: d["match"]["teams"].append(None), "match.teams[2] (input should be a valid dictionary"),
            (lambda d: d["match"].update(status={}), "match.status (input should be a valid string)"),
            (lambda d: d["match"].update(isCancelled="no"), "match.isCancelled (input should be a valid boolean)"),
            (lambda d: d["match"].update(objectId=[]), "match.objectId (input should be a valid integer)"),
            (lambda d: d["content"]["innings"][0].pop("runs"), "content.innings[0].runs (field required)"),
            (lambda d: d["content"]["innings"][1].update(overs="10.3.1"), "content.innings[1].overs"),
            (lambda d: d["content"]["innings"].insert(0, None), "content.innings[0] (input should be"),
            (lambda d: d["content"].update(innings={}), "content.innings (input should be a valid list)"),
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


def without(raw: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name not in names}


def first_innings(**changes: Any) -> dict[str, Any]:
    return pages.inning(1, pages.ORCHARD, 151, 10, 19.2, **changes)


NULL_PLAYER = {"team": pages.PELICAN, "players": [{"player": None}]}


def figures_of(inside: dict[str, Any]) -> Any:
    return ADAPTER.parse_figures(read(pages.page(None, inside, name="scorecard")))


def lineups_of(*squads: Any) -> Any:
    inside = pages.content(matchPlayers={"teamPlayers": list(squads)})
    return ADAPTER.parse_lineups(read(pages.page(None, inside, name="scorecard")))


@pytest.mark.requirement("FS-2", "NFR-008")
class TestParts:
    """A part that is absent costs itself; one that cannot be read also stands in integrity.broken_parts."""

    @pytest.mark.parametrize(
        "names",
        [
            ("statusText",), ("slug",), ("title",), ("startTime",), ("tossWinnerTeamId", "tossWinnerChoice"),
            ("liveInning",), ("status", "statusEng"), ("ground", "series", "format", "isSuperOver", "isCancelled"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("is_null", [False, True])
    def test_of_the_match_may_be_absent(self, names: tuple[str, ...], is_null: bool) -> None:
        of = without(pages.match(), *names)
        if is_null and "series" not in names:
            of |= dict.fromkeys(names)
        payload = parse(of)
        assert payload.state.score.team_b.runs == 88
        assert len(payload.events) == 3
        assert payload.integrity.broken_parts == ()

    def test_of_a_side_may_be_absent_before_the_start(self) -> None:
        sides = [{"team": without(team, "abbreviation")} for team in (pages.ORCHARD, pages.PELICAN)]
        empty: dict[str, Any] = {"innings": [], "recentBallCommentary": None, "matchPlayers": {}}
        payload = parse(None, pages.content(**empty), state="PRE", status=None, statusText=None, teams=sides)
        assert (payload.state.status, payload.state.innings) == (Status.UPCOMING, ())
        assert payload.integrity.broken_parts == ()

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"startTime": 5}, "match.startTime"),
            ({"title": {}}, "match.title"),
            ({"tossWinnerTeamId": "5x"}, "match.tossWinnerTeamId"),
            ({"series": []}, "match.series"),
            ({"series": {"objectId": 1, "longName": 5}}, "match.series.longName"),
            ({"ground": {"name": 5}}, "match.ground.name"),
        ],
    )
    def test_of_the_match_that_are_broken_are_noted(self, changes: dict[str, Any], path: str) -> None:
        payload = parse(**changes)
        assert payload.state.score.team_b.runs == 88
        assert [(one.path, one.count) for one in payload.integrity.broken_parts] == [(path, 1)]

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            ({"matchPlayers": {"teamPlayers": [NULL_PLAYER]}}, "matchPlayers.teamPlayers[].players[].player"),
            ({"matchPlayers": []}, "matchPlayers"),
            ({"innings": [first_innings(inningOvers=[None])]}, "innings[].inningOvers[]"),
            ({"innings": [first_innings(inningBatsmen=[{"player": None}])]}, "innings[].inningBatsmen[].player"),
            ({"innings": [first_innings(inningBatsmen=[{"runs": 1}])]}, "innings[].inningBatsmen[].player"),
            ({"recentBallCommentary": {"ballComments": {}}}, "recentBallCommentary.ballComments"),
        ],
    )  # fmt: skip
    def test_of_the_content_cost_themselves(self, changes: dict[str, Any], path: str) -> None:
        payload = parse(None, pages.content(**changes))
        assert payload.state.score.team_a.runs == 151
        assert {one.path for one in payload.integrity.broken_parts} == {f"content.{path}"}
        assert payload.lacks_events == (path.startswith("recent"))

    def test_a_squad_without_its_players_is_none(self) -> None:
        squads = [{"type": "PLAYING", "team": pages.PELICAN}, {"type": "PLAYING", "team": pages.ORCHARD | {"id": 9}}]
        found = lineups_of(
            *squads, {"type": "PLAYING", "team": pages.ORCHARD, "players": [None, pages.squad_player(pages.ADA)]}
        )
        assert [(one.side, len(one.players)) for one in found.lineups] == [("team_a", 1)]
        assert [(one.path, one.count) for one in found.integrity.broken_parts] == [
            ("content.matchPlayers.teamPlayers[]", 2),
            ("content.matchPlayers.teamPlayers[].players[]", 1),
        ]

    def test_figures_of_an_innings_without_any_cost_that_innings(self) -> None:
        batter = {"player": pages.BO, "runs": 5}
        inside = pages.content(
            innings=[
                pages.inning(1, pages.ORCHARD, 151, 10, 19.2, inningBatsmen=None, inningBowlers=None),
                pages.inning(
                    2, pages.PELICAN, 88, 2, 10.3, inningBatsmen=[batter], inningBowlers=[{"player": pages.ADA}]
                ),
            ]
        )
        found = figures_of(inside)
        assert [(one.role, one.values) for one in found.figures] == [("batting", {"runs": 5}), ("bowling", {})]
        assert [one.path for one in found.integrity.broken_parts] == ["content.innings[]"]
        with pytest.raises(SchemaBreak, match="no batters and no bowlers"):
            figures_of(pages.content(innings=inside["innings"][:1]))

    def test_a_team_is_known_by_its_public_number_where_the_internal_one_is_missing(self) -> None:
        innings = [pages.inning(1, without(pages.ORCHARD, "id", "longName"), 151, 10, 19.2)]
        assert parse(None, pages.content(innings=innings)).state.innings[0].team == "team_a"

    def test_unreadable_content_leaves_the_totals_of_the_header(self) -> None:
        payload = ADAPTER.parse(read(build.document("page", pages.html({"match": pages.match(), "content": "none"}))))
        assert (payload.is_partial_state, payload.state.score.team_b.runs, payload.events) == (True, 88, ())
        assert {one.path for one in payload.integrity.broken_parts} == {"content"}


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

    @pytest.mark.parametrize("beside", [{"match": None}, {"content": {}}, {"content": None, "match": {}}, {"seo": {}}])
    def test_an_empty_part_beside_the_wrapper_does_not_matter(self, beside: dict[str, Any]) -> None:
        data = {"data": {"match": pages.match(), "content": pages.content()}} | beside
        assert ADAPTER.parse(read(build.document("page", pages.html(data), url=pages.URL))) == parse()

    def test_the_id_of_the_script_may_be_unquoted(self) -> None:
        html = pages.html({"match": pages.match(), "content": pages.content()})
        for spelled in ("id=__NEXT_DATA__", "id='__NEXT_DATA__'", "nonce=x id=__NEXT_DATA__"):
            changed = html.replace('id="__NEXT_DATA__"', spelled)
            assert ADAPTER.parse(read(build.document("page", changed, url=pages.URL))) == parse()
        with pytest.raises(LayoutChanged):
            ADAPTER.parse(read(build.document("page", html.replace('id="__NEXT_DATA__"', "id=__NEXT_DATA__2"))))

    @pytest.mark.parametrize("data", [None, 5, {"data": {"data": {}}}, {"data": []}])
    def test_a_page_without_a_match_is_drift(self, data: Any) -> None:
        with pytest.raises(Drift):
            ADAPTER.parse(read(build.document("page", pages.html(data), url=pages.URL)))
