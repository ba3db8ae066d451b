"""Ground truth of the matches, computed from the script and not from a site's responses."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

from aiohttp import web

from stadium.context import STADIUM
from stadium.cricket.ground_truth import SIDES, cricket_truth
from stadium.cricket.script import CricketScript
from stadium.endpoints import Site
from stadium.football.script import (
    Card,
    FootballScript,
    Goal,
    InjuryTime,
    PeriodMark,
    ShootoutKick,
    Substitution,
    Unlisted,
    VarDecision,
)
from stadium.football.state import Incident, fold
from stadium.matches.ids import key_at
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, iso
from stadium.sites.crex.listing import match_path as crex_path
from stadium.sites.espn.routes import match_path as espn_path
from stadium.sites.espncricinfo.objects import match_path as espncricinfo_path
from stadium.sites.scoreboard.markup import match_path as board_path
from stadium.sites.sofascore.events import match_path as sofascore_path
from stadium.sites.sofascore.football_incidents import incident_id

_PATHS: dict[str, Callable[[Match], str]] = {
    "crex": crex_path,
    "crexpro": crex_path,
    "sofascore": sofascore_path,
    "sofascorecricket": sofascore_path,
    "board": board_path,
    "espncricinfo": espncricinfo_path,
    "espn": espn_path,
    "espnsoccer": espn_path,
}


def add_routes(app: web.Application) -> None:
    app.router.add_get("/truth/matches", all_matches)
    app.router.add_get("/truth/matches/{site}/{key}", one_match)


async def all_matches(request: web.Request) -> web.Response:
    simulation = request.app[STADIUM].simulation
    moment = simulation.clock.now()
    matches = [
        simulation.undistorted(match) for site in get_args(Site) for match in simulation.listed_matches(site, moment)
    ]
    return web.json_response([summary(simulation, match, moment, _origin(request)) for match in matches])


async def one_match(request: web.Request) -> web.Response:
    simulation = request.app[STADIUM].simulation
    match = simulation.find(request.match_info["site"], request.match_info["key"])
    if match is None:
        return web.json_response({"error": "no such match"}, status=404)
    now = simulation.clock.wall()
    try:
        at = _moment(request.query["at"]) if "at" in request.query else now
    except ValueError:
        return web.json_response({"error": "at must be unix seconds or an ISO 8601 time with a zone"}, status=400)
    if at > now:
        return web.json_response({"error": "at is in the future: the pace may still change"}, status=400)
    return web.json_response(match_truth(simulation, simulation.undistorted(match), at, _origin(request)))


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


def summary(simulation: Simulation, match: Match, moment: float, origin: str = "") -> dict[str, Any]:
    state = simulation.state(match, match.event_count_at(moment))
    return {
        "site": match.site,
        "key": match.key,
        "url": origin + _PATHS[match.site](simulation.site_version(match, match.site)),
        "sites": {site: key_at(site, match.number) for site in match.slot.sites},
        "status": state.status,
        "phase": state.phase,
        "start_time": iso(simulation.start_wall(match)),
        "recording": match.slot.recording.name if match.slot.recording else None,
        "played": round(match.event_count_at(moment) / max(len(match.times), 1), 3),
    }


def match_truth(simulation: Simulation, match: Match, at: float, origin: str = "") -> dict[str, Any]:
    moment = simulation.clock.simulated_at(at)
    index = match.event_count_at(moment)
    is_cricket = isinstance(match.script, CricketScript)
    facts = cricket_truth(simulation, match, index) if is_cricket else _football(simulation, match, index)
    return {
        **summary(simulation, match, moment, origin),
        "at": iso(at),
        "format": match.format if match.slot.sport == "cricket" else "football",
        "teams": {
            name: {"name": team.name, "short_name": team.short} for name, team in zip(SIDES, match.teams, strict=True)
        },
        "venue": match.venue,
        "series": match.series[0],
        **facts,
    }


def _football(simulation: Simulation, match: Match, index: int) -> dict[str, Any]:
    assert isinstance(match.script, FootballScript)
    state = fold(match.script, match.script.events[:index])
    has_begun = state.period is not None
    return {
        "score": {
            name: {"goals": goals} if has_begun else None for name, goals in zip(SIDES, state.goals, strict=True)
        },
        "penalties": dict(zip(SIDES, state.penalties, strict=True)) if state.has_shootout else None,
        "current_innings": None,
        "result": "-".join(str(goals) for goals in state.goals) if state.status == "completed" and has_begun else None,
        "winner": None if state.winner is None or state.status != "completed" else SIDES[state.winner],
        "events": [_football_event(simulation, match, line) for line in state.incidents],
    }


def _football_event(simulation: Simulation, match: Match, line: Incident) -> dict[str, Any]:
    event = line.event
    assert not isinstance(event, Unlisted)
    fields: dict[str, Any] = {"innings": None, "happened_at": iso(simulation.clock.wall_at(match.starts_at + event.at))}
    if isinstance(event, PeriodMark):
        time, text = event.period.minute, event.period.text
        return fields | {"id": f"period:{time}:{text}", "kind": "period", "over": f"{time}'", "description": text}
    if isinstance(event, InjuryTime):
        name = f"injuryTime:{event.time}:{event.length}"
        text = f"{event.length} minutes"
        return fields | {"id": name, "kind": "injuryTime", "over": f"{event.time}'", "description": text}
    kind, text, minute = _football_text(event)
    fields |= {"id": str(incident_id(match, event.number)), "kind": kind, "over": minute, "description": text}
    return fields | {"side": SIDES[0 if event.is_home else 1], "score": f"{line.home}-{line.away}"}


def _football_text(event: Goal | Card | Substitution | VarDecision | ShootoutKick) -> tuple[str, str, str]:
    if isinstance(event, ShootoutKick):
        return "penaltyShootout", f"{'scored' if event.is_scored else 'missed'} by {event.player.name}", ""
    if isinstance(event, Goal):
        return "goal", f"{event.kind} by {event.scorer.name}", event.minute.text
    if isinstance(event, Card):
        return "card", f"{event.kind} for {event.player.name}", event.minute.text
    if isinstance(event, Substitution):
        return "substitution", f"{event.player_in.name} for {event.player_out.name}", event.minute.text
    return "varDecision", event.kind, event.minute.text
