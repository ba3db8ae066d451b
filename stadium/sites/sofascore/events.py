"""Fields that the events of football and cricket share."""

from __future__ import annotations

from typing import Any

from stadium.matches.ids import custom_id, event_id
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation
from stadium.matches.teams import Team, slug


def event_fields(simulation: Simulation, match: Match) -> dict[str, Any]:
    return {
        "customId": custom_id(match.number),
        "id": event_id(match.number),
        "slug": match_slug(match),
        "startTimestamp": int(simulation.start_wall(match)),
        "finalResultOnly": False,
    }


def team_fields(side: Team, sport: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": side.name,
        "slug": side.slug,
        "gender": "F" if side.name.endswith(" Women") else "M",
        "sport": sport,
        "nameCode": side.short,
        "national": False,
        "type": 0,
    }


def match_slug(match: Match) -> str:
    return slug(f"{match.teams[0].name} {match.teams[1].name}")


def match_path(match: Match) -> str:
    """With the id in the fragment, like the real site's links."""
    page = f"/{match.site}/en/{match.slot.sport}/match/{match_slug(match)}/{custom_id(match.number)}"
    return f"{page}#id:{event_id(match.number)}"
