"""The scorecard (`getSC4`): an array of innings, every figure in a string of its own.

It is the one answer that holds a third innings and those after it, super overs included: the live state has room for
two, and in its recent overs the one at hand. That is this stadium's reading of a site that nobody has recorded then.
"""

from __future__ import annotations

from typing import Any

from stadium.crex.codes import dismissal_number
from stadium.cricket.state import BatterLine, CricketState, Innings


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
    """Balls, where they make the overs that were counted; an over of seven or five breaks that."""
    whole, rest = divmod(innings.legal_balls, 6)
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
