"""Football matches in the format of the scoreboard and the summary."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stadium.football.script import Card, FootballEvent, Goal, Minute, Period, PeriodMark, ShootoutKick, Substitution
from stadium.football.state import FootballState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.matches.teams import Player
from stadium.sites.espn.cricket import SIDES, minute
from stadium.sites.espn.entities import SERIE_A, team, team_id

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
    "CANCELED": ("5", "post", False, "Canceled"),
    "WALKOVER": ("9", "post", False, "Walkover"),
    "FORFEIT": ("4", "post", True, "Forfeit"),
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
_RULINGS = {"abandoned": "CANCELED", "walkover": "WALKOVER", "awarded": "FORFEIT"}
_PERIODS = {
    Period.FIRST_HALF: "Kickoff",
    Period.HALFTIME: "Halftime",
    Period.SECOND_HALF: "Start 2nd Half",
    Period.FULL_TIME: "End Regular Time",
    Period.FIRST_EXTRA: "Start Extra Time",
    Period.SECOND_EXTRA: "Start Extra Time 2nd Half",
    Period.EXTRA_TIME_END: "End Extra Time",
    Period.SHOOTOUT: "Start Shootout",
    Period.SHOOTOUT_END: "End Shootout",
}
_ENDS = (45, 90, 105, 120)  # minutes at which a period ends
_GOALS = {"regular": ("70", "Goal"), "penalty": ("98", "Penalty - Scored"), "ownGoal": ("97", "Own Goal")}


ShownEvent = Goal | Card | Substitution | ShootoutKick


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


def event(simulation: Simulation, match: Match, state: FootballState) -> dict[str, Any]:
    home, away = match.teams
    return {
        "id": match.key,
        "uid": f"s:600~l:630~e:{match.key}",
        "date": minute(simulation.start_wall(match)),
        "name": f"{away.name} at {home.name}",
        "shortName": f"{away.short} @ {home.short}",
        "season": {"year": 2026, "type": 13_000, "slug": "2026-brasileirao"},
        "competitions": [competition(simulation, match, state)],
        "status": status(simulation, match, state),
        "venue": {"displayName": match.venue},
    }


def competition(simulation: Simulation, match: Match, state: FootballState) -> dict[str, Any]:
    return {
        "id": match.key,
        "date": minute(simulation.start_wall(match)),
        "startDate": minute(simulation.start_wall(match)),
        "attendance": 0,
        "timeValid": True,
        "status": status(simulation, match, state),
        "venue": {"fullName": match.venue, "address": {"city": match.teams[0].name.split()[-1], "country": "Brazil"}},
        "format": {"regulation": {"periods": 2}},
        "notes": [],
        "competitors": [_competitor(match, state, place) for place in (0, 1)],
        "details": [detail(match, line.event) for line in state.incidents if isinstance(line.event, ShownEvent)],
        "wasSuspended": False,
    }


def summary(simulation: Simulation, match: Match, state: FootballState) -> dict[str, Any]:
    """The header's details are goals, red cards and kicks without a type; the key events have the rest too."""
    header = event(simulation, match, state) | {"league": league(match)}
    own = header["competitions"][0]
    own["details"] = [_with_participants(one, "type") for one in own["details"] if one["scoringPlay"] or one["redCard"]]
    lines = enumerate(state.incidents)
    key_events = [one for place, line in lines if (one := key_event(match, line.event, place)) is not None]
    return {"header": header, "gameInfo": {"venue": own["venue"]}, "keyEvents": key_events}


def key_event(match: Match, event: FootballEvent, place: int) -> dict[str, Any] | None:
    """A key event has no flags of its own but `scoringPlay`; the beginnings and ends of periods are key events too."""
    if isinstance(event, PeriodMark):
        clock = {"value": 0.0, "displayValue": ""}
        return {"id": str(place), "type": {"id": "80", "text": _PERIODS[event.period]}, "clock": clock,
                "scoringPlay": False, "shootout": False}  # fmt: skip
    if not isinstance(event, ShownEvent):
        return None
    flags = ("scoreValue", "redCard", "yellowCard", "penaltyKick", "ownGoal")
    return {"id": str(place)} | _with_participants(detail(match, event), *flags)


