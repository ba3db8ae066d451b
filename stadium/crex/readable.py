"""The readable fields which the server-rendered copy of the live state adds. Here team 1 is the side now batting."""

from __future__ import annotations

from typing import Any

from stadium.cricket.state import BatterLine, CricketState, Innings
from stadium.programme import Match


def readable(match: Match, state: CricketState) -> dict[str, Any]:
    return _sides(match, state) | _chase(match, state) | _at_the_crease(state.current) | _overs(state.current)


def comment(match: Match, state: CricketState) -> str:
    """One line on where the match stands."""
    if state.is_over:
        return state.result
    if state.phase in ("innings_break", "rain") and state.notice:
        return state.notice.text
    if state.target and state.current:
        needed = state.target - state.current.runs
        left = match_balls(state) - state.current.legal_balls
        if needed > 0:
            return f"{state.current.batting.short} need {_count(needed, 'run')} in {_count(left, 'ball')}"
    return state.toss


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def match_balls(state: CricketState) -> int:
    return state.script.overs * 6


def _sides(match: Match, state: CricketState) -> dict[str, Any]:
    order = [0, 1] if len(state.innings) < 2 else [1, 0]
    fields: dict[str, Any] = {}
    for place, number in enumerate(order, start=1):
        team = match.teams[number]
        innings = state.innings[number] if number < len(state.innings) else None
        fields |= {
            f"score{place}": f"{innings.runs}-{innings.wickets}" if innings else "",
            f"over{place}": innings.overs_text if innings else "",
            f"team{place}": team.short,
            f"team{place}_f_n": team.name,
            f"team{place}short": team.short,
            f"team{place}flag": f"/crex/assets/flag/{team.key}.png",
        }
    return fields


def _chase(match: Match, state: CricketState) -> dict[str, Any]:
    now, target = state.current, state.target
    left = match_balls(state) - now.legal_balls if now else 0
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
    if fall is None or fall.ball.wicket is None:
        return {}
    out = fall.ball.wicket.out
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
            {"over": f"Over {over.number}", "overinfo": over.texts, "len": [], "total": over.runs} for over in overs
        ]
    }
