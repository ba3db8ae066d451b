"""Football matches as the scoreboard lists them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stadium.espn.people import SERIE_A, team, team_id
from stadium.espn.summary import SIDES, minute
from stadium.football.script import Card, Goal, Minute, Period, ShootoutKick, Substitution
from stadium.football.state import FootballState
from stadium.people import Player
from stadium.programme import Match
from stadium.world import World

_STATUSES = {  # name: id, state, completed, detail
    "SCHEDULED": ("1", "pre", False, "Scheduled"),
    "POSTPONED": ("6", "post", False, "Postponed"),
    "FIRST_HALF": ("25", "in", False, "1st"),
    "HALFTIME": ("23", "in", False, "HT"),
    "SECOND_HALF": ("26", "in", False, "2nd"),
    "END_OF_REGULATION": ("29", "in", False, "AET"),
    "OVERTIME": ("30", "in", False, "ET"),
    "END_OF_EXTRATIME": ("44", "in", False, "AET-pens"),
    "SHOOTOUT": ("43", "in", False, "Pens"),
    "SUSPENDED": ("8", "in", False, "Susp."),
    "FULL_TIME": ("28", "post", True, "FT"),
    "FINAL_AET": ("45", "post", True, "AET"),
    "FINAL_PEN": ("47", "post", True, "FT-Pens"),
}
_NAMES = {
    Period.FIRST_HALF: "FIRST_HALF",
    Period.HALFTIME: "HALFTIME",
    Period.SECOND_HALF: "SECOND_HALF",
    Period.FULL_TIME: "END_OF_REGULATION",
    Period.FIRST_EXTRA: "OVERTIME",
    Period.SECOND_EXTRA: "OVERTIME",
    Period.EXTRA_TIME_END: "END_OF_EXTRATIME",
    Period.SHOOTOUT: "SHOOTOUT",
}
_ENDS = (45, 90, 105, 120)  # minutes at which a stretch of play ends
_GOALS = {"regular": ("70", "Goal"), "penalty": ("98", "Penalty - Scored"), "ownGoal": ("97", "Own Goal")}


Happening = Goal | Card | Substitution | ShootoutKick


def league(match: Match | None = None) -> dict[str, Any]:
    return {
        "id": "630",
        "uid": "s:600~l:630",
        "name": match.series[0] if match else "Brasileirão Série A",
        "abbreviation": "Série A",
        "midsizeName": SERIE_A.upper(),
        "slug": SERIE_A,
        "season": {"year": 2026, "displayName": "2026"},
        "calendarType": "day",
    }


def scoreboard(events: list[dict[str, Any]]) -> dict[str, Any]:
    return {"leagues": [league()], "events": events}


def event(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    standing = status(world, match, state)
    home, away = match.teams
    return {
        "id": match.key,
        "uid": f"s:600~l:630~e:{match.key}",
        "date": minute(world.start_wall(match)),
        "name": f"{away.name} at {home.name}",
        "shortName": f"{away.short} @ {home.short}",
        "season": {"year": 2026, "type": 13_000, "slug": "2026-brasileirao"},
        "competitions": [competition(world, match, state)],
        "status": standing,
        "venue": {"displayName": match.venue},
    }


def competition(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    return {
        "id": match.key,
        "date": minute(world.start_wall(match)),
        "startDate": minute(world.start_wall(match)),
        "attendance": 0,
        "timeValid": True,
        "status": status(world, match, state),
        "venue": {"fullName": match.venue, "address": {"city": match.teams[0].name.split()[-1], "country": "Brazil"}},
        "format": {"regulation": {"periods": 2}},
        "notes": [],
        "competitors": [_competitor(match, state, place) for place in (0, 1)],
        "details": [detail(match, line.event) for line in state.shown if isinstance(line.event, Happening)],
        "wasSuspended": False,
    }


def summary(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    header = event(world, match, state) | {"league": league(match)}
    return {"header": header, "gameInfo": {"venue": header["competitions"][0]["venue"]}}


def status(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    name = _name(state)
    number, kind, completed, said = _STATUSES[name]
    running = {} if state.period is None else {"period": 5 if state.has_shootout else state.stretch + 1}
    return {
        "clock": 0.0,
        "displayClock": _clock(world, match, state),
        **running,
        "type": {
            "id": number,
            "name": f"STATUS_{name}",
            "state": kind,
            "completed": completed,
            "description": name.replace("_", " ").title(),
            "detail": said,
            "shortDetail": said,
        },
    }


def detail(match: Match, happening: Happening) -> dict[str, Any]:
    """It has no id. A kick of the shoot-out scores here too; only `shootout` tells it from a goal."""
    side = match.teams[0 if happening.is_home else 1]
    number, said = _type(happening)
    is_kick = isinstance(happening, ShootoutKick)
    is_scored = isinstance(happening, Goal) or (isinstance(happening, ShootoutKick) and happening.is_scored)
    minute = Minute(120) if isinstance(happening, ShootoutKick) else happening.minute
    return {
        "type": {"id": number, "text": said},
        "clock": {"value": float(minute.time * 60), "displayValue": clock_text(minute)},
        "team": {"id": team_id(side)},
        "scoreValue": int(is_scored),
        "scoringPlay": is_scored,
        "redCard": isinstance(happening, Card) and happening.kind != "yellow",
        "yellowCard": isinstance(happening, Card) and happening.kind == "yellow",
        "penaltyKick": is_kick or (isinstance(happening, Goal) and happening.kind == "penalty"),
        "ownGoal": isinstance(happening, Goal) and happening.kind == "ownGoal",
        "shootout": is_kick,
        "athletesInvolved": [_involved(player, team_id(side)) for player in _players(happening)],
    }


def clock_text(minute: Minute) -> str:
    """ "90'+8'" """
    return f"{minute.time}'+{minute.added}'" if minute.added else f"{minute.time}'"


def listed_day(world: World, match: Match) -> datetime:
    """Days are those of New York, where it is four or five hours earlier."""
    return datetime.fromtimestamp(world.start_wall(match) - 4 * 3600, UTC)


def _name(state: FootballState) -> str:
    """A match that was put off is over and not completed, as the site sees it."""
    if state.phase in ("postponed", "interrupted"):
        return "POSTPONED" if state.phase == "postponed" else "SUSPENDED"
    if state.period is None:
        return "SCHEDULED"
    if state.status == "completed":
        return "FINAL_PEN" if state.has_shootout else "FINAL_AET" if state.has_extra_time else "FULL_TIME"
    return _NAMES[state.period]


def _type(happening: Happening) -> tuple[str, str]:
    if isinstance(happening, Goal):
        return _GOALS[happening.kind]
    if isinstance(happening, Card):
        return ("94", "Yellow Card") if happening.kind == "yellow" else ("93", "Red Card")
    if isinstance(happening, ShootoutKick):
        return _GOALS["penalty"] if happening.is_scored else ("114", "Penalty - Missed")
    return "76", "Substitution"


def _players(happening: Happening) -> list[Player]:
    if isinstance(happening, Goal):
        return [happening.scorer] + ([happening.assist] if happening.assist else [])
    if isinstance(happening, Substitution):
        return [happening.player_in, happening.player_out]
    return [happening.player]


def _involved(player: Player, side: str) -> dict[str, Any]:
    return {
        "id": str(player.number),
        "displayName": player.name,
        "shortName": player.short,
        "fullName": player.name,
        "jersey": player.key,
        "team": {"id": side},
        "position": player.position,
    }


def _competitor(match: Match, state: FootballState, place: int) -> dict[str, Any]:
    shootout = {"shootoutScore": state.penalties[place]} if state.has_shootout else {}
    return {
        "id": team_id(match.teams[place]),
        "type": "team",
        "order": place,
        "homeAway": SIDES[place],
        "winner": state.status == "completed" and state.winner == place,
        "score": str(state.goals[place]),
        **shootout,
        "team": team(match.teams[place]),
        "statistics": [],
    }


def _clock(world: World, match: Match, state: FootballState) -> str:
    if state.period is None:
        return "0'"
    last = _ENDS[state.stretch]
    if not state.period.is_running or state.period is Period.SHOOTOUT or state.period_started_at is None:
        return f"{last}'"
    first = _ENDS[state.stretch - 1] if state.stretch else 0
    elapsed = max(0.0, world.clock.now() - match.starts_at - state.period_started_at)
    played = first + int(elapsed // 60) + 1
    return f"{last}'+{played - last}'" if played > last else f"{played}'"
