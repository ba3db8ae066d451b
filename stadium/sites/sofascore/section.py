"""Routes that football and cricket share: event, lists of events, home page and match page."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from aiohttp import web

from stadium.context import STADIUM
from stadium.endpoints import Endpoint, Handler, Site, robots_endpoint
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, State
from stadium.responses import compact_json, missing_page
from stadium.sites.sofascore import pages
from stadium.sites.sofascore.events import match_path

Body = dict[str, Any]
LONG_CACHE = "max-age=10, s-maxage=172800"


def not_found() -> web.Response:
    return web.json_response({"error": {"code": 404, "message": "Not Found"}}, status=404)


def json_response(request: web.Request, body: Body, cache_control: str) -> web.Response:
    return bytes_response(request, compact_json(body), cache_control)


def bytes_response(request: web.Request, data: bytes, cache_control: str) -> web.Response:
    """Responds with JSON and its ETag, or with 304 if the client has it already."""
    tag = f'"{zlib.crc32(data):08x}"'
    headers = {"Cache-Control": cache_control, "ETag": tag}
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=data, content_type="application/json", headers=headers)


@dataclass(frozen=True)
class Section:
    """The part of the site for one sport, with the functions that render its matches."""

    site: Site
    sport: str
    event: Callable[[Simulation, Match, bool], Body]  # the flag adds the details of a single event
    tournament: Callable[[Match], Body]
    row_score: Callable[[State], str]

    @property
    def api(self) -> str:
        return f"/{self.site}/api/v1"

    def endpoints(self) -> list[Endpoint]:
        site, sport = self.site, f"{self.api}/sport/{self.sport}"
        match_path = f"/{site}/en/{self.sport}/match/{{slug}}/{{custom}}"
        tournaments_path = f"{sport}/scheduled-tournaments/{{date}}/page/{{page}}"
        events_path = f"{self.api}/unique-tournament/{{tournament}}/scheduled-events/{{date}}"
        one_event = self.about_match(self._event, LONG_CACHE)
        return [
            Endpoint(site, "list", "GET", f"/{site}", self.home_page),
            Endpoint(site, "list", "GET", f"/{site}/", self.home_page),
            Endpoint(site, "page", "GET", match_path, self.match_page),
            Endpoint(site, "live", "GET", f"{self.api}/event/{{id}}", one_event, True),
            Endpoint(site, "list", "GET", f"{sport}/events/live", self.live_events, True),
            Endpoint(site, "list", "GET", tournaments_path, self.tournaments, True),
            Endpoint(site, "list", "GET", events_path, self.scheduled_events, True),
            robots_endpoint(site),
        ]

    def about_match(self, render: Callable[[Simulation, Match], Body | None], cache_control: str) -> Handler:
        async def handler(request: web.Request) -> web.Response:
            stadium = request.app[STADIUM]
            match = stadium.match(request)
            body = None if match is None else render(stadium.simulation, match)
            return not_found() if body is None else json_response(request, body, cache_control)

        return handler

    def _event(self, simulation: Simulation, match: Match) -> Body:
        return {"event": self.event(simulation, match, True)}

    def events(self, simulation: Simulation, matches: list[Match]) -> Body:
        return {"events": [self.event(simulation, match, False) for match in matches]}

    async def live_events(self, request: web.Request) -> web.Response:
        simulation = request.app[STADIUM].simulation
        live = [match for match in simulation.listed_matches(self.site) if _state(simulation, match).status == "live"]
        return json_response(request, self.events(simulation, live), "max-age=5, stale-while-revalidate=60")

    async def tournaments(self, request: web.Request) -> web.Response:
        """The tournaments with matches on a day; there is one page."""
        matches = self._of_day(request) or []
        if request.match_info["page"] != "1" or not matches:
            return not_found()
        counts = Counter(self._tournament_id(match) for match in matches)
        by_id = {self._tournament_id(match): self.tournament(match) for match in matches}
        rows = [{"tournament": by_id[key], "timezoneEventCount": {"0": counts[key]}} for key in by_id]
        return json_response(request, {"scheduled": rows, "hasNextPage": False}, "max-age=10, s-maxage=900")

    async def scheduled_events(self, request: web.Request) -> web.Response:
        simulation, tournament = request.app[STADIUM].simulation, request.match_info["tournament"]
        matches = self._of_day(request)
        if matches is None:
            return not_found()
        matches = [match for match in matches if str(self._tournament_id(match)) == tournament]
        return json_response(request, self.events(simulation, matches), "max-age=10, s-maxage=86400")

    def _tournament_id(self, match: Match) -> int:
        number: int = self.tournament(match)["uniqueTournament"]["id"]
        return number

    def _of_day(self, request: web.Request) -> list[Match] | None:
        simulation = request.app[STADIUM].simulation
        try:
            day = date.fromisoformat(request.match_info["date"])
        except ValueError:
            return None
        matches = simulation.listed_matches(self.site)
        return [match for match in matches if simulation.start_day(match) == day]

    async def home_page(self, request: web.Request) -> web.Response:
        stadium = request.app[STADIUM]
        simulation = stadium.simulation
        matches = simulation.listed_matches(self.site)
        links = [self._link(match, _state(simulation, match)) for match in matches]
        today = datetime.fromtimestamp(simulation.clock.wall(), UTC).date().isoformat()
        ids = sorted({self._tournament_id(match) for match in matches})
        return stadium.page(request, pages.home_page(self._head(request), self.sport, links, today, ids))

    def _link(self, match: Match, state: State) -> str:
        return pages.link(match, match_path(match), self.row_score(state), state.phase)

    async def match_page(self, request: web.Request) -> web.Response:
        stadium = request.app[STADIUM]
        match = stadium.match(request)
        if match is None:
            return missing_page()
        event = self.event(stadium.simulation, match, True)
        return stadium.page(request, pages.match_page(self._head(request), match, event))

    def _head(self, request: web.Request) -> str:
        """The parameters of the page's script: the nonce, and the section with the cookie to set."""
        stadium = request.app[STADIUM]
        cookie = stadium.session_checks[self.site].script_cookie
        nonce, section = stadium.nonce(self.site), f"{self.sport} /{self.site} {cookie}"
        return f'<meta name="sf-n" content="{nonce}"><meta name="sf-part" content="{section}">'


def _state(simulation: Simulation, match: Match) -> State:
    return simulation.state(match, simulation.event_count(match))
