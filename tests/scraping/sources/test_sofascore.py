"""Parsing of an event and its incidents by the Sofascore adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scraping.errors import Blocked, Gone, LayoutChanged, PayloadRejected, SchemaBreak, Transient
from scraping.payloads import DiscoveredMatch, Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, ReadMode, RefInfo, Request
from scraping.sources.sofascore.adapter import SofascoreAdapter
from scraping.sources.sofascore.incidents import event_of
from scraping.sources.sofascore.schemas import Incident
from stadium.football.script import Postponement, ShootoutKick, Stoppage, VarDecision
from stadium.matches.programme import Match
from tests.scraping.sources import builders as build
from tests.scraping.sources.sofa_stadium import PHASES, Site

ADAPTER = adapter_for("sofascore")
SOFASCORE = SofascoreAdapter()
FOLDER = os.environ.get("VICTORYLINE_RECORDINGS", "")
RUNNING = ("First half", "Second half", "Extra time", "Penalties")
PERIOD_START = datetime(2026, 5, 2, 16, 0, tzinfo=build.START.tzinfo)


def parse(event: dict[str, Any], *documents: Document, captured_at: datetime = build.DURING) -> Payload:
    answer = build.document("event", {"event": event})
    read = build.reading(build.SOFA, answer, *documents, mode=ReadMode.DIRECT, captured_at=captured_at)
    return ADAPTER.parse(read)


def named(payload: Payload) -> dict[str, int]:
    """Returns how often each part was left out, by its path."""
    return {part.path: part.count for part in payload.integrity.broken_parts}


def status(kind: str, code: int, description: str = "") -> dict[str, Any]:
    return {"type": kind, "code": code, "description": description}


class TestMatchState:
    @pytest.mark.requirement("SO-12")
    def test_is_filled_from_the_event_and_its_incidents(self) -> None:
        payload = parse(build.event(), build.document("incidents", build.incidents()))
        state = payload.state
        assert state.title == "Alder Athletic v Birch Rovers"
        assert (state.status, state.phase, state.clock) == (Status.LIVE, Phase.PLAY, "76")
        assert (state.score.team_a.goals, state.score.team_b.goals) == (2, 1)
        assert (state.teams.team_a.short_name, state.teams.team_b.short_name) == ("ALD", "BIR")
        assert (state.venue, state.start_time) == ("Alder Park, Copse", build.START)
        assert state.metadata == {"series": "Copse League", "season": "2026", "round": 5}
        assert state.last_event is not None
        assert state.last_event.description == "Penalty goal 70': R. Elm (2-1)"
        assert payload.integrity.missing_fields == ()

    @pytest.mark.requirement("FS-8")
    def test_comes_in_a_versioned_envelope_with_missing_fields(self) -> None:
        event = build.event(homeTeam={"name": "Alder Athletic"})
        del event["venue"]
        payload = parse(event)
        assert (payload.source, payload.schema_version, payload.source_event_id) == ("sofascore", 1, "7001")
        assert payload.payload_schema == "sofascore.event.v1"
        assert payload.integrity.missing_fields == ("teams.team_a.short_name", "venue", "events")
        assert payload.integrity.null_field_rate == pytest.approx(3 / 7, abs=0.001)

    def test_does_not_count_a_shoot_out_as_goals(self) -> None:
        payload = parse(
            build.event(
                status=status("finished", 120, "AP"),
                winnerCode=1,
                homeScore={"current": 6, "display": 1, "penalties": 5},
                awayScore={"current": 5, "display": 1, "penalties": 4},
            )
        )
        score = payload.state.score
        assert (score.team_a.goals, score.team_a.penalties, score.team_b.goals) == (1, 5, 1)
        assert payload.state.result == "Alder Athletic won 5-4 on penalties after 1-1"

    @pytest.mark.parametrize(
        ("given", "goals"),
        [
            pytest.param({"current": 6, "penalties": 5}, 1, id="current counts the shoot-out in"),
            pytest.param({"current": 6, "display": 1, "penalties": 5}, 1, id="display does not"),
            pytest.param({"period1": 2}, 2, id="the first half alone"),
            pytest.param({"period1": 1, "period2": 1, "extra1": 0, "extra2": 1, "penalties": 4}, 3, id="the periods"),
            pytest.param({}, None, id="nothing before kick-off"),
        ],
    )
    def test_goals_exclude_the_shoot_out(self, given: dict[str, int], goals: int | None) -> None:
        assert parse(build.event(homeScore=given)).state.score.team_a.goals == goals

    @pytest.mark.parametrize("kind", [("postponed", 60, "Postponed"), ("canceled", 70, "Canceled")])
    def test_a_match_that_is_put_off_or_called_off_has_no_score(self, kind: tuple[str, int, str]) -> None:
        payload = parse(build.event(status=status(*kind), homeScore={}, awayScore={}))
        assert payload.state.score.model_dump(exclude_none=True) == {"team_a": {}, "team_b": {}}
        assert "score" not in payload.integrity.missing_fields

    def test_a_start_that_moves_is_the_same_match(self) -> None:
        later = build.event(startTimestamp=int(build.START.timestamp()) + 47 * 3600, status=status("notstarted", 0))
        assert parse(later).state.start_time == build.START + timedelta(hours=47)

    @pytest.mark.parametrize(
        ("code", "winner", "result"),
        [
            (91, 1, "Alder Athletic won by walkover"),
            (92, 2, "Birch Rovers won as the other side retired"),
            (91, None, "W"),
        ],
    )
    def test_a_win_without_play_is_named_as_such(self, code: int, winner: int | None, result: str) -> None:
        event = build.event(status=status("finished", code, "W"), winnerCode=winner, homeScore={}, awayScore={})
        assert parse(event).state.result == result


class TestStatus:
    @pytest.mark.parametrize(
        ("kind", "code", "expected", "clock"),
        [
            ("notstarted", 0, (Status.UPCOMING, Phase.SCHEDULED), ""),
            ("inprogress", 31, (Status.LIVE, Phase.HALFTIME), "HT"),
            ("inprogress", 7, (Status.LIVE, Phase.PLAY), "76"),
            ("inprogress", 20, (Status.LIVE, Phase.PLAY), "76"),
            ("inprogress", 41, (Status.LIVE, Phase.EXTRA_TIME), "76"),
            ("inprogress", 50, (Status.LIVE, Phase.PENALTIES), "PEN"),
            ("finished", 100, (Status.COMPLETED, Phase.FINISHED), "FT"),
            ("finished", 110, (Status.COMPLETED, Phase.FINISHED), "AET"),
            ("finished", 120, (Status.COMPLETED, Phase.FINISHED), "AP"),
            ("postponed", 60, (Status.UPCOMING, Phase.POSTPONED), ""),
            ("canceled", 70, (Status.ABANDONED, Phase.FINISHED), ""),
            ("canceled", 90, (Status.ABANDONED, Phase.FINISHED), ""),
            ("interrupted", 80, (Status.LIVE, Phase.INTERRUPTED), ""),
            ("suspended", 81, (Status.LIVE, Phase.INTERRUPTED), ""),
        ],
    )
    def test_is_decided_by_type_then_code(
        self, kind: str, code: int, expected: tuple[Status, Phase], clock: str
    ) -> None:
        state = parse(build.event(status=status(kind, code))).state
        assert (state.status, state.phase, state.clock) == (*expected, clock)

    def test_of_an_unknown_type_is_refused_by_name(self) -> None:
        with pytest.raises(PayloadRejected, match="'levitating'"):
            parse(build.event(status=status("levitating", 7)))

    def test_an_unknown_code_counts_as_its_type_and_is_noted(self) -> None:
        payload = parse(build.event(status=status("inprogress", 77)))
        assert payload.state.status is Status.LIVE
        assert [(word.path, word.value) for word in payload.unknown] == [("event.status.code", "inprogress 77")]

    def test_the_description_decides_where_the_code_is_unknown(self) -> None:
        state = parse(build.event(status=status("inprogress", 34, "Awaiting penalties"))).state
        assert state.phase is Phase.PENALTIES

    def test_abandoned_keeps_the_source_text(self) -> None:
        event = build.event(status=status("canceled", 90, "Abandoned"), homeScore={}, awayScore={})
        assert parse(event).state.result == "Abandoned"


class TestClock:
    @pytest.mark.parametrize(
        ("seconds", "minute"),
        [(0, "46"), (59, "46"), (60, "47"), (2699, "90"), (2700, "90+1"), (2999, "90+5"), (9999, "90+20"), (-30, "46")],
    )
    def test_counts_from_the_start_of_the_period(self, seconds: int, minute: str) -> None:
        assert parse(build.event(), captured_at=PERIOD_START + timedelta(seconds=seconds)).state.clock == minute

    def test_knows_the_periods_where_the_source_gives_only_their_start(self) -> None:
        time = {"currentPeriodStartTimestamp": int(PERIOD_START.timestamp())}
        event = build.event(status=status("inprogress", 6), time=time)
        assert parse(event, captured_at=PERIOD_START + timedelta(minutes=46)).state.clock == "45+2"

    def test_is_empty_where_the_source_has_none(self) -> None:
        assert parse(build.event(status=status("inprogress", 20), time={})).state.clock == ""


class TestEvents:
    def test_have_kinds_minutes_and_descriptions(self) -> None:
        events = parse(build.event(), build.document("incidents", build.incidents())).events
        assert [(event.id, event.kind, event.minute) for event in events] == [
            ("503", "penalty_goal", "70"),
            ("604", "substitution", "60"),
            ("period:45:HT", "period", "45"),
            ("injuryTime:45:2", "injury_time", "45"),
            ("502", "own_goal", "40"),
            ("601", "yellow_card", "33"),
            ("501", "goal", "12"),
        ]
        assert events[1].description == "Substitution 60': Ash Dell for Rowan Elm"
        assert events[2].description == "Half-time (1-1)"

    def test_leave_out_the_running_period_and_the_passing_network(self) -> None:
        events = parse(build.event(), build.document("incidents", build.incidents())).events
        assert not [event for event in events if "Second half" in event.description]
        assert all(len(event.detail) < 8 for event in events)

    @pytest.mark.parametrize(
        ("incident", "kind", "minute"),
        [
            ({"incidentType": "card", "incidentClass": "yellowRed", "time": 80}, "red_card", "80"),
            ({"incidentType": "card", "incidentClass": "yellow", "time": -5}, "yellow_card", None),
            ({"incidentType": "inGamePenalty", "time": 90, "addedTime": 3}, "penalty_missed", "90+3"),
            ({"incidentType": "penaltyShootout", "incidentClass": "scored", "sequence": 1}, "shootout_goal", None),
            ({"incidentType": "penaltyShootout", "incidentClass": "missed", "sequence": 2}, "shootout_miss", None),
            ({"incidentType": "varDecision", "incidentClass": "goalNotAwarded", "time": 9}, "var", "9"),
            ({"incidentType": "period", "text": "PEN", "time": 999, "addedTime": 999}, "period", None),
            ({"incidentType": "streaker", "time": 9}, "other", "9"),
        ],
    )  # fmt: skip
    def test_of_every_kind_become_events(self, incident: dict[str, Any], kind: str, minute: str | None) -> None:
        event = event_of(Incident.model_validate(incident))
        assert (event.kind, event.minute) == (kind, minute)
        assert event.id

    @pytest.mark.requirement("BX-3")
    def test_are_complete_only_when_they_account_for_every_goal(self) -> None:
        whole = build.incidents()
        assert parse(build.event(), build.document("incidents", whole)).events_are_complete
        halved = {"incidents": whole["incidents"][::2]}
        assert not parse(build.event(), build.document("incidents", halved)).events_are_complete
        assert not parse(build.event()).events_are_complete

    def test_have_names_that_are_the_same_at_every_source(self) -> None:
        kick = {"incidentType": "penaltyShootout", "incidentClass": "scored", "sequence": 7, "id": 9, "isHome": False}
        ended = {"incidentType": "period", "text": "PEN", "time": 999, "addedTime": 999}
        events = parse(build.event(), build.document("incidents", build.incidents(ended, kick))).events
        assert {event.id: event.slot for event in events if event.slot} == {
            "period:999:PEN": "p:pen",
            "9": "k:team_b:4",
            "503": "g:team_a:2",
            "604": "s:team_a:rowanelm",
            "period:45:HT": "p:ht",
            "502": "g:team_b:1",
            "601": "c:team_b:yellow:mossfern",
            "501": "g:team_a:1",
        }

    def test_a_second_yellow_is_the_red_card_it_is_elsewhere(self) -> None:
        card = {"incidentType": "card", "incidentClass": "yellowRed", "id": 9, "isHome": True, "playerName": "Ash Dell"}
        event = parse(build.event(), build.document("incidents", build.incidents(card))).events[0]
        assert (event.kind, event.slot) == ("red_card", "c:team_a:red:ashdell")

    def test_a_rescinded_card_is_marked_and_keeps_its_id(self) -> None:
        card = {"incidentType": "card", "incidentClass": "red", "id": 9, "isHome": True, "playerName": "Ash Dell"}
        given, taken = (
            event_of(Incident.model_validate(card | {"rescinded": rescinded})) for rescinded in (False, True)
        )
        assert (given.id, "rescinded" in given.detail) == (taken.id, False)
        assert (taken.detail["rescinded"], taken.description) == (True, "Red card: Ash Dell (rescinded)")
        assert given.fingerprint() != taken.fingerprint()

    def test_ids_of_two_sorts_do_not_hide_each_other(self) -> None:
        card = {"incidentType": "card", "incidentClass": "red", "id": 503, "isHome": True, "time": 80}
        ids = [e.id for e in parse(build.event(), build.document("incidents", build.incidents(card, card))).events]
        assert ids[:2] == ["503", "goal:503"]

    @pytest.mark.parametrize(
        ("incident", "path", "value"),
        [
            ({"incidentType": "streaker", "time": 9}, "incidents[].incidentType", "streaker"),
            (
                {"incidentType": "goal", "incidentClass": "ghost", "isHome": True},
                "incidents[].incidentClass of goal",
                "ghost",
            ),
            ({"incidentType": "card", "incidentClass": "blue"}, "incidents[].incidentClass of card", "blue"),
            ({"incidentType": "period", "text": "2ET"}, "incidents[].text of period", "2ET"),
        ],
    )
    def test_unknown_values_are_counted(self, incident: dict[str, Any], path: str, value: str) -> None:
        payload = parse(build.event(), build.document("incidents", build.incidents(incident)))
        assert [(word.path, word.value) for word in payload.unknown] == [(path, value)]
        assert payload.events

    @pytest.mark.requirement("SO-12")
    def test_a_row_that_cannot_be_read_costs_itself_and_the_claim_to_be_complete(self) -> None:
        whole = parse(build.event(), build.document("incidents", build.incidents()))
        assert whole.events_are_complete
        broken = parse(build.event(), build.document("incidents", build.incidents(None, {"id": 5})))
        assert broken.events == whole.events
        assert not broken.events_are_complete
        assert named(broken) == {"incidents[]": 1, "incidents[].incidentType": 1}

    @pytest.mark.requirement("SO-12")
    @pytest.mark.parametrize("listed", [{}, "none", [None], [{"id": 5}]])
    def test_a_list_without_a_readable_row_is_no_list(self, listed: Any) -> None:
        payload = parse(build.event(), build.document("incidents", {"incidents": listed}))
        assert (payload.events, payload.events_are_complete) == ((), False)
        assert "events" in payload.integrity.missing_fields
        assert payload.integrity.broken_parts

    @pytest.mark.requirement("BX-6")
    @pytest.mark.parametrize(
        ("changes", "more"),
        [
            pytest.param({"homeScore": {"current": 0, "display": 0}}, (), id="two goals more than the score"),
            pytest.param(
                {}, ({"incidentType": "goal", "isHome": False, "homeScore": 2, "awayScore": 5},), id="a score beyond"
            ),
            pytest.param({"status": status("notstarted", 0), "homeScore": {}, "awayScore": {}}, (), id="not begun"),
            pytest.param({"status": status("inprogress", 6)}, ({"incidentType": "period", "text": "FT"},), id="ended"),
        ],
    )
    def test_that_cannot_be_this_matchs_are_not_used(
        self, changes: dict[str, Any], more: tuple[dict[str, Any], ...]
    ) -> None:
        payload = parse(build.event(**changes), build.document("incidents", build.incidents(*more)))
        assert (payload.events, payload.events_are_complete) == ((), False)
        assert payload.unknown[-1].value == "another match's"

    @pytest.mark.requirement("BX-6")
    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param({"homeScore": {"current": 3, "display": 3}}, id="a goal behind"),
            pytest.param({"homeScore": {"display": 2, "period1": 0}, "awayScore": {"display": 1, "period1": 1}},
                         id="another score at half-time"),
        ],
    )  # fmt: skip
    def test_that_do_not_agree_are_used_but_never_complete(self, changes: dict[str, Any]) -> None:
        payload = parse(build.event(**changes), build.document("incidents", build.incidents()))
        assert payload.events
        assert not payload.events_are_complete

    def test_an_empty_list_after_the_break_is_not_all(self) -> None:
        nil = {"current": 0, "display": 0}
        event = build.event(homeScore=nil, awayScore=nil)
        assert not parse(event, build.document("incidents", {"incidents": []})).events_are_complete
        ended = build.event(homeScore=nil, awayScore=nil, status=status("finished", 100))
        assert parse(ended, build.document("incidents", {"incidents": []})).events_are_complete

    @pytest.mark.requirement("BX-6")
    def test_with_far_more_goals_than_the_score_are_another_matchs(self) -> None:
        nil = {"current": 0, "display": 0}
        payload = parse(build.event(homeScore=nil, awayScore=nil), build.document("incidents", build.incidents()))
        assert payload.events == ()
        assert "events" in payload.integrity.missing_fields

    @pytest.mark.parametrize("body", [b'{"incidents": [', {"v2_incidents": []}, {"error": {"code": 404}}])
    def test_that_cannot_be_read_cost_the_events_and_not_the_score(self, body: Any) -> None:
        payload = parse(build.event(), build.document("incidents", body))
        assert (payload.events, payload.state.score.team_a.goals) == ((), 2)

    def test_have_no_older_pages(self) -> None:
        read = build.reading(build.SOFA, build.document("incidents", build.incidents()))
        assert ADAPTER.older_events(read, Request("incidents", "http://site.test/")) is None


class TestRefusals:
    @pytest.mark.requirement("BX-6")
    def test_another_event_is_refused(self) -> None:
        with pytest.raises(PayloadRejected, match="7002 instead of 7001"):
            parse(build.event(id=7002))

    @pytest.mark.requirement("BX-6")
    def test_another_sport_is_refused(self) -> None:
        tournament = {"name": "Cup", "category": {"sport": {"slug": "tennis"}}}
        with pytest.raises(PayloadRejected, match="tennis"):
            parse(build.event(tournament=tournament))

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize("gone", ["id", "status", "homeTeam", "awayTeam", "homeScore", "awayScore"])
    def test_an_event_without_a_required_field_is_a_schema_break(self, gone: str) -> None:
        event = build.event()
        event[f"v2_{gone}"] = event.pop(gone)
        with pytest.raises(SchemaBreak, match=rf"sofascore\.event\.v1: event\.{gone} \(field required\)"):
            parse(event)

    @pytest.mark.requirement("FS-2")
    @pytest.mark.parametrize(
        "changes",
        [
            pytest.param({"homeScore": {"v2_display": 1}}, id="score renamed"),
            pytest.param({"homeTeam": {"v2_name": "Alder"}}, id="team renamed"),
            pytest.param({"status": {"v2_type": "inprogress"}}, id="status renamed"),
        ],
    )
    def test_a_renamed_inner_field_is_a_schema_break(self, changes: dict[str, Any]) -> None:
        with pytest.raises(SchemaBreak):
            parse(build.event(**changes))

    @pytest.mark.requirement("ZT-5")
    @pytest.mark.parametrize("goals", [-1, 100])
    def test_an_impossible_score_is_refused_with_the_value_named(self, goals: int) -> None:
        with pytest.raises(PayloadRejected, match="goals"):
            parse(build.event(homeScore={"current": goals, "display": goals}))

    @pytest.mark.requirement("BX-17")
    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            ({"error": {"code": 403, "reason": "challenge"}}, Blocked),
            ({"error": {"code": 404, "message": "Not Found"}}, Gone),
            ({"error": {"code": 503}}, Transient),
            ("<html><title>Just a moment...</title></html>", Blocked),
            (b'{"event": {"id": 70', SchemaBreak),
            (b"", SchemaBreak),
        ],
    )
    def test_an_error_with_status_200_is_raised(self, body: Any, kind: type[Exception]) -> None:
        with pytest.raises(kind):
            ADAPTER.parse(build.reading(build.SOFA, build.document("event", body)))

    @pytest.mark.parametrize(
        ("documents", "kind"),
        [
            ((), SchemaBreak),
            ((build.document("page", "<html><p>new design</p></html>"),), LayoutChanged),
            ((build.document("page", "<html><title>Just a moment...</title></html>"),), Blocked),
        ],
    )
    def test_a_visit_without_the_event_is_never_a_match(
        self, documents: tuple[Document, ...], kind: type[Exception]
    ) -> None:
        with pytest.raises(kind):
            ADAPTER.parse(build.reading(build.SOFA, *documents))


class TestFallback:
    @pytest.mark.requirement("EC-1")
    @pytest.mark.parametrize("holder", ["pageProps", "initialProps"])
    def test_the_event_in_the_page_replaces_an_invalid_response(self, holder: str) -> None:
        inner: dict[str, Any] = {"event": build.event()}
        props = {"pageProps": inner if holder == "pageProps" else {"initialProps": inner}}
        html = (
            f'<html><script id="__NEXT_DATA__" type="application/json">{json.dumps({"props": props})}</script></html>'
        )
        broken = build.document("event", b'{"event": {"id": 70')
        payload = ADAPTER.parse(build.reading(build.SOFA, build.document("page", html), broken))
        assert payload.state.score.team_a.goals == 2
        assert "event_answer" in payload.integrity.missing_fields


class TestEndpoints:
    @pytest.mark.requirement("FS-7")
    @pytest.mark.parametrize(
        ("url", "name"),
        [
            ("https://www.sofascore.com/api/v1/event/7001", "event"),
            ("http://127.0.0.1:8790/sofascore/api/v1/event/7001?_=1", "event"),
            ("https://www.sofascore.com/api/v1/event/70012", None),
            ("https://www.sofascore.com/api/v1/event/7001/incidents", "incidents"),
            ("https://www.sofascore.com/api/v1/event/7001/statistics", None),
        ],
    )
    def test_are_a_strict_whitelist(self, url: str, name: str | None) -> None:
        found = [endpoint.name for endpoint in ADAPTER.endpoints(build.SOFA) if endpoint.pattern.search(url)]
        assert found == ([name] if name else [])


@pytest.mark.requirement("ZT-12")
class TestTheList:
    def found(self, *documents: Document) -> dict[str, DiscoveredMatch]:
        read = build.reading(RefInfo("", f"{build.SOFA_BASE}/"), *documents)
        return {match.source_event_id: match for match in ADAPTER.parse_list(read, f"{build.SOFA_BASE}/")}

    def test_plan_names_the_home_page_and_both_lists(self) -> None:
        plan = ADAPTER.list_plan(build.SOFA_BASE)
        urls = {
            "live_list": "https://www.sofascore.com/api/v1/sport/football/events/live",
            "scheduled": "https://www.sofascore.com/api/v1/sport/football/scheduled-events/2026-05-02",
        }
        assert plan.url == f"{build.SOFA_BASE}/"
        assert {one.name: bool(one.pattern.search(urls[one.name])) for one in plan.endpoints} == dict.fromkeys(
            urls, True
        )

    def test_is_the_union_of_both_with_each_match_once(self) -> None:
        live = build.document("live_list", {"events": [build.event()]})
        later = build.event(id=7002, status=status("notstarted", 0), homeScore={}, awayScore={})
        stale = build.event(status=status("notstarted", 0))
        matches = self.found(live, build.document("scheduled", {"events": [stale, later]}))
        assert {key: match.status for key, match in matches.items()} == {"7001": Status.LIVE, "7002": Status.UPCOMING}
        assert matches["7001"].url == "http://site.test/sofascore/en/football/match/alder-birch/AbCd#id:7001"

    def test_leaves_out_other_sports_and_rows_that_cannot_be_watched(self) -> None:
        tennis = build.event(id=8, tournament={"category": {"sport": {"slug": "tennis"}}})
        odd = build.event(id=9, status=status("levitating", 1))
        listed = build.document("live_list", {"events": [tennis, odd, {"id": None}, 5, build.event()]})
        assert set(self.found(listed)) == {"7001"}

    def test_works_without_the_scheduled_list(self) -> None:
        gone = build.document("scheduled", {"error": {"code": 404}}, status=404)
        assert set(self.found(build.document("live_list", {"events": [build.event()]}), gone)) == {"7001"}

    @pytest.mark.parametrize(
        ("documents", "kind"),
        [
            ((), LayoutChanged),
            ((build.document("live_list", {"v2_events": []}),), SchemaBreak),
            ((build.document("page", "<html><title>Just a moment...</title></html>"),), Blocked),
        ],
    )
    def test_a_missing_list_is_an_error(self, documents: tuple[Document, ...], kind: type[Exception]) -> None:
        with pytest.raises(kind):
            self.found(*documents)

    def test_rows_name_teams_and_series(self) -> None:
        match = self.found(build.document("live_list", {"events": [build.event()]}))["7001"]
        assert [(team.name, team.short_name) for team in match.teams] == [
            ("Alder Athletic", "ALD"),
            ("Birch Rovers", "BIR"),
        ]
        assert match.series == "Copse League"


@pytest.mark.requirement("ZT-12")
class TestFixtures:
    DAY = date(2026, 5, 3)

    def found(self, body: Any) -> list[DiscoveredMatch]:
        return SOFASCORE.parse_fixtures(
            build.reading(RefInfo("", build.SOFA_BASE), build.document("fixtures", body)), build.SOFA_BASE, self.DAY
        )

    def test_are_requested_by_tournament_and_day(self) -> None:
        plan = SOFASCORE.fixture_plan("https://www.sofascore.com", self.DAY)
        (request,) = plan.requests
        assert plan.url == "https://www.sofascore.com/"
        assert request.url == "https://www.sofascore.com/api/v1/unique-tournament/325/scheduled-events/2026-05-03"

    def test_are_each_match_once(self) -> None:
        later = build.event(id=7002, status=status("notstarted", 0), homeScore={}, awayScore={})
        matches = self.found({"events": [later, later, build.event()]})
        assert [(match.source_event_id, match.status) for match in matches] == [
            ("7002", Status.UPCOMING),
            ("7001", Status.LIVE),
        ]
        assert all(len(match.teams) == 2 and match.series for match in matches)

    @pytest.mark.parametrize(
        ("body", "kind"),
        [({"v2": []}, SchemaBreak), ({"error": {"code": 403, "reason": "challenge"}}, Blocked), (b"{", SchemaBreak)],
    )
    def test_fixtures_without_a_list_are_an_error(self, body: Any, kind: type[Exception]) -> None:
        with pytest.raises(kind):
            self.found(body)


@pytest.mark.requirement("NFR-008")
class TestAgainstTheStadium:
    @pytest.mark.parametrize(
        "kind", [ShootoutKick, Stoppage, Postponement, VarDecision], ids=lambda kind: kind.__name__
    )
    def test_a_match_is_read_as_it_is_after_every_event(self, kind: type) -> None:
        site = Site(programme="only:sofascore:6", seed=7)
        match = next(match for match in matches_of(site) if any(isinstance(e, kind) for e in match.script.events))
        site.move_to(match, -600)
        for seconds in (event.at + 0.5 for event in match.script.events):
            site.move_to(match, seconds)
            payload, truth = ADAPTER.parse(site.football(match)), site.truth(match)
            state = payload.state
            assert (state.status.value, state.phase.value) == (
                truth["status"],
                PHASES.get(truth["phase"], truth["phase"]),
            )
            for side in ("team_a", "team_b"):
                shootout = {"penalties": truth["penalties"][side]} if truth["penalties"] else {}
                expected = (truth["score"][side] or {}) | shootout
                assert getattr(state.score, side).model_dump(exclude_none=True) == expected
            happened = [one for one in truth["events"] if one["description"] not in RUNNING]
            assert [event.id for event in payload.events] == [one["id"] for one in reversed(happened)]
            assert (payload.events_are_complete, payload.unknown) == (True, ())
            named = [event.slot for event in payload.events if event.slot]
            assert len(set(named)) == len(named)
        if truth["status"] == "completed" and truth["winner"]:
            assert state.result.startswith(truth["teams"][truth["winner"]]["name"])


def matches_of(site: Site) -> Iterator[Match]:
    for turn in range(1, 40):
        for slot in site.simulation.programme.slots:
            yield site.simulation.programme.match(slot, turn, "sofascore")


@pytest.mark.skipif(not Path(FOLDER, "sofascore").is_dir(), reason="VICTORYLINE_RECORDINGS names no folder")
class TestRecordings:
    def recorded(self, name: str) -> Any:
        file = Path(FOLDER, "sofascore", f"{name}.json")
        if not file.exists():
            pytest.skip(f"the recordings have no {name}")
        return json.loads(file.read_text())

    @pytest.mark.parametrize("name", ["eirikeg1_live_events", "blanetech_afcon_events"])
    def test_every_event_of_a_list_is_read_field_by_field(self, name: str) -> None:
        data = self.recorded(name)
        for event in data["events"] if isinstance(data, dict) else data:
            read = build.reading(RefInfo(str(event["id"]), ""), build.document("event", {"event": event}))
            payload = ADAPTER.parse(read)
            state = payload.state
            for side, theirs in ((state.score.team_a, "homeScore"), (state.score.team_b, "awayScore")):
                assert side.goals == event[theirs]["display"]
            for team, theirs in ((state.teams.team_a, "homeTeam"), (state.teams.team_b, "awayTeam")):
                assert (team.name, team.short_name) == (event[theirs]["name"].strip(), event[theirs]["nameCode"])
            assert state.start_time is not None
            assert state.start_time.timestamp() == event["startTimestamp"]
            assert state.metadata["series"]
            assert payload.unknown == ()

    @pytest.mark.parametrize(
        ("name", "named"),
        [
            ("incident_shapes_real_fragments", ["g:team_a:2", "g:team_a:2", "g:team_b:2", "c:team_b:yellow:mariomartín",
                                                "c:team_b:red:kikofemenía", "c:team_b:red:xeka", "", ""]),
            ("tunjayoff_football_incidents_17118211_trimmed", ["p:pen", "k:team_b:4", "k:team_a:3"]),
        ],
    )  # fmt: skip
    def test_fragments_of_incidents_have_their_names(self, name: str, named: list[str]) -> None:
        payload = parse(build.event(), build.document("incidents", self.recorded(name)))
        assert ([event.slot for event in payload.events], payload.unknown) == (named, ())


@pytest.mark.requirement("BX-6")
@pytest.mark.parametrize(
    ("confirmed", "text", "detail"),
    [
        (True, "VAR 9': goalAwarded confirmed R. Elm", {"confirmed": True}),
        (False, "VAR 9': goalAwarded overturned R. Elm", {"confirmed": False}),
        (None, "VAR 9': goalAwarded R. Elm", {}),
    ],
)
def test_a_video_review_says_whether_the_decision_stands(confirmed: Any, text: str, detail: dict[str, bool]) -> None:
    review = {
        "incidentType": "varDecision", "incidentClass": "goalAwarded", "confirmed": confirmed, "id": 9, "time": 9,
        "isHome": True, "player": {"name": "Rowan Elm", "shortName": "R. Elm"},
    }  # fmt: skip
    event = event_of(Incident.model_validate(review))
    assert event.description == text
    assert {name: value for name, value in event.detail.items() if name == "confirmed"} == detail


@pytest.mark.requirement("SO-12")
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"status": {"type": "inprogress"}}, id="no code"),
        pytest.param({"status": {"type": "inprogress", "code": "x"}}, id="another code"),
        pytest.param({"homeScore": {"display": "2", "current": "2"}}, id="numbers as text"),
        pytest.param({"startTimestamp": 1772236800.0}, id="a decimal start"),
        pytest.param({"winnerCode": "home"}, id="another winner"),
        pytest.param({"venue": [], "referee": "none", "roundInfo": 4}, id="other parts"),
    ],
)
def test_an_odd_value_does_not_cost_the_match(changes: dict[str, Any]) -> None:
    goals = parse(build.event(**changes)).state.score.team_a.goals
    assert goals == parse(build.event()).state.score.team_a.goals == 2


@pytest.mark.requirement("SO-12")
def test_a_score_that_is_null_before_the_start_is_empty() -> None:
    payload = parse(build.event(status=status("notstarted", 0), homeScore=None, awayScore=None))
    assert (payload.state.score.team_a.goals, payload.integrity.broken_parts) == (None, ())


@pytest.mark.requirement("SO-12")
def test_an_empty_score_in_play_says_nothing_about_the_incidents() -> None:
    one = build.event(status=status("inprogress", 7), homeScore={}, awayScore={})
    payload = parse(one, build.document("incidents", build.incidents()))
    assert payload.events
    assert not payload.events_are_complete
