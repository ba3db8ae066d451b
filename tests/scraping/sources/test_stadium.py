"""The adapters on the simulated sites: every reading agrees with the ground truth."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from scraping.errors import Blocked, LayoutChanged, PayloadRejected, ScrapingError
from scraping.payloads import DiscoveredMatch, Payload
from scraping.sources import adapter_for
from scraping.sources.base import Document, Reading, ReadMode, RefInfo, Request
from stadium.access import fnv1a
from stadium.config import StadiumConfig
from stadium.cricket.script import Notice, NoticeKind
from stadium.matches.programme import Programme
from stadium.matches.simulation import Simulation
from stadium.server import build_app

NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC).timestamp()
PACE = 10.0
MOMENTS = (0.0, 240.0, 330.0, 900.0, 1_495.0, 1_530.0, 2_600.0, 4_200.0, 6_100.0, 8_000.0, 11_000.0, 14_000.0)
PHASES = {
    "toss": "scheduled",
    "in_play": "play",
    "first_half": "play",
    "second_half": "play",
    "abandoned": "finished",
}
SEED = 7
NONCES = {"crex": ("cx-n", "cxjs"), "sofascore": ("sf-n", "sfclr")}


class Visitor:
    """A client like the sites' own pages, with cookies and a test clock."""

    def __init__(self, http: ClientSession, base: str, clock: list[float]) -> None:
        self.http, self.base, self.clock = http, base, clock

    def move_to(self, simulated: float) -> None:
        self.clock[0] = NOON + simulated / PACE

    async def get(self, name: str, url: str) -> Document:
        async with self.http.get(url) as answer:
            return Document(name, url, answer.status, answer.content_type, await answer.read())

    async def post(self, request: Request) -> Document:
        async with self.http.request(request.method, request.url, data=request.body) as answer:
            return Document(request.name, request.url, answer.status, answer.content_type, await answer.read())

    async def json(self, path: str) -> Any:
        return (await self.get("", self.base + path)).json()

    async def plant(self, **fault: Any) -> None:
        async with self.http.post(f"{self.base}/control/faults", json=fault) as answer:
            assert answer.status == 201

    async def open(self, site: str, url: str) -> Document:
        """Opens a page and sets the cookie that its script would compute."""
        page = await self.get("page", url)
        meta, cookie = NONCES[site]
        found = re.search(rf'<meta name="{meta}" content="([^"]+)"', page.text())
        if found:
            self.http.cookie_jar.update_cookies({cookie: f"{found[1]}.{fnv1a(found[1])}"})
        return page

    def reading(self, ref: RefInfo, mode: ReadMode, *documents: Document) -> Reading:
        at = datetime.fromtimestamp(self.clock[0], tz=UTC)
        return Reading(ref, mode, at, {document.name: document for document in documents})


@asynccontextmanager
async def stadium(programme: str = "demo") -> AsyncIterator[Visitor]:
    clock = [NOON]
    config = StadiumConfig(port=0, pace=PACE, seed=SEED, programme=programme)
    server = TestServer(build_app(config, Simulation(config, wall_clock=lambda: clock[0])))
    await server.start_server()
    try:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as http:
            yield Visitor(http, str(server.make_url("")).rstrip("/"), clock)
    finally:
        await server.close()


def in_stadium(scenario: Callable[[Visitor], Awaitable[None]], programme: str = "demo") -> None:
    async def run() -> None:
        async with stadium(programme) as visitor:
            await scenario(visitor)

    asyncio.run(run())


def moments_of_bad_weather() -> list[float]:
    """Returns moments shortly after rain starts and after a match is called off."""
    programme = Programme("demo", SEED)
    matches = [
        programme.match(slot, turn) for slot in programme.slots if slot.sport == "cricket" for turn in range(1, 9)
    ]
    found = {
        kind: [
            match.starts_at + event.at + 20 for match in matches for event in match.script.events if _is(event, kind)
        ]
        for kind in (NoticeKind.RAIN, NoticeKind.ABANDONED)
    }
    return [moment for moments in found.values() for moment in moments[:2]]


def _is(event: object, kind: NoticeKind) -> bool:
    return isinstance(event, Notice) and event.kind is kind


