"""Content of the three tabs of a match: innings, players, commentary."""

from __future__ import annotations

from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import BatterLine, BowlerLine, FallOfWicket, Innings
from stadium.cricket.state import CricketState
from stadium.matches.event_log import EventLog
from stadium.matches.teams import Team
from stadium.sites.espncricinfo import objects
from stadium.sites.espncricinfo.balls import over

LIVE_OVERS = 5  # the live page has the last overs only
RECENT = 24
_TEXTS = frozenset({"title", "dismissalText", "commentTextItems", "over"})

BallLog = EventLog[dict[str, Any]]


def live(log: BallLog) -> dict[str, Any]:
    """The last balls, newest first."""
    innings = [inning(one, log.state, overs_from=-LIVE_OVERS) for one in log.state.innings]
    return _common(log.state, innings) | {
        "recentBallCommentary": {"ballComments": log.items[: -RECENT - 1 : -1]},
        "comments": [],
    }


def commentary(log: BallLog, number: int) -> dict[str, Any]:
    """The commentary of one innings, newest first."""
    innings = [inning(one, log.state, overs_from=-LIVE_OVERS) for one in log.state.innings]
    comments = [ball for ball in reversed(log.items) if ball["inningNumber"] == number]
    return _common(log.state, innings) | {"currentInningNumber": number, "comments": comments}


def scorecard(log: BallLog) -> dict[str, Any]:
    """Only the first over of each innings has its balls."""
    innings = [inning(one, log.state) | _cards(one) for one in log.state.innings]
    for one in innings:
        for line in one["inningOvers"][:1]:
            line["balls"] = _bare_balls(log, one["inningNumber"], line["overNumber"])
    return _common(log.state, innings)


def _bare_balls(log: BallLog, number: int, over: int) -> list[dict[str, Any]]:
    """The balls of an over, oldest first, without texts."""
    balls = [one for one in log.items if (one["inningNumber"], one["overNumber"]) == (number, over)]
    return [{name: value for name, value in one.items() if name not in _TEXTS} for one in balls]


def inning(one: Innings, state: CricketState, overs_from: int = 0) -> dict[str, Any]:
    is_current = one is state.current
    lines = range(len(one.overs))[overs_from:] if is_current or not overs_from else range(0)
    extras = {name: one.extras.get(code, 0) for name, code in _EXTRAS.items()}
    return {
        "inningNumber": one.number + 1, "isCurrent": is_current, "team": objects.team(one.batting), "isBatted": True,
        "runs": one.runs, "wickets": one.wickets, "lead": _lead(one, state), "target": one.target or 0,
        "overs": _number(one.overs_text), "balls": one.legal_balls, "totalOvers": state.script.overs or None,
        "extras": sum(extras.values()), **extras, "event": None if is_current and state.status == "live" else 5,
        "ballsPerOver": one.balls_per_over, "inningBatsmen": [], "inningBowlers": [],
        "inningOvers": [over(one, place) for place in lines],
        "inningFallOfWickets": [_fall(fall) for fall in one.falls],
    }  # fmt: skip


_EXTRAS = {"byes": "b", "legbyes": "lb", "wides": "wd", "noballs": "nb", "penalties": "pen"}


def _common(state: CricketState, innings: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = [one.is_super_over for one in state.innings]
    return {
        "matchPlayers": {
            "teamPlayers": [_squad(one, state) for one in state.script.teams] if state.toss_winner else []
        },
        "notes": {"groups": []},
        "closeOfPlay": None,
        "innings": [one for one, is_super_over in zip(innings, kinds, strict=True) if not is_super_over],
        "superOverInnings": [one for one, is_super_over in zip(innings, kinds, strict=True) if is_super_over],
        "supportInfo": {"liveInfo": None, "liveSummary": None, "superOver": any(kinds)},
    }


def _squad(one: Team, state: CricketState) -> dict[str, Any]:
    """The eleven, and the substitutes who have taken part so far."""
    roles = {0: "WK", 1: "C"}
    seen = {key for innings in state.innings for key in (*innings.batters, *innings.bowlers)}
    seen |= {fall.wicket.out.key for innings in state.innings for fall in innings.falls}
    chosen = [player for place, player in enumerate(one.players) if place < 11 or player.key in seen]
    players = [
        {"playerRoleType": roles.get(place, "P"), "player": objects.player(player), "isWithdrawn": False, "note": None}
        for place, player in enumerate(chosen)
    ]
    return {"type": "PLAYING", "team": objects.team(one), "players": players}


def _cards(one: Innings) -> dict[str, Any]:
    falls = {fall.wicket.out.key: fall for fall in one.falls}
    batters = [_batter(line, falls.get(key)) for key, line in one.batters.items()]
    to_come = [player for player in one.order if player.key not in one.batters]
    return {
        "inningBatsmen": batters + [_did_not_bat(objects.player(player)) for player in to_come],
        "inningBowlers": [_bowler(line) for line in one.bowlers.values()],
    }


def _batter(line: BatterLine, fall: FallOfWicket | None) -> dict[str, Any]:
    head, tail = dismissal_text(fall.ball, fall.wicket) if fall else ("not out", "")
    text = f"{head} {tail}" if fall else "not out "
    return {
        "playerRoleType": "P", "player": objects.player(line.player), "battedType": "yes", "runs": line.runs,
        "balls": line.balls, "minutes": None, "fours": line.fours, "sixes": line.sixes,
        "strikerate": round(100 * line.runs / line.balls, 2) if line.balls else None, "isOut": fall is not None,
        "dismissalType": None if fall else 12,
        "dismissalText": {"short": head or "bowled", "long": text, "fielderText": head or None},
    }  # fmt: skip


def _did_not_bat(player: dict[str, Any]) -> dict[str, Any]:
    blank = dict.fromkeys(("runs", "balls", "minutes", "fours", "sixes", "strikerate", "dismissalType"))
    return {
        "playerRoleType": "P", "player": player, "battedType": "DNB", "isOut": False, "dismissalText": None, **blank
    }  # fmt: skip


def _bowler(line: BowlerLine) -> dict[str, Any]:
    return {
        "player": objects.player(line.player), "bowledType": "yes", "overs": _number(line.overs), "balls": line.balls,
        "maidens": line.maidens, "conceded": line.runs, "wickets": line.wickets,
    }  # fmt: skip


def _fall(fall: FallOfWicket) -> dict[str, Any]:
    return {
        "dismissalBatsman": objects.player(fall.wicket.out), "fowType": 1, "fowOrder": fall.number - 1,
        "fowWicketNum": fall.number, "fowRuns": fall.score, "fowOvers": float(fall.overs), "fowBalls": None,
    }  # fmt: skip


def _lead(one: Innings, state: CricketState) -> int:
    so_far = [
        other for other in state.innings if other.number <= one.number and other.is_super_over == one.is_super_over
    ]
    return sum(other.runs if other.batting == one.batting else -other.runs for other in so_far)


def _number(overs: str) -> float | int:
    """An integer for complete overs, else a decimal."""
    return int(overs[:-2]) if overs.endswith(".0") else float(overs)
