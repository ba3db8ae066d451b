"""Any input to ESPN's adapters becomes a payload or one of our own errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scraping.errors import ScrapingError
from scraping.payloads import Payload
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from scraping.sources.espn.cricket import EspnAdapter
from scraping.sources.espn.soccer import EspnSoccerAdapter
from tests.scraping.sources import builders as build
from tests.scraping.sources import espn_builders as espn
from tests.scraping.sources.test_never_crashes import JSON, spoilt

ESPN, SOCCER = EspnAdapter(), EspnSoccerAdapter()
SOME = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ASKED = Request("plays", f"{espn.BASE}/playbyplay?event=1&page=4")
PLAYS = espn.page(
    [espn.play(1), espn.play(2, dismissal=espn.out()), espn.play(3, playType={"description": "wide"})], 2, 2, 28
)
DETAILS = [espn.detail(scoringPlay=True), espn.detail("Red Card", redCard=True), espn.detail("Own Goal", ownGoal=True)]
pytestmark = pytest.mark.requirement("ZT-5")


def judged(adapter: Any, read: Reading) -> None:
    try:
        payload = adapter.parse(read)
    except ScrapingError:
        payload = None
    if payload is not None:
        assert Payload.model_validate_json(payload.model_dump_json()) == payload
        assert len({event.id for event in payload.events}) == len(payload.events)
    for ask in (
        lambda: adapter.older_events(read, ASKED),
        lambda: adapter.follow_up(read, espn.BASE),
        lambda: ESPN.parse_lineups(read),
        lambda: adapter.parse_list(read, espn.BASE),
    ):
        try:
            ask()
        except ScrapingError:
            continue


@SOME
@given(summary=spoilt(espn.summary()))
def test_on_a_spoilt_summary(summary: Any) -> None:
    documents = build.document("summary", summary), build.document("plays", PLAYS)
    judged(ESPN, build.reading(espn.CRICKET, *documents, mode=ReadMode.DIRECT))


@SOME
@given(plays=spoilt(PLAYS))
def test_on_spoilt_plays(plays: Any) -> None:
    documents = build.document("summary", espn.summary()), build.document("plays", plays)
    judged(ESPN, build.reading(espn.CRICKET, *documents, mode=ReadMode.DIRECT))


@SOME
@given(board=spoilt(espn.board(espn.soccer_event(details=DETAILS))))
def test_on_a_spoilt_scoreboard(board: Any) -> None:
    documents = build.document("board", board), build.document("list", board)
    judged(SOCCER, build.reading(espn.SOCCER, *documents, mode=ReadMode.DIRECT))


@SOME
@given(
    panel=spoilt({"scores": [{"leagues": [{"id": "8100", "name": "Cup"}], "events": [
        {"id": "1500001", "date": "2026-05-02T14:00Z", "competitions": [espn.competition()]}]}]})
)  # fmt: skip
def test_on_a_spoilt_list(panel: Any) -> None:
    judged(ESPN, build.reading(RefInfo("", espn.BASE), build.document("list", panel), mode=ReadMode.DIRECT))


@SOME
@given(body=st.binary(max_size=200) | JSON.map(lambda value: str(value).encode()), mode=st.sampled_from(ReadMode))
def test_on_anything_at_all(body: bytes, mode: ReadMode) -> None:
    for adapter, names in ((ESPN, ("summary", "plays", "page", "list")), (SOCCER, ("board", "page", "list"))):
        documents = [Document(name, "http://site.test/", 200, "", body) for name in names]
        judged(adapter, build.reading(espn.CRICKET, *documents, mode=mode))
