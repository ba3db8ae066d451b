"""Fields for display: those that server-rendered pages add to the live state, and the texts of lists and pages."""

from __future__ import annotations

from typing import Any

from stadium.cricket.innings import Innings
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.teams import plural


def display_fields(match: Match, state: CricketState) -> dict[str, Any]:
    """Team 1 is the side that is batting."""
    fields: dict[str, Any] = {
        "inning": state.current.number + 1 if state.current else 1,
        "target": state.target,
        "comment1": comment(state),
    }
    is_second = state.current is not None and state.current.batting == match.teams[1]
    for place, number in enumerate([1, 0] if is_second else [0, 1], start=1):
        team, innings = match.teams[number], latest_innings(state, number)
        fields |= {
            f"score{place}": score_with_dash(innings),
            f"over{place}": innings.overs_text if innings else "",
            f"team{place}": team.short,
            f"team{place}_f_n": team.name,
            f"team{place}short": team.short,
            f"team{place}flag": f"/crex/assets/flag/{team.key}.png",
        }
    return fields


def comment(state: CricketState) -> str:
    """The state of the match in one line."""
    if state.is_over:
        return state.result
    if state.is_paused and state.notice:
        return state.notice.text
    if state.target and state.current:
        needed = state.target - state.current.runs
        left = _balls_left(state.current, state)
        if needed > 0:
            in_time = f" in {plural(left, 'ball')}" if left else ""
            return f"{state.current.batting.short} need {plural(needed, 'run')}{in_time}"
    return state.toss


def _balls_left(innings: Innings, state: CricketState) -> int:
    """Balls left in the innings; 0 without a limit."""
    overs = (innings.plan.overs if innings.plan else 0) or (1 if innings.is_super_over else state.script.overs)
    return max(overs * innings.balls_per_over - innings.legal_balls, 0)


def latest_innings(state: CricketState, number: int) -> Innings | None:
    """Returns the latest innings of a team."""
    team = state.script.teams[number]
    return next((innings for innings in reversed(state.innings) if innings.batting == team), None)


def score_with_dash(innings: Innings | None) -> str:
    return f"{innings.runs}-{innings.wickets}{'d' * innings.is_declared}" if innings else ""
