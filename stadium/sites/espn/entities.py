"""Leagues, teams and players in the format of the API."""

from __future__ import annotations

import zlib
from html import escape
from typing import Any

from stadium.matches.programme import Match
from stadium.matches.teams import Player, Team

SERIE_A = "bra.1"


def league_id(match: Match) -> str:
    """The id of the match's series; a match is only found under it."""
    return str(8_000 + zlib.crc32(match.series[0].encode()) % 12_000)


def league(match: Match) -> dict[str, Any]:
    number = league_id(match)
    return {"id": number, "uid": f"s:200~l:{number}", "name": text(match.series[0]), "abbreviation": match.series[1]}


def team_id(team: Team) -> str:
    return str(1_000 + team.number)


def team(side: Team) -> dict[str, Any]:
    return {
        "id": team_id(side),
        "uid": f"s:200~t:{team_id(side)}",
        "name": text(side.name),
        "abbreviation": side.short,
        "displayName": text(side.name),
        "shortDisplayName": text(side.name),
    }


def athlete(player: Player) -> dict[str, Any]:
    return {
        "id": str(player.number),
        "name": text(player.name),
        "shortName": text(player.name.rpartition(" ")[2]),
        "fullName": text(player.name),
        "displayName": text(player.name),
    }


def text(plain: str) -> str:
    """Escapes a text for HTML, which the API does in JSON too."""
    return escape(plain, quote=False)
