"""The live state of a match (`getSV3`), with the site's short keys and score strings without closing bracket."""

from __future__ import annotations

from typing import Any

from stadium.cricket.innings import Innings, OverLine
from stadium.cricket.script import Ball, CricketScript
from stadium.cricket.state import CricketState
from stadium.matches.ids import base36
from stadium.matches.programme import Match
from stadium.sites.crex.ball_codes import code, last_ball_code, recent_code

_BALL_KINDS = {4: 2, 6: 2}


def live(match: Match, state: CricketState) -> dict[str, Any]:
    first, second = match.teams
    now = state.current
    payload: dict[str, Any] = {
        "A": ".".join(map(code, now.overs[-1].balls)) if now and now.overs else "",
        "B": ball_text(state),
        "F": f"^{(now.batting if now else first).key}",
        "L": "0.0.0", "M": "0.0.0", "R": "0+1", "S": "",
        "a": f"{first.key}.{second.key}",
        "ca": 14, "cb": "w", "dt_id": str(1_125_900_013_000_000 + match.number),
        "fid": 4_200_000 + match.number,
        "fo": match.format, "mt": match.format,
        "g": "", "gen": 1,
        "h": str(now.number if now else 0),
        "j": score_text(state, 0), "k": score_text(state, 1),
        "mn": match_number(match), "ms": 0, "n1": 0, "oh": 1, "over_reduced": 0, "pb": 1,
        "sf": series_key(match), "st": "27" if state.phase == "in_play" else "1",
    }  # fmt: skip
    payload |= _players(now) | _recent(now) | _revision(state)
    if state.is_over:
        payload["comment1"] = state.result
    return payload


def is_long(state: CricketState) -> bool:
    """True for matches with two innings a side."""
    return state.script.overs == 0


def score_text(state: CricketState, number: int) -> str:
    if len(state.innings) <= number:
        return ""
    innings = state.innings[number]
    return f"{innings.score}{'d' * innings.is_declared}({innings.overs_text}"


def ball_text(state: CricketState) -> str:
    """The last ball, or the reason of an interruption. A finished match keeps its last ball, like on the real site."""
    if state.is_paused and state.notice:
        return state.notice.text
    if state.phase == "abandoned":
        return state.result
    last = state.last_ball
    if last is None or (state.current and last.innings != state.current.number):
        return ""
    return last_ball_code(last)


def _revision(state: CricketState) -> dict[str, Any]:
    """The text and flag of a target that rain has changed."""
    if len(state.innings) != 2 or is_long(state):
        return {}
    first, chase = state.innings
    overs = (chase.plan.overs if chase.plan else 0) or state.script.overs
    if chase.target is None or (chase.target == first.runs + 1 and overs == state.script.overs):
        return {}
    return {"C": f"Match reduced to {overs} overs and revised target {chase.target} runs", "over_reduced": 1}


def match_number(match: Match) -> str:
    """The number in the series, or the title of the match."""
    fixture = match.script.fixture if isinstance(match.script, CricketScript) else None
    return fixture.title if fixture and fixture.title else str(match.turn + 1)


def series_key(match: Match) -> str:
    return base36(2_700 + match.slot.number)


def _players(innings: Innings | None) -> dict[str, Any]:
    if innings is None or not innings.overs:
        return dict.fromkeys(("b", "c", "p", "q", "r", "s", "t", "x", "y", "z", "d", "i"), "")
    lines = [innings.batters[player.key] for player in innings.crease]
    stars = ["*" if innings.striker == place else "" for place in (0, 1)]
    bowler = innings.bowlers[innings.overs[-1].bowler.key]
    others = [line for line in innings.bowlers.values() if line.player != bowler.player][-2:]
    figures = [f"{line.player.key}.{line.balls}.{line.runs}.{line.wickets}" for line in others] + ["", ""]
    return {
        "b": bowler.player.key,
        "c": f"{bowler.runs}.{bowler.balls}.{bowler.wickets}.1",
        "p": ".".join(player.key for player in innings.crease),
        "q": f"{lines[0].runs}.{lines[0].balls}{stars[0]}",
        "r": f"{lines[0].fours}.{lines[0].sixes}.{lines[0].balls}.{lines[0].runs}",
        "s": f"{lines[1].runs}.{lines[1].balls}{stars[1]}",
        "t": f"{lines[1].fours}.{lines[1].sixes}.{lines[1].balls}.{lines[1].runs}",
        "x": _last_wicket(innings),
        "y": figures[0],
        "z": figures[1],
        "d": "",
        "i": "",
    }


def _last_wicket(innings: Innings) -> str:
    fall = innings.last_wicket
    if fall is None:
        return ""
    out, kind = fall.wicket.out, int(fall.wicket.kind)
    return f"{out.key}.{fall.runs}.{fall.balls}.{fall.score}.{fall.legal_balls}.0.{kind}"


def _recent(innings: Innings | None) -> dict[str, Any]:
    overs = innings.overs if innings else []
    done = [over for over in overs[-4:] if over.is_complete]
    texts = [f"{over.number}:{'.'.join(map(code, over.balls))}" for over in reversed(done)] + ["", "", ""]
    rows = [_row(over, innings) for over in overs[-4:] if innings]
    return {"m": texts[0], "l": texts[1], "n": texts[2], "rb": rows}


def _row(over: OverLine, innings: Innings) -> dict[str, Any]:
    return {
        "b": [
            {"bf": ball.bowler.key, "d": ball.number, "t": _ball_kind(ball), "u": recent_code(ball)}
            for ball in over.balls
        ],
        "bt": innings.batting.key,
        "i": innings.number,
        "o": over.number,
        "r": over.runs,
        "ts": over.total,
    }


def _ball_kind(ball: Ball) -> int:
    return 1 if ball.wicket else _BALL_KINDS.get(ball.runs, 0)
