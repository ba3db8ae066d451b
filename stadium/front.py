"""The front page: what is on, for people who look at the stadium itself."""

from __future__ import annotations

from html import escape
from typing import get_args

from aiohttp import web

from stadium.context import STADIUM
from stadium.endpoints import Site
from stadium.truth import summary


def add_routes(app: web.Application) -> None:
    app.router.add_get("/", front_page)
    app.router.add_get("/robots.txt", robots)


async def robots(_: web.Request) -> web.Response:
    """The sites may be read; the controls are nobody's business."""
    return web.Response(text="User-agent: *\nAllow: /\nDisallow: /control\nDisallow: /truth\n")


async def front_page(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    moment = world.clock.now()
    rows = []
    for match in (match for site in get_args(Site) for match in world.on_show(site, moment)):
        told = summary(world, match, moment)
        names = escape(" - ".join(team.name for team in match.teams))
        rows.append(
            f'<tr><td>{match.site}</td><td><a href="{told["url"]}">{names}</a></td><td>{told["status"]}</td>'
            f'<td>{told["phase"]}</td><td><a href="/truth/matches/{match.site}/{match.key}">truth</a></td></tr>'
        )
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Stadium</title></head><body><h1>Stadium</h1>'
        f"<p>Simulated sites, pace {world.clock.pace:g}.</p><table>{''.join(rows)}</table></body></html>"
    )
    return web.Response(text=html, content_type="text/html")
