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
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

BATCH = 1000
MAX_BATCHES = 5  # of one rule per turn: a backlog takes several turns
NO_CONDITION = Q()


@dataclass(frozen=True)
class Rule:
    table: str
    keeps: str  # how long rows are kept, for people
    outstanding: Callable[[datetime], int]  # counts what is due for deletion
    step: Callable[[datetime], int]  # deletes one batch; returns 0 if none is left


def rows(
    table: str,
    keeps: str,
    outdated: Callable[[datetime], QuerySet[Any]],
    *,
    before: Callable[[Sequence[Any]], object] | None = None,
    batch: int | None = None,
    is_bare: bool = False,
) -> Rule:
    """Returns the rule of rows that are due. `before` runs in the same transaction, with the keys to delete.

    `is_bare`: no other row refers to them (or `before` has detached it), so they are deleted by one statement.
    """

    def step(now: datetime) -> int:
        due = outdated(now)
        with transaction.atomic():
            # Locked rows (a dead task that is being retried) are left for the next step.
            chosen = due.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
            keys = list(chosen[: batch or BATCH])
            if not keys:
                return 0
            if before is not None:
                before(keys)
            chosen_rows: QuerySet[Any] = due.model._base_manager.filter(pk__in=keys)  # noqa: SLF001 - its documented name
            if is_bare:
                chosen_rows._raw_delete(chosen_rows.db)  # noqa: SLF001 - as delete() does for rows without references
            else:
                chosen_rows.delete()
        return len(keys)

    return Rule(table, keeps, lambda now: outdated(now).count(), step)


def aged(
    table: str,
    model: Any,
    column: str,
    keeps: str = "{}",
    *,
    where: Any = NO_CONDITION,
    hours: int = 0,
    days: int = 0,
    **options: Any,
) -> Rule:
    """Returns the rule of rows whose time is older than `hours` or `days`, under the condition `where`."""
    number, unit = (days, "day") if days else (hours, "hour")

    def outdated(now: datetime) -> QuerySet[Any]:
        old: QuerySet[Any] = model.objects.filter(where, **{f"{column}__lt": now - timedelta(hours=hours, days=days)})
        return old.order_by(column)

    return rows(table, keeps.format(f"{number} {unit}{'' if number == 1 else 's'}"), outdated, **options)


def files(
    table: str,
    keeps: str,
    outdated: Callable[[datetime], Iterable[Path]],
    *,
    after: Callable[[], object] = lambda: None,
) -> Rule:
    """Returns the rule of files that are due. `after` runs after each batch."""

    def step(now: datetime) -> int:
        deleted = 0
        for file, _ in zip(outdated(now), range(BATCH), strict=False):
            try:
                file.unlink(missing_ok=True)
            except OSError:
                continue  # no permission, for example; the next step tries again
            deleted += 1
        after()
        return deleted

    return Rule(table, keeps, lambda now: sum(1 for _ in outdated(now)), step)


def prune(rules: Iterable[Rule], now: datetime, *, seconds: float = 0.3) -> int:
    """Runs a few batches of each rule until `seconds` have passed; returns the number of deleted rows."""
    deleted, end = 0, time.monotonic() + seconds
    for rule in rules:
        for _ in range(MAX_BATCHES):
            gone = rule.step(now)
            deleted += gone
            if not gone or time.monotonic() > end:
                break
    return deleted
