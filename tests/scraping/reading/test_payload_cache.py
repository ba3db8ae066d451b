"""The payload cache: equal responses are parsed once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.payloads import MatchState, Payload, Status
from scraping.reading.caches import PayloadCache
from scraping.reading.reader import Reader, Target
from scraping.readings import Document, Reading, ReadMode, RefInfo
from scraping.readings import Site as SourceSite
from scraping.sources.sofascore.cricket_adapter import SofascoreCricketAdapter
from tests.factories import NOW, cricket_state, football_state
from tests.scraping.sources.sofa_stadium import Site


def _never_run(coroutine: object) -> object:
    raise AssertionError("nothing is read here")


def reading(body: bytes = b"1", **fields: object) -> Reading:
    documents = {name: Document(name, "u", 200, "application/json", body) for name in ("event", "incidents")}
    return replace(Reading(RefInfo("77", ""), ReadMode.DIRECT, NOW, documents), **fields)  # type: ignore[arg-type]


def payload(state: MatchState | None = None, **fields: object) -> Payload:
    return Payload.model_validate(
        {"source": "x", "captured_at": NOW, "source_event_id": "77", "state": state or cricket_state(), **fields}
    )


class TestPayloadCache:
    def test_returns_the_payload_of_equal_answers_with_the_new_time(self) -> None:
        parsed, later = PayloadCache(), NOW + timedelta(seconds=5)
        parsed.put(1, reading(), payload())
        found = parsed.get(1, reading(captured_at=later))
        assert found is not None
        assert (found.state, found.captured_at) == (cricket_state(), later)

    @pytest.mark.parametrize(
        "other",
        [
            reading(b"2"),
            reading(ref=RefInfo("78", "")),
            reading(mode=ReadMode.VISIT),
            reading(documents={"event": reading().documents["event"]}),
        ],
    )
    def test_misses_on_other_answers(self, other: Reading) -> None:
        parsed = PayloadCache()
        parsed.put(1, reading(), payload())
        assert parsed.get(1, other) is None
        assert parsed.get(2, reading()) is None

    @pytest.mark.parametrize(
        "timely",
        [
            pytest.param(payload(football_state()), id="the clock of a football match goes on"),
            pytest.param(payload(cricket_state(status=Status.UPCOMING)), id="it may have begun"),
            pytest.param(payload(is_partial_state=True), id="half a state"),
        ],
    )
    def test_does_not_cache_payloads_that_depend_on_time(self, timely: Payload) -> None:
        parsed = PayloadCache()
        parsed.put(1, reading(), payload())
        parsed.put(1, reading(), timely)
        assert parsed.get(1, reading()) is None

    def test_a_reader_parses_equal_answers_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        site = Site(programme="only:sofascorecricket:2", seed=7)
        slot = site.simulation.programme.slots[0]
        match = site.simulation.programme.match(slot, slot.number, "sofascorecricket")
        site.move_to(match, 900)
        adapter, parsed = SofascoreCricketAdapter(), []
        whole = SofascoreCricketAdapter.parse
        monkeypatch.setattr(adapter, "parse", lambda reading: parsed.append(1) or whole(adapter, reading))
        reader = Reader(Sessions(BrowserHost(BrowserOptions(executable=Path("chromium"), owner="w"))), _never_run)
        target = Target(1, SourceSite("sofascorecricket", "https://x.example"), RefInfo(match.key, ""), adapter)
        answers = site.cricket(match)
        later = replace(answers, captured_at=answers.captured_at + timedelta(seconds=3))
        first, second = reader.parse(target, answers), reader.parse(target, later)
        assert (first.state, first.events) == (second.state, second.events)
        assert (first.state.status, len(parsed), second.captured_at) == (Status.LIVE, 1, later.captured_at)

    def test_is_bounded(self) -> None:
        parsed = PayloadCache(max_matches=2)
        for ref_id in (1, 2, 3):
            parsed.put(ref_id, reading(), payload())
        assert [parsed.get(ref_id, reading()) is not None for ref_id in (1, 2, 3)] == [False, True, True]
