"""Incidents of a football match, newest first. Period and injury-time lines have no id, as on the real site."""

from __future__ import annotations

from typing import Any

from stadium.football.script import (
    Card,
    Goal,
    InjuryTime,
    Minute,
    PeriodMark,
    Postponement,
    ShootoutKick,
    Stoppage,
    Substitution,
    VarDecision,
)
from stadium.football.state import FootballState, Shown
from stadium.people import Player
from stadium.programme import Match

_COLOURS = {"primary": "52b030", "number": "ffffff", "outline": "52b030", "fancyNumber": "ffffff"}
_SIDE = {"playerColor": _COLOURS, "goalkeeperColor": _COLOURS}
_SOURCES = {"penalty": "penalty", "ownGoal": "owngoal", "regular": "regular"}


def incidents(match: Match, state: FootballState) -> dict[str, Any]:
    return {"incidents": [incident(match, shown) for shown in reversed(state.shown)], "home": _SIDE, "away": _SIDE}


def incident(match: Match, shown: Shown) -> dict[str, Any]:
    event = shown.event
    assert not isinstance(event, Stoppage | Postponement)  # the list does not tell these
    match event:
        case PeriodMark():
            return _period(event, shown)
        case InjuryTime():
            return {
                "length": event.length,
                "time": event.time,
                "addedTime": 0,
                "incidentType": "injuryTime",
                "reversedPeriodTime": 1,
            }
        case Goal():
            fields = _goal(event, shown)
        case ShootoutKick():
            return _kick(match, event, shown)
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
            fields = {"confirmed": event.kind == "goalAwarded", "player": person(event.player)} | {
                "incidentType": "varDecision"
            }
    side = {"id": incident_id(match, event.number), "isHome": event.is_home, "incidentClass": event.kind}
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


def _goal(goal: Goal, shown: Shown) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "homeScore": shown.home,
        "awayScore": shown.away,
        "player": person(goal.scorer),
        "from": _SOURCES[goal.kind],
        "incidentType": "goal",
    }
    return fields | ({"assist1": person(goal.assist)} if goal.assist else {})


def _kick(match: Match, kick: ShootoutKick, shown: Shown) -> dict[str, Any]:
    said = "scored" if kick.is_scored else "missed"
    return {
        "player": person(kick.player),
        "homeScore": shown.home,
        "awayScore": shown.away,
        "sequence": kick.sequence,
        "description": said.capitalize(),
        "id": incident_id(match, kick.number),
        "incidentType": "penaltyShootout",
        "isHome": kick.is_home,
        "incidentClass": said,
        "reason": said,
    }


def _minute(minute: Minute) -> dict[str, int]:
    last = next(end for end in (45, 90, 105, 120) if minute.time <= end)
    fields = {"time": minute.time, "reversedPeriodTime": max(last - minute.time + 1, 1)}
    return fields | ({"addedTime": minute.added} if minute.added else {})


def _period(mark: PeriodMark, shown: Shown) -> dict[str, Any]:
    time = mark.period.minute
    return {
        "text": mark.period.text,
        "homeScore": shown.home,
        "awayScore": shown.away,
        "isLive": mark.period.is_running,
        "time": time,
        "addedTime": 999,
        "timeSeconds": time * 60,
        "reversedPeriodTime": 1,
        "reversedPeriodTimeSeconds": 0,
        "periodTimeSeconds": 2700 if time <= 90 else 900,
        "incidentType": "period",
    }
