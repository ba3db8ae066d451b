"""The ball-by-ball commentary."""

from __future__ import annotations

from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import Innings
from stadium.cricket.script import Ball, CricketEvent, Dismissal
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import iso
from stadium.sites.crex.feed import describe

_CODES = {
    Dismissal.CAUGHT: 1, Dismissal.CAUGHT_AND_BOWLED: 1, Dismissal.BOWLED: 2, Dismissal.LBW: 3, Dismissal.RUN_OUT: 4,
    Dismissal.STUMPED: 5, Dismissal.HIT_WICKET: 6,
}  # fmt: skip


def comment(_: Match, ball: CricketEvent, state: CricketState, identity: int) -> dict[str, Any] | None:
    """`identity` is the wall time of the ball in milliseconds."""
    if not isinstance(ball, Ball):
        return None
    innings = state.innings[ball.innings]
    return {
        "_uid": identity, "id": identity, "inningNumber": ball.innings + 1, "ballsActual": None,
        "ballsUnique": None, "oversUnique": round(ball.over + ball.index / 100, 2),
        "oversActual": round(ball.over + ball.number / 10, 1), "overNumber": ball.over + 1,
        "ballNumber": ball.index, "totalRuns": ball.total, "batsmanRuns": ball.runs,
        "isFour": ball.runs == 4 and ball.is_boundary, "isSix": ball.runs == 6 and ball.is_boundary,
        "isWicket": ball.wicket is not None,
        "dismissalType": _CODES.get(ball.wicket.kind) if ball.wicket else None, "byes": ball.gave("b"),
        "legbyes": ball.gave("lb"), "wides": ball.gave("wd"), "noballs": ball.gave("nb"),
        "penalties": ball.gave("pen"), "timestamp": iso(identity / 1000), "batsmanPlayerId": ball.striker.number,
        "nonStrikerPlayerId": ball.partner.number, "bowlerPlayerId": ball.bowler.number,
        "outPlayerId": ball.wicket.out.number if ball.wicket else None, "totalInningRuns": innings.runs,
        "totalInningWickets": innings.wickets, "title": f"{ball.bowler.name} to {ball.striker.name}",
        "dismissalText": _dismissal(ball), "commentTextItems": [{"type": "HTML", "html": describe(ball)}],
        "over": over(innings) if ball.closes_over else None,
    }  # fmt: skip


def over(innings: Innings, place: int = -1) -> dict[str, Any]:
    line = innings.overs[place]
    runs, _, wickets = line.total.partition("/")
    return {
        "overNumber": line.number, "overRuns": line.runs,
        "overWickets": sum(wicket.counts for ball in line.balls for wicket in ball.wickets),
        "isComplete": line.is_complete, "totalRuns": int(runs), "totalWickets": int(wickets),
        "bowlers": [{"id": line.bowler.number, "longName": line.bowler.name}], "balls": [],
    }  # fmt: skip


def _dismissal(ball: Ball) -> dict[str, Any] | None:
    if ball.wicket is None:
        return None
    head, tail = dismissal_text(ball)
    text = f"{head} {tail}".strip()
    return {
        "short": ball.wicket.kind.name.lower().replace("_", " "), "long": text,
        "commentary": f"{ball.wicket.out.name} {text}", "fielderText": head or None, "bowlerText": tail or None,
    }  # fmt: skip
