"""The routes of the ESPN-like API: cricket below /espn, football below /espnsoccer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from aiohttp import web

from stadium.context import STADIUM
from stadium.endpoints import Endpoint
from stadium.espn import people, plays, soccer, summary
from stadium.espn.plays import Diary
from stadium.programme import Match
from stadium.world import Shelf, World

CRICKET = "/espn/apis/site/v2/sports/cricket"
SOCCER = "/espnsoccer/apis/site/v2/sports/soccer/{league}"
DIARIES = web.AppKey("espn_diaries", Shelf[Diary])
ROBOTS = "User-agent: *\nAllow: /\n"
_DATES = re.compile(r"(\d{8})(?:-(\d{8}))?", re.ASCII)


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("espn", "list", "GET", f"{CRICKET}/scorepanel", cricket_panel),
        Endpoint("espn", "list", "GET", f"{CRICKET}/{{league}}/scoreboard", cricket_board),
        Endpoint("espn", "live", "GET", f"{CRICKET}/{{league}}/summary", cricket_summary),
        Endpoint("espn", "feed", "GET", f"{CRICKET}/{{league}}/playbyplay", cricket_plays),
        Endpoint("espn", "asset", "GET", "/espn/robots.txt", robots),
        Endpoint("espnsoccer", "live", "GET", f"{SOCCER}/scoreboard", soccer_board),
        Endpoint("espnsoccer", "page", "GET", f"{SOCCER}/summary", soccer_summary),
        Endpoint("espnsoccer", "asset", "GET", "/espnsoccer/robots.txt", robots),
    ]


def match_path(match: Match) -> str:
    """The address of a match: the answer about it."""
    if match.site == "espnsoccer":
        return f"{SOCCER.format(league=people.SERIE_A)}/summary?event={match.key}"
    return f"{CRICKET}/{people.league_id(match)}/summary?event={match.key}"


async def cricket_panel(request: web.Request) -> web.Response:
    """All matches, a group a series; with a date those that begin on it."""
    world = request.app[STADIUM].world
    try:
        first, last = _days(request.query.get("dates", ""))
    except ValueError:
        return _bad_date()
    groups: dict[str, dict[str, Any]] = {}
    for match in world.on_show("espn"):
        begins = datetime.fromtimestamp(world.start_wall(match), UTC).date()
        if first is not None and last is not None and not first <= begins <= last:
            continue
        group = groups.setdefault(people.league_id(match), {"leagues": [people.league(match)], "events": []})
        group["events"].append(_cricket_row(world, match))
    return _json({"scores": list(groups.values())})


async def cricket_board(request: web.Request) -> web.Response:
    world, wanted = request.app[STADIUM].world, request.match_info["league"]
    own = [match for match in world.on_show("espn") if people.league_id(match) == wanted]
    if not own:
        return not_found()
    return _json({"leagues": [people.league(own[0])], "events": [_cricket_row(world, match) for match in own]})


async def cricket_summary(request: web.Request) -> web.Response:
    match = _cricket_match(request)
    if match is None:
        return not_found()
    world = request.app[STADIUM].world
    index = world.index(match)

    def body() -> dict[str, Any]:
        closes = _diary(request, match).closes_at(index)
        return summary.summary(world, match, world.cricket(match, index), closes)

    return _kept(world, ("summary", match.edition, index), body)


async def cricket_plays(request: web.Request) -> web.Response:
    match, page, period = _cricket_match(request), _number(request, "page"), _number(request, "period")
    if match is None:
        return not_found()
    world = request.app[STADIUM].world
    index = world.index(match)

    def body() -> dict[str, Any]:
        return plays.page_of(_diary(request, match).plays_at(index, period), page or 1)

    return _kept(world, ("plays", match.edition, index, page, period), body)


async def soccer_board(request: web.Request) -> web.Response:
    """Without dates: all that is on show."""
    world = request.app[STADIUM].world
    matches = world.on_show("espnsoccer") if request.match_info["league"] == people.SERIE_A else []
    try:
        first, last = _days(request.query.get("dates", ""))
    except ValueError:
        return _bad_date()
    if first is not None and last is not None:
        matches = [match for match in matches if first <= soccer.listed_day(world, match).date() <= last]
    return _json(soccer.scoreboard([_soccer_row(world, match) for match in matches]))


async def soccer_summary(request: web.Request) -> web.Response:
    match = request.app[STADIUM].match(request, "espnsoccer", request.query.get("event", ""))
    if match is None or request.match_info["league"] != people.SERIE_A:
        return not_found()
    world = request.app[STADIUM].world
    return _json(soccer.summary(world, match, world.football(match, world.index(match))))


async def robots(request: web.Request) -> web.Response:
    return web.Response(text=ROBOTS)


def _bad_date() -> web.Response:
    return web.json_response({"code": 400, "message": "Invalid date"}, status=400)


def not_found() -> web.Response:
    return web.json_response({"code": 404, "message": "Failed to get events endpoint."}, status=404)


def _cricket_match(request: web.Request) -> Match | None:
    """Only under the number of its own series; a fault may put another match in its place."""
    stadium, key = request.app[STADIUM], request.query.get("event", "")
    asked = stadium.world.find("espn", key)
    if asked is None or people.league_id(asked) != request.match_info["league"]:
        return None
    return stadium.match(request, "espn", key)


def _cricket_row(world: World, match: Match) -> dict[str, Any]:
    return summary.event(world, match, world.cricket(match, world.index(match)))


def _soccer_row(world: World, match: Match) -> dict[str, Any]:
    return soccer.event(world, match, world.football(match, world.index(match)))


def _diary(request: web.Request, match: Match) -> Diary:
    return request.app[DIARIES].get(match.edition, lambda: plays.diary_of(match))


def _number(request: web.Request, name: str) -> int | None:
    asked = request.query.get(name, "")
    return int(asked) if asked.isascii() and asked.isdecimal() and 0 < len(asked) < 6 and int(asked) else None


def _days(text: str) -> tuple[date | None, date | None]:
    if not text:
        return None, None
    found = _DATES.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return date.fromisoformat(found[1]), date.fromisoformat(found[2] or found[1])


def _kept(world: World, key: tuple[object, ...], body: Callable[[], dict[str, Any]]) -> web.Response:
    """Rendered once for each thing that happens in the match."""
    return _response(world.rendered.get(("espn", *key), lambda: _bytes(body())))


def _json(body: dict[str, Any]) -> web.Response:
    return _response(_bytes(body))


def _bytes(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _response(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "max-age=10"})
