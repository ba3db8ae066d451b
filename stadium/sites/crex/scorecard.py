"""The scorecard (`getSC4`) and the squads (`getIV4`).

Only the scorecard has the third and later innings, super overs included: the live state has fields for two, and the
recent overs of the current one. This is an assumption: the real site has not been recorded in that situation.
"""

from __future__ import annotations

from typing import Any

from stadium.cricket.innings import BatterLine, Innings
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.teams import Team
from stadium.sites.crex.ball_codes import dismissal_number

_KEEPER, _CAPTAIN = 0, 1  # places in a team
_ROLES = (0, 1, 1, 1, 1, 3, 3)  # keeper, batters, all-rounders; the rest bowl


def scorecard(state: CricketState) -> list[dict[str, Any]]:
    return [_innings(innings) for innings in state.innings]


def _innings(innings: Innings) -> dict[str, Any]:
    extras = innings.extras
    return {
        "c": innings.batting.key,
        "d": f"{innings.score}{'d' * innings.is_declared}({_length(innings)}",
        "b": [_batter(innings, line) for line in innings.batters.values()],
        "a": [
            f"{line.player.key}.{line.runs}.{line.balls}.{line.maidens}.{line.wickets}"
            for line in innings.bowlers.values()
        ],
        "p": _partnership(innings),
        "e": ".".join(str(extras.get(name, 0)) for name in ("b", "lb", "wd", "nb", "pen")),
    }


def _length(innings: Innings) -> str:
    """Legal balls, or the overs if an over had more or fewer than six balls."""
    whole, rest = divmod(innings.legal_balls, innings.balls_per_over)
    return str(innings.legal_balls) if f"{whole}.{rest}" == innings.overs_text else innings.overs_text


def _batter(innings: Innings, line: BatterLine) -> str:
    fall = next((fall for fall in innings.falls if fall.wicket.out == line.player), None)
    number = (dismissal_number(fall.wicket) or 0) if fall else 0
    bowler = fall.ball.bowler.key if fall else ""
    fielder = fall.wicket.fielder.key if fall and fall.wicket.fielder else ""
    rate = f"{line.runs * 100 / line.balls:.2f}" if line.balls else "0.00"
    return f"{line.player.key}.{line.runs}.{line.balls}.{line.fours}.{line.sixes}.{number}.{bowler}.{fielder}/0-{rate}"


def _partnership(innings: Innings) -> list[str]:
    first, second = (innings.batters[player.key] for player in innings.crease)
    runs, balls = innings.partnership
    return [
        f"{first.player.key}.{first.runs}.{first.balls}.{second.player.key}.{second.runs}.{second.balls}.{runs}.{balls}"
    ]


def squads(match: Match, state: CricketState) -> dict[str, Any]:
    """Squads until the toss, then the elevens. Slashes separate teams, dashes players."""
    first, second = match.teams
    players = f"{_team(first)}/{_team(second)}"
    is_known = state.phase != "scheduled"
    leaders = [team.players[place].key for team in (first, second) for place in (_CAPTAIN, _KEEPER)]
    return {
        "t": f"{first.key}-{second.key}",
        "tp": players if is_known else "",
        "tb": "" if is_known else players,
        "x": "/".join(leaders),
    }


def _team(team: Team) -> str:
    return "-".join(f"{player.key}.12.{_role(place)}.0.0.0" for place, player in enumerate(team.players))


def _role(place: int) -> int:
    return _ROLES[place] if place < len(_ROLES) else 2
