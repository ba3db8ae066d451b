"""The list of plays: every delivery of a match, oldest first, 25 to a page."""

from __future__ import annotations

from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import BatterLine, BowlerLine, Innings
from stadium.cricket.script import Ball, CricketEvent, Notice, NoticeKind
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.teams import Player, Team
from stadium.sites.espn.entities import athlete, team, team_id, text

PAGE_SIZE = 25
_TYPES = ("run", "no run", "four", "six", "no ball", "bye", "leg bye", "wide", "out")  # numbered from 1
_EXTRAS = {"wd": "wide", "nb": "no ball", "b": "bye", "lb": "leg bye"}
_COUNTED = {"b": "bye", "lb": "leg bye", "wd": "wide"}
_ORDINALS = ("1st", "2nd", "3rd", "4th")


def play_or_close(_: Match, event: CricketEvent, state: CricketState, __: int) -> dict[str, Any] | str | None:
    """Returns the play of a ball, and the close-of-play note at the end of a day."""
    if isinstance(event, Ball):
        return play_of(event, state.innings[event.innings], state.day)
    is_close = isinstance(event, Notice) and event.kind is NoticeKind.STUMPS
    return close_of_play(state.day, state.current) if is_close else None


def page_of(plays: list[dict[str, Any]], page: int) -> dict[str, Any]:
    items = plays[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return {
        "commentary": {
            "count": len(plays),
            "pageIndex": page,
            "pageSize": PAGE_SIZE,
            "pageCount": -(-len(plays) // PAGE_SIZE),
            "items": items,
        }
    }


def close_of_play(day: int, innings: Innings | None) -> str:
    if innings is None:
        return f"day {day} - no play"
    turn = _ORDINALS[min(innings.number // 2, 3)]
    wickets = "" if innings.wickets == 10 else f"/{innings.wickets}"
    declared = "d" if innings.is_declared else ""
    at_bat = ", ".join(f"{player.short} {innings.batters[player.key].runs}*" for player in innings.crease)
    overs = innings.overs_text.removesuffix(".0")
    score = f"{innings.runs}{wickets}{declared}"
    return text(f"day {day} - {innings.batting.name} {turn} innings {score} ({at_bat}, {overs} ov)")


def play_of(ball: Ball, innings: Innings, day: int) -> dict[str, Any]:
    """One delivery. `homeScore` is always the score of the batting side."""
    period, kind = ball.innings + 1, _kind(ball)
    return {
        "id": f"{period}{ball.over * 100 + ball.index}0",
        "clock": "00:00",
        "date": "2026-5-2 11:00:00",
        "playType": {"id": str(_TYPES.index(kind) + 1), "description": kind},
        "team": team(innings.batting),
        "mediaId": 0,
        "period": period,
        "periodText": f"{_ORDINALS[min(ball.innings // 2, 3)]} innings",
        "preText": "",
        "text": "",
        "postText": "",
        "shortText": text(f"{_surname(ball.bowler)} to {_surname(ball.striker)}, {_result_text(ball)}"),
        "homeScore": innings.score,
        "awayScore": "0",
        "scoreValue": ball.total,
        "sequence": period * 100_000 + ball.over * 100 + ball.index,
        "athletesInvolved": [athlete(ball.bowler), athlete(ball.striker)],
        "bowler": _bowler(innings.bowlers[ball.bowler.key], innings.bowling),
        "batsman": _batter(innings.batters[ball.striker.key], innings.batting),
        "otherBatsman": _batter(innings.batters[ball.partner.key], innings.batting),
        "innings": _innings(innings, ball, day),
        "over": _over(ball, innings),
        "dismissal": _dismissal(ball),
        "bbbTimestamp": 0,
    }


def _over(ball: Ball, innings: Innings) -> dict[str, Any]:
    """`overs` repeats on wides and no-balls, `unique` never does."""
    return {
        "ball": ball.number,
        "balls": innings.balls_per_over,
        "complete": ball.closes_over,
        "limit": 0.0,
        "maiden": 0,
        "noBall": ball.gave("nb"),
        "wide": ball.gave("wd"),
        "legByes": ball.gave("lb"),
        "byes": ball.gave("b"),
        "number": ball.over + 1,
        "runs": innings.overs[-1].runs if innings.overs else 0,
        "wickets": 0,
        "overs": float(ball.label),
        "actual": float(ball.label),
        "unique": round(ball.over + ball.index / 100, 2),
    }


def _kind(ball: Ball) -> str:
    if ball.wicket:
        return "out"
    if ball.runs in (4, 6) and ball.is_boundary:
        return "four" if ball.runs == 4 else "six"
    if ball.extra in _EXTRAS:
        return _EXTRAS[ball.extra]
    return "run" if ball.total else "no run"


def _result_text(ball: Ball) -> str:
    """The only field that shows a no-ball even if the type of the play is "four" or "out"."""
    if ball.wicket:
        return "OUT"
    runs = ball.total - (1 if ball.gave("nb") else 0)
    boundary = {4: "FOUR runs", 6: "SIX runs"}.get(ball.runs, "") if ball.is_boundary else ""
    noun = _COUNTED.get(ball.extra, "run")
    plain = boundary or (f"{runs} {noun}{'s' * (runs != 1)}" if runs else "no run")
    return f"(no ball) {plain}" if ball.gave("nb") else plain


def _innings(innings: Innings, ball: Ball, day: int) -> dict[str, Any]:
    """`runs` is the score of the innings, `totalRuns` the runs of this ball."""
    return {
        "id": str(500_000 + ball.innings),
        "runRate": round(innings.runs * innings.balls_per_over / innings.legal_balls, 2) if innings.legal_balls else 0,
        "remainingBalls": 0,
        "byes": 0,
        "number": ball.innings + 1,
        "balls": innings.legal_balls,
        "noBalls": 0,
        "wickets": innings.wickets,
        "legByes": 0,
        "ballLimit": 0,
        "target": innings.target or 0,
        "session": 1,
        "day": day,
        "fallOfWickets": innings.wickets,
        "remainingOvers": 0.0,
        "totalRuns": ball.total,
        "wides": 0,
        "runs": innings.runs,
    }


def _dismissal(ball: Ball) -> dict[str, Any]:
    """Retired hurt is marked as dismissed too; only the text shows that it is no wicket."""
    wicket = ball.wicket or next(iter(ball.wickets), None)
    player = wicket.out if wicket else ball.striker
    kind = wicket.kind.name.lower().replace("_", " ") if wicket else ""
    return {
        "dismissal": wicket is not None,
        "bowled": kind == "bowled",
        "type": kind,
        "bowler": {"athlete": athlete(ball.bowler)},
        "batsman": {"athlete": athlete(player)},
        "text": text(f"{player.name} {' '.join(dismissal_text(ball, wicket)).strip()}") if wicket else "",
        "minutes": 0,
        "retiredText": kind if kind.startswith("retired") else "",
    }


def _batter(line: BatterLine, side: Team) -> dict[str, Any]:
    return {
        "athlete": athlete(line.player),
        "team": {"id": team_id(side), "name": text(side.name), "abbreviation": side.short},
        "totalRuns": line.runs,
        "faced": line.balls,
        "fours": line.fours,
        "runs": line.runs,
        "sixes": line.sixes,
    }


def _bowler(line: BowlerLine, side: Team) -> dict[str, Any]:
    return {
        "athlete": athlete(line.player),
        "team": {"id": team_id(side), "name": text(side.name), "abbreviation": side.short},
        "maidens": 0,
        "balls": line.balls,
        "wickets": line.wickets,
        "overs": float(line.overs),
        "conceded": line.runs,
    }


def _surname(player: Player) -> str:
    return player.name.rpartition(" ")[2]
