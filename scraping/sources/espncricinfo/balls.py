"""The deliveries of a page: which innings, over and place in it each is, and how far the list is without a hole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from scraping.sources.espncricinfo.schemas import Ball, Commentary, Inning

OVER = 6


@dataclass(frozen=True)
class Delivery:
    """A ball, placed."""

    ball: Ball
    innings: int  # from 1 over the whole match, super overs too
    over: int  # completed overs before it
    index: int | None  # its place within the over, from 1, wides and no-balls counted
    is_told: bool  # it comes from the commentary, with words
    is_counted: bool = True  # there is no hole between it and the newest of its list

    @property
    def place(self) -> tuple[int, int, int]:
        return self.innings, self.over, self.index or 0

    @property
    def label(self) -> str:
        """ "11.5": the fifth ball after 11 overs. A wide has the label of the ball that replaces it."""
        actual = self.ball.actual
        if actual is None:
            return ""
        return f"{self.over}.{max(round((actual - self.over) * 10), 0)}"

    @property
    def is_legal(self) -> bool:
        return not self.ball.wides and not self.ball.no_balls

    @property
    def ends_over(self) -> bool:
        return self.is_legal and self.label.endswith(f".{OVER}")


@dataclass(frozen=True)
class Numbering:
    """Which number each innings of a page has within the match. The site may number super overs anew."""

    innings: Sequence[Inning]
    super_overs: Sequence[Inning]

    @property
    def numbered(self) -> list[tuple[int, Inning]]:
        return list(enumerate((*self.innings, *self.super_overs), start=1))

    def of(self, stated: int) -> int:
        """The innings that a ball of the commentary belongs to: of two with the same number the later one."""
        return next((number for number, one in reversed(self.numbered) if one.number == stated), stated)


def numbering(innings: Iterable[Inning], super_overs: Iterable[Inning]) -> Numbering:
    def in_order(listed: Iterable[Inning]) -> list[Inning]:
        return sorted((one for one in listed if is_played(one)), key=lambda one: one.number)

    return Numbering(in_order(innings), in_order(super_overs))


def is_played(inning: Inning) -> bool:
    """Some pages list the innings to come as well."""
    return inning.is_batted is not False and inning.runs is not None


def deliveries(numbers: Numbering, commentary: Commentary) -> list[Delivery]:
    """Every ball of the page once, oldest first; told ones rather than bare ones."""
    found: dict[int, Delivery] = {}
    for number, inning in numbers.numbered:
        for over in inning.over_list or ():
            for ball in over.balls or ():
                found[ball.id] = _placed(ball, number, is_told=False)
    recent = commentary.recent.balls if commentary.recent else None
    for ball in (*(commentary.comments or ()), *(recent or ())):
        found[ball.id] = _placed(ball, numbers.of(ball.inning), is_told=True)
    ordered = sorted(found.values(), key=lambda one: (*one.place[:2], one.ball.id))
    overs = groupby(ordered, key=lambda one: one.place[:2])
    return _counted([one for _, balls in overs for one in _in_order(list(balls))], dict(numbers.numbered))


def _placed(ball: Ball, innings: int, *, is_told: bool) -> Delivery:
    index = ball.number or None
    if index is None and ball.unique is not None:
        index = round((ball.unique - (ball.over - 1)) * 100)  # the tenth ball, 0.10, is written 0.1
    return Delivery(ball, innings, ball.over - 1, index if index and 1 <= index <= 99 else None, is_told)


def _in_order(balls: list[Delivery]) -> list[Delivery]:
    """The balls of an over. Where two claim the same place, the order of their ids decides."""
    indexes = [one.index for one in balls]
    if None in indexes:
        return balls
    if len(set(indexes)) == len(indexes):
        return sorted(balls, key=lambda one: one.place)
    placed: list[Delivery] = []
    for one in balls:
        last = placed[-1].index or 0 if placed else 0
        placed.append(one if (one.index or 0) > last else replace(one, index=last + 1))
    return placed


def _counted(ordered: list[Delivery], innings: Mapping[int, Inning]) -> list[Delivery]:
    """Bare balls beyond a hole do not count: a page has the first over of an innings, and says nothing of the rest.

    Where the page has commentary, that is its list, and such balls are left out altogether.
    """
    has_words = any(one.is_told for one in ordered)
    found: list[Delivery] = []
    is_joined = True
    for one in reversed(ordered):
        is_next = follows(one, found[-1], innings) if found else is_newest(one, innings)
        is_joined = one.is_told or (is_joined and is_next)
        found.append(replace(one, is_counted=is_joined))
    return [one for one in reversed(found) if one.is_counted or not has_words]


def follows(one: Delivery, other: Delivery, innings: Mapping[int, Inning]) -> bool:
    """Is `other` the very next ball after `one`?"""
    if one.innings != other.innings:
        return is_newest(one, innings) and other.place == (one.innings + 1, 0, 1)
    if one.over == other.over:
        return (one.index or 0) + 1 == (other.index or 0)
    return other.over == one.over + 1 and other.index == 1 and (one.ends_over or _adds_up(one, other))


def is_newest(one: Delivery, innings: Mapping[int, Inning]) -> bool:
    """Is it the newest ball of its innings? Its score is the innings' then."""
    played = innings.get(one.innings)
    return played is not None and (one.ball.inning_runs, one.ball.inning_wickets) == (played.runs, played.wickets)


def _adds_up(one: Delivery, other: Delivery) -> bool:
    before, after = one.ball.inning_runs, other.ball.inning_runs
    return before is not None and after is not None and before + other.ball.total == after
