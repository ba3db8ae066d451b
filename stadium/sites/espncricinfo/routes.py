"""Routes of the ESPNcricinfo site, which has no access control."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from html import escape
from typing import Any

from aiohttp import web

from stadium.context import STADIUM
from stadium.endpoints import Endpoint, Handler, Site, robots_endpoint
from stadium.matches.programme import Match
from stadium.responses import missing_page
from stadium.sites.espncricinfo import content, objects
from stadium.sites.espncricinfo.balls import comment
from stadium.sites.espncricinfo.content import BallLog

SITE: Site = "espncricinfo"
Content = Callable[[BallLog], dict[str, Any]]


def endpoints() -> list[Endpoint]:
    one = f"/{SITE}/series/{{series}}/{{name}}"
    return [
        Endpoint(SITE, "list", "GET", f"/{SITE}", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/live-cricket-score", list_page),
        Endpoint(SITE, "list", "GET", f"/{SITE}/live-cricket-match-schedule-fixtures", day_page),
        Endpoint(SITE, "page", "GET", f"{one}/live-cricket-score", tab("live", content.live)),
        Endpoint(SITE, "lineups", "GET", f"{one}/full-scorecard", tab("scorecard", content.scorecard)),
        Endpoint(SITE, "feed", "GET", f"{one}/ball-by-ball-commentary", commentary_page),
        robots_endpoint(SITE),
    ]


def tab(kind: str, render_content: Content) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        match = request.app[STADIUM].match(request)
        return missing_page() if match is None else _match_page(request, match, kind, render_content)

    return handler


async def commentary_page(request: web.Request) -> web.Response:
    """The complete commentary of an innings; the real site loads it while scrolling."""
    match = request.app[STADIUM].match(request)
    if match is None:
        return missing_page()
    simulation = request.app[STADIUM].simulation
    innings = len(simulation.cricket(match).innings)
    text = request.query.get("innings", str(innings))
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= innings:
        return missing_page()
    return _match_page(request, match, f"commentary:{number}", lambda log: content.commentary(log, number))


def _match_page(request: web.Request, match: Match, kind: str, render_content: Content) -> web.Response:
    """Renders the page once after each event."""
    simulation = request.app[STADIUM].simulation
    count = simulation.event_count(match)

    def render() -> bytes:
        log = simulation.log(match, comment)
        data = {"match": objects.match_object(simulation, match, log.state), "content": render_content(log)}
        first, second = match.teams
        title = f"{first.short} vs {second.short} {objects.title(match)}"
        return document(title, data, is_wrapped=kind == "live").encode()

    body = simulation.rendered.get_or_make((match.version, count, kind, simulation.start_wall(match)), render)
    return request.app[STADIUM].page(request, body)


def document(title: str, data: dict[str, Any], links: str = "", *, is_wrapped: bool = False) -> str:
    """Returns a page. `is_wrapped`: its data is one level deeper, as on the live pages and in the lists of the site."""
    data = {"data": data} if is_wrapped else data
    state = {"props": {"appPageProps": {"data": data}}, "page": "/match", "query": {}, "buildId": "stadium"}
    blob = json.dumps(state, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<link rel="icon" href="data:,"></head><body><div id="__next"><h1>{escape(title)}</h1>{links}</div>
<script id="__NEXT_DATA__" type="application/json" crossorigin="anonymous">{blob}</script></body></html>"""


async def list_page(request: web.Request) -> web.Response:
    return _list_page("Live cricket score", request, request.app[STADIUM].simulation.listed_matches(SITE))


async def day_page(request: web.Request) -> web.Response:
    """The matches of a day. The parameter is an assumption: that of the real site has not been recorded."""
    simulation = request.app[STADIUM].simulation
    try:
        day = date.fromisoformat(request.query.get("date", ""))
    except ValueError:
        return missing_page()
    found = [match for match in simulation.listed_matches(SITE) if simulation.start_day(match) == day]
    return _list_page("Match schedule", request, found)


def _list_page(title: str, request: web.Request, matches: list[Match]) -> web.Response:
    stadium = request.app[STADIUM]
    rows = [objects.list_entry(stadium.simulation, match, stadium.simulation.cricket(match)) for match in matches]
    links = "".join(f'<a href="{objects.match_path(match)}">{escape(objects.title(match))}</a>' for match in matches)
    return stadium.page(request, document(title, {"content": {"matches": rows}}, links, is_wrapped=True))
