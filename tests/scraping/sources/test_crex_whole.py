"""Whole matches of the stadium's Crex site: every parsed reading agrees with the ground truth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scraping import event_keys
from scraping.payloads import Payload
from stadium.cricket.script import Ball, Notice, OverCard, WicketCard
from stadium.cricket.state import CricketState
from tests.scraping.sources import cricsheets
from tests.scraping.sources.crex_site import CrexSite

PHASES = {"toss": "scheduled", "in_play": "play", "abandoned": "finished"}
FOLDER = Path(os.environ.get("VICTORYLINE_RECORDINGS", "")) / "cricsheet"
MATCHES = {
    "long": cricsheets.long_match(),
    "rained_on": cricsheets.rained_on_match(),
    "tied": cricsheets.tied_match(),
}


@pytest.fixture(params=sorted(MATCHES))
def site(request: pytest.FixtureRequest, tmp_path: Path) -> CrexSite:
    return CrexSite.of_programme(f"replay:{cricsheets.write(tmp_path, **{request.param: MATCHES[request.param]})}")


def assert_true(payload: Payload, site: CrexSite) -> None:
    state, read = site.state, payload.state
    sides = dict(zip((team.key for team in site.match.teams), ("team_a", "team_b"), strict=True))
    assert (read.status.value, read.phase.value) == (state.status, PHASES.get(state.phase, state.phase))
    assert [
        (one.number, one.team, one.runs, one.wickets, one.overs, one.is_declared, one.is_super_over, one.target)
        for one in read.innings
    ] == [
        (
            one.number + 1, sides[one.batting.key], one.runs, one.wickets, one.overs_text, one.is_declared,
            one.is_super_over, one.target,
        )
        for one in state.innings
    ]  # fmt: skip
    assert (read.result, read.current_innings) == (state.result, len(state.innings) or None)
    assert payload.unknown == ()
    assert payload.integrity.missing_fields == ()


def check_moments(site: CrexSite, every: int) -> None:
    """Checks direct reads with the last visit's page; a new page alone must give the same."""
    while not site.is_at_end:
        site.move()
        last = site.match.script.events[site.state.applied - 1]
        if site.state.applied % every == 0 or isinstance(last, Notice):
            payload = site.poll()
            assert_true(payload, site)


def check_events(site: CrexSite) -> None:
    found = site.whole_feed()
    state = CricketState(site.state.script)
    events = site.match.script.events
    for identity, event in zip(site.simulation.ids(site.match, len(events)), events, strict=True):
        state.apply(event)  # type: ignore[arg-type]
        if isinstance(event, Notice):
            continue
        read = found.pop(str(identity))
        if isinstance(event, Ball):
            assert read.slot == event_keys.ball(event.innings + 1, event.over, event.index)
            assert (read.runs, read.over, read.ordinal) == (event.total, event.label, event.delivery)
            assert read.detail["score"] == state.innings[event.innings].score
            assert (read.kind == "wicket") == (event.wicket is not None)
        elif isinstance(event, WicketCard):
            number = state.innings[event.ball.innings].wickets
            assert (read.kind, read.slot) == ("dismissal", event_keys.wicket(event.ball.innings + 1, number))
            assert read.detail["player"] == event.wicket.out.name
        else:
            assert isinstance(event, OverCard)
            assert read.slot == event_keys.over_end(event.ball.innings + 1, event.ball.over)
    assert found == {}


@pytest.mark.requirement("NFR-008", "EC-7")
class TestInventedMatches:
    def test_are_read_as_they_are_at_every_moment(self, site: CrexSite) -> None:
        check_moments(site, every=1)
        assert site.visits <= 1 + max(len(site.state.innings) - 2, 0)

    def test_have_every_event_once_and_in_its_place(self, site: CrexSite) -> None:
        site.move(10**6)
        check_events(site)

    def test_come_from_the_page_alone(self, site: CrexSite) -> None:
        while not site.is_at_end:
            site.move(7)
            site.static, site.has_card = None, False
            read = site.parse_page()
            assert read.integrity.missing_fields == ("live_answer",)
            assert [one.runs for one in read.state.innings] == [one.runs for one in site.state.innings]

    def test_keep_their_places_in_half_a_feed(self, site: CrexSite) -> None:
        """Every second item is missing, as with the fault `half_list`."""
        site.move(10**6)
        site.advance()
        whole = site.whole_feed()
        for event in site.read_feed(site.book.items[-20::2]):
            assert event.slot in ("", whole[event.id].slot)


@pytest.mark.requirement("NFR-008")
@pytest.mark.skipif(not FOLDER.is_dir(), reason="VICTORYLINE_RECORDINGS names no folder of recordings")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")) if FOLDER.is_dir() else [], ids=lambda file: file.stem)
def test_a_recorded_match_is_read_as_it_was(file: Path) -> None:
    site = CrexSite.of_programme(f"replay:{file}")
    check_moments(site, every=max(len(site.match.script.events) // 25, 1))
    check_events(site)
