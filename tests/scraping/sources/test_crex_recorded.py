"""The Crex adapter on recorded responses, field by field. VICTORYLINE_RECORDINGS names their folder."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scraping.payloads import Payload, Phase, Status
from scraping.sources import adapter_for
from scraping.sources.base import ReadMode, RefInfo
from scraping.sources.crex.texts import read_code
from tests.scraping.sources import builders as build

FOLDER = Path(os.environ.get("VICTORYLINE_RECORDINGS", "")) / "crex"
pytestmark = [
    pytest.mark.requirement("NFR-008"),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="VICTORYLINE_RECORDINGS names no folder of recordings"),
]
ADAPTER = adapter_for("crex")
NOON = datetime(2026, 8, 28, 12, tzinfo=UTC)


def texts(pattern: str) -> list[Any]:
    return [pytest.param(file, id=file.stem) for file in sorted(FOLDER.glob(pattern))] if FOLDER.is_dir() else []


def key_of(file: Path) -> str:
    return next(part for part in file.stem.split("_") if part.isupper() or part[:1].isdigit())


def answer(state: dict[str, Any], name: str) -> Any:
    return next(value for address, value in state.items() if name in address)


def page_payload(state: dict[str, Any], key: str) -> Payload:
    page = build.document("page", build.page_html(state))
    return ADAPTER.parse(build.reading(RefInfo(key, "https://crex.com/"), page, captured_at=NOON))


@pytest.mark.parametrize("file", texts("app_root_state_*.json"))
class TestPageState:
    """Expectations are computed from the recording, so that any match of this kind can be used."""

    def test_gives_the_match(self, file: Path) -> None:
        state, key = json.loads(file.read_text()), key_of(file)
        payload, live = page_payload(state, key), answer(state, "getSV3")
        meta = state[f"match-{key}"]
        names = {team["fkey"]: team["name"] for team in (meta["team1"], meta["team2"])}
        shorts = {row["f_key"]: row["sn"] for row in answer(state, "getHomeMapData")["t"]}
        keys = live["a"].split(".")
        teams = (payload.state.teams.team_a, payload.state.teams.team_b)
        assert [team.name for team in teams] == [names[one] for one in keys]
        assert [team.short_name for team in teams] == [shorts[one] for one in keys]
        assert payload.state.start_time == datetime.fromisoformat(meta["t"])
        assert payload.state.venue == meta["v"]
        series = {row["f_key"]: row["n"] for row in answer(state, "getHomeMapData")["s"]}
        assert payload.state.metadata == {"series": series[meta["sf"]], "match_type": live["fo"], "round": meta["mn"]}
        assert payload.payload_schema == "crex.page.v1"
        assert payload.unknown == ()

    def test_gives_the_innings(self, file: Path) -> None:
        state, key = json.loads(file.read_text()), key_of(file)
        read, live = page_payload(state, key).state, answer(state, "getSV3")
        printed = [f"{one.runs}/{one.wickets}({one.overs}" for one in read.innings[:2]]
        assert printed == [live[name] for name in ("j", "k") if live[name]]
        assert read.current_innings == live["inning"]
        assert read.innings[-1].target == (live["target"] or None)
        if "won" in live.get("comment1", ""):
            assert (read.status, read.phase, read.result) == (Status.COMPLETED, Phase.FINISHED, live["comment1"])

    def test_gives_every_item_of_the_feed(self, file: Path) -> None:
        state, key = json.loads(file.read_text()), key_of(file)
        events, items = page_payload(state, key).events, answer(state, "getBallFeeds")
        assert [one.id for one in events] == [str(item["id"]) for item in items]
        for event, item in zip(events, items, strict=True):
            assert event.innings == item["inning"] + 1
            assert event.over == str(item["o"])
            assert event.happened_at == datetime.fromtimestamp(item["id"] / 1000, tz=UTC)
            if item["type"] == "b":
                assert (event.ordinal, event.detail["score"], event.detail["ball"]) == (
                    item["delivery"],
                    item["s"],
                    item["b"],
                )
                assert event.slot.startswith(f"b:{item['inning'] + 1}:{item['on']}:")
            elif item["type"] == "w":
                assert event.detail == {
                    "player": item["player_fullname"],
                    "text": item["wicketDesc"],
                    "wicket": item["wn"],
                }
                assert event.slot == f"w:{item['inning'] + 1}:{item['wn']}"
            elif item["type"] == "o":
                assert (event.slot, event.runs) == (f"o:{item['inning'] + 1}:{item['on']}", item["runs"])

    def test_codes_of_an_over_add_up_to_its_runs(self, file: Path) -> None:
        """Shows that the number of a no-ball does not contain its own run."""
        summaries = [item for item in answer(json.loads(file.read_text()), "getBallFeeds") if item["type"] == "o"]
        assert summaries
        for item in summaries:
            assert sum(read_code(code).runs or 0 for code in item["rb"].split(".")) == item["runs"]

    def test_places_fit_the_codes_of_the_over(self, file: Path) -> None:
        state, key = json.loads(file.read_text()), key_of(file)
        items = answer(state, "getBallFeeds")
        listed = {(item["inning"] + 1, item["on"]): item["rb"].split(".") for item in items if item["type"] == "o"}
        for event in page_payload(state, key).events:
            if event.slot.startswith("b:"):
                innings, over, index = map(int, event.slot.split(":")[1:])
                if (innings, over) in listed:
                    assert listed[innings, over][index - 1] == event.detail["ball"]


@pytest.mark.parametrize("file", texts("sv3_*.json"))
def test_a_log_of_live_answers_gives_the_score(file: Path) -> None:
    recorded = json.loads(file.read_text())
    stored, key = recorded["localStorage"], key_of(file)
    keys = recorded["records"][0]["body"]["a"].split(".")
    names = [{"f_key": one, "n": stored[f"t_{one}_name"], "sn": stored[f"t_{one}_short"]} for one in keys]
    mapping = build.document("mapping", {"t": names})
    for record in recorded["records"]:
        body = record["body"]
        live = build.document("live", json.dumps(body), url=record["url"])  # labelled as HTML by its server
        payload = ADAPTER.parse(build.reading(RefInfo(key, ""), live, mapping, mode=ReadMode.DIRECT))
        shown = [f"{one.runs}/{one.wickets}({one.overs}" for one in payload.state.innings]
        assert shown == [body["j"], body["k"]][: int(body["h"]) + 1]
        assert (payload.state.status, payload.payload_schema) == (Status.LIVE, "crex.live.v1")
        assert payload.unknown == ()
        if body["B"] == "Innings Break":
            assert payload.state.phase is Phase.INNINGS_BREAK


@pytest.mark.parametrize("file", texts("match_header_*.html"))
def test_a_rendered_header_gives_both_sides_in_any_order(file: Path) -> None:
    page = build.document("page", file.read_text())
    payload = ADAPTER.parse(build.reading(RefInfo(key_of(file), ""), page))
    html = file.read_text()
    for side in (payload.state.score.team_a, payload.state.score.team_b):
        assert f"{side.runs}-{side.wickets}" in html
        assert f"({side.overs})" in html
    assert payload.is_partial_state
    assert payload.payload_schema == "crex.dom.v1"
    if "won by" in html:
        assert payload.state.status is Status.COMPLETED


@pytest.mark.parametrize("file", texts("listing_*.html"))
def test_a_card_of_the_list_gives_the_match(file: Path) -> None:
    page = build.document("page", file.read_text(), url="https://crex.com/cricket-live-score")
    [match] = ADAPTER.parse_list(build.reading(RefInfo("", ""), page), "https://crex.com")
    assert match.source_event_id == key_of(file)
    assert len(match.teams) == 2
    assert match.series
    assert ADAPTER.match_at(match.url, "https://crex.com") is not None
