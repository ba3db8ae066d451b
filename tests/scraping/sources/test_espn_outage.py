"""ESPN's pages of plays after an outage: no ball is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer

from scraping.browser.host import BrowserHost, BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.matches import events, late_updates
from scraping.models import MatchEvent, MatchRef
from scraping.payloads import Payload
from scraping.reading.reader import Reader
from scraping.reading.targets import Target
from scraping.readings import Document, Reading, ReadMode, RefInfo, Request, Site
from scraping.sources import adapter_for
from stadium.config import StadiumConfig
from stadium.cricket.script import Ball
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.server import build_app
from stadium.sites.espn.routes import match_path
from tests.factories import NOW, make_ref, make_source

pytestmark = [pytest.mark.both, pytest.mark.django_db]
BASE = "http://stadium.test/espn"
SITE = Site("espn", BASE)


@dataclass
class Ground:
    """A stadium with a test clock and the engine's own reader, without a browser session."""

    reader: Reader
    simulation: Simulation
    wall: list[float]
    asked: list[str]

    def target(self, match: Match) -> Target:
        found = adapter_for("espn").match_at(f"http://stadium.test{match_path(match)}", BASE)
        assert found is not None
        return Target(1, SITE, RefInfo(found.source_event_id, found.url), adapter_for("espn"))

    def match(self) -> Match:
        return self.simulation.listed_matches("espn")[0]

    def balls(self) -> int:
        match = self.match()
        return sum(isinstance(event, Ball) for event in match.script.events[: self.simulation.event_count(match)])


@pytest.fixture
def ground() -> Iterator[Ground]:
    loop = asyncio.new_event_loop()
    wall, asked = [NOW.timestamp()], list[str]()
    config = StadiumConfig(programme="only:espn:1")
    simulation = Simulation(config, lambda: wall[0])
    client: TestClient[Any, Any] = TestClient(
        TestServer(build_app(config, simulation), loop=loop), loop=loop, cookie_jar=CookieJar(unsafe=True, loop=loop)
    )
    host = BrowserHost(BrowserOptions(executable=Path("chromium"), owner="w"))
    reader = Reader(Sessions(host), loop.run_until_complete)

    async def ask(target: Target, requests: tuple[Request, ...], **_: Any) -> Reading:
        documents = {}
        for request in requests:
            asked.append(request.url.partition("?")[0].rpartition("/")[2])
            answer = await client.get(request.url.removeprefix("http://stadium.test"))
            documents[request.name] = Document(
                request.name, request.url, answer.status, answer.content_type, await answer.read()
            )
        captured = datetime.fromtimestamp(wall[0], UTC)
        return Reading(target.ref, ReadMode.DIRECT, captured, documents, {one.name: one for one in requests})

    reader._modes.ask = ask  # type: ignore[method-assign]
    loop.run_until_complete(client.start_server())
    yield Ground(reader, simulation, wall, asked)
    loop.run_until_complete(client.close())
    loop.close()


def reaches(page: Payload, through: int) -> bool:
    ordinals = [event.ordinal for event in page.events if event.ordinal is not None]
    return not ordinals or events.reaches(ordinals, through)


def stored(ref: MatchRef) -> set[str]:
    rows = MatchEvent.objects.filter(match_id=ref.match_id, is_current=True).exclude(kind="dismissal")
    return set(rows.values_list("event_id", flat=True))


@pytest.mark.requirement("SO-12", "NFR-008")
def test_after_an_outage_over_the_innings_break_every_ball_is_there(ground: Ground) -> None:
    target = ground.target(ground.match())
    ref = make_ref(source=make_source("espn"), source_event_id=target.ref.source_event_id, url=target.ref.url)
    ground.wall[0] += 75
    _, early = ground.reader.scorecard(target)
    assert ground.asked == ["summary", "playbyplay", "playbyplay", "playbyplay"], "the last page has few balls"
    late_updates.add_events(early.events, ref_id=ref.pk, now=NOW)
    ref.refresh_from_db()
    assert not ref.has_gap

    ground.wall[0] += 600
    _, late = ground.reader.scorecard(target)
    assert late.state.current_innings == 2
    late_updates.add_events(late.events, ref_id=ref.pk, now=NOW)
    ref.refresh_from_db()
    assert ref.has_gap
    assert len(stored(ref)) < ground.balls()

    pages = ground.reader.older_events(target, is_enough=lambda page: reaches(page, ref.events_through))
    late_updates.add_events([event for page in pages for event in page.events], ref_id=ref.pk, now=NOW)
    ref.refresh_from_db()
    assert not ref.has_gap
    assert len(stored(ref)) == ground.balls()
    assert len(pages) <= 3, "several pages come at once"


def test_polls_that_follow_each_other_leave_no_gap_where_a_page_begins(ground: Ground) -> None:
    target = ground.target(ground.match())
    ref = make_ref(source=make_source("espn"), source_event_id=target.ref.source_event_id, url=target.ref.url)
    for _ in range(16):
        ground.wall[0] += 8
        _, payload = ground.reader.scorecard(target)
        late_updates.add_events(payload.events, ref_id=ref.pk, now=NOW)
        ref.refresh_from_db()
        assert not ref.has_gap
    assert len(stored(ref)) == ground.balls() > 30
