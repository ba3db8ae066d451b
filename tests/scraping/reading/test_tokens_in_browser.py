"""A source that needs a token, read with Chromium from the stadium's Crexpro site."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from scraping.errors import Drift
from scraping.payloads import Payload
from scraping.reading.reader import Target
from scraping.reading.tokens import Tokens
from scraping.readings import ReadMode, RefInfo, Request, Site, evidence_of
from scraping.sources import adapter_for
from scraping.sources.crex.adapter import CrexAdapter
from stadium.access import CREDENTIAL
from tests.scraping.hosted_browser import Hosted, find_program, impatient
from tests.stadium_process import StadiumProcess

pytestmark = [pytest.mark.slow, pytest.mark.requirement("US2.3", "EC-5")]


@pytest.fixture(scope="module")
def arena() -> Iterator[StadiumProcess]:
    with StadiumProcess(programme="members:2", pace=0) as running:
        yield running


@pytest.fixture(scope="module")
def hosted() -> Iterator[Hosted]:
    running = Hosted(impatient(find_program()))
    yield running
    running.close()


@pytest.fixture
def target(arena: StadiumProcess, hosted: Hosted) -> Iterator[Target]:
    """The first match, before any visit, with a worker that has no token."""
    hosted.reader._access.tokens = Tokens({"crexpro": CREDENTIAL})
    base = f"{arena.url}/crexpro"
    site = Site("crexpro", base, adapter_key="crex", allows_private=True, token_url=f"{base}/token/generate-token")
    shown = arena.matches()[0]
    yield Target(1, site, RefInfo(shown["key"], shown["url"]), adapter_for("crex"), is_fresh=True)
    arena.clear()


def read(hosted: Hosted, target: Target) -> tuple[ReadMode, Payload]:
    reading, payload = hosted.reader.scorecard(target)
    return reading.mode, payload


def assert_score(payload: Payload, arena: StadiumProcess) -> None:
    truth = arena.truth("crexpro", payload.source_event_id)
    for side in ("team_a", "team_b"):
        shown = payload.state.score.model_dump(exclude_none=True)[side]
        assert shown == (truth["score"][side] or {})


def assert_whole(payload: Payload, arena: StadiumProcess) -> None:
    """Asserts that the score and the newest balls were read."""
    assert_score(payload, arena)
    truth = arena.truth("crexpro", payload.source_event_id)
    real = [event["id"] for event in truth["events"]]
    ours = [event.id for event in payload.events]
    assert ours
    assert set(ours) == set(real[-len(ours) :])
    assert not payload.is_partial_state


def test_documents_refused_to_the_page_are_requested_with_our_token(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    mode, payload = read(hosted, target)
    assert mode is ReadMode.VISIT
    assert_whole(payload, arena)
    again = replace(target, is_fresh=False)
    mode, payload = read(hosted, again)
    assert mode is ReadMode.DIRECT
    assert_whole(payload, arena)
    assert arena.requests()["sites"]["crexpro"]["targets"]["token"] == 1


@pytest.mark.requirement("EC-1", "FR-019")
def test_only_a_changed_page_gets_a_screenshot_at_the_first_read(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    """At the visit the page's own requests were refused: it is judged before our token gets the documents."""
    assert hosted.reader.scorecard(target)[0].screenshot == b""
    arena.fault(site="crexpro", target="*", kind="layout")
    with pytest.raises(Drift) as caught:
        read(hosted, target)
    assert evidence_of(caught.value).screenshot.startswith(b"\x89PNG")


