"""A cricket match in the format of `/api/v1/event/{id}` and of the lists."""

from __future__ import annotations

import zlib
from typing import Any

from stadium.cricket.innings import Innings
from stadium.cricket.script import CricketScript
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.matches.teams import Team, slug
from stadium.sites.sofascore.events import event_fields, team_fields
from stadium.sites.sofascore.football_event import POSTPONED, RULINGS

SPORT = {"name": "Cricket", "slug": "cricket", "id": 62}
WORLD = {"name": "World", "slug": "world", "sport": SPORT, "id": 1343, "flag": "international"}
RESULT_FIRST_SECONDS = 20.0  # from the result text to the change of the status
_NAMES = {"T20": "T20 International", "ODI": "One Day International", "TEST": "Test Match"}
_NOT_STARTED = {"code": 0, "description": "Not started", "type": "notstarted"}
_ENDED = {"code": 100, "description": "Ended", "type": "finished"}
_ABANDONED = {"code": 90, "description": "Abandoned", "type": "canceled"}
_INTERRUPTED = {"code": 80, "description": "Interrupted", "type": "interrupted"}
_NOTES = {  # assumptions: the notes of breaks have not been recorded
    "innings_break": "Innings break",
    "lunch": "Lunch",
    "tea": "Tea",
    "drinks": "Drinks",
    "rain": "Play delayed by rain",
}


def event(simulation: Simulation, match: Match, state: CricketState, *, detail: bool = True) -> dict[str, Any]:
    home, away = match.teams
    body: dict[str, Any] = {
        "tournament": tournament(match),
        "season": {"name": "2026", "year": "2026", "editor": False, "id": 77257},
        "status": status(simulation, match, state),
        "homeTeam": team(home),
        "awayTeam": team(away),
        "homeScore": score(state, home),
        "awayScore": score(state, away),
        "coverage": 1,
        "time": {},
        "changes": {"changeTimestamp": int(simulation.clock.wall())} if state.innings else {"changeTimestamp": 0},
        "feedLocked": False,
    }
    body |= event_fields(simulation, match) | _toss_and_result(state, match)
    return body | _detail(match) if detail else body


def tournament(match: Match) -> dict[str, Any]:
    """All internationals of a format share one "unique tournament"; the tour or cup is the tournament."""
    unique = _NAMES.get(match.format, match.format)
    number = zlib.crc32(match.series[0].encode()) % 100_000 + 100_000
    return {
        "name": match.series[0],
        "slug": slug(match.series[0]),
        "category": WORLD,
        "uniqueTournament": {"name": unique, "slug": slug(unique), "id": 11_000 + len(unique), "hasRounds": True},
        "id": number,
    }


def team(side: Team) -> dict[str, Any]:
    own = {"shortName": side.short, "country": {}, "id": team_id(side), "subTeams": []}
    return team_fields(side, SPORT) | own


def team_id(side: Team) -> int:
    return 180_000 + side.number


def status(simulation: Simulation, match: Match, state: CricketState) -> dict[str, Any]:
    """Innings are numbered for each side: a chase is the "1st Inning" too."""
    if not state.innings and not state.is_over:
        return POSTPONED if state.phase == "postponed" else _NOT_STARTED
    if state.is_over and not _has_just_ended(simulation, match):
        ended = _ENDED if state.innings else RULINGS["walkover"]
        return ended if state.status == "completed" else _ABANDONED
    if state.phase == "rain":
        return _INTERRUPTED
    if state.phase == "stumps":
        return {"code": 141, "description": f"End of day {state.day}", "type": "willcontinue"}
    current = state.current
    nth = 1 if current is None else sum(one.batting.key == current.batting.key for one in state.innings)
    named = {1: "1st Inning", 2: "2nd Inning"}.get(nth, f"{nth}th Inning")
    return {"code": 20 + min(nth, 2), "description": named, "type": "inprogress"}


def _has_just_ended(simulation: Simulation, match: Match) -> bool:
    """True for the first seconds after the end, while the status still shows play."""
    return 0 <= simulation.clock.now() - match.ends_at < RESULT_FIRST_SECONDS


def score(state: CricketState, side: Team) -> dict[str, Any]:
    """`current` is the sum of the side's innings."""
    if not state.innings:
        return {}
    own = [one for one in state.innings if one.batting.key == side.key]
    total = sum(one.runs for one in own)
    fields: dict[str, Any] = {"current": total, "display": total}
    if own:
        fields["innings"] = {f"inning{number}": inning(state, one) for number, one in enumerate(own, 1)}
    return fields


def inning(state: CricketState, one: Innings) -> dict[str, Any]:
    overs = as_number(one.overs_text)
    played = one.legal_balls / one.balls_per_over
    fields: dict[str, Any] = {"score": one.runs, "wickets": one.wickets, "overs": overs}
    fields["runRate"] = round(one.runs / played, 2) if played else 0
    if one.is_declared:
        fields["inningDeclare"] = 1
    allowed = (one.plan.overs if one.plan and one.plan.overs else 0) or state.script.overs
    if one.target and allowed and not one.is_super_over:
        fields["targetRunRate"] = round(one.target / allowed, 2)
    return fields


def as_number(overs: str) -> float | int:
    """14.4 for 14 overs and 4 balls, and 50 for 50."""
    whole, _, balls = overs.partition(".")
    return int(whole) if balls == "0" else float(overs)


def _toss_and_result(state: CricketState, match: Match) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if state.toss_winner is not None:
        fields["tossWin"] = state.toss_winner.name
        fields["tossDecision"] = "Batting" if state.toss_bats else "Bowling"
    note = (state.result_long or state.result) if state.is_over else _NOTES.get(state.phase, "")
    if note:
        fields["note"] = note
    if state.status == "completed":
        keys = [side.key for side in match.teams]
        fields["winnerCode"] = keys.index(state.winner.key) + 1 if state.winner else 3
    return fields


def _detail(match: Match) -> dict[str, Any]:
    ground, _, city = match.venue.partition(", ")
    assert isinstance(match.script, CricketScript)
    return {
        "venue": {
            "name": ground,
            "slug": slug(ground),
            "city": {"name": city},
            "stadium": {"name": ground},
            "id": 35_779,
        },
        "referee": {"name": "Orson Lorimer", "slug": "orson-lorimer", "id": 790_032},
        "umpire1Name": "Pavel Quenby",
        "umpire2Name": "Soren Hexley",
        "periods": {
            "current": "Match",
            **{f"inning{number}": f"{nth} Inning" for number, nth in enumerate(("1st", "2nd", "3rd", "4th"), 1)},
        },
    }
