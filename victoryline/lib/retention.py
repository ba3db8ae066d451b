"""Retention rules and their execution: each app has a table of rules, applied in small batches.

Guards against tables and folders that grow for ever, and against long locks while pruning: a step deletes one bounded
batch in its own transaction and skips rows that are locked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from django.db import transaction
from django.db.models import Model, QuerySet

BATCH = 1000
MAX_BATCHES = 5  # of one rule per turn: a backlog takes several turns


@dataclass(frozen=True)
class Amount:
    rows: int = 0
    size_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.rows + other.rows, self.size_bytes + other.size_bytes)

    def __bool__(self) -> bool:
        return bool(self.rows)


class Rule(Protocol):
    """Selects rows or files for deletion, and deletes them in batches."""

    @property
    def table(self) -> str: ...

    @property
    def keeps(self) -> str:
        """Describes how long rows are kept."""

    def outstanding(self, now: datetime) -> Amount:
        """Counts what is due for deletion."""

    def step(self, now: datetime) -> Amount:
        """Deletes one batch; returns an empty amount if none is left."""


@dataclass(frozen=True)
class Rows:
    """Rows that are due. `before` runs in the same transaction, with the keys to delete.

    `is_bare`: no other row refers to them (or `before` has detached it), so they are deleted by one statement. Django
    would read each row to collect related ones. (Foreign keys refuse the statement if a reference is left.)
    """

    table: str
    keeps: str
    outdated: Callable[[datetime], QuerySet[Any]]
    before: Callable[[Sequence[Any]], object] | None = None
    batch: int | None = None
    is_bare: bool = False

    def outstanding(self, now: datetime) -> Amount:
        return Amount(self.outdated(now).count())

    def step(self, now: datetime) -> Amount:
        rows = self.outdated(now)
        with transaction.atomic():
            # Locked rows (a dead task that is being retried) are left for the next step.
            chosen = rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
            keys = list(chosen[: self.batch or BATCH])
            if not keys:
                return Amount()
            if self.before is not None:
                self.before(keys)
            chosen_rows: QuerySet[Any] = rows.model._base_manager.filter(pk__in=keys)  # noqa: SLF001 - its documented name
            if self.is_bare:
                chosen_rows._raw_delete(chosen_rows.db)  # noqa: SLF001 - as delete() does for rows without references
            else:
                chosen_rows.delete()
        return Amount(len(keys))


@dataclass(frozen=True)
class OldestFirst:
    """Rows of a log without an index on its time column; they are written in order, so the oldest come first by key."""

    table: str
    model: type[Model]
    column: str
    days: int

    @property
    def keeps(self) -> str:
        return f"{self.days} days"

    def outstanding(self, now: datetime) -> Amount:
        outdated = {f"{self.column}__lt": now - timedelta(days=self.days)}
        return Amount(self.model._base_manager.filter(**outdated).count())  # noqa: SLF001

    def step(self, now: datetime) -> Amount:
        limit, rows = now - timedelta(days=self.days), self.model._base_manager  # noqa: SLF001
        oldest = rows.order_by("pk").values_list("pk", self.column)[:BATCH]
        outdated = [pk for pk, at in oldest if at < limit]
        return Amount(rows.filter(pk__in=outdated).delete()[0]) if outdated else Amount()


@dataclass(frozen=True)
class Files:
    """Files that are due."""

    table: str
    keeps: str
    outdated: Callable[[datetime], Iterable[Path]]
    after: Callable[[], object] | None = None

    def outstanding(self, now: datetime) -> Amount:
        return sum((Amount(1, _size(file)) for file in self.outdated(now)), Amount())

    def step(self, now: datetime) -> Amount:
        gone = Amount()
        for file, _ in zip(self.outdated(now), range(BATCH), strict=False):
            size = _size(file)
            try:
                file.unlink(missing_ok=True)
            except OSError:
                continue  # no permission, for example; the next step tries again
            gone += Amount(1, size)
        if self.after is not None:
            self.after()
        return gone


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def prune(rules: Iterable[Rule], now: datetime, *, seconds: float = 0.3) -> int:
    """Runs a few batches of each rule until `seconds` have passed; returns the number of deleted rows."""
    deleted, end = 0, time.monotonic() + seconds
    for rule in rules:
        for _ in range(MAX_BATCHES):
            gone = rule.step(now)
            deleted += gone.rows
            if not gone or time.monotonic() > end:
                break
    return deleted
