"""The ground truth of a cricket match: every ball, over and innings."""

from __future__ import annotations

from typing import Any

from stadium.cricket.generator import dismissal_text
from stadium.cricket.innings import BatterLine, BowlerLine, FallOfWicket, Innings, OverLine
from stadium.cricket.script import Ball, CricketScript, Notice, OverCard, Wicket, WicketCard
from stadium.cricket.state import CricketState
from stadium.matches.programme import Match
from stadium.matches.simulation import Simulation, iso
from stadium.sites.crex.feed import describe

SIDES = ("team_a", "team_b")


def cricket_truth(simulation: Simulation, match: Match, index: int) -> dict[str, Any]:
    assert isinstance(match.script, CricketScript)
    state = CricketState(match.script)
    lines = []
    for identity, event in zip(simulation.ids(match, index), match.script.events[:index], strict=True):
        state.apply(event)
        if not isinstance(event, Notice):
            when = iso(simulation.clock.wall_at(match.starts_at + event.at))
            lines.append({"id": str(identity), **_event(event, state), "happened_at": when})
    sides = dict(zip((team.key for team in match.script.teams), SIDES, strict=True))
    return {
        "score": _score(state, sides),
        "innings": [_innings(innings, sides) for innings in state.innings],
        "current_innings": len(state.innings) or None,
        "target": state.target,
        "result": state.result or None,
        "result_long": state.result_long or None,
        "winner": sides[state.winner.key] if state.winner else None,
        "toss": state.toss or None,
        "toss_winner": sides[state.toss_winner.key] if state.toss_winner else None,
        "toss_decision": ("bat" if state.toss_bats else "bowl") if state.toss_winner else None,
        "day": state.day,
        "made_up": list(match.script.fixture.invented) if match.script.fixture else [],
        "events": lines,
    }


def _score(state: CricketState, sides: dict[str, str]) -> dict[str, Any]:
    """The score of each side's latest innings, without super overs; None for a side that has not batted."""
    score: dict[str, Any] = dict.fromkeys(SIDES)
    for innings in state.innings:
        if not innings.is_super_over:
            total = {"runs": innings.runs, "wickets": innings.wickets, "overs": innings.overs_text}
            score[sides[innings.batting.key]] = total
    return score


def _innings(innings: Innings, sides: dict[str, str]) -> dict[str, Any]:
    return {
        "number": innings.number + 1,
        "batting": sides[innings.batting.key],
        "runs": innings.runs,
        "wickets": innings.wickets,
        "overs": innings.overs_text,
        "is_declared": innings.is_declared,
        "is_super_over": innings.is_super_over,
        "is_all_out": innings.is_all_out,
        "target": innings.target,
        "extras": innings.extras,
        "overs_bowled": [_over(over) for over in innings.overs],
        "falls": [_fall(fall) for fall in innings.falls],
        "batting_card": [_batter(line) for line in innings.batters.values()],
        "bowling_card": [_bowler(line) for line in innings.bowlers.values()],
    }


def _over(over: OverLine) -> dict[str, Any]:
    return {
        "over": over.number, "runs": over.runs, "score": over.total, "balls": over.texts,
        "is_complete": over.is_complete,
    }  # fmt: skip


def _batter(line: BatterLine) -> dict[str, Any]:
    return {
        "player": line.player.name, "runs": line.runs, "balls": line.balls, "fours": line.fours, "sixes": line.sixes,
    }  # fmt: skip


def _bowler(line: BowlerLine) -> dict[str, Any]:
    return {
        "player": line.player.name, "overs": line.overs, "maidens": line.maidens, "runs": line.runs,
        "wickets": line.wickets,
    }  # fmt: skip


def _fall(fall: FallOfWicket) -> dict[str, Any]:
    return {
        "number": fall.number, "player": fall.wicket.out.name, "runs": fall.score, "over": fall.overs,
        "kind": _kind(fall.wicket),
    }  # fmt: skip


def _kind(wicket: Wicket) -> str:
    return wicket.kind.name.lower()


def _event(event: Ball | WicketCard | OverCard, state: CricketState) -> dict[str, Any]:
    if isinstance(event, Ball):
        return _ball(event, state.innings[event.innings])
    if isinstance(event, WicketCard):
        return _wicket(event, state.innings[event.ball.innings])
    last = event.ball
    innings = state.innings[last.innings]
    return {
        "kind": "over", "innings": last.innings + 1, "over": str(last.over + 1), "score": innings.score,
        "description": f"End of over {last.over + 1}",
    }  # fmt: skip


def _ball(ball: Ball, innings: Innings) -> dict[str, Any]:
    return {
        "kind": "ball",
        "innings": ball.innings + 1,
        "over": ball.label,
        "description": f"{ball.bowler.name} to {ball.striker.name}, {ball.text}. {describe(ball)}",
        "runs": ball.total,
        "value": ball.text,
        "delivery": ball.delivery,
        "index": ball.index,
        "batter": ball.striker.name,
        "non_striker": ball.partner.name,
        "bowler": ball.bowler.name,
        "batter_runs": ball.runs,
        "extras": dict(ball.extras),
        "is_legal": ball.is_legal,
        "wickets": [{"player": w.out.name, "kind": _kind(w), "counts": w.counts} for w in ball.wickets],
        "score": innings.score,
    }


def _wicket(card: WicketCard, innings: Innings) -> dict[str, Any]:
    ball, wicket = card.ball, card.wicket
    falls = [fall for fall in innings.falls if fall.ball.delivery == ball.delivery]
    text = f"{wicket.out.name} {' '.join(dismissal_text(ball, wicket)).strip()}"
    return {
        "kind": "wicket", "innings": ball.innings + 1, "over": ball.label, "description": text,
        "player": wicket.out.name, "dismissal": _kind(wicket), "wicket_number": falls[card.which].number,
        "score": innings.score, "of_delivery": ball.delivery,
    }  # fmt: skip
