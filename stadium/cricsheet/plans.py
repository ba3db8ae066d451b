"""What is known of each innings when it starts: who comes to bat, and how many runs win."""

from __future__ import annotations

import math

from stadium.cricket.innings import Innings
from stadium.cricket.script import InningsPlan
from stadium.cricsheet.cast import Cast
from stadium.cricsheet.document import Document, InningsPart
from stadium.people import Player


def plans(document: Document, cast: Cast) -> tuple[InningsPlan, ...]:
    return tuple(_plan(document, cast, number) for number in range(len(document.innings)))


def _plan(document: Document, cast: Cast, number: int) -> InningsPlan:
    part = document.innings[number]
    limit = 1 if part.super_over else math.ceil(part.target.overs or document.info.overs or 0)
    return InningsPlan(
        batting=[team.name for team in cast.order].index(part.team),
        order=_order(part, cast),
        target=_target(document, number),
        overs=limit,
        is_super_over=part.super_over,
        absent=len(part.absent_hurt),
    )


def _order(part: InningsPart, cast: Cast) -> tuple[Player, ...]:
    """As they appear at the crease."""
    names = dict.fromkeys(name for ball in part.deliveries for name in (ball.batter, ball.non_striker))
    return tuple(cast.player(name) for name in names)


def _target(document: Document, number: int) -> int | None:
    part, earlier = document.innings[number], document.innings[:number]
    if part.target.runs is not None:
        return part.target.runs
    if part.super_over:
        supers = [innings for innings in earlier if innings.super_over]
        return supers[-1].runs + 1 if len(supers) % 2 == 1 else None
    is_last = number == (3 if document.is_multi_day else 1)
    theirs = sum(innings.runs for innings in earlier if innings.team != part.team)
    own = sum(innings.runs for innings in earlier if innings.team == part.team)
    return theirs - own + 1 if is_last and theirs >= own else None


def was_cut_short(document: Document, innings: Innings) -> bool:
    """The side had overs and batters left, and had not won."""
    part, plan = document.innings[innings.number], innings.plan
    if plan is None or not plan.overs or plan.is_super_over or part.declared or part.forfeited:
        return False
    bowled = sum(over.is_complete for over in innings.overs)
    has_won = innings.target is not None and innings.runs >= innings.target
    return bowled < plan.overs and not innings.is_all_out and not has_won
