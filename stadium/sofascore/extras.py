"""Lineups and statistics: small, but of the right shape."""

from __future__ import annotations

from random import Random
from typing import Any

from stadium.football.script import Substitution
from stadium.football.state import FootballState
from stadium.people import Player, Team
from stadium.programme import Match
from stadium.sofascore.incidents import person

STARTERS = 11


def lineups(match: Match, state: FootballState) -> dict[str, Any]:
    came_on = {line.event.player_in.number for line in state.shown if isinstance(line.event, Substitution)}
    home, away = (_side(match, team, came_on if state.period else None) for team in match.teams)
    return {"confirmed": True, "home": home, "away": away, "statisticalVersion": 1}


def _side(match: Match, team: Team, came_on: set[int] | None) -> dict[str, Any]:
    """Only those who played have a rating; before kick-off nobody has."""
    players = [
        _row(
            match,
            team,
            player,
            place >= STARTERS,
            came_on is not None and (place < STARTERS or player.number in came_on),
        )
        for place, player in enumerate(team.players)
    ]
    return {"formation": "4-4-2", "players": players, "missingPlayers": [], "supportStaff": []}


def _row(match: Match, team: Team, player: Player, is_substitute: bool, has_played: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "player": person(player),
        "teamId": int(team.key),
        "shirtNumber": int(player.key),
        "jerseyNumber": player.key,
        "position": player.position,
        "substitute": is_substitute,
    }
    if has_played:
        rating = round(Random(f"{match.number}:{player.number}").uniform(5.8, 8.6), 1)
        row["statistics"] = {"rating": rating, "ratingVersions": {"original": rating, "alternative": rating}}
    return row


def statistics(match: Match, state: FootballState) -> dict[str, Any]:
    possession = Random(f"{match.number}:possession").randint(35, 65)
    home, away = state.goals
    items = [
        _item("ballPossession", "Ball possession", possession, 100 - possession, "%"),
        _item("totalShotsOnGoal", "Total shots", home * 3 + state.applied // 2, away * 3 + state.applied // 3),
        _item("shotsOnGoal", "Shots on target", home + state.applied // 4, away + state.applied // 5),
    ]
    return {"statistics": [{"period": "ALL", "groups": [{"groupName": "Match overview", "statisticsItems": items}]}]}


def _item(key: str, name: str, home: int, away: int, unit: str = "") -> dict[str, Any]:
    return {
        "key": key,
        "name": name,
        "home": f"{home}{unit}",
        "away": f"{away}{unit}",
        "compareCode": 1 if home > away else 2 if away > home else 3,
        "statisticsType": "positive",
        "valueType": "event",
        "homeValue": home,
        "awayValue": away,
        "renderType": 1,
    }