def feed_request(visitor: Visitor, ref: RefInfo) -> Request:
    body = {"matchKey": ref.source_event_id, "lastDocId": "", "filters": [], "lang": "en"}
    return Request("feed", f"{visitor.base}/crex/commentary/v2/getBallFeeds", "POST", json.dumps(body).encode())


async def crex_answers(visitor: Visitor, ref: RefInfo) -> tuple[Document, Document]:
    live = await visitor.get("live", f"{visitor.base}/crex/api/v3/getSV3?key={ref.source_event_id}")
    return live, await visitor.post(feed_request(visitor, ref))


async def sofascore_answers(visitor: Visitor, ref: RefInfo) -> tuple[Document, Document]:
    url = f"{visitor.base}/sofascore/api/v1/event/{ref.source_event_id}"
    return await visitor.get("event", url), await visitor.get("incidents", f"{url}/incidents")


def assert_state_is_true(payload: Payload, truth: dict[str, Any]) -> None:
    state = payload.state
    assert (state.status.value, state.phase.value) == (truth["status"], PHASES.get(truth["phase"], truth["phase"]))
    assert state.teams.model_dump() == truth["teams"]
    assert state.start_time is not None
    assert abs(state.start_time.timestamp() - datetime.fromisoformat(truth["start_time"]).timestamp()) < 1
    assert state.metadata["series"] == truth["series"]
    assert state.venue.startswith(truth["venue"])
    assert state.current_innings == truth["current_innings"]
    for side in ("team_a", "team_b"):
        expected = truth["score"][side] or {}
        shown = getattr(state.score, side).model_dump(exclude_none=True)
        assert shown == expected


@pytest.mark.requirement("SO-12")
def test_every_cricket_match_is_read_as_it_is_by_visit_and_by_direct_read() -> None:
    adapter = adapter_for("crex")
    first_pages: dict[str, Document] = {}
    phases: set[str] = set()

    async def check(visitor: Visitor, row: dict[str, Any]) -> None:
        ref = RefInfo(row["key"], row["url"])
        truth = await visitor.json(f"/truth/matches/crex/{row['key']}")
        page = await visitor.open("crex", row["url"])
        live, feed = await crex_answers(visitor, ref)
        static = first_pages.setdefault(row["key"], Document("static_page", page.url, 200, "text/html", page.body))
        visited = adapter.parse(visitor.reading(ref, ReadMode.VISIT, page, live, feed))
        read = adapter.parse(visitor.reading(ref, ReadMode.DIRECT, static, live, feed))
        rendered = adapter.parse(visitor.reading(ref, ReadMode.VISIT, page))
        for payload in (visited, read, rendered):
            assert_state_is_true(payload, truth)
            assert payload.state.result == (truth["result"] or "")
        assert visited.events == read.events == rendered.events
        assert visited.integrity.missing_fields == ()
        phases.add(truth["phase"])

    async def scenario(visitor: Visitor) -> None:
        for moment in sorted([*MOMENTS, *moments_of_bad_weather()]):
            visitor.move_to(moment)
            for row in await visitor.json("/truth/matches"):
                if row["site"] == "crex":
                    await check(visitor, row)

    in_stadium(scenario)
    assert phases >= {"scheduled", "toss", "in_play", "innings_break", "finished", "rain", "abandoned"}


@pytest.mark.requirement("SO-12")
def test_the_pages_of_the_ball_feed_together_hold_every_event_once() -> None:
    adapter = adapter_for("crex")

    async def scenario(visitor: Visitor) -> None:
        for moment in (0.0, 2_600.0, 8_000.0):
            visitor.move_to(moment)
            for row in await visitor.json("/truth/matches"):
                if row["site"] != "crex":
                    continue
                ref, found, pages = RefInfo(row["key"], row["url"]), dict[str, tuple[Any, ...]](), 0
                page = await visitor.open("crex", row["url"])
                live, _ = await crex_answers(visitor, ref)
                request: Request | None = feed_request(visitor, ref)
                while request is not None:
                    pages += 1
                    read = visitor.reading(ref, ReadMode.VISIT, page, live, await visitor.post(request))
                    for event in adapter.parse(read).events:
                        assert event.id not in found
                        found[event.id] = (event.innings, event.over, event.ordinal)
                    request = adapter.older_events(read, request)
                truth = (await visitor.json(f"/truth/matches/crex/{row['key']}"))["events"]
                assert found == {one["id"]: (one["innings"], one["over"], one.get("delivery")) for one in truth}
                assert pages <= len(truth) // 20 + 1

    in_stadium(scenario)


