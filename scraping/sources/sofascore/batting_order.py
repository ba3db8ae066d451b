"""The batting order. The event numbers innings per side; here they are put in match order.

The source's list of innings states the order, and so do the balls. Without both, it follows from the toss, the chase or
the result. The status is not reliable: "1st Inning" was seen during the second innings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scraping.payloads import Innings, Side
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore.schemas import CricketEvent, CricketScore, Delivery, Inning, InningsRow

_OTHER: Mapping[Side, Side] = {"team_a": "team_b", "team_b": "team_a"}
_DECISIONS: Mapping[str, Literal["bat", "field"]] = {
    "batting": "bat",
    "bat": "bat",
    "bowling": "field",
    "bowl": "field",
    "fielding": "field",
}
_MARGIN = re.compile(r"\bby \d+ (wicket|run)s?\b", re.IGNORECASE)
_GOING_ON = ("inprogress", "willcontinue", "interrupted")
ALL_OUT, SUPER_OVER_WICKETS = 10, 2


@dataclass(frozen=True)
class Turn:
    """One innings of one side."""

    side: Side
    inning: Inning


Waiting = Mapping[Side, list[Turn]]


def side_of(event: CricketEvent, team_id: int | None) -> Side | None:
    """Returns the side of a team id; None where it is no team of this match."""
    if team_id is None:
        return None
    sides: dict[int | None, Side] = {event.homeTeam.id: "team_a", event.awayTeam.id: "team_b"}
    return sides.get(team_id)


def decision_of(event: CricketEvent) -> Literal["bat", "field", ""]:
    """Returns the choice of the toss winner."""
    said = (event.tossDecision or "").strip().lower()
    if said and said not in _DECISIONS:
        note_unrecognized("event.tossDecision", event.tossDecision)
    return _DECISIONS.get(said, "")


def innings_of(
    event: CricketEvent, rows: Sequence[InningsRow], deliveries: Sequence[Delivery]
) -> tuple[tuple[Innings, ...], bool]:
    """Returns all innings in match order, and whether that order is known rather than assumed."""
    waiting: dict[Side, list[Turn]] = {
        "team_a": _turns(event.homeScore, "team_a"),
        "team_b": _turns(event.awayScore, "team_b"),
    }
    stated = _stated(event, rows, deliveries)
    turns: list[Turn] = []
    is_known = True
    while any(waiting.values()):
        side = stated.get(len(turns) + 1)
        if side is None or not waiting[side]:
            side, is_sure = _next(event, turns, waiting)
            is_known = is_known and is_sure
        turns.append(waiting[side].pop(0))
    innings: list[Innings] = []
    for number, turn in enumerate(turns, 1):
        innings.append(_innings(number, turn, innings))
    return tuple(innings), is_known


def overs_text(overs: float) -> str:
    """Formats 14.4 (14 overs and 4 balls) and 50 (50 overs)."""
    return f"{overs:.1f}"


def _turns(score: CricketScore, side: Side) -> list[Turn]:
    """Returns the side's innings, first to last: inning1, inning2."""
    named = sorted(score.innings.items(), key=lambda item: (len(item[0]), item[0]))
    return [Turn(side, inning) for _, inning in named]


def _stated(event: CricketEvent, rows: Sequence[InningsRow], deliveries: Sequence[Delivery]) -> dict[int, Side]:
    """Returns the batting side by innings number; the list of innings takes precedence over the balls."""
    pairs = [(ball.inningNumber, ball.battingTeamId) for ball in deliveries]
    pairs += [(row.number, row.battingTeam.id) for row in rows]
    return {number: side for number, team in pairs if number and (side := side_of(event, team)) is not None}


def _next(event: CricketEvent, turns: list[Turn], waiting: Waiting) -> tuple[Side, bool]:
    """Alternates the sides, beginning with the one that is inferred to have batted first."""
    if turns:
        other = _OTHER[turns[-1].side]
        return (other if waiting[other] else turns[-1].side), True
    clues = (
        _only_one(waiting),
        _by_toss(event),
        _by_chase(waiting),
        _by_margin(event, waiting),
        _by_end(event, waiting),
    )
    first = next((side for side in clues if side is not None), None)
    return ("team_a", False) if first is None else (first, True)


def _only_one(waiting: Waiting) -> Side | None:
    return next((side for side in waiting if not waiting[_OTHER[side]]), None)


def _by_toss(event: CricketEvent) -> Side | None:
    names: dict[str, Side] = {event.homeTeam.name: "team_a", event.awayTeam.name: "team_b"}
    winner, decision = names.get((event.tossWin or "").strip()), decision_of(event)
    if winner is None or not decision:
        return None
    return winner if decision == "bat" else _OTHER[winner]


def _by_chase(waiting: Waiting) -> Side | None:
    """Returns the side with a required run rate, which only the last innings of a match has."""
    for side, owed in waiting.items():
        if any(turn.inning.targetRunRate is not None for turn in owed):
            return side if sum(map(len, waiting.values())) % 2 == 1 else _OTHER[side]
    return None


def _by_margin(event: CricketEvent, waiting: Waiting) -> Side | None:
    """Infers the last batting side from the result: a win by wickets is by the side that batted last."""
    winners: dict[int | None, Side] = {1: "team_a", 2: "team_b"}
    winner = winners.get(event.winnerCode)
    margin = _MARGIN.search(event.note or "")
    if winner is None or margin is None or sum(map(len, waiting.values())) % 2 == 1:
        return None
    return _OTHER[winner] if margin[1].lower() == "wicket" else winner


def _by_end(event: CricketEvent, waiting: Waiting) -> Side | None:
    """Infers the first innings: while the second one is played, only the first may be all out."""
    if event.status.type not in _GOING_ON or sum(map(len, waiting.values())) != 2:
        return None
    ended: list[Side] = [side for side, owed in waiting.items() if owed and owed[0].inning.wickets == ALL_OUT]
    return ended[0] if len(ended) == 1 else None


def _innings(number: int, turn: Turn, before: list[Innings]) -> Innings:
    inning = turn.inning
    return Innings(
        number=number,
        team=turn.side,
        runs=inning.score,
        wickets=inning.wickets,
        overs=overs_text(inning.overs),
        is_super_over=_is_super_over(number, inning, before),
        target=_target(number, inning, before),
    )


def _is_super_over(number: int, inning: Inning, before: list[Innings]) -> bool:
    """Infers a super over, which the source does not mark: at most one over, after two innings that ended level."""
    if number <= 2 or inning.overs > 1 or inning.wickets > SUPER_OVER_WICKETS:
        return False
    first = (number - 1) // 2 * 2 - 2
    return before[first].runs == before[first + 1].runs


def _target(number: int, inning: Inning, before: list[Innings]) -> int | None:
    """Returns one more than the first side's runs if the required run rate agrees; a revised target is unknown."""
    rate = inning.targetRunRate
    if number != 2 or not rate:
        return None
    target, first = before[0].runs + 1, float(before[0].overs)
    overs = round(target / rate)
    is_whole = first == int(first) and before[0].wickets < ALL_OUT
    fits = overs == first if is_whole else overs >= first
    return target if fits and abs(target / overs - rate) < 0.01 else None
