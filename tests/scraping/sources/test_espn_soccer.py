"""ESPN football: parsing of the scoreboard, with its special cases."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from scraping.errors import PayloadRejected, SchemaBreak
from scraping.payloads import Payload, Phase, Status
from scraping.sources import adapter_for, parsing
from scraping.sources.base import ReadMode, RefInfo
from scraping.sources.espn.soccer import EspnSoccerAdapter
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn

SOCCER = EspnSoccerAdapter()
GOAL, YELLOW, RED = {"scoringPlay": True}, {"yellowCard": True}, {"redCard": True}
KICK = {"shootout": True, "penaltyKick": True}


def parsed(answer: dict[str, Any]) -> Payload:
    return SOCCER.parse(build.reading(espn.SOCCER, build.document("board", answer), mode=ReadMode.DIRECT))


def of(event: dict[str, Any]) -> Payload:
    return parsed(espn.board(event))


def test_is_requested_without_a_visit_and_lists_the_matches_of_a_day() -> None:
    adapter = adapter_for("espnsoccer")
    assert adapter.requests(espn.SOCCER, espn.SOCCER_BASE)
    assert adapter.fixture_plan(espn.SOCCER_BASE, date(2026, 5, 2))


@pytest.mark.requirement("SO-12")
def test_a_row_of_the_scoreboard_is_the_whole_match() -> None:
    other = espn.soccer_event(id="740009", competitions="rubbish")
    payload = parsed(espn.board(other, espn.soccer_event()))
    state = payload.state
    assert (state.title, state.teams.team_b.short_name) == ("Alder FC v Birch SC", "BIR")
    assert (state.status, state.phase, state.clock) == (Status.LIVE, Phase.PLAY, "67")
    assert (state.score.team_a.goals, state.score.team_b.goals, state.score.team_a.penalties) == (1, 0, None)
    assert (state.venue, state.start_time) == ("Estádio Alder, Alder", datetime(2026, 5, 2, 0, 30, tzinfo=UTC))
    assert state.metadata == {"series": "Brazilian Série A", "season": "2026"}
    assert (payload.payload_schema, payload.integrity.missing_fields) == ("espn.soccer.v1", ())
    assert payload.events_are_complete


@pytest.mark.requirement("FS-8")
def test_the_payload_has_schema_and_source() -> None:
    payload = of(espn.soccer_event())
    assert (payload.source, payload.payload_schema) == ("espnsoccer", "espn.soccer.v1")
    assert payload.normalized()["score"]["team_a"]["goals"] == 1
    assert (payload.integrity.null_field_rate, payload.integrity.missing_fields, payload.unknown) == (0.0, (), ())


def test_a_summary_is_accepted() -> None:
    header = espn.soccer_event() | {"league": {"name": "Brazilian Série A"}}
    del header["competitions"][0]["venue"]
    answer = {"header": header, "gameInfo": {"venue": {"fullName": "Estádio Alder"}}}
    state = parsed(answer).state
    assert (state.score.team_a.goals, state.venue, state.metadata["series"]) == (
        1,
        "Estádio Alder",
        "Brazilian Série A",
    )


@pytest.mark.parametrize(
    ("name", "state", "completed", "expected", "clock"),
    [
        ("STATUS_SCHEDULED", "pre", False, (Status.UPCOMING, Phase.SCHEDULED), ""),
        ("STATUS_FIRST_HALF", "in", False, (Status.LIVE, Phase.PLAY), "45+2"),
        ("STATUS_HALFTIME", "in", False, (Status.LIVE, Phase.HALFTIME), "HT"),
        ("STATUS_SECOND_HALF", "in", False, (Status.LIVE, Phase.PLAY), "45+2"),
        ("STATUS_END_OF_REGULATION", "in", False, (Status.LIVE, Phase.EXTRA_TIME), "45+2"),
        ("STATUS_OVERTIME", "in", False, (Status.LIVE, Phase.EXTRA_TIME), "45+2"),
        ("STATUS_EXTRA_TIME", "in", False, (Status.LIVE, Phase.EXTRA_TIME), "45+2"),
        ("STATUS_END_OF_EXTRATIME", "in", False, (Status.LIVE, Phase.PENALTIES), "PEN"),
        ("STATUS_SHOOTOUT", "in", False, (Status.LIVE, Phase.PENALTIES), "PEN"),
        ("STATUS_SUSPENDED", "in", False, (Status.LIVE, Phase.INTERRUPTED), ""),
        ("STATUS_DELAYED", "pre", False, (Status.UPCOMING, Phase.SCHEDULED), ""),
        ("STATUS_FULL_TIME", "post", True, (Status.COMPLETED, Phase.FINISHED), "FT"),
        ("STATUS_FINAL_AET", "post", True, (Status.COMPLETED, Phase.FINISHED), "AET"),
        ("STATUS_FINAL_PEN", "post", True, (Status.COMPLETED, Phase.FINISHED), "AP"),
        ("STATUS_POSTPONED", "post", False, (Status.UPCOMING, Phase.POSTPONED), ""),
        ("STATUS_CANCELED", "post", False, (Status.ABANDONED, Phase.FINISHED), ""),
        ("STATUS_ABANDONED", "post", True, (Status.ABANDONED, Phase.FINISHED), ""),
    ],
)
def test_the_name_of_the_status_decides(
    name: str, state: str, completed: bool, expected: tuple[Status, Phase], clock: str
) -> None:
    standing = espn.soccer_status(name, state, completed=completed, clock="45'+2'")
    payload = of(espn.soccer_event(("0", "0"), [], status=standing))
    assert (payload.state.status, payload.state.phase) == expected
    assert payload.state.clock == clock
    has_begun = payload.state.status in (Status.LIVE, Status.COMPLETED)
    assert (payload.state.score.team_a.goals is None) != has_begun
    assert payload.unknown == ()


@pytest.mark.parametrize(
    ("state", "completed", "expected"),
    [
        ("pre", False, Status.UPCOMING),
        ("in", False, Status.LIVE),
        ("post", True, Status.COMPLETED),
        ("post", False, None),
        ("limbo", False, None),
    ],
)
def test_an_unknown_name_is_counted_and_the_state_decides(state: str, completed: bool, expected: Status | None) -> None:
    event = espn.soccer_event(status=espn.soccer_status("STATUS_NAPTIME", state, completed=completed))
    if expected is None:
        with pytest.raises(PayloadRejected, match="unknown status 'STATUS_NAPTIME'"):
            of(event)
        return
    payload = of(event)
    assert payload.state.status is expected
    assert [(one.path, one.value) for one in payload.unknown] == [("status.type.name", "STATUS_NAPTIME")]


class TestDetails:
    @pytest.mark.parametrize(
        ("detail", "kind", "slot"),
        [
            pytest.param(espn.detail("Goal - Header", **GOAL), "goal", "g:team_a:1", id="goal"),
            pytest.param(
                espn.detail("Penalty - Scored", penaltyKick=True, **GOAL), "penalty_goal", "g:team_a:1", id="penalty"
            ),
            pytest.param(espn.detail("Own Goal", ownGoal=True, **GOAL), "own_goal", "g:team_a:1", id="own goal"),
            pytest.param(espn.detail("Yellow Card", **YELLOW), "yellow_card", "c:team_a:yellow:bofinch", id="yellow"),
            pytest.param(espn.detail("Red Card", side="22", **RED), "red_card", "c:team_b:red:bofinch", id="red"),
            pytest.param(espn.detail("Yellow Card", who="", **YELLOW), "yellow_card", "", id="a card for the bench"),
            pytest.param(espn.detail("Penalty - Saved"), "penalty_missed", "", id="penalty saved"),
            pytest.param(
                espn.detail("Substitution", who="Cy New|Di Old"), "substitution", "s:team_a:diold", id="change"
            ),
            pytest.param(
                espn.detail("Penalty - Scored", **KICK, **GOAL), "shootout_goal", "k:team_a:1", id="kick scored"
            ),
            pytest.param(espn.detail("Penalty - Missed", **KICK), "shootout_miss", "k:team_a:1", id="kick missed"),
            pytest.param(espn.detail("VAR - Goal Cancelled"), "var", "", id="video review"),
        ],
    )
    def test_each_has_its_kind_and_event_key(self, detail: dict[str, Any], kind: str, slot: str) -> None:
        goals = ("1", "0") if kind in ("goal", "penalty_goal", "own_goal") else ("0", "0")
        payload = of(espn.soccer_event(goals, [detail]))
        (event,) = payload.events
        assert (event.kind, event.slot, event.minute) == (kind, slot, "14")
        assert payload.events_are_complete
        assert payload.unknown == ()

    def test_come_newest_first_numbered_a_side_and_each_with_an_id(self) -> None:
        details = [
            espn.detail(minute="3'", **GOAL),
            espn.detail(minute="9'", side="22", **GOAL),
            espn.detail(minute="45'+5'", **GOAL),
            espn.detail(minute="45'+5'", **GOAL),
        ]
        events = of(espn.soccer_event(("3", "1"), details)).events
        assert [event.slot for event in events] == ["g:team_a:3", "g:team_a:2", "g:team_b:1", "g:team_a:1"]
        assert [event.minute for event in events] == ["45+5", "45+5", "9", "3"]
        assert len({event.id for event in events}) == 4

    @pytest.mark.parametrize(
        ("side", "goals", "slot", "is_complete"),
        [
            pytest.param("21", ("1", "0"), "g:team_a:1", True, id="under the side that gains"),
            pytest.param("22", ("1", "0"), "g:team_a:1", True, id="under the side of the player: the score decides"),
            pytest.param("22", ("1", "1"), "g:team_b:1", False, id="a goal is missing: as it is listed"),
        ],
    )
    def test_an_own_goal_counts_for_the_side_whose_score_it_raised(
        self, side: str, goals: tuple[str, str], slot: str, is_complete: bool
    ) -> None:
        payload = of(espn.soccer_event(goals, [espn.detail("Own Goal", side=side, ownGoal=True, **GOAL)]))
        assert (payload.events[0].slot, payload.events_are_complete) == (slot, is_complete)

    def test_the_shoot_out_is_apart_from_the_goals(self) -> None:
        kicks = [
            espn.detail("Penalty - Scored", "120'", side, f"Kicker {place}", **KICK, scoringPlay=place != 3)
            for place, side in enumerate(("21", "22", "21", "22"))
        ]
        event = espn.soccer_event(
            ("1", "1"),
            [espn.detail(**GOAL), espn.detail(side="22", **GOAL), *kicks],
            status=espn.soccer_status("STATUS_FINAL_PEN", "post", completed=True),
            competitors=({"shootoutScore": 2, "winner": True}, {"shootoutScore": 1}),
        )
        payload = of(event)
        score = payload.state.score
        assert (score.team_a.goals, score.team_b.goals) == (1, 1)
        assert (score.team_a.penalties, score.team_b.penalties) == (2, 1)
        assert payload.state.result == "Alder FC won 2-1 on penalties after 1-1"
        assert payload.events_are_complete
        assert [one.slot for one in payload.events[:4]] == ["k:team_b:2", "k:team_a:2", "k:team_b:1", "k:team_a:1"]

    def test_a_second_yellow_card_has_the_red_cards_key(self) -> None:
        details = [espn.detail("Yellow Card", minute, **YELLOW) for minute in ("10'", "80'")]
        events = of(espn.soccer_event(("0", "0"), [*details, espn.detail("Red Card", "80'", **RED)])).events
        assert [event.slot for event in events] == ["c:team_a:red:bofinch", "", "c:team_a:yellow:bofinch"]

    def test_unknown_kinds_are_counted_and_kept(self) -> None:
        payload = of(espn.soccer_event(("0", "0"), [espn.detail("Multiball")]))
        assert [(event.kind, event.is_critical) for event in payload.events] == [("other", False)]
        assert [one.value for one in payload.unknown] == ["Multiball"]


@pytest.mark.parametrize(
    ("goals", "winners", "result"),
    [
        (("2", "1"), (True, False), "Alder FC won 2-1"),
        (("0", "3"), ("false", "true"), "Birch SC won 3-0"),
        (("1", "1"), (False, False), "Draw 1-1"),
    ],
)
def test_the_result_is_a_sentence(goals: tuple[str, str], winners: tuple[Any, Any], result: str) -> None:
    ended = espn.soccer_status("STATUS_FULL_TIME", "post", completed=True)
    sides = tuple({"winner": winner} for winner in winners)
    assert of(espn.soccer_event(goals, [], status=ended, competitors=sides)).state.result == result


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(espn.board(espn.soccer_event(id="740002")), id="a scoreboard without the match"),
        pytest.param({"header": espn.soccer_event(id="740002")}, id="a summary of another one"),
    ],
)
def test_an_answer_about_other_matches_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(PayloadRejected):
        parsed(answer)


def test_a_match_missing_from_its_days_is_requested_by_id() -> None:
    def follow(answer: dict[str, Any]) -> list[str]:
        read = build.reading(espn.SOCCER, build.document("board", answer), mode=ReadMode.DIRECT)
        return [request.url for request in SOCCER.follow_up(read, espn.SOCCER_BASE)]

    assert follow(espn.board(espn.soccer_event())) == []
    assert follow({"header": espn.soccer_event(id="740002")}) == []
    assert follow(espn.board(espn.soccer_event(id="740002"))) == [
        f"{espn.SOCCER_BASE}/apis/site/v2/sports/soccer/bra.1/summary?event=740001"
    ]


@pytest.mark.requirement("FS-2")
@pytest.mark.parametrize(
    ("spoil", "path"),
    [
        (lambda event: event["competitions"][0].pop("competitors"), r"events\[\]\.competitions\[0\]\.competitors"),
        (lambda event: event["status"]["type"].pop("state"), r"status\.type\.state \(field required\)"),
        (lambda event: event["competitions"][0]["competitors"][0].update(score="two"), r"score is no number: 'two'"),
        (lambda event: event["competitions"][0]["competitors"][0].update(score={}), r"competitors\[0\]\.score"),
        (lambda event: event["competitions"][0]["competitors"][0].update(score=None), r"score is no number: 'None'"),
        (lambda event: event["competitions"][0]["competitors"].append(None), r"competitors \(list"),
        (lambda event: event["competitions"][0]["competitors"][1].pop("team"), r"competitors\[1\]\.team"),
        (lambda event: event["competitions"].insert(0, None), r"competitions\[0\]"),
        (
            lambda event: event["competitions"][0]["competitors"][0].update(homeAway="away"),
            r"not one home and one away",
        ),
    ],
)
def test_a_changed_field_is_named_with_its_path(spoil: Any, path: str) -> None:
    event = espn.soccer_event()
    spoil(event)
    with pytest.raises(SchemaBreak, match=rf"espn\.soccer\.v1: .*{path}"):
        of(event)


@pytest.mark.requirement("SO-12", "BX-6")
class TestSummary:
    """The header has goals and reds without a type; the key events have all kinds, periods too."""

    GOAL = espn.summary_detail("14'", "Bo Finch|Ada Reed", scoringPlay=True)
    RED = espn.summary_detail("80'", "Cy Moss", side="22", redCard=True)
    KEYS = (
        espn.key_event("Kickoff", "", "", side=None),
        espn.key_event("Goal - Header", "14'", "Bo Finch|Ada Reed", scoringPlay=True),
        espn.key_event("Halftime", "45'", "", side=None),
        espn.key_event("Substitution", "60'", "Di Vale|Bo Finch"),
        espn.key_event("Yellow Card", "45'+2'", "Cy Moss", side="22"),
        espn.key_event("Red Card", "80'", "Cy Moss", side="22"),
    )

    def read(self, details: Any, key_events: Any, goals: tuple[str, str] = ("1", "0")) -> Payload:
        answer = {"header": espn.soccer_event(goals, details), "keyEvents": key_events}
        return parsed({name: value for name, value in answer.items() if value is not None})

    def test_has_the_events_of_both_lists_once_and_in_order(self) -> None:
        payload = self.read([self.GOAL, self.RED], list(self.KEYS))
        assert [(event.kind, event.minute, event.detail.get("team")) for event in reversed(payload.events)] == [
            ("goal", "14", "team_a"), ("yellow_card", "45+2", "team_b"), ("substitution", "60", "team_a"),
            ("red_card", "80", "team_b"),
        ]  # fmt: skip
        red, substitution, _, goal = payload.events
        assert (goal.detail["player"], goal.detail["assist"], goal.slot) == ("Bo Finch", "Ada Reed", "g:team_a:1")
        assert (substitution.detail["player_in"], substitution.detail["player_out"]) == ("Di Vale", "Bo Finch")
        assert (red.detail["player"], payload.events_are_complete, payload.unknown) == ("Cy Moss", True, ())

    def test_has_the_ids_of_the_scoreboard(self) -> None:
        on_board = of(espn.soccer_event(details=[espn.detail("Goal - Header", who="Bo Finch|Ada Reed", **GOAL)]))
        assert {event.id for event in on_board.events} < {
            event.id for event in self.read([self.GOAL, self.RED], list(self.KEYS)).events
        }

    def test_without_key_events_the_list_is_not_complete(self) -> None:
        payload = self.read([self.GOAL], None)
        assert [event.kind for event in payload.events] == ["goal"]
        assert (payload.events_are_complete, payload.integrity.missing_fields) == (False, ("metadata.series",))

    def test_the_key_events_count_where_the_header_lacks_a_goal(self) -> None:
        second = espn.key_event("Penalty - Scored", "70'", "Di Vale", scoringPlay=True)
        payload = self.read([self.GOAL], [*self.KEYS, second], ("2", "0"))
        assert [event.kind for event in payload.events if "goal" in event.kind] == ["penalty_goal", "goal"]
        assert payload.events_are_complete

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize("bad", [None, 5, {}, {"clock": {"displayValue": "9'"}}], ids=repr)
    def test_a_bad_row_costs_itself_and_the_claim_to_be_complete(self, bad: Any) -> None:
        payload = self.read([self.GOAL, self.RED, bad], list(self.KEYS))
        assert len(payload.events) == 4
        assert [one.path for one in payload.integrity.broken_parts] == ["header.competitions[].details[]"]
        assert not payload.events_are_complete
        keys = self.read([self.GOAL, self.RED], [*self.KEYS, bad])
        assert (len(keys.events), keys.events_are_complete) == (4, False)
        assert [one.path for one in keys.integrity.broken_parts] == ["keyEvents[]"]

    @pytest.mark.requirement("FS-2")
    def test_goals_and_kicks_have_no_number_where_one_of_them_is_left_out(self) -> None:
        kick = espn.detail(shootout=True, scoringPlay=True)
        details = [None, espn.detail(minute="50'", scoringPlay=True), kick, espn.detail("Yellow Card", **YELLOW)]
        slots = {event.kind: event.slot for event in of(espn.soccer_event(("2", "0"), details)).events}
        assert (slots["goal"], slots["shootout_goal"], slots["yellow_card"][:9]) == ("", "", "c:team_a:")
        slots = {event.kind: event.slot for event in of(espn.soccer_event(("1", "0"), details)).events}
        assert (slots["goal"], slots["shootout_goal"]) == ("g:team_a:1", "")

    @pytest.mark.requirement("FS-2")
    def test_lists_that_are_none_cost_the_events_only(self) -> None:
        payload = self.read({}, {})
        assert (payload.state.score.team_a.goals, payload.events, payload.lacks_events) == (1, (), True)
        assert [one.path for one in payload.integrity.broken_parts] == ["header.competitions[].details", "keyEvents"]
        kept = self.read([self.GOAL], {})
        assert (len(kept.events), kept.events_are_complete, kept.lacks_events) == (1, False, False)

    @pytest.mark.parametrize(
        "changes",
        [
            {"redCard": None, "yellowCard": None, "ownGoal": None, "penaltyKick": None, "shootout": None},
            {"participants": None},
            {"athletesInvolved": None},
            {"team": {"id": 21}},
            {"participants": [{"athlete": {"id": 900, "displayName": "Bo Finch"}}]},
        ],
    )
    def test_a_detail_may_lack_parts_and_have_numbers_as_ids(self, changes: dict[str, Any]) -> None:
        payload = self.read([self.GOAL | changes, self.RED], list(self.KEYS))
        assert [event.kind for event in payload.events] == ["red_card", "substitution", "yellow_card", "goal"]
        assert (payload.events_are_complete, payload.integrity.broken_parts) == (True, ())

    def test_the_venue_may_be_text(self) -> None:
        event = espn.soccer_event(details=[self.GOAL])
        del event["competitions"][0]["venue"]
        payload = parsed({"header": event, "gameInfo": {"venue": "Park"}, "keyEvents": list(self.KEYS)})
        assert (payload.state.score.team_a.goals, payload.state.venue) == (1, "")
        assert [one.path for one in payload.integrity.broken_parts] == ["gameInfo.venue"]

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("Goal", "goal"), ("Goal - Free-kick", "goal"), ("Own Goal", "own_goal"),
            ("Penalty - Scored", "penalty_goal"), ("Penalty - Saved", "penalty_missed"),
            ("VAR - Goal Cancelled", "var"), ("Red Card", "red_card"), ("Second Yellow Card", "red_card"),
            ("Yellow Card", "yellow_card"), ("Substitution", "substitution"),
        ],
    )  # fmt: skip
    def test_the_type_alone_names_the_kind(self, text: str, kind: str) -> None:
        row = {"type": {"text": text}, "clock": {"displayValue": "9'"}, "team": {"id": "21"}}
        assert [event.kind for event in self.read([], [row], ("0", "0")).events] == [kind]


@pytest.mark.requirement("FS-2")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"season": {"year": "2026"}}, ""),
        ({"season": {"year": []}}, "events[].season.year"),
        ({"id": 740001}, ""),
        ({"date": 5}, "events[].date"),
        ({"goals": (1, 0)}, ""),
        ({"competitors": ({"shootoutScore": []}, {})}, "events[].competitions[].competitors[].shootoutScore"),
    ],
)
def test_any_other_part_costs_itself(changes: dict[str, Any], path: str) -> None:
    payload = of(espn.soccer_event(**changes))
    assert (payload.state.score.team_a.goals, payload.events_are_complete) == (1, True)
    assert [one.path for one in payload.integrity.broken_parts] == ([path] if path else [])


@pytest.mark.parametrize(
    ("goals", "winners", "result"),
    [
        (("0", "0"), (True, False), "Alder FC won (walkover)"),
        (("3", "0"), (True, False), "Alder FC won 3-0"),
        ((None, None), (False, True), "Birch SC won (walkover)"),
        ((None, None), (None, None), "W/O"),
    ],
)
def test_a_walkover_is_over_though_it_is_not_completed(goals: Any, winners: Any, result: str) -> None:
    sides = tuple({"winner": winner} for winner in winners)
    state = espn.soccer_status("STATUS_WALKOVER", "post", detail="W/O")
    payload = of(espn.soccer_event(goals, [], competitors=sides, status=state))
    assert (payload.state.status, payload.state.result) == (Status.COMPLETED, result)
    assert payload.unknown == ()


class TestLists:
    def reading(self, body: Any) -> Any:
        return build.reading(RefInfo("", ""), build.document("list", body), mode=ReadMode.DIRECT)

    def test_name_the_match_with_teams_series_and_the_days_to_request(self) -> None:
        (match,) = SOCCER.parse_list(self.reading(espn.board(espn.soccer_event())), espn.SOCCER_BASE)
        assert (match.source_event_id, match.url, match.status) == ("740001", espn.SOCCER.url, Status.LIVE)
        assert ([team.name for team in match.teams], match.series) == (["Alder FC", "Birch SC"], "Brazilian Série A")

    def test_fixtures_are_requested_for_the_new_york_day_too(self) -> None:
        plan = SOCCER.fixture_plan(espn.SOCCER_BASE, date(2026, 5, 2))
        assert (plan.url, plan.requests[0].url) == ("", espn.SOCCER.url.partition("#")[0])
        day_before = espn.soccer_event(id="740007")
        day_before["competitions"][0]["date"] = "2026-05-01T23:30Z"
        body = espn.board(espn.soccer_event(), day_before)
        found = SOCCER.parse_fixtures(self.reading(body), espn.SOCCER_BASE, date(2026, 5, 2))
        assert [one.source_event_id for one in found] == ["740001"]

    def test_a_row_that_cannot_be_read_costs_no_other_of_the_day(self) -> None:
        odd = espn.soccer_event(id="740007")
        odd["competitions"][0]["status"] = espn.soccer_status("STATUS_NAPTIME", "limbo")
        body = espn.board(espn.soccer_event(), odd)
        with parsing.noting_unrecognized() as noted:
            found = SOCCER.parse_fixtures(self.reading(body), espn.SOCCER_BASE, date(2026, 5, 2))
        assert [one.source_event_id for one in found] == ["740001"]
        assert parsing.LIST_ROW in {one.path for one in noted}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("soccer/bra.1/scoreboard?dates=20260501-20260502#740001", True),
        ("soccer/bra.1/scoreboard?dates=20260502#740001", True),
        ("soccer/bra.1/summary?event=740001", True),
        ("soccer/bra.1/scoreboard?dates=20260502", False),
        ("soccer/bra.1/scoreboard#740001", False),
        ("cricket/bra.1/summary?event=740001", False),
        ("soccer/bra.1/summary?event=abc", False),
    ],
)
def test_a_matchs_address(path: str, expected: bool) -> None:
    url = f"{espn.SOCCER_BASE}/apis/site/v2/sports/{path}"
    match = SOCCER.match_at(url, espn.SOCCER_BASE)
    assert (match is not None) == expected
    if match is not None:
        assert (match.source_event_id, match.url) == ("740001", url)
        (request,) = SOCCER.requests(RefInfo("740001", match.url), "https://elsewhere.test")
        assert request.url == f"https://elsewhere.test/apis/site/v2/sports/{path.partition('#')[0]}"
        assert SOCCER.endpoints(RefInfo("740001", match.url))[0].pattern.search(request.url)
