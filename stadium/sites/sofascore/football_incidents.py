"""Incidents of a football match, newest first. Period and injury-time entries have no id, like on the real site."""

from __future__ import annotations

from typing import Any

from stadium.football.script import (
    Card,
    Goal,
    InjuryTime,
    Minute,
    PeriodMark,
    ShootoutKick,
    Substitution,
    Unlisted,
    VarDecision,
)
from stadium.football.state import FootballState, Incident
from stadium.matches.programme import Match
from stadium.matches.teams import Player

_COLOURS = {"primary": "52b030", "number": "ffffff", "outline": "52b030", "fancyNumber": "ffffff"}
_SIDE = {"playerColor": _COLOURS, "goalkeeperColor": _COLOURS}
_SOURCES = {"penalty": "penalty", "ownGoal": "owngoal", "regular": "regular"}


def incidents(match: Match, state: FootballState) -> dict[str, Any]:
    return {"incidents": [incident(match, line) for line in reversed(state.incidents)], "home": _SIDE, "away": _SIDE}


def incident(match: Match, line: Incident) -> dict[str, Any]:
    event = line.event
    assert not isinstance(event, Unlisted)
    match event:
        case PeriodMark():
            return _period(event, line)
        case InjuryTime():
            return {
                "length": event.length,
                "time": event.time,
                "addedTime": 0,
                "incidentType": "injuryTime",
                "reversedPeriodTime": 1,
            }
        case Goal():
            fields = _goal(event, line)
        case ShootoutKick():
            return _kick(match, event, line)
        case Card():
            fields = {
                "player": person(event.player),
                "playerName": event.player.name,
                "reason": "Foul",
                "rescinded": False,
                "incidentType": "card",
            }
        case Substitution():
            fields = {
                "playerIn": person(event.player_in),
                "playerOut": person(event.player_out),
                "injury": event.kind == "injury",
                "incidentType": "substitution",
            }
        case VarDecision():
            # an overturned goal has the class of the decision on the pitch
            fields = {"confirmed": event.cancels is None, "player": person(event.player)} | {
                "incidentType": "varDecision"
            }
    kind = "goalAwarded" if isinstance(event, VarDecision) else event.kind
    side = {"id": incident_id(match, event.number), "isHome": event.is_home, "incidentClass": kind}
    return fields | side | _minute(event.minute)


def incident_id(match: Match, number: int) -> int:
    return 120_000_000 + match.number * 128 + number


def person(player: Player) -> dict[str, Any]:
    return {
        "name": player.name,
        "slug": player.slug,
        "shortName": player.short.replace(" ", ". ", 1),
        "position": player.position,
        "jerseyNumber": player.key,
        "id": player.number,
    }


def _goal(goal: Goal, line: Incident) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "homeScore": line.home,
        "awayScore": line.away,
        "player": person(goal.scorer),
        "from": _SOURCES[goal.kind],
        "incidentType": "goal",
    }
    return fields | ({"assist1": person(goal.assist)} if goal.assist else {})


def _kick(match: Match, kick: ShootoutKick, line: Incident) -> dict[str, Any]:
    outcome = "scored" if kick.is_scored else "missed"
    return {
        "player": person(kick.player),
        "homeScore": line.home,
        "awayScore": line.away,
        "sequence": kick.sequence,
        "description": outcome.capitalize(),
        "id": incident_id(match, kick.number),
        "incidentType": "penaltyShootout",
        "isHome": kick.is_home,
        "incidentClass": outcome,
        "reason": outcome,
    }


def _minute(minute: Minute) -> dict[str, int]:
    last = next(end for end in (45, 90, 105, 120) if minute.time <= end)
    fields = {"time": minute.time, "reversedPeriodTime": max(last - minute.time + 1, 1)}
    return fields | ({"addedTime": minute.added} if minute.added else {})


def _period(mark: PeriodMark, line: Incident) -> dict[str, Any]:
    time = mark.period.minute
    return {
        "text": mark.period.text,
        "homeScore": line.home,
        "awayScore": line.away,
        "isLive": mark.period.is_running,
        "time": time,
        "addedTime": 999,
        "timeSeconds": time * 60,
        "reversedPeriodTime": 1,
        "reversedPeriodTimeSeconds": 0,
        "periodTimeSeconds": 2700 if time <= 90 else 900,
        "incidentType": "period",
    }
