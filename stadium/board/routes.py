"""The routes of the scoreboard site."""

from __future__ import annotations

from aiohttp import web

from stadium.assets import asset
from stadium.board import markup, show
from stadium.board.push import push
from stadium.context import STADIUM
from stadium.endpoints import Endpoint

ROBOTS = "User-agent: *\nAllow: /board/\nDisallow: /board/private\n"
_HEADERS = {"Cache-Control": "no-cache"}


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("board", "list", "GET", "/board", list_page),
        Endpoint("board", "list", "GET", "/board/", list_page),
        Endpoint("board", "page", "GET", "/board/match/{name}", match_page),
        Endpoint("board", "live", "GET", "/board/push/{id}", push),
        Endpoint("board", "asset", "GET", "/board/assets/{file:.+}", asset),
        Endpoint("board", "asset", "GET", "/board/robots.txt", robots),
    ]


async def list_page(request: web.Request) -> web.Response:
    stadium = request.app[STADIUM]
    return _page(markup.page("Scoreboards", show.cards(stadium), show.clock(stadium, show.skin(stadium))))


async def match_page(request: web.Request) -> web.Response:
    """A match now; `?before=ID` shows older balls under the same score, and does not keep itself fresh."""
    stadium = request.app[STADIUM]
    match = stadium.match(request, "board", request.match_info["name"].rpartition("-")[2])
    if match is None:
        return web.Response(status=404, text="<h1>404 Not Found</h1>", content_type="text/html")
    before = request.query.get("before", "")
    if before and not (before.isascii() and before.isdigit()):
        return web.Response(status=400, text="<h1>400 Bad Request</h1>", content_type="text/html")
    skin = show.skin(stadium, match.key)
    content = show.board(request.app, match, skin, int(before) if before else None)
    title = " v ".join(team.name for team in match.teams)
    return _page(markup.page(title, content, show.clock(stadium, skin), live="" if before else match.key))


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)


def _page(html: str) -> web.Response:
    return web.Response(text=html, content_type="text/html", headers=_HEADERS)
