"""Routes of the ESPN API: cricket below /espn, football below /espnsoccer."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any

from aiohttp import web

from stadium.context import STADIUM
from stadium.endpoints import Endpoint, robots_endpoint
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.responses import compact_json
from stadium.sites.espn import cricket, entities, plays, soccer
from stadium.sites.espn.plays import play_or_close

CRICKET = "/espn/apis/site/v2/sports/cricket"
SOCCER = "/espnsoccer/apis/site/v2/sports/soccer/{league}"
_DATES = re.compile(r"(\d{8})(?:-(\d{8}))?", re.ASCII)


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("espn", "list", "GET", f"{CRICKET}/scorepanel", cricket_panel),
        Endpoint("espn", "live", "GET", f"{CRICKET}/{{league}}/summary", cricket_summary),
        Endpoint("espn", "feed", "GET", f"{CRICKET}/{{league}}/playbyplay", cricket_plays),
        robots_endpoint("espn"),
        Endpoint("espnsoccer", "live", "GET", f"{SOCCER}/scoreboard", soccer_board),
        Endpoint("espnsoccer", "page", "GET", f"{SOCCER}/summary", soccer_summary),
        robots_endpoint("espnsoccer"),
    ]


def match_path(match: Match) -> str:
    """The address of a match is that of its summary."""
    if match.site == "espnsoccer":
        return f"{SOCCER.format(league=entities.SERIE_A)}/summary?event={match.key}"
    return f"{CRICKET}/{entities.league_id(match)}/summary?event={match.key}"


async def cricket_panel(request: web.Request) -> web.Response:
    """All matches, grouped by series; with dates only those that begin on them."""
    simulation = request.app[STADIUM].simulation
    try:
        first, last = _days(request.query.get("dates", ""))
    except ValueError:
        return _bad_date()
    groups: dict[str, dict[str, Any]] = {}
    for match in simulation.listed_matches("espn"):
        if first is not None and last is not None and not first <= simulation.start_day(match) <= last:
            continue
        group = groups.setdefault(entities.league_id(match), {"leagues": [entities.league(match)], "events": []})
        group["events"].append(cricket.event(simulation, match, simulation.cricket(match)))
    return _json({"scores": list(groups.values())})


async def cricket_summary(request: web.Request) -> web.Response:
    match = _cricket_match(request)
    if match is None:
        return not_found()
    simulation = request.app[STADIUM].simulation
    count = simulation.event_count(match)

    def body() -> dict[str, Any]:
        log = simulation.log(match, play_or_close)
        return cricket.summary(simulation, match, log.state, [note for note in log.items if isinstance(note, str)])

    return _cached(simulation, ("summary", match.version, count), body)


async def cricket_plays(request: web.Request) -> web.Response:
    match, page, period = _cricket_match(request), _number(request, "page"), _number(request, "period")
    if match is None:
        return not_found()
    simulation = request.app[STADIUM].simulation
    count = simulation.event_count(match)

    def body() -> dict[str, Any]:
        shown = [play for play in simulation.log(match, play_or_close).items if isinstance(play, dict)]
        return plays.page_of([play for play in shown if period in (None, play["period"])], page or 1)

    return _cached(simulation, ("plays", match.version, count, page, period), body)


async def soccer_board(request: web.Request) -> web.Response:
    """Without dates: all listed matches."""
    simulation = request.app[STADIUM].simulation
    matches = simulation.listed_matches("espnsoccer") if request.match_info["league"] == entities.SERIE_A else []
    try:
        first, last = _days(request.query.get("dates", ""))
    except ValueError:
        return _bad_date()
    if first is not None and last is not None:
        matches = [match for match in matches if first <= soccer.listed_day(simulation, match).date() <= last]
    return _json(soccer.scoreboard([soccer.event(simulation, match, simulation.football(match)) for match in matches]))


async def soccer_summary(request: web.Request) -> web.Response:
    match = request.app[STADIUM].match(request)
    if match is None or request.match_info["league"] != entities.SERIE_A:
        return not_found()
    simulation = request.app[STADIUM].simulation
    return _json(soccer.summary(simulation, match, simulation.football(match)))


def _bad_date() -> web.Response:
    return web.json_response({"code": 400, "message": "Invalid date"}, status=400)


def not_found() -> web.Response:
    return web.json_response({"code": 404, "message": "Failed to get events endpoint."}, status=404)


def _cricket_match(request: web.Request) -> Match | None:
    """Returns the match if the league is its own; a fault may replace it with another match."""
    stadium = request.app[STADIUM]
    match = stadium.simulation.find("espn", request.query.get("event", ""))
    if match is None or entities.league_id(match) != request.match_info["league"]:
        return None
    return stadium.match(request)


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 6 and int(text) else None


def _days(text: str) -> tuple[date | None, date | None]:
    if not text:
        return None, None
    found = _DATES.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return date.fromisoformat(found[1]), date.fromisoformat(found[2] or found[1])


def _cached(simulation: Simulation, key: tuple[object, ...], body: Callable[[], dict[str, Any]]) -> web.Response:
    """Renders the body once after each event of the match."""
    return _response(simulation.rendered.get_or_make(("espn", *key), lambda: compact_json(body())))


def _json(body: dict[str, Any]) -> web.Response:
    return _response(compact_json(body))


def _response(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers={"Cache-Control": "max-age=10"})
