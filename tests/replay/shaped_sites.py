"""A simulated site with shapes, read as workers read it (lists, matches, line-ups), without a browser."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from aiohttp import ClientSession, CookieJar
from aiohttp.test_utils import TestServer

from scraping.payloads import DiscoveredMatch, Figures, Lineups, Payload
from scraping.readings import Document, Reading, ReadMode, RefInfo, Request
from scraping.sources import adapter_for
from scraping.sources.base import ListPlan
from stadium.access import CREDENTIAL, fnv1a
from stadium.config import StadiumConfig
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.server import build_app

NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC).timestamp()
ADAPTERS = {"crexpro": "crex"}  # where the adapter has another name than the site
COOKIES = {"crex": "cxjs", "sofascore": "sfclr", "sofascorecricket": "sfcclr"}
_NONCE = re.compile(r'<meta name="(?:cx|sf)-n" content="([^"]+)"')


class ShapedSite:
    def __init__(self, site: str, *shapes: str, matches: int = 1) -> None:
        self.site, self.adapter = site, adapter_for(ADAPTERS.get(site, site))
        self._clock = [NOON]
        config = StadiumConfig(pace=1.0, programme=f"only:{site}:{matches}", shapes=((site, shapes),))
        self.simulation = Simulation(config, wall_clock=lambda: self._clock[0])
        self._app = build_app(config, self.simulation)
        self._runner = asyncio.Runner()
        self._headers: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._runner.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _open(self) -> None:
        self._server = TestServer(self._app)
        await self._server.start_server(access_log=None)
        self._http = ClientSession(cookie_jar=CookieJar(unsafe=True))
        self.origin = str(self._server.make_url("")).rstrip("/")
        self.base = f"{self.origin}/{self.site}"

    async def _close(self) -> None:
        await self._http.close()
        await self._server.close()

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock[0], UTC)

    def match(self, slot: int = 0, turn: int = 0) -> Match:
        programme = self.simulation.programme
        return programme.match(programme.slots[slot], turn, self.site)

    def move_to(self, simulated: float) -> None:
        """Moves the clock forward to a simulated time."""
        self._clock[0] += max(simulated - self.simulation.clock.now(), 0.0)

    def start_at(self, simulated: float) -> None:
        """Sets the clock to a simulated time, also one before the stadium was opened."""
        self._clock[0] = NOON + simulated

    def truth(self, key: str) -> dict[str, Any]:
        return self._json(f"{self.origin}/truth/matches/{self.site}/{key}")

    def listed(self) -> list[DiscoveredMatch]:
        plan = self.adapter.list_plan(self.base)
        documents = self._planned(plan)
        if plan.endpoints:
            documents += self._list_calls(documents[0], plan)
        return self.adapter.parse_list(self._reading(RefInfo("", plan.url), ReadMode.VISIT, documents), self.base)

    def fixtures(self) -> list[DiscoveredMatch]:
        plan = self.adapter.fixture_plan(self.base, self.now.date())
        assert plan is not None
        self._visit(f"{self.base}/")
        reading = self._reading(RefInfo("", plan.url), ReadMode.DIRECT, self._ask(*plan.requests))
        return self.adapter.parse_fixtures(reading, self.base, self.now.date())

    def read(self, key: str, url: str, *, is_whole: bool = True) -> Payload:
        """Reads a match: directly where the adapter can, else with its page. `is_whole`: with all of its events."""
        ref = RefInfo(key, url)
        asked = {one.name: one for one in self.adapter.requests(ref, self.base)}
        reading = self._own(ref, asked) if asked else self._visited(ref)
        first = self.adapter.parse(reading)
        found = {event.id: event for event in first.events}
        request = self._newest_events(reading, asked) if is_whole else None
        while request is not None and not first.events_are_complete:
            if asked:
                older = self._own(ref, {**asked, request.name: request})
            else:
                older = reading.joined(self._reading(ref, reading.mode, self._ask(request)))
            found |= {event.id: event for event in self.adapter.parse(older).events}
            request = self.adapter.older_events(older, request)
        return first.model_copy(update={"events": tuple(found.values())})

    def _newest_events(self, reading: Reading, asked: dict[str, Request]) -> Request | None:
        name = self.adapter.events_endpoint
        if name == "feed":
            return self._feed_request(reading.ref.source_event_id)
        if name:
            return asked.get(name)
        return asked.get("page", Request("page", reading.ref.url))

    def lineups(self, key: str, url: str) -> Lineups:
        return self.adapter.parse_lineups(self._extra(key, url, self.adapter.lineup_requests))

    def figures(self, key: str, url: str) -> Figures:
        return self.adapter.parse_figures(self._extra(key, url, self.adapter.figure_requests))

    def _extra(self, key: str, url: str, requests: Any) -> Reading:
        ref = RefInfo(key, url)
        documents = self._ask(*requests(ref, self.base))
        return self._reading(ref, ReadMode.DIRECT, [one for one in documents if one.status != 404])

    def _own(self, ref: RefInfo, asked: dict[str, Request]) -> Reading:
        reading = self._reading(ref, ReadMode.DIRECT, self._ask(*asked.values()))
        more = self.adapter.follow_up(reading, self.base)
        return reading.joined(self._reading(ref, ReadMode.DIRECT, self._ask(*more))) if more else reading

    def _visited(self, ref: RefInfo) -> Reading:
        page = self._visit(ref.url.partition("#")[0])
        if self.site == "crexpro":
            body = _json(api_key=CREDENTIAL)
            (token,) = self._ask(Request("token", f"{self.base}/token/generate-token", "POST", body))
            self._headers = {"Authorization": f"Bearer {token.json()['token']}"}
        documents = self._ask(*self._match_calls(ref.source_event_id))
        found = [page, *(one for one in documents if one.status == 200)]
        reading = self._reading(ref, ReadMode.VISIT, found)
        needed = self.adapter.needed_page(reading)
        return reading.joined(self._reading(ref, ReadMode.VISIT, [self._visit(needed)])) if needed else reading

    def _match_calls(self, key: str) -> Iterable[Request]:
        """The requests of the page's script."""
        api = f"{self.base}/api"
        if self.site in ("crex", "crexpro"):
            yield Request("live", f"{api}/v3/getSV3?key={key}")
            yield Request("scorecard", f"{api}/v3/getSC4?key={key}")
            yield self._feed_request(key)
        elif self.site.startswith("sofascore"):
            yield Request("event", f"{api}/v1/event/{key}")
            yield Request("incidents", f"{api}/v1/event/{key}/incidents")
            if self.site != "sofascore":
                yield Request("innings", f"{api}/v1/event/{key}/innings")

    def _feed_request(self, key: str) -> Request:
        body = _json(matchKey=key, lastDocId="", filters=[], lang="en")
        return Request("feed", f"{self.base}/commentary/v2/getBallFeeds", "POST", body)

    def _planned(self, plan: ListPlan) -> list[Document]:
        return ([self._visit(plan.url)] if plan.url else []) + self._ask(*plan.requests)

    def _list_calls(self, page: Document, plan: ListPlan) -> list[Document]:
        if self.site in ("crex", "crexpro"):
            urls = [f"{self.base}/api/v3/getLiveMatches"]
        else:
            shown = json.loads(re.search(r"__NEXT_DATA__.*?>(.*?)</script>", page.text(), re.DOTALL)[1])["props"]
            day, numbers = shown["pageProps"]["date"], shown["pageProps"]["tournaments"]
            api = f"{self.base}/api/v1"
            urls = [f"{api}/sport/{self.adapter.sport.value}/events/live"]
            urls += [f"{api}/unique-tournament/{number}/scheduled-events/{day}" for number in numbers[:1]]
        named = ((next(one.name for one in plan.endpoints if one.pattern.search(url)), url) for url in urls)
        return self._ask(*(Request(name, url) for name, url in named))

    def _visit(self, url: str) -> Document:
        """Opens a page and sets the cookie that its script would set."""
        (page,) = self._ask(Request("page", url))
        if (found := _NONCE.search(page.text())) and self.site in COOKIES:
            self._http.cookie_jar.update_cookies({COOKIES[self.site]: f"{found[1]}.{fnv1a(found[1])}"})
        return page

    def _ask(self, *requests: Request) -> list[Document]:
        async def answer(request: Request) -> Document:
            headers = {**(request.headers or {}), **self._headers}
            async with self._http.request(request.method, request.url, data=request.body, headers=headers) as found:
                return Document(request.name, request.url, found.status, found.content_type, await found.read())

        async def answers() -> list[Document]:
            return [await answer(request) for request in requests]

        return self._runner.run(answers())

    def _json(self, url: str) -> Any:
        return self._ask(Request("", url))[0].json()

    def _reading(self, ref: RefInfo, mode: ReadMode, documents: Iterable[Document]) -> Reading:
        return Reading(ref, mode, self.now + timedelta(milliseconds=1), {one.name: one for one in documents})


def _json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()
