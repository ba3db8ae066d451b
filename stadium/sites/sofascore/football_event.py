"""A football match in the format of `/api/v1/event/{id}` and of the lists."""

from __future__ import annotations

from typing import Any

from stadium.football.script import Period
from stadium.football.state import FootballState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.matches.teams import Team, slug
from stadium.sites.sofascore.events import event_fields, team_fields

TOURNAMENT_ID = 325
SEASON_ID = 87678
ROUNDS = 38
SPORT = {"name": "Football", "slug": "football", "id": 1}
BRAZIL = {"alpha2": "BR", "alpha3": "BRA", "name": "Brazil", "slug": "brazil"}
NOT_STARTED = {"code": 0, "description": "Not started", "type": "notstarted"}
POSTPONED = {"code": 60, "description": "Postponed", "type": "postponed"}
INTERRUPTED = {"code": 80, "description": "Interrupted", "type": "interrupted"}
RULINGS = {  # "Awarded" is an assumption: it has not been recorded
    "abandoned": {"code": 70, "description": "Canceled", "type": "canceled"},
    "walkover": {"code": 91, "description": "Walkover", "type": "finished"},
    "awarded": {"code": 100, "description": "Awarded", "type": "finished"},
}
ENDINGS = {
    Period.FULL_TIME: {"code": 100, "description": "Ended", "type": "finished"},
    Period.EXTRA_TIME_END: {"code": 110, "description": "AET", "type": "finished"},
    Period.SHOOTOUT_END: {"code": 120, "description": "AP", "type": "finished"},
}
_SECOND_HALF = {"code": 7, "description": "2nd half", "type": "inprogress"}
_SECOND_EXTRA = {"code": 42, "description": "2nd extra", "type": "inprogress"}
STATUSES = {  # 41 and 50 are assumptions: they have not been recorded
    Period.FIRST_HALF: {"code": 6, "description": "1st half", "type": "inprogress"},
    Period.HALFTIME: {"code": 31, "description": "Halftime", "type": "inprogress"},
    Period.SECOND_HALF: _SECOND_HALF,
    Period.FULL_TIME: _SECOND_HALF,
    Period.FIRST_EXTRA: {"code": 41, "description": "1st extra", "type": "inprogress"},
    Period.SECOND_EXTRA: _SECOND_EXTRA,
    Period.EXTRA_TIME_END: _SECOND_EXTRA,
    Period.SHOOTOUT: {"code": 50, "description": "Penalties", "type": "inprogress"},
}
_NAMES = ("period1", "period2", "extra1", "extra2")
_SPANS = ((0, 2700), (2700, 5400), (5400, 6300), (6300, 7200))  # seconds played before a period, and at its end


def event(simulation: Simulation, match: Match, state: FootballState, *, detail: bool = True) -> dict[str, Any]:
    home, away = match.teams
    body: dict[str, Any] = {
        "tournament": tournament(),
        "season": season(),
        "roundInfo": round_info(match, state),
        "status": status(state),
        "homeTeam": team(home),
        "awayTeam": team(away),
        "homeScore": score(state, 0),
        "awayScore": score(state, 1),
        "time": _time(simulation, match, state),
        "changes": _changes(simulation, match, state),
        "hasGlobalHighlights": False,
        "feedLocked": state.status == "live",
    }
    body |= event_fields(simulation, match) | _progress(state)
    return body | _detail(simulation, match, state) if detail else body


def tournament() -> dict[str, Any]:
    category = {"name": "Brazil", "slug": "brazil", "sport": SPORT, "country": BRAZIL, "id": 13, "flag": "brazil"}
    name = "Brasileirão Série A"
    unique = {"name": name, "slug": "brasileirao-serie-a", "category": category, "id": TOURNAMENT_ID, "hasRounds": True}
    return {"name": name, "slug": "brasileirao-serie-a", "category": category, "uniqueTournament": unique, "id": 83}


def season() -> dict[str, Any]:
    return {"name": "Brasileirão Série A 2026", "year": "2026", "editor": False, "id": SEASON_ID}


def round_of(match: Match) -> int:
    return match.turn % ROUNDS + 1


