"""What the Sofascore adapter makes of an event and its incidents."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from scraping.errors import Blocked, Gone, LayoutChanged, PayloadRejected, SchemaBreak, Transient
from scraping.payloads import DiscoveredMatch, Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import Document, ReadMode, RefInfo, Request
from scraping.sources.sofascore.incidents import event_of
from tests.scraping.sources import builders as build

ADAPTER = adapter_for("sofascore")
PERIOD_START = datetime(2026, 5, 2, 16, 0, tzinfo=build.START.tzinfo)


def parse(event: dict[str, Any], *documents: Document, captured_at: datetime = build.DURING) -> Payload:
    answer = build.document("event", {"event": event})
    read = build.reading(build.SOFA, answer, *documents, mode=ReadMode.DIRECT, captured_at=captured_at)
    return ADAPTER.parse(read)


def status(kind: str, code: int, description: str = "") -> dict[str, Any]:
    return {"type": kind, "code": code, "description": description}


class TestTheUnifiedMatch:
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
    def test_comes_in_a_versioned_envelope_that_says_what_is_missing(self) -> None:
        event = build.event(homeTeam={"name": "Alder Athletic"})
        del event["venue"]
        payload = parse(event)
        assert (payload.source, payload.schema_version, payload.source_event_id) == ("sofascore", 1, "7001")
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

    def test_takes_the_shoot_out_off_where_only_current_is_given(self) -> None:
        score = parse(build.event(homeScore={"current": 6, "penalties": 5})).state.score
        assert score.team_a.goals == 1


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

    def test_words_help_where_the_code_is_new(self) -> None:
        state = parse(build.event(status=status("inprogress", 34, "Awaiting penalties"))).state
        assert state.phase is Phase.PENALTIES

    def test_abandoned_keeps_the_sources_word(self) -> None:
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

    def test_is_empty_where_the_source_says_nothing(self) -> None:
        assert parse(build.event(status=status("inprogress", 20), time={})).state.clock == ""


class TestEvents:
    def test_have_kinds_minutes_and_our_own_words(self) -> None:
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
            ({}, "other", None),
        ],
    )  # fmt: skip
    def test_of_every_sort_are_told(self, incident: dict[str, Any], kind: str, minute: str | None) -> None:
        event = event_of(incident)
        assert (event.kind, event.minute) == (kind, minute)
        assert event.id

    @pytest.mark.requirement("BX-3")
    def test_are_complete_only_when_they_account_for_every_goal(self) -> None:
        whole = build.incidents()
        assert parse(build.event(), build.document("incidents", whole)).events_are_complete
        halved = {"incidents": whole["incidents"][::2]}
        assert not parse(build.event(), build.document("incidents", halved)).events_are_complete
        assert not parse(build.event()).events_are_complete

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
    def test_an_event_without_a_field_that_we_live_on_is_a_schema_break(self, gone: str) -> None:
        event = build.event()
        event[f"v2_{gone}"] = event.pop(gone)
        with pytest.raises(SchemaBreak, match=f"lacks {gone}"):
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
    def test_an_error_with_status_200_is_what_it_says(self, body: Any, kind: type[Exception]) -> None:
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
    def test_the_event_in_the_page_stands_in_for_a_broken_answer(self, holder: str) -> None:
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

    def test_lives_without_the_schedule(self) -> None:
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
    def test_that_cannot_be_found_is_said_so(self, documents: tuple[Document, ...], kind: type[Exception]) -> None:
        with pytest.raises(kind):
            self.found(*documents)
