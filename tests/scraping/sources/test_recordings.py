"""The adapters on recorded responses, which are not in the repository: VICTORYLINE_RECORDINGS names their folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scraping.payloads import Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import ReadMode, RefInfo
from tests.scraping.sources import builders as build

FOLDER = os.environ.get("VICTORYLINE_RECORDINGS", "")
pytestmark = pytest.mark.skipif(
    not FOLDER or not Path(FOLDER).is_dir(), reason="VICTORYLINE_RECORDINGS names no folder of recordings"
)
CREX, SOFASCORE = adapter_for("crex"), adapter_for("sofascore")


def recording(path: str) -> Path:
    file = Path(FOLDER) / path
    if not file.exists():
        pytest.skip(f"the recordings have no {path}")
    return file


def recorded_json(path: str) -> Any:
    return json.loads(recording(path).read_text())


class TestCrex:
    def test_a_pages_state_gives_the_match(self) -> None:
        state = recorded_json("crex/app_root_state_13KM_2026-08-28.json")
        page = build.document("page", build.page_html(state))
        read = build.reading(
            RefInfo("13KM", "https://crex.com/"), page, captured_at=datetime(2026, 8, 28, 12, tzinfo=UTC)
        )
        payload = CREX.parse(read)
        match = payload.state
        assert (match.teams.team_a.name, match.teams.team_b.name) == (
            "Hyderabad Kingsmen Academy",
            "Adelaide Strikers Academy",
        )
        assert (match.teams.team_a.short_name, match.score.team_a.runs, match.score.team_b.overs) == ("HYK", 92, "11.5")
        assert (match.status, match.result) == (Status.COMPLETED, "ACA won by 7 wickets")
        assert match.venue == "Gardens Oval, Darwin"
        assert match.metadata["series"] == "Top End T20 Series 2026"
        assert [event.kind for event in payload.events].count("dismissal") == 1

    def test_an_innings_break_is_one(self) -> None:
        recorded = recorded_json("crex/sv3_QUY_innings_break_2024-09-18.json")
        stored = recorded["localStorage"]
        names = [{"f_key": key, "n": stored[f"t_{key}_name"], "sn": stored[f"t_{key}_short"]} for key in ("CD", "11")]
        mapping = build.document("mapping", {"t": names})
        for record in recorded["records"]:
            live = build.document("live", record["body"], url=record["url"])
            assert next(
                one.pattern.search(live.url) for one in CREX.endpoints(RefInfo("QUY", "")) if one.name == "live"
            )
            payload = CREX.parse(build.reading(RefInfo("QUY", ""), live, mapping, mode=ReadMode.DIRECT))
            assert (payload.state.status, payload.state.phase) == (Status.LIVE, Phase.INNINGS_BREAK)
            assert (payload.state.current_innings, payload.state.score.team_a.runs) == (2, 106)
            assert payload.state.teams.team_a.name == "United States"

    def test_a_drawn_header_gives_the_scores_of_both_sides(self) -> None:
        html = recording("crex/match_header_11SR_completed.html").read_text()
        payload = CREX.parse(build.reading(RefInfo("11SR", ""), build.document("page", html)))
        score = payload.state.score
        assert (score.team_a.runs, score.team_a.wickets, score.team_a.overs) == (156, 3, "15.2")
        assert (score.team_b.runs, score.team_b.wickets, score.team_b.overs) == (152, 6, "20.0")
        assert payload.state.status is Status.COMPLETED
        assert payload.is_partial_state

    def test_drawn_commentary_gives_the_last_ball(self) -> None:
        header = recording("crex/match_header_11SR_completed.html").read_text()
        body = header + recording("crex/match_live_fragments_13KM.html").read_text()
        last = CREX.parse(build.reading(RefInfo("11SR", ""), build.document("page", body))).state.last_event
        assert last is not None
        assert (last.type, last.description) == ("four", "11.5 Tajinder Singh to Henry Hunt")

    def test_a_card_of_the_list_is_found(self) -> None:
        html = recording("crex/listing_live_card_13BG.html").read_text()
        page = build.document("page", html, url="https://crex.com/cricket-live-score")
        [match] = CREX.parse_list(build.reading(RefInfo("", ""), page), "https://crex.com")
        assert (match.source_event_id, match.title, match.status) == ("13BG", "SDS v ODW", Status.LIVE)
        assert match.url.startswith("https://crex.com/cricket-live-score/odw-vs-sds-")


class TestSofascore:
    def test_every_event_of_a_live_list_is_a_match(self) -> None:
        listed = recorded_json("sofascore/eirikeg1_live_events.json")["events"]
        phases: Counter[Phase] = Counter()
        for event in listed:
            ref = RefInfo(str(event["id"]), "")
            answer = build.document("event", {"event": event})
            payload = SOFASCORE.parse(build.reading(ref, answer, mode=ReadMode.DIRECT))
            assert payload.state.status is Status.LIVE
            assert payload.state.score.team_a.goals == event["homeScore"]["display"]
            phases[payload.state.phase] += 1
        assert len(listed) == 233
        assert phases == {Phase.PLAY: 219, Phase.HALFTIME: 14}

    def test_the_live_list_finds_every_one_of_them(self) -> None:
        listed = build.document("live_list", recorded_json("sofascore/eirikeg1_live_events.json"))
        matches = SOFASCORE.parse_list(build.reading(RefInfo("", ""), listed), "https://www.sofascore.com")
        assert len(matches) == 233

    def test_a_detail_with_its_incidents(self) -> None:
        event = build.document("event", recorded_json("sofascore/eirikeg1_event_detail.json"))
        incidents = build.document("incidents", recorded_json("sofascore/eirikeg1_incidents.json"))
        at = datetime.fromtimestamp(1_774_640_870, tz=UTC)
        payload = SOFASCORE.parse(build.reading(RefInfo("15362812", ""), event, incidents, captured_at=at))
        assert (payload.state.clock, payload.state.venue) == ("2", "St. Jakob-Park, Basel")
        assert payload.events == ()
        assert payload.events_are_complete

    @pytest.mark.parametrize(
        ("file", "expected"),
        [
            ("tunjayoff_football_event_17090707_after_penalties", (Status.COMPLETED, Phase.FINISHED, 1, 5)),
            ("tunjayoff_football_event_17148292_interrupted", (Status.LIVE, Phase.INTERRUPTED, 0, None)),
        ],
    )
    def test_a_match_in_an_odd_state(self, file: str, expected: tuple[Any, ...]) -> None:
        data = recorded_json(f"sofascore/{file}.json")
        ref = RefInfo(str(data["event"]["id"]), "")
        state = SOFASCORE.parse(build.reading(ref, build.document("event", data))).state
        assert (state.status, state.phase, state.score.team_a.goals, state.score.team_a.penalties) == expected

    @pytest.mark.parametrize(
        ("file", "kinds"),
        [
            (
                "incident_shapes_real_fragments",
                [
                    "goal",
                    "penalty_goal",
                    "own_goal",
                    "yellow_card",
                    "red_card",
                    "red_card",
                    "injury_time",
                    "injury_time",
                ],
            ),
            ("tunjayoff_football_incidents_17118211_trimmed", ["period", "shootout_goal", "shootout_goal"]),
        ],
    )
    def test_real_incidents(self, file: str, kinds: list[str]) -> None:
        incidents = build.document("incidents", recorded_json(f"sofascore/{file}.json"))
        event = build.document("event", {"event": build.event()})
        payload = SOFASCORE.parse(build.reading(build.SOFA, event, incidents))
        assert [one.kind for one in payload.events] == kinds

    def test_a_cricket_event_is_refused_as_another_sport(self) -> None:
        from scraping.errors import PayloadRejected

        data = recorded_json("sofascore/tunjayoff_cricket_event_15884177_finished.json")
        read = build.reading(RefInfo(str(data["event"]["id"]), ""), build.document("event", data))
        with pytest.raises(PayloadRejected, match="cricket"):
            SOFASCORE.parse(read)
