"""Who plays (`getIV4`): squads until the toss, the elevens from then on. A slash splits teams, a dash players."""

from __future__ import annotations

from typing import Any

from stadium.cricket.state import CricketState
from stadium.people import Team
from stadium.programme import Match

_KEEPER, _CAPTAIN = 0, 1  # their places in a team
_ROLES = (0, 1, 1, 1, 1, 3, 3)  # keeper, batters, all-rounders; the rest bowl


def squads(match: Match, state: CricketState) -> dict[str, Any]:
    first, second = match.teams
    told = f"{_team(first)}/{_team(second)}"
    is_known = state.phase != "scheduled"
    leaders = [team.players[place].key for team in (first, second) for place in (_CAPTAIN, _KEEPER)]
    return {
        "t": f"{first.key}-{second.key}",
        "tp": told if is_known else "",
        "tb": "" if is_known else told,
        "x": "/".join(leaders),
    }


def _team(team: Team) -> str:
    return "-".join(f"{player.key}.12.{_role(place)}.0.0.0" for place, player in enumerate(team.players))


def _role(place: int) -> int:
    return _ROLES[place] if place < len(_ROLES) else 2