def team(side: Team) -> dict[str, Any]:
    return team_fields(side, SPORT) | {
        "shortName": side.name,
        "country": BRAZIL,
        "id": int(side.key),
        "teamColors": {"primary": "#52b030", "secondary": "#ffffff", "text": "#ffffff"},
    }


def round_info(match: Match, state: FootballState) -> dict[str, Any]:
    """A knockout match is the play-off of a round."""
    fields: dict[str, Any] = {"round": round_of(match)}
    return fields | ({"name": "Play-off", "slug": "play-off", "cupRoundType": 1} if state.script.is_knockout else {})


def status(state: FootballState) -> dict[str, Any]:
    if state.phase == "postponed":
        return POSTPONED
    if state.ruling is not None:
        return RULINGS[state.ruling.kind]
    if state.period is None:
        return NOT_STARTED
    if state.is_interrupted:
        return INTERRUPTED
    return ENDINGS[state.period] if state.status == "completed" else STATUSES[state.period]


def score(state: FootballState, side: int) -> dict[str, int]:
    """`current` includes the shoot-out, `display` does not."""
    if state.period is None:
        return {}
    goals, penalties = state.goals[side], state.penalties[side]
    fields = {"current": goals + penalties, "display": goals}
    played = _NAMES[: state.period_index + 1]
    fields |= {name: state.goals_by_period[number][side] for number, name in enumerate(played)}
    fields["normaltime"] = state.goals_by_period[0][side] + state.goals_by_period[1][side]
    if state.has_extra_time:
        fields["overtime"] = state.goals_by_period[2][side] + state.goals_by_period[3][side]
    return fields | ({"penalties": penalties} if state.has_shootout else {})


def _time(simulation: Simulation, match: Match, state: FootballState) -> dict[str, int]:
    names = {45: "injuryTime1", 90: "injuryTime2", 105: "injuryTime3", 120: "injuryTime4"}
    fields = {names[time]: length for time, length in state.injury.items()}
    if state.period_started_at is None:
        return fields
    fields["currentPeriodStartTimestamp"] = int(_period_start(simulation, match, state.period_started_at, state.status))
    if state.status == "live":
        initial, end = _SPANS[state.period_index]
        fields |= {"initial": initial, "max": end, "extra": 540}
    return fields


def _period_start(simulation: Simulation, match: Match, started_at: float, status: str) -> float:
    """Returns the start of the period. Readers compute the minute from it, so during play it depends on the pace."""
    if status != "live":
        return simulation.clock.wall_at(match.starts_at + started_at)
    return simulation.clock.wall() - (simulation.clock.now() - match.starts_at - started_at)


def _changes(simulation: Simulation, match: Match, state: FootballState) -> dict[str, Any]:
    if state.changed_at is None:
        return {"changeTimestamp": 0}
    moment = simulation.clock.wall_at(match.starts_at + state.changed_at)
    return {"changes": ["homeScore.current", "awayScore.current", "status.code"], "changeTimestamp": int(moment)}


def _progress(state: FootballState) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if state.period is not None:
        fields["lastPeriod"] = "penalties" if state.has_shootout else _NAMES[state.period_index]
    cards = zip(("homeRedCards", "awayRedCards"), state.red_cards, strict=True)
    fields |= {name: count for name, count in cards if count}
    if state.status == "completed":
        fields["winnerCode"] = 3 if state.winner is None else state.winner + 1
    return fields


def _detail(simulation: Simulation, match: Match, state: FootballState) -> dict[str, Any]:
    ground = match.venue
    return {
        "venue": {
            "name": ground,
            "slug": slug(ground),
            "city": {"name": match.teams[0].name.split()[-1]},
            "stadium": {"name": ground, "capacity": 32_000},
            "country": BRAZIL,
            "id": 9000 + match.slot.number,
        },
        "referee": {"name": "Orson Lorimer", "slug": "orson-lorimer", "id": 4242, "sport": SPORT, "country": BRAZIL},
        "varInProgress": {"homeTeam": False, "awayTeam": False},
        "defaultPeriodCount": 2,
        "defaultPeriodLength": 45,
        "defaultOvertimeLength": 15,
    }