def _with_participants(one: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """Returns a detail in the form of a summary."""
    people = [{"athlete": {"id": who["id"], "displayName": who["displayName"]}} for who in one["athletesInvolved"]]
    kept = {name: value for name, value in one.items() if name not in (*left_out, "athletesInvolved")}
    return kept | {"participants": people}


def status(simulation: Simulation, match: Match, state: FootballState) -> dict[str, Any]:
    name = _name(state)
    number, kind, completed, detail_text = _STATUSES[name]
    running = {} if state.period is None else {"period": 5 if state.has_shootout else state.period_index + 1}
    return {
        "clock": 0.0,
        "displayClock": _clock(simulation, match, state),
        **running,
        "type": {
            "id": number,
            "name": f"STATUS_{name}",
            "state": kind,
            "completed": completed,
            "description": name.replace("_", " ").title(),
            "detail": detail_text,
            "shortDetail": detail_text,
        },
    }


def detail(match: Match, event: ShownEvent) -> dict[str, Any]:
    """Details have no id. A shoot-out kick has a score value too; only `shootout` marks it."""
    side = match.teams[0 if event.is_home else 1]
    number, text = _type(event)
    is_kick = isinstance(event, ShootoutKick)
    is_scored = isinstance(event, Goal) or (isinstance(event, ShootoutKick) and event.is_scored)
    minute = Minute(120) if isinstance(event, ShootoutKick) else event.minute
    return {
        "type": {"id": number, "text": text},
        "clock": {"value": float(minute.time * 60), "displayValue": clock_text(minute)},
        "team": {"id": team_id(side)},
        "scoreValue": int(is_scored),
        "scoringPlay": is_scored,
        "redCard": isinstance(event, Card) and event.kind != "yellow",
        "yellowCard": isinstance(event, Card) and event.kind == "yellow",
        "penaltyKick": is_kick or (isinstance(event, Goal) and event.kind == "penalty"),
        "ownGoal": isinstance(event, Goal) and event.kind == "ownGoal",
        "shootout": is_kick,
        "athletesInvolved": [_involved(player, team_id(side)) for player in _players(event)],
    }


def clock_text(minute: Minute) -> str:
    """ "90'+8'" """
    return f"{minute.time}'+{minute.added}'" if minute.added else f"{minute.time}'"


def listed_day(simulation: Simulation, match: Match) -> datetime:
    """Returns the time in New York, whose days the lists use."""
    return datetime.fromtimestamp(simulation.start_wall(match) - 4 * 3600, UTC)


def _name(state: FootballState) -> str:
    """A postponed match is in state post, but not completed; a walkover too."""
    if state.phase in ("postponed", "interrupted"):
        return "POSTPONED" if state.phase == "postponed" else "SUSPENDED"
    if state.ruling is not None:
        return _RULINGS[state.ruling.kind]
    if state.period is None:
        return "SCHEDULED"
    if state.status == "completed":
        return "FINAL_PEN" if state.has_shootout else "FINAL_AET" if state.has_extra_time else "FULL_TIME"
    return _NAMES[state.period]


def _type(event: ShownEvent) -> tuple[str, str]:
    if isinstance(event, Goal):
        return _GOALS[event.kind]
    if isinstance(event, Card):
        return ("94", "Yellow Card") if event.kind == "yellow" else ("93", "Red Card")
    if isinstance(event, ShootoutKick):
        return _GOALS["penalty"] if event.is_scored else ("114", "Penalty - Missed")
    return "76", "Substitution"


def _players(event: ShownEvent) -> list[Player]:
    if isinstance(event, Goal):
        return [event.scorer] + ([event.assist] if event.assist else [])
    if isinstance(event, Substitution):
        return [event.player_in, event.player_out]
    return [event.player]


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


def _clock(simulation: Simulation, match: Match, state: FootballState) -> str:
    if state.period is None:
        return "0'"
    last = _ENDS[state.period_index]
    if not state.period.is_running or state.period is Period.SHOOTOUT or state.period_started_at is None:
        return f"{last}'"
    first = _ENDS[state.period_index - 1] if state.period_index else 0
    elapsed = max(0.0, simulation.clock.now() - match.starts_at - state.period_started_at)
    played = first + int(elapsed // 60) + 1
    return f"{last}'+{played - last}'" if played > last else f"{played}'"