@pytest.mark.requirement("SO-12")
def test_every_football_match_is_read_as_it_is_with_all_its_incidents() -> None:
    adapter = adapter_for("sofascore")
    phases: set[str] = set()

    async def check(visitor: Visitor, row: dict[str, Any]) -> None:
        ref = RefInfo(row["key"], row["url"])
        truth = await visitor.json(f"/truth/matches/sofascore/{row['key']}")
        page = await visitor.open("sofascore", row["url"])
        event, incidents = await sofascore_answers(visitor, ref)
        read = adapter.parse(visitor.reading(ref, ReadMode.DIRECT, event, incidents))
        rendered = adapter.parse(visitor.reading(ref, ReadMode.VISIT, page))
        for payload in (read, rendered):
            assert_state_is_true(payload, truth)
        running = {"period:45:First half", "period:90:Second half"}
        assert {one.id for one in read.events} == {one["id"] for one in truth["events"]} - running
        assert read.events_are_complete
        assert read.integrity.missing_fields == ()
        phases.add(truth["phase"])

    async def scenario(visitor: Visitor) -> None:
        for moment in MOMENTS:
            visitor.move_to(moment)
            for row in await visitor.json("/truth/matches"):
                if row["site"] == "sofascore":
                    await check(visitor, row)

    in_stadium(scenario)
    assert phases >= {"first_half", "halftime", "second_half", "finished"}


def statuses(matches: list[DiscoveredMatch]) -> dict[tuple[str, str], str]:
    return {(match.source_event_id, match.url): match.status.value for match in matches}


@pytest.mark.requirement("ZT-12")
def test_the_lists_show_every_match_with_address_and_status() -> None:
    async def crex_list(visitor: Visitor) -> list[DiscoveredMatch]:
        adapter, base = adapter_for("crex"), f"{visitor.base}/crex"
        page = await visitor.open("crex", adapter.list_plan(base).url)
        listed = await visitor.get("list", f"{base}/api/v3/getLiveMatches")
        ref = RefInfo("", page.url)
        matches = adapter.parse_list(visitor.reading(ref, ReadMode.VISIT, page, listed), base)
        from_page = adapter.parse_list(visitor.reading(ref, ReadMode.VISIT, page), base)
        drawn = Document("page", page.url, 200, "text/html", page.body.replace(b"app-root-state", b"moved"))
        from_cards = adapter.parse_list(visitor.reading(ref, ReadMode.VISIT, drawn), base)
        assert statuses(matches) == statuses(from_page) == statuses(from_cards)
        return matches

    async def sofascore_list(visitor: Visitor) -> list[DiscoveredMatch]:
        adapter, base = adapter_for("sofascore"), f"{visitor.base}/sofascore"
        page = await visitor.open("sofascore", adapter.list_plan(base).url)
        live = await visitor.get("live_list", f"{base}/api/v1/sport/football/events/live")
        date = datetime.fromtimestamp(NOON, tz=UTC).date()
        scheduled = await visitor.get("scheduled", f"{base}/api/v1/unique-tournament/325/scheduled-events/{date}")
        for document, endpoint in zip((live, scheduled), adapter.list_plan(base).endpoints, strict=True):
            assert endpoint.pattern.search(document.url)
        return adapter.parse_list(visitor.reading(RefInfo("", page.url), ReadMode.VISIT, page, live, scheduled), base)

    async def scenario(visitor: Visitor) -> None:
        for moment in MOMENTS:
            visitor.move_to(moment)
            rows = [row for row in await visitor.json("/truth/matches") if row["site"] in ("crex", "sofascore")]
            truth = {(row["key"], row["url"]): row["status"] for row in rows}
            assert statuses(await crex_list(visitor)) | statuses(await sofascore_list(visitor)) == truth

    in_stadium(scenario)


