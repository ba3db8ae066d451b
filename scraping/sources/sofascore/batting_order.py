"""The batting order. The event numbers innings per side; here they are put in match order.

The source's list of innings states the order, and so do the balls. Without both, it follows from the toss, the chase or
the result. The status is not reliable: "1st Inning" was seen during the second innings.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from scraping.payloads import Innings, Side
from scraping.sources.cricket import ALL_OUT, OTHER_SIDE, balls_per_over, overs_text
from scraping.sources.parsing import note_unrecognized
from scraping.sources.sofascore.schemas import CricketEvent, CricketScore, Delivery, Inning, InningsRow

_DECISIONS: Mapping[str, Literal["bat", "field", ""]] = {
    "batting": "bat",
    "bat": "bat",
    "bowling": "field",
    "bowl": "field",
    "fielding": "field",
    "": "",
}
_MARGIN = re.compile(r"\bby \d+ (wicket|run)s?\b", re.IGNORECASE | re.ASCII)
_GOING_ON = ("inprogress", "willcontinue", "interrupted")
_SUPER_OVER_WICKETS = 2
Waiting = Mapping[Side, list[Inning]]  # the innings of each side that have no place in the order yet


def side_of(event: CricketEvent, team_id: int | None) -> Side | None:
    if team_id is None:
        return None
    sides: dict[int | None, Side] = {event.homeTeam.id: "team_a", event.awayTeam.id: "team_b"}
    return sides.get(team_id)


def decision_of(event: CricketEvent) -> Literal["bat", "field", ""]:
    said = (event.tossDecision or "").strip().lower()
    if said not in _DECISIONS:
        note_unrecognized("event.tossDecision", event.tossDecision)
    return _DECISIONS.get(said, "")


def innings_of(
    event: CricketEvent, rows: Sequence[InningsRow], deliveries: Sequence[Delivery]
) -> tuple[tuple[Innings, ...], bool]:
    """Returns the innings in match order (by their list, else by the balls), and whether that order is known."""
    waiting: dict[Side, list[Inning]] = {"team_a": _own(event.homeScore), "team_b": _own(event.awayScore)}
    pairs = [(ball.inningNumber, ball.battingTeamId) for ball in deliveries]
    pairs += [(row.number, row.battingTeam.id) for row in rows]
    declared = {row.number for row in rows if row.is_declared}
    stated = {number: side for number, team in pairs if number and (side := side_of(event, team)) is not None}
    innings: list[Innings] = []
    is_known = True
    while any(waiting.values()):
        number = len(innings) + 1
        side = stated.get(number)
        if side is None or not waiting[side]:
            if innings:
                other = OTHER_SIDE[innings[-1].team]
                side = other if waiting[other] else innings[-1].team
            else:
                side = _first(event, waiting)
                is_known = side is not None
        side = side or "team_a"
        one = _innings(number, side, waiting[side].pop(0), innings, balls_per_over(event.league, event.tour))
        innings.append(one.model_copy(update={"is_declared": True}) if number in declared else one)
    return tuple(innings), is_known


def _own(score: CricketScore) -> list[Inning]:
    return [inning for _, inning in sorted(score.innings.items(), key=lambda item: (len(item[0]), item[0]))]


def _first(event: CricketEvent, waiting: Waiting) -> Side | None:
    only_one = next((side for side in waiting if not waiting[OTHER_SIDE[side]]), None)
    return only_one or _by_toss(event) or _by_chase(waiting) or _by_margin(event, waiting) or _by_end(event, waiting)


def _by_toss(event: CricketEvent) -> Side | None:
    names: dict[str, Side] = {event.homeTeam.name: "team_a", event.awayTeam.name: "team_b"}
    winner, decision = names.get((event.tossWin or "").strip()), decision_of(event)
    if winner is None or not decision:
        return None
    return winner if decision == "bat" else OTHER_SIDE[winner]


def _by_chase(waiting: Waiting) -> Side | None:
    """Infers from a required run rate, which only the last innings of a match has."""
    chasing = next((side for side, own in waiting.items() if any(one.targetRunRate is not None for one in own)), None)
    if chasing is None:
        return None
    return chasing if sum(map(len, waiting.values())) % 2 == 1 else OTHER_SIDE[chasing]


def _by_margin(event: CricketEvent, waiting: Waiting) -> Side | None:
    """Infers the last batting side from the result: a win by wickets is by the side that batted last."""
    winners: dict[int | None, Side] = {1: "team_a", 2: "team_b"}
    winner = winners.get(event.winnerCode)
    margin = _MARGIN.search(event.note or "")
    if winner is None or margin is None or sum(map(len, waiting.values())) % 2 == 1:
        return None
    return OTHER_SIDE[winner] if margin[1].lower() == "wicket" else winner


def _by_end(event: CricketEvent, waiting: Waiting) -> Side | None:
    """Infers the first innings: while the second one is played, only the first may be all out."""
    if event.status.type not in _GOING_ON or sum(map(len, waiting.values())) != 2:
        return None
    ended: list[Side] = [side for side, own in waiting.items() if own and own[0].wickets == ALL_OUT]
    return ended[0] if len(ended) == 1 else None


def _innings(number: int, side: Side, inning: Inning, before: list[Innings], per_over: int) -> Innings:
    return Innings(
        number=number,
        team=side,
        runs=inning.score,
        wickets=inning.wickets,
        overs=overs_text(inning.overs, per_over),
        is_declared=inning.is_declared,
        is_super_over=_is_super_over(number, inning, before),
        target=_target(number, inning, before),
    )


def _is_super_over(number: int, inning: Inning, before: list[Innings]) -> bool:
    """Infers a super over, which the source does not mark: at most one over, after two innings that ended level."""
    if number <= 2 or inning.overs > 1 or inning.wickets > _SUPER_OVER_WICKETS:
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
