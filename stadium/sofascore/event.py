"""An event as `/api/v1/event/{id}` and the lists give it."""

from __future__ import annotations

from typing import Any

from stadium.football.script import Period
from stadium.football.state import FootballState
from stadium.keys import custom_id, event_id
from stadium.people import Team, slug
from stadium.programme import Match
from stadium.world import World

TOURNAMENT_ID = 325
SEASON_ID = 87678
ROUNDS = 38
SPORT = {"name": "Football", "slug": "football", "id": 1}
BRAZIL = {"alpha2": "BR", "alpha3": "BRA", "name": "Brazil", "slug": "brazil"}
NOT_STARTED = {"code": 0, "description": "Not started", "type": "notstarted"}
STATUSES = {
    Period.FIRST_HALF: {"code": 6, "description": "1st half", "type": "inprogress"},
    Period.HALFTIME: {"code": 31, "description": "Halftime", "type": "inprogress"},
    Period.SECOND_HALF: {"code": 7, "description": "2nd half", "type": "inprogress"},
    Period.FULL_TIME: {"code": 100, "description": "Ended", "type": "finished"},
}


def event(world: World, match: Match, state: FootballState, *, detail: bool = True) -> dict[str, Any]:
    home, away = match.teams
    body: dict[str, Any] = {
        "tournament": tournament(),
        "season": season(),
        "roundInfo": {"round": round_of(match)},
        "customId": custom_id(match.number),
        "status": STATUSES[state.period] if state.period else NOT_STARTED,
        "homeTeam": team(home),
        "awayTeam": team(away),
        "homeScore": score(state, 0),
        "awayScore": score(state, 1),
        "time": _time(world, match, state),
        "changes": _changes(world, match, state),
        "hasGlobalHighlights": False,
        "id": event_id(match.number),
        "slug": match_slug(match),
        "startTimestamp": int(world.start_wall(match)),
        "finalResultOnly": False,
        "feedLocked": state.status == "live",
    }
    body |= _progress(state)
    return body | _detail(world, match, state) if detail else body


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
    return {
        "name": side.name,
        "slug": side.slug,
        "shortName": side.name,
        "gender": "M",
        "sport": SPORT,
        "nameCode": side.short,
        "national": False,
        "type": 0,
        "country": BRAZIL,
        "id": int(side.key),
        "teamColors": {"primary": "#52b030", "secondary": "#ffffff", "text": "#ffffff"},
    }


def score(state: FootballState, side: int) -> dict[str, int]:
    if state.period is None:
        return {}
    goals = state.goals[side]
    fields = {"current": goals, "display": goals, "period1": state.by_half[0][side]}
    if state.half == 1:
        fields["period2"] = state.by_half[1][side]
    return fields | {"normaltime": goals}


def match_slug(match: Match) -> str:
    return slug(f"{match.teams[0].name} {match.teams[1].name}")


def match_path(match: Match) -> str:
    """With the id in the fragment, as the site's own links have it."""
    return f"/sofascore/en/football/match/{match_slug(match)}/{custom_id(match.number)}#id:{event_id(match.number)}"


def _time(world: World, match: Match, state: FootballState) -> dict[str, int]:
    names = {45: "injuryTime1", 90: "injuryTime2"}
    fields = {names[time]: length for time, length in state.injury.items()}
    if state.period_started_at is None:
        return fields
    fields["currentPeriodStartTimestamp"] = int(_period_start(world, match, state.period_started_at, state.status))
    if state.status == "live":
        fields |= {"initial": 2700 * state.half, "max": 2700 * (state.half + 1), "extra": 540}
    return fields


def _period_start(world: World, match: Match, started_at: float, status: str) -> float:
    """When the period began. A reader takes the running minute from it, so while play runs it moves with the pace."""
    if status != "live":
        return world.clock.wall_at(match.starts_at + started_at)
    return world.clock.wall() - (world.clock.now() - match.starts_at - started_at)


def _changes(world: World, match: Match, state: FootballState) -> dict[str, Any]:
    if state.changed_at is None:
        return {"changeTimestamp": 0}
    moment = world.clock.wall_at(match.starts_at + state.changed_at)
    return {"changes": ["homeScore.current", "awayScore.current", "status.code"], "changeTimestamp": int(moment)}


def _progress(state: FootballState) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if state.period is not None:
        fields["lastPeriod"] = f"period{state.half + 1}"
    cards = zip(("homeRedCards", "awayRedCards"), state.red_cards, strict=True)
    fields |= {name: count for name, count in cards if count}
    if state.status == "completed":
        home, away = state.goals
        fields["winnerCode"] = 1 if home > away else 2 if away > home else 3
    return fields


def _detail(world: World, match: Match, state: FootballState) -> dict[str, Any]:
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
