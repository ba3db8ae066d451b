"""Whole matches and rounds through a real Chromium, compared with the ground truth."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scraping.payloads import Payload, Status
from scraping.reading.reader import Target
from scraping.readings import RefInfo
from scraping.sources import adapter_for
from scraping.worker.match_tasks import read_whole
from tests.scraping.hosted_browser import HEADLINES, Hosted, find_program, impatient, site_at
from tests.scraping.rounds import ASKED
from tests.stadium_process import StadiumProcess

pytestmark = [pytest.mark.slow, pytest.mark.requirement("ZT-8", "ZT-12")]


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    """A stadium that is paused late in the first matches."""
    with StadiumProcess(programme="mixed:1:2", pace=0) as running:
        running.skip(5_000)
        yield running


@pytest.fixture
def hosted() -> Iterator[Hosted]:
    running = Hosted(impatient(find_program()))
    yield running
    running.close()


def never(_: Payload) -> bool:
    return False


@pytest.mark.parametrize("site", ["crex", "sofascore"])
def test_a_whole_match_has_every_event(hosted: Hosted, arena: StadiumProcess, site: str) -> None:
    shown = next(one for one in arena.matches() if one["site"] == site)
    target = Target(1, site_at(arena, site), RefInfo(shown["key"], shown["url"]), adapter_for(site))
    _, payload = read_whole(hosted.reader, target, is_enough=never)
    truth = arena.truth(site, shown["key"])
    assert {event.id for event in payload.events} == {event["id"] for event in truth["events"]} - set(HEADLINES)
    assert len(truth["events"]) > 5
    assert payload.state.status is Status(truth["status"])


def test_a_round_is_read_through_the_session_and_again_when_that_is_refused(
    hosted: Hosted, arena: StadiumProcess
) -> None:
    adapter, base, asked = adapter_for("sofascore"), f"{arena.url}/sofascore", {**ASKED, "round": 1}

    def read() -> set[str]:
        reading = hosted.reader.planned_list(site_at(arena, "sofascore"), adapter.round_plan(base, asked))
        return {match.source_event_id for match in adapter.parse_round(reading, base, asked)}

    expected = {one["key"] for one in arena.matches() if one["site"] == "sofascore"}
    assert read() == expected, "the first visit gets the session"
    arena.clear()
    assert read() == expected
    assert arena.requests()["sites"]["sofascore"]["targets"] == {"list": 1}, "asked directly"
    arena.ask("/control/sessions", {"revoke": True})
    assert read() == expected, "a visit gets a new session"
