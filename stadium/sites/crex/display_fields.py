"""Fields for display that server-rendered pages add to the live state. Team 1 is the side that is batting."""

from __future__ import annotations

from typing import Any

from stadium.cricket.innings import BatterLine, Innings
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.teams import plural
from stadium.sites.crex.ball_codes import code


def display_fields(match: Match, state: CricketState) -> dict[str, Any]:
    return _sides(match, state) | _chase(match, state) | _at_the_crease(state.current) | _overs(state.current)


def comment(match: Match, state: CricketState) -> str:
    """The state of the match in one line."""
    if state.is_over:
        return state.result
    if state.is_paused and state.notice:
        return state.notice.text
    if state.target and state.current:
        needed = state.target - state.current.runs
        left = balls_left(state.current, state)
        if needed > 0:
            in_time = f" in {plural(left, 'ball')}" if left else ""
            return f"{state.current.batting.short} need {plural(needed, 'run')}{in_time}"
    return state.toss


def balls_left(innings: Innings, state: CricketState) -> int:
    """Balls left in the innings; 0 without a limit."""
    overs = (innings.plan.overs if innings.plan else 0) or (1 if innings.is_super_over else state.script.overs)
    return max(overs * innings.balls_per_over - innings.legal_balls, 0)


def latest_innings(state: CricketState, number: int) -> Innings | None:
    """Returns the latest innings of a team."""
    team = state.script.teams[number]
    return next((innings for innings in reversed(state.innings) if innings.batting == team), None)


def score_with_dash(innings: Innings | None) -> str:
    return f"{innings.runs}-{innings.wickets}{'d' * innings.is_declared}" if innings else ""


def _sides(match: Match, state: CricketState) -> dict[str, Any]:
    is_second = state.current is not None and state.current.batting == match.teams[1]
    fields: dict[str, Any] = {}
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


def _chase(match: Match, state: CricketState) -> dict[str, Any]:
    now, target = state.current, state.target
    left = balls_left(now, state) if now else 0
    needed = target - now.runs if target and now else 0
    return {
        "inning": now.number + 1 if now else 1,
        "status": 1,
        "target": target,
        "secondInning": len(state.innings) == 2,
        "comment1": comment(match, state),
        "crr": _rate(now.runs, now.legal_balls) if now else "0.00",
        "rrr": _rate(needed, left) if needed > 0 else "",
        "partnerruns": now.partnership[0] if now else 0,
        "partnerballs": now.partnership[1] if now else 0,
    }


def _rate(runs: int, balls: int) -> str:
    return f"{runs * 6 / balls:.2f}" if balls else "0.00"


def _at_the_crease(innings: Innings | None) -> dict[str, Any]:
    if innings is None or not innings.overs:
        return {}
    bowler = innings.bowlers[innings.overs[-1].bowler.key]
    fields: dict[str, Any] = {
        "bname": bowler.player.short,
        "bnameHead": bowler.player.slug,
        "bowler_full_name": bowler.player.name,
        "bwr": f"{bowler.wickets}-{bowler.runs}",
        "bover": bowler.overs,
        "beco": _rate(bowler.runs, bowler.balls),
    }
    for place, player in enumerate(innings.crease, start=1):
        fields |= _batter(place, innings.batters[player.key], innings.striker == place - 1)
    return fields | _last_wicket(innings)


def _batter(place: int, line: BatterLine, is_on_strike: bool) -> dict[str, Any]:
    return {
        f"p{place}f": line.player.key,
        f"pname{place}": line.player.short,
        f"pnameHead{place}": line.player.slug,
        f"player_full_name{place}": line.player.name,
        f"os{place}": int(is_on_strike),
        f"run{place}": str(line.runs),
        f"ball{place}": f"({line.balls})",
        f"four{place}": str(line.fours),
        f"six{place}": str(line.sixes),
        f"sr{place}": f"{line.runs * 100 / line.balls:.2f}" if line.balls else "0.00",
    }


def _last_wicket(innings: Innings) -> dict[str, Any]:
    fall = innings.last_wicket
    if fall is None:
        return {}
    out = fall.wicket.out
    return {
        "lwfkey": out.key,
        "lwrun1": str(fall.runs),
        "lwball1": f"({fall.balls})",
        "lwname1": out.name,
        "lwSlug": out.slug,
    }


def _overs(innings: Innings | None) -> dict[str, Any]:
    overs = innings.overs[-4:] if innings else []
    return {
        "lastovers": [
            {
                "over": f"Over {over.number}",
                "overinfo": [code(ball) for ball in over.balls],
                "len": [],
                "total": over.runs,
            }
            for over in overs
        ]
    }
