"""The routes of the ESPNcricinfo-like site. All of it is open."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from html import escape
from typing import Any

from aiohttp import web

from stadium.context import STADIUM, Stadium
from stadium.endpoints import Endpoint, Handler, Site
from stadium.espncricinfo import content, objects
from stadium.espncricinfo.balls import BallBook
from stadium.programme import Match
from stadium.world import Shelf, World

SITE: Site = "espncricinfo"
BOOKS = web.AppKey("espncricinfo_books", Shelf[BallBook])
ROBOTS = "User-agent: *\nAllow: /espncricinfo/\nDisallow: /espncricinfo/private\n"
_HEADERS = {"Cache-Control": "no-cache"}
_NOT_FOUND = "<h1>404 Not Found</h1>"
Content = Callable[[BallBook], dict[str, Any]]


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
        Endpoint(SITE, "asset", "GET", f"/{SITE}/robots.txt", robots),
    ]


def tab(kind: str, of: Content) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        match = _match(request)
        return _missing() if match is None else _match_page(request, match, kind, of)

    return handler


async def commentary_page(request: web.Request) -> web.Response:
    """The real one tells more as it is scrolled; this one has the whole of the innings that is asked for."""
    match = _match(request)
    if match is None:
        return _missing()
    world = request.app[STADIUM].world
    played = len(world.cricket(match, world.index(match)).innings)
    asked = request.query.get("innings", str(played))
    number = int(asked) if asked.isascii() and asked.isdigit() else 0
    if not 1 <= number <= played:
        return _missing()
    return _match_page(request, match, f"commentary:{number}", lambda book: content.commentary(book, number))


def _match(request: web.Request) -> Match | None:
    return request.app[STADIUM].match(request, SITE, request.match_info["name"].rpartition("-")[2])


def _match_page(request: web.Request, match: Match, kind: str, of: Content) -> web.Response:
    """Written once for each thing that happens."""
    world = request.app[STADIUM].world
    index = world.index(match)

    def render() -> bytes:
        book = request.app[BOOKS].get(match.edition, lambda: BallBook(match))
        book.advance(world.ids(match, index))
        data = {"match": objects.whole(world, match, book.state), "content": of(book)}
        first, second = match.teams
        return document(f"{first.short} vs {second.short} {objects.title(match)}", data).encode()

    body = world.rendered.get((match.edition, index, kind, world.start_wall(match)), render)
    return web.Response(body=body, content_type="text/html", headers=_HEADERS)


def document(title: str, data: dict[str, Any], links: str = "") -> str:
    state = {"props": {"appPageProps": {"data": data}}, "page": "/match", "query": {}, "buildId": "stadium"}
    blob = json.dumps(state, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<link rel="icon" href="data:,"></head><body><div id="__next"><h1>{escape(title)}</h1>{links}</div>
<script id="__NEXT_DATA__" type="application/json" crossorigin="anonymous">{blob}</script></body></html>"""


async def list_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    return _list_page("Live cricket score", stadium, stadium.world.on_show(SITE))


async def day_page(request: web.Request) -> web.Response:
    """The matches of a day. How the real site is asked for one is not known: this is made up."""
    stadium = request.app[STADIUM]
    try:
        day = date.fromisoformat(request.query.get("date", ""))
    except ValueError:
        return _missing()
    found = [match for match in stadium.world.on_show(SITE) if _day(stadium.world, match) == day]
    return _list_page("Match schedule", stadium, found)


def _day(world: World, match: Match) -> date:
    return datetime.fromtimestamp(world.start_wall(match), UTC).date()


def _list_page(title: str, stadium: Stadium, matches: list[Match]) -> web.Response:
    world = stadium.world
    rows = [objects.brief(world, match, world.cricket(match, world.index(match))) for match in matches]
    links = "".join(f'<a href="{objects.match_path(match)}">{escape(objects.title(match))}</a>' for match in matches)
    html = document(title, {"content": {"matches": rows}}, links)
    return web.Response(text=html, content_type="text/html", headers=_HEADERS)


def _missing() -> web.Response:
    return web.Response(status=404, text=_NOT_FOUND, content_type="text/html")


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)
