"""The right answer, computed from the script and not from what a site serves."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from aiohttp import web

from stadium.board.markup import match_path as board_path
from stadium.context import STADIUM
from stadium.crex.feed import describe
from stadium.crex.listing import match_path as crex_path
from stadium.cricket import state as cricket
from stadium.cricket.play import dismissal_text
from stadium.cricket.script import Ball, CricketScript, Notice, OverCard, WicketCard
from stadium.endpoints import Site
from stadium.football import state as football
from stadium.football.script import (
    Card,
    FootballScript,
    Goal,
    InjuryTime,
    Period,
    PeriodMark,
    Substitution,
    VarDecision,
)
from stadium.programme import Match
from stadium.sofascore.event import match_path as sofascore_path
from stadium.sofascore.incidents import incident_id
from stadium.world import World, iso

_PATHS = {"sofascore": sofascore_path, "board": board_path}


def add_routes(app: web.Application) -> None:
    app.router.add_get("/truth/matches", all_matches)
    app.router.add_get("/truth/matches/{site}/{key}", one_match)


async def all_matches(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    moment = world.clock.now()
    matches = [match for site in get_args(Site) for match in world.on_show(site, moment)]
    return web.json_response([summary(world, match, moment, _origin(request)) for match in matches])


async def one_match(request: web.Request) -> web.Response:
    world = request.app[STADIUM].world
    match = world.find(request.match_info["site"], request.match_info["key"])
    if match is None:
        return web.json_response({"error": "no such match"}, status=404)
    now = world.clock.wall()
    try:
        at = _moment(request.query["at"]) if "at" in request.query else now
    except ValueError:
        return web.json_response({"error": "at must be unix seconds or an ISO 8601 time with a zone"}, status=400)
    if at > now:
        return web.json_response({"error": "at lies in the future: the pace may still change"}, status=400)
    return web.json_response(truth(world, match, at, _origin(request)))


def _origin(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}"


def _moment(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus in a query arrives as a space
        if moment.tzinfo is None:
            raise
        return moment.timestamp()


def summary(world: World, match: Match, moment: float, origin: str = "") -> dict[str, Any]:
    state = world.state(match, match.index_at(moment))
    path = _PATHS.get(match.site, crex_path)(match)
    return {
        "site": match.site,
        "key": match.key,
        "url": origin + path,
        "status": state.status,
        "phase": state.phase,
        "start_time": iso(world.start_wall(match)),
    }


def truth(world: World, match: Match, at: float, origin: str = "") -> dict[str, Any]:
    moment = world.clock.simulated_at(at)
    index = match.index_at(moment)
    names = ("team_a", "team_b")
    facts = _cricket(world, match, index) if isinstance(match.script, CricketScript) else _football(world, match, index)
    return {
        **summary(world, match, moment, origin),
        "at": iso(at),
        "format": match.format if match.slot.sport == "cricket" else "football",
        "teams": {
            name: {"name": team.name, "short_name": team.short} for name, team in zip(names, match.teams, strict=True)
        },
        "venue": match.venue,
        "series": match.series[0],
        **facts,
    }


def _cricket(world: World, match: Match, index: int) -> dict[str, Any]:
    assert isinstance(match.script, CricketScript)
    events = match.script.events[:index]
    state = cricket.fold(match.script, events)
    sides = [_innings(state.innings[number] if number < len(state.innings) else None) for number in (0, 1)]
    ids = world.ids(match, index)
    lines = [
        {
            "id": str(identity),
            **_cricket_event(event),
            "happened_at": iso(world.clock.wall_at(match.starts_at + event.at)),
        }
        for identity, event in zip(ids, events, strict=True)
        if not isinstance(event, Notice)
    ]
    return {
        "score": {"team_a": sides[0], "team_b": sides[1]},
        "current_innings": len(state.innings) or None,
        "target": state.target,
        "result": state.result or None,
        "result_long": state.result_long or None,
        "toss": state.toss or None,
        "events": lines,
    }


def _innings(innings: cricket.Innings | None) -> dict[str, Any] | None:
    """Nothing for a side that has not come to bat."""
    if innings is None:
        return None
    return {"runs": innings.runs, "wickets": innings.wickets, "overs": innings.overs_text}


def _cricket_event(event: Ball | WicketCard | OverCard) -> dict[str, Any]:
    if isinstance(event, Ball):
        kind, ball, text = (
            "ball",
            event,
            f"{event.bowler.name} to {event.striker.name}, {event.text}. {describe(event)}",
        )
    elif isinstance(event, WicketCard):
        assert event.ball.wicket is not None
        kind, ball = "wicket", event.ball
        text = f"{event.ball.wicket.out.name} {' '.join(dismissal_text(ball)).strip()}"
    else:
        kind, ball, text = "over", event.last_ball, f"End of over {event.last_ball.over + 1}"
    over = str(ball.over + 1) if kind == "over" else ball.label
    extra = {"runs": ball.total, "value": ball.text, "delivery": ball.delivery} if kind == "ball" else {}
    return {"kind": kind, "innings": ball.innings + 1, "over": over, "description": text, **extra}


def _football(world: World, match: Match, index: int) -> dict[str, Any]:
    assert isinstance(match.script, FootballScript)
    state = football.fold(match.script, match.script.events[:index])
    home, away = state.goals
    has_begun = state.period is not None
    return {
        "score": {
            name: {"goals": goals} if has_begun else None for name, goals in (("team_a", home), ("team_b", away))
        },
        "current_innings": None,
        "result": f"{home}-{away}" if state.status == "completed" else None,
        "events": [_football_event(world, match, line) for line in state.shown],
    }


def _football_event(world: World, match: Match, line: football.Shown) -> dict[str, Any]:
    event = line.event
    when = iso(world.clock.wall_at(match.starts_at + event.at))
    if isinstance(event, PeriodMark):
        time = 45 if event.period in (Period.FIRST_HALF, Period.HALFTIME) else 90
        identity, kind, minute, text = f"period:{time}:{event.period}", "period", f"{time}'", event.period.value
    elif isinstance(event, InjuryTime):
        identity, kind = f"injuryTime:{event.time}:{event.length}", "injuryTime"
        minute, text = f"{event.time}'", f"{event.length} minutes"
    else:
        identity, minute = str(incident_id(match, event.number)), event.minute.text
        kind, text = _football_words(event)
    return {"id": identity, "kind": kind, "innings": None, "over": minute, "description": text, "happened_at": when}


def _football_words(event: Goal | Card | Substitution | VarDecision) -> tuple[str, str]:
    if isinstance(event, Goal):
        return "goal", f"{event.kind} by {event.scorer.name}"
    if isinstance(event, Card):
        return "card", f"{event.kind} for {event.player.name}"
    if isinstance(event, Substitution):
        return "substitution", f"{event.player_in.name} for {event.player_out.name}"
    return "varDecision", event.kind