@pytest.mark.requirement("FS-2", "BX-6", "EC-1", "US1.4")
@pytest.mark.parametrize(
    ("site", "faults", "expected"),
    [
        pytest.param("crex", [("live", "wrong_match")], PayloadRejected, id="crex live of another match"),
        pytest.param("crex", [("feed", "wrong_match")], PayloadRejected, id="crex feed of another match"),
        pytest.param("crex", [("page", "wrong_match")], PayloadRejected, id="crex page of another match"),
        pytest.param("crex", [("*", "wrong_match")], PayloadRejected, id="crex all of another match"),
        pytest.param("crex", [("live", "malformed")], None, id="crex half a live answer: the page stands in"),
        pytest.param("crex", [("live", "layout")], None, id="crex live renamed: the page stands in"),
        pytest.param("crex", [("live", "malformed"), ("page", "malformed")], None, id="crex both halved: the drawing"),
        pytest.param("crex", [("live", "layout"), ("page", "layout")], LayoutChanged, id="crex both renamed"),
        pytest.param("crex", [("live", "empty"), ("page", "empty")], LayoutChanged, id="crex both empty"),
        pytest.param("crex", [("feed", "malformed")], None, id="crex half a feed: the page stands in"),
        pytest.param("crex", [("page", "challenge")], Blocked, id="crex challenge page"),
        pytest.param("crex", [("live", "challenge")], Blocked, id="crex challenge for JSON"),
        pytest.param("sofascore", [("live", "wrong_match")], PayloadRejected, id="sofascore event of another match"),
        pytest.param("sofascore", [("live", "layout")], None, id="sofascore event renamed: the page stands in"),
        pytest.param("sofascore", [("live", "layout"), ("page", "layout")], LayoutChanged, id="sofascore both renamed"),
        pytest.param("sofascore", [("feed", "malformed")], None, id="sofascore half the incidents' bytes"),
        pytest.param("sofascore", [("page", "challenge"), ("live", "empty")], Blocked, id="sofascore challenge page"),
    ],
)
def test_a_faulty_answer_is_refused_or_made_good_and_never_served_wrong(
    site: str, faults: list[tuple[str, str]], expected: type[ScrapingError] | None
) -> None:
    adapter = adapter_for(site)

    async def scenario(visitor: Visitor) -> None:
        row = next(
            row for row in await visitor.json("/truth/matches") if (row["site"], row["status"]) == (site, "live")
        )
        ref = RefInfo(row["key"], row["url"])
        await visitor.open(site, row["url"])  # gets the cookies
        for target, kind in faults:
            await visitor.plant(site=site, target=target, kind=kind)
        page = await visitor.get("page", row["url"])
        answers = await (crex_answers if site == "crex" else sofascore_answers)(visitor, ref)
        read = visitor.reading(ref, ReadMode.VISIT, page, *answers)
        if expected is not None:
            with pytest.raises(expected):
                adapter.parse(read)
            return
        truth = await visitor.json(f"/truth/matches/{site}/{row['key']}")
        state = adapter.parse(read).state
        numbers = sorted(side.runs or 0 for side in (state.score.team_a, state.score.team_b))
        if site == "crex":
            assert numbers == sorted((truth["score"][side] or {"runs": 0})["runs"] for side in ("team_a", "team_b"))
        assert state.status.value == truth["status"]

    in_stadium(scenario)


@pytest.mark.requirement("BX-3")
def test_half_a_list_of_incidents_retracts_nothing_while_a_goal_is_missing() -> None:
    adapter = adapter_for("sofascore")

    async def scenario(visitor: Visitor) -> None:
        visitor.move_to(6_100.0)
        await visitor.plant(site="sofascore", target="feed", kind="half_list")
        for row in await visitor.json("/truth/matches"):
            if row["site"] != "sofascore":
                continue
            await visitor.open("sofascore", row["url"])
            ref = RefInfo(row["key"], row["url"])
            payload = adapter.parse(visitor.reading(ref, ReadMode.DIRECT, *await sofascore_answers(visitor, ref)))
            goals = sum(event.kind.endswith("goal") for event in payload.events)
            score = payload.state.score
            assert payload.events_are_complete == (goals == (score.team_a.goals or 0) + (score.team_b.goals or 0))

    in_stadium(scenario)
