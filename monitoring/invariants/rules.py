"""A rule, its result, and the consistent read-only view from which rules are checked."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from django.db import connection, transaction

BOUND_SECONDS = 60.0  # delay after which something counts as forgotten
MAX_SHOWN = 10


@dataclass(frozen=True)
class CheckContext:
    now: datetime
    bound_seconds: float = BOUND_SECONDS

    @property
    def overdue(self) -> datetime:
        return self.now - timedelta(seconds=self.bound_seconds)

    @property
    def row_limit(self) -> int:
        """Returns how many rows to read: those shown, and one more to know whether there are others."""
        return MAX_SHOWN + 1

    def ago(self, **units: float) -> datetime:
        return self.now - timedelta(**units)


Finder = Callable[[CheckContext], Iterable[str]]


@dataclass(frozen=True)
class Rule:
    """`find` yields one sentence for each row that breaks the rule; `advice` is for the operator."""

    invariant: str
    name: str
    holds: str
    advice: str
    find: Finder


RULES: list[Rule] = []


def rule(invariant: str, name: str, advice: str) -> Callable[[Finder], Finder]:
    """Adds the decorated finder to the rules. The first sentence of its docstring is what holds."""

    def add(find: Finder) -> Finder:
        holds = str(find.__doc__).partition(".")[0]
        RULES.append(Rule(invariant, name, holds[0].lower() + holds[1:], advice, find))
        return find

    return add


@dataclass(frozen=True)
class RuleResult:
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


def check_rules(context: CheckContext) -> Iterator[RuleResult]:
    """Checks each rule; ten rows that break it are enough to see the fault."""
    for rule in RULES:
        began = time.monotonic()
        found = tuple(islice(rule.find(context), context.row_limit))
        shown, has_more = found[:MAX_SHOWN], len(found) > MAX_SHOWN
        seconds = round(time.monotonic() - began, 3)
        yield RuleResult(rule.invariant, rule.name, rule.holds, shown, has_more, rule.advice, seconds)


@contextmanager
def consistent_view() -> Iterator[None]:
    """Reads in the body see one state of the database; writes in it fail. Other writers are not blocked."""
    if connection.in_atomic_block:  # the caller's transaction is the view
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        yield from _sqlite_view()


def _sqlite_view() -> Iterator[None]:
    """Avoids `atomic`, which takes the write lock (IMMEDIATE) and would block all writers."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
            cursor.execute("PRAGMA query_only = OFF")
