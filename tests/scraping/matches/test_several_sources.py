"""One simulated match at several sites: late, under other names, with swapped sides. The result is one match.

Lists and pages are the stadium's, read by the adapters; the rest is done as in a worker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from scraping.documents.queries import page_of_events
from scraping.matches import discovery, pairing
from scraping.models import Conflict, Match, MatchEvent, MatchRef, PairingReview
from scraping.payloads import DiscoveredMatch, Payload
from scraping.sources import adapter_for
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from stadium.config import StadiumConfig
from stadium.matches.distortion import Distortion
from stadium.matches.simulation import Simulation
from stadium.server import build_app
from tests.factories import make_source
from tests.scraping.builders import read

pytestmark = [pytest.mark.django_db, pytest.mark.both]

NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)
SITES = {"espncricinfo": 85, "espn": 80}
LATE = Distortion(delay_seconds=4.0, other_names=True, swaps_sides=True)
PayloadsBySite = dict[str, list[tuple[DiscoveredMatch, list[Payload]]]]


async def _documents(http: ClientSession, requests: tuple[Request, ...]) -> dict[str, Document]:
    found = {}
    for request in requests:
        async with http.request(
            request.method, request.url, data=request.body, headers=dict(request.headers)
        ) as answer:
            found[request.name] = Document(
                request.name, request.url, answer.status, answer.content_type, await answer.read()
            )
    return found


async def _read_all(moments: tuple[float, ...]) -> PayloadsBySite:
    """Returns each site's list at noon, and the readings of each listed match some seconds later."""
    clock = [NOON.timestamp()]
    config = StadiumConfig(port=0, pace=10.0, seed=7, programme="many:3")
    simulation = Simulation(config, wall_clock=lambda: clock[0])
    simulation.programme.distortions |= {"espn": LATE}
    server = TestServer(build_app(config, simulation))
    await server.start_server()
    payloads_by_site: PayloadsBySite = {}
    try:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as http:
            for site in SITES:
                base = f"{str(server.make_url('')).rstrip('/')}/{site}"
                adapter = adapter_for(site)
                clock[0] = NOON.timestamp()
                plan = adapter.list_plan(base)
                asked = plan.requests or (Request("page", plan.url),)
                reading = Reading(RefInfo("", base), ReadMode.DIRECT, NOON, await _documents(http, asked))
                payloads_by_site[site] = [(found, []) for found in adapter.parse_list(reading, base)]
                for moment in moments:
                    clock[0] = NOON.timestamp() + moment
                    at = datetime.fromtimestamp(clock[0], tz=UTC)
                    for found, payloads in payloads_by_site[site]:
                        ref = RefInfo(found.source_event_id, found.url)
                        documents = await _documents(http, adapter.requests(ref, base))
                        payloads.append(adapter.parse(Reading(ref, ReadMode.DIRECT, at, documents)))
    finally:
        await server.close()
    return payloads_by_site


@pytest.fixture(scope="module")
def payloads_by_site() -> PayloadsBySite:
    return asyncio.run(_read_all((5.0, 20.0, 40.0)))


@pytest.fixture
def matches(payloads_by_site: PayloadsBySite) -> list[Match]:
    """Matches that were listed, merged, and read in turn at all sites."""
    for site, rows in payloads_by_site.items():
        base = rows[0][0].url.partition(f"/{site}/")[0]
        source = make_source(site, sport="cricket", base_url=f"{base}/{site}", precedence_weight=SITES[site])
        discovery.register(source, [found for found, _ in rows], now=NOON)
    assert pairing.sweep(now=NOON) == 0
    for number in range(3):
        for site, rows in payloads_by_site.items():
            for found, payloads in rows:
                ref = MatchRef.objects.get(source__key=site, source_event_id=found.source_event_id)
                read(ref, payloads[number])
    return list(Match.objects.order_by("pk"))


def test_each_match_exists_once_with_all_its_sources(matches: list[Match]) -> None:
    assert len(matches) == 3
    assert all(match.refs.count() == len(SITES) for match in matches)
    assert not PairingReview.objects.exists()


def test_the_heaviest_source_is_served_and_the_late_one_is_no_conflict(
    matches: list[Match], payloads_by_site: PayloadsBySite
) -> None:
    best = {found.source_event_id: payloads[-1] for found, payloads in payloads_by_site["espncricinfo"]}
    for match in matches:
        payload = best[match.refs.get(source__key="espncricinfo").source_event_id]
        assert match.payload["innings"] == payload.normalized()["innings"]
        assert match.payload["teams"] == payload.normalized()["teams"]
        assert match.provenance["score"]["source"] == "espncricinfo"
    # A wide adds to the score and not to the overs, so that being late by one looks like another score.
    assert all(
        one.field.endswith(".runs") and one.chosen_value - one.other_value <= 5 for one in Conflict.objects.all()
    )


def test_crossed_sides_are_swapped(matches: list[Match]) -> None:
    crossed = Counter(MatchRef.objects.filter(source__key="espn").values_list("is_crossed", flat=True))
    assert crossed[True]
    for ref in MatchRef.objects.filter(source__key="espn"):
        names = [ref.payload["teams"][side]["name"].removesuffix(" CC") for side in ("team_a", "team_b")]
        assert (names[::-1] if ref.is_crossed else names) == [ref.match.team_a, ref.match.team_b]


def test_every_ball_is_served_once(matches: list[Match]) -> None:
    for match in matches:
        served, _ = page_of_events(match.pk, since=0, limit=1000)
        slots = Counter(event.slot for event in served if event.slot and event.action == "add")
        assert slots
        assert max(slots.values()) == 1
        stored = MatchEvent.objects.filter(match=match, is_current=True)
        assert stored.values("source").distinct().count() == len(SITES)