def test_tokens_that_end_and_are_revoked_in_the_middle_of_a_match_cost_no_ball(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    arena.ask("/control/tokens", {"seconds": 1})
    seen: set[str] = set()
    _, payload = read(hosted, target)
    seen |= {event.id for event in payload.events}
    before = {event["id"] for event in arena.truth("crexpro", target.ref.source_event_id)["events"]}
    modes = set()
    for number in range(8):
        arena.skip(90)
        if number % 2:
            arena.ask("/control/tokens", {"revoke": True})
        else:
            time.sleep(0.25)  # a fraction of a token's lifetime: tokens expire while the match is read
        mode, payload = read(hosted, replace(target, is_fresh=False))
        modes.add(mode)
        assert_whole(payload, arena)
        seen |= {event.id for event in payload.events}
    after = {event["id"] for event in arena.truth("crexpro", target.ref.source_event_id)["events"]}
    assert len(after - before) > 10
    assert after - before <= seen
    assert modes == {ReadMode.DIRECT}  # no visit was needed for any of it
    assert arena.requests()["sites"]["crexpro"]["targets"]["token"] >= 5


def test_while_the_service_is_away_the_public_score_is_read_and_the_balls_follow(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    assert_whole(read(hosted, target)[1], arena)
    again = replace(target, is_fresh=False)
    fault = arena.fault(site="crexpro", target="token", kind="status", value=500)
    arena.ask("/control/tokens", {"revoke": True})
    for _ in range(3):
        arena.skip(45)
        mode, payload = read(hosted, again)
        assert (mode, payload.is_partial_state, payload.events) == (ReadMode.DIRECT, True, ())
        assert "events" in payload.integrity.missing_fields
        assert_score(payload, arena)
    (without,) = hosted.reader._access.tokens.missing()
    assert without.reason == "its token service answered 500"
    arena.ask(f"/control/faults/{fault['id']}", method="DELETE")
    deadline = time.monotonic() + 15
    while (found := read(hosted, again))[1].is_partial_state:
        assert time.monotonic() < deadline, "no token came"
        time.sleep(0.1)
    assert found[0] is ReadMode.DIRECT
    assert_whole(found[1], arena)
    assert hosted.reader._access.tokens.missing() == []


@pytest.mark.faults_only
def test_a_match_first_seen_while_there_is_no_token_is_read_off_its_page_and_as_a_whole_later(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    fault = arena.fault(site="crexpro", target="token", kind="status", value=500)
    mode, payload = read(hosted, target)
    assert (mode, payload.events) == (ReadMode.VISIT, ())
    assert_score(payload, arena)
    again = replace(target, is_fresh=False)
    mode, payload = read(hosted, again)
    assert (mode, payload.is_partial_state) == (ReadMode.DIRECT, True)
    arena.ask(f"/control/faults/{fault['id']}", method="DELETE")
    deadline = time.monotonic() + 15
    while (found := read(hosted, again))[1].is_partial_state:
        assert time.monotonic() < deadline, "no token came"
        time.sleep(0.1)
    assert_whole(found[1], arena)


@pytest.mark.faults_only
def test_a_token_that_the_page_itself_gets_is_kept_and_renewed_by_a_visit(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    arena.ask("/control/tokens", {"in_pages": True})
    alone = replace(target, site=replace(target.site, token_url=""))
    again = replace(alone, is_fresh=False)
    modes = [read(hosted, one)[0] for one in (alone, again)]
    arena.ask("/control/tokens", {"revoke": True})
    for _ in range(2):
        mode, payload = read(hosted, again)
        modes.append(mode)
        assert_whole(payload, arena)
    assert modes == [ReadMode.VISIT, ReadMode.DIRECT, ReadMode.VISIT, ReadMode.DIRECT]


@pytest.mark.faults_only
def test_our_token_and_the_pages_token_coexist(hosted: Hosted, arena: StadiumProcess, target: Target) -> None:
    arena.ask("/control/tokens", {"in_pages": True})
    assert_whole(read(hosted, target)[1], arena)
    again = replace(target, is_fresh=False)
    assert arena.requests()["sites"]["crexpro"]["targets"].get("token", 0) == 0  # the page's was good enough
    for _ in range(3):
        arena.ask("/control/tokens", {"revoke": True})
        mode, payload = read(hosted, again)
        assert mode is ReadMode.DIRECT
        assert_whole(payload, arena)


class WithoutPublic(CrexAdapter):
    def public_requests(self, ref: RefInfo, base_url: str) -> tuple[Request, ...]:
        return ()


@pytest.mark.faults_only
def test_without_public_endpoints_the_page_is_read_and_the_session_stays(
    hosted: Hosted, arena: StadiumProcess, target: Target
) -> None:
    arena.fault(site="crexpro", target="token", kind="status", value=500)
    blind = replace(target, adapter=WithoutPublic())
    read(hosted, blind)
    (session,) = hosted.sessions._by_site["crexpro"]
    for _ in range(2):
        mode, payload = read(hosted, replace(blind, is_fresh=False))
        assert mode is ReadMode.VISIT
        assert_score(payload, arena)
    assert hosted.sessions._by_site["crexpro"] == [session]
