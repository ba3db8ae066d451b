"""A rule, and what came of asking whether it holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

BOUND_SECONDS = 60.0  # how late something may be before it counts as forgotten
MOST_SHOWN = 10


@dataclass(frozen=True)
class Moment:
    """When is asked, and how late something may be then."""

    now: datetime
    bound_seconds: float = BOUND_SECONDS

    @property
    def overdue(self) -> datetime:
        """Who should have moved before this, and has not, is forgotten."""
        return self.now - timedelta(seconds=self.bound_seconds)

    @property
    def most(self) -> int:
        """How many rows to ask for: those that are shown, and one that tells that there are more."""
        return MOST_SHOWN + 1

    def ago(self, **units: float) -> datetime:
        return self.now - timedelta(**units)


Question = Callable[[Moment], Iterable[str]]


@dataclass(frozen=True)
class Rule:
    """`find` names the rows that break it, one sentence with an id each; `advice` is for whoever has to mend it."""

    invariant: str
    name: str
    holds: str
    find: Question
    advice: str


@dataclass(frozen=True)
class Verdict:
    invariant: str
    name: str
    holds: str
    broken: tuple[str, ...]
    has_more: bool
    advice: str
    seconds: float

    @property
    def is_ok(self) -> bool:
        return not self.broken


def judge(rules: Iterable[Rule], moment: Moment) -> Iterator[Verdict]:
    """Ask each rule in turn. Ten rows that break it are enough to see what is wrong."""
    for rule in rules:
        began = time.monotonic()
        found = tuple(islice(rule.find(moment), moment.most))
        shown, has_more = found[:MOST_SHOWN], len(found) > MOST_SHOWN
        seconds = round(time.monotonic() - began, 3)
        yield Verdict(rule.invariant, rule.name, rule.holds, shown, has_more, rule.advice, seconds)
