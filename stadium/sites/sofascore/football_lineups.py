"""Line-ups of a football match, with the ratings of the players."""

from __future__ import annotations

from random import Random
from typing import Any

from stadium.football.script import Card, Goal, Substitution
from stadium.football.state import FootballState
from stadium.matches.programme import Match
from stadium.matches.teams import Player, Team
from stadium.sites.sofascore.football_incidents import person

STARTERS = 11
CAPTAIN = 5
EXPECTED_SECONDS, CONFIRMED_SECONDS = 4 * 3600.0, 3600.0  # before the start: predicted, and confirmed line-ups


def lineups(match: Match, state: FootballState, seconds_to_start: float) -> dict[str, Any] | None:
    """Returns None at first, then the predicted line-ups, and the confirmed ones from an hour before the start."""
    if state.period is None and seconds_to_start > EXPECTED_SECONDS:
        return None
    is_confirmed = state.period is not None or seconds_to_start <= CONFIRMED_SECONDS
    minutes = minutes_played(match, state) if state.status == "completed" else {}
    home, away = (_side(match, team, state, minutes, is_confirmed) for team in match.teams)
    return {"confirmed": is_confirmed, "home": home, "away": away, "statisticalVersion": 1}


def minutes_played(match: Match, state: FootballState) -> dict[int, int]:
    """Returns minutes by player number, of the players who were on the field."""
    length = 120 if state.has_extra_time else 90
    until = {player.number: length for team in match.teams for player in team.players[:STARTERS]}
    since = dict.fromkeys(until, 0)
    for line in state.incidents:
        if isinstance(line.event, Substitution):
            since[line.event.player_in.number] = line.event.minute.time
            until[line.event.player_in.number] = length
            until[line.event.player_out.number] = line.event.minute.time
        elif isinstance(line.event, Card) and line.event.kind != "yellow":
            until[line.event.player.number] = line.event.minute.time
    return {number: max(until[number] - since[number], 1) for number in until}


def _side(
    match: Match, team: Team, state: FootballState, minutes: dict[int, int], is_confirmed: bool
) -> dict[str, Any]:
    """Ratings exist only for players who played, and only after the match."""
    places = list(team.players)
    if not is_confirmed:  # the prediction has two players wrong
        places[STARTERS - 1], places[-1] = places[-1], places[STARTERS - 1]
    rows = [_row(match, team, player, place) for place, player in enumerate(places)]
    for row, player in zip(rows, places, strict=True):
        if state.period is not None:
            row["statistics"] = _statistics(match, player, state, minutes)
    absent = {"name": "Idris Orbell", "slug": "idris-orbell", "shortName": "I. Orbell", "position": "M"}
    missing = [{"player": absent | {"id": 900_000 + team.number}, "type": "missing", "reason": 1}]
    return {"formation": "4-4-2", "players": rows, "missingPlayers": missing, "supportStaff": []}


def _row(match: Match, team: Team, player: Player, place: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "player": person(player),
        "teamId": int(team.key),
        "shirtNumber": int(player.key),
        "jerseyNumber": player.key,
        "position": player.position,
        "substitute": place >= STARTERS,
    }
    return row | ({"captain": True} if place == CAPTAIN else {})


def _statistics(match: Match, player: Player, state: FootballState, minutes: dict[int, int]) -> dict[str, Any]:
    if player.number not in minutes:
        return {}
    rating = round(Random(f"{match.number}:{player.number}").uniform(5.8, 8.6), 1)
    goals = [line.event for line in state.incidents if isinstance(line.event, Goal) and line.event.kind != "ownGoal"]
    return {
        "rating": rating,
        "ratingVersions": {"original": rating, "alternative": rating},
        "minutesPlayed": minutes[player.number],
        "goals": sum(goal.scorer == player for goal in goals),
        "goalAssist": sum(goal.assist == player for goal in goals),
    }
