"""Innings and line-ups of a cricket match."""

from __future__ import annotations

from typing import Any

from stadium.cricket.innings import Innings
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.teams import Player, Team
from stadium.sites.sofascore.cricket_event import as_number, team, team_id
from stadium.sites.sofascore.cricket_incidents import dismissal_name, person
from stadium.sites.sofascore.football_lineups import CONFIRMED_SECONDS, EXPECTED_SECONDS

STARTERS = 11


def innings(state: CricketState) -> dict[str, Any]:
    return {"innings": [_innings(one) for one in state.innings]}


def _innings(one: Innings) -> dict[str, Any]:
    return {
        "number": one.number + 1,
        "battingTeam": team(one.batting),
        "bowlingTeam": team(one.bowling),
        "score": one.runs,
        "wickets": one.wickets,
        "overs": as_number(one.overs_text),
        "extra": sum(one.extras.values()),
        "wide": one.extras.get("wd", 0),
        "noBall": one.extras.get("nb", 0),
        "bye": one.extras.get("b", 0),
        "legBye": one.extras.get("lb", 0),
        "penalty": one.extras.get("pen", 0),
        "isInningDeclare": int(one.is_declared),
        "battingLine": [_batter(one, line.player) for line in one.batters.values()],
        "bowlingLine": [_bowler(one, line.player) for line in one.bowlers.values()],
    }


def _batter(one: Innings, player: Player) -> dict[str, Any]:
    line = one.batters[player.key]
    fall = next((fall for fall in one.falls if fall.wicket.out == player), None)
    fields: dict[str, Any] = {
        "player": person(player, one.batting.players),
        "playerName": player.name,
        "score": line.runs,
        "balls": line.balls,
        "s4": line.fours,
        "s6": line.sixes,
        "wicketTypeName": dismissal_name(fall.wicket.kind) if fall else "Not out",
    }
    if fall:
        fields |= {"wicketBowlerName": fall.ball.bowler.name, "fowScore": fall.score, "fowOver": as_number(fall.overs)}
    if fall and fall.wicket.fielder:
        fields["wicketCatchName"] = fall.wicket.fielder.name
    return fields


def _bowler(one: Innings, player: Player) -> dict[str, Any]:
    line = one.bowlers[player.key]
    return {
        "player": person(player, one.bowling.players),
        "playerName": player.name,
        "over": as_number(line.overs),
        "maiden": line.maidens,
        "run": line.runs,
        "wicket": line.wickets,
    }


def lineups(match: Match, state: CricketState, seconds_to_start: float) -> dict[str, Any] | None:
    """Returns None until line-ups are predicted. They have no formation and no ratings."""
    has_begun = bool(state.innings) or state.toss_winner is not None
    if not has_begun and seconds_to_start > EXPECTED_SECONDS:
        return None
    is_confirmed = has_begun or seconds_to_start <= CONFIRMED_SECONDS
    home, away = (_side(side) for side in match.teams)
    return {"confirmed": is_confirmed, "home": home, "away": away, "statisticalVersion": None}


def _side(side: Team) -> dict[str, Any]:
    players = [
        {
            "player": (fields := person(player, side.players)),
            "teamId": team_id(side),
            "position": fields["position"],
            "substitute": place >= STARTERS,
        }
        for place, player in enumerate(side.players)
    ]
    return {"players": players, "supportStaff": []}
