"""Corrects planned times after the machine's clock was set back.

Guards against an hour of silence after a clock was set back an hour: every due time, lease and age in the database
would lie in the future, and nothing would be due. A clock that is set forward needs no correction: everything is due
at once, and the watchdogs wait a little before they judge by ages.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from scraping.models import (
    OPEN_STATES,
    Breaker,
    BreakerState,
    Lease,
    Match,
    MatchLifecycle,
    MatchRef,
    ScrapeTask,
    WorkerCommand,
)

logger = logging.getLogger(__name__)

JUMP_SECONDS = 5.0  # less is drift, a slow tick, or a clock that is being corrected gradually


class ClockJumps:
    """Compares the wall clock with the monotonic clock."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def seconds_since_last(self, now: datetime, monotonic: float) -> float:
        """Returns by how many seconds the clock was set since the last call: 0 for none, negative for back."""
        last, self._last = self._last, (now, monotonic)
        if last is None:
            return 0.0
        jump = (now - last[0]).total_seconds() - (monotonic - last[1])
        return jump if abs(jump) >= JUMP_SECONDS else 0.0


def shift_times(by_seconds: float, *, now: datetime) -> int:
    """Moves all times that lie in the future back by as much as the clock was; returns how many.

    In one transaction, because a time that is moved twice would be due too early. Rows are locked in the order in which
    workers lock them: tasks, matches, the rows that belong to them.
    """
    by = timedelta(seconds=by_seconds)
    tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES)
    matches = Match.objects.exclude(lifecycle=MatchLifecycle.ARCHIVED)
    refs = MatchRef.objects.filter(match__in=matches)
    with transaction.atomic():
        for rows in (tasks, matches):
            list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
        moved = sum(
            rows.filter(**{f"{column}__gt": now}).update(**{column: F(column) - by})
            for rows, columns in (
                (tasks, ("run_at", "hinted_at", "lease_until")),
                (matches, ("last_scraper_update", "silence_rung_at", "silent_since", "frozen_at", "pause_until")),
                (refs, ("next_poll_at", "captured_at", "slowed_until", "called_in_at")),
                (Breaker.objects.exclude(state=BreakerState.CLOSED), ("open_until",)),
                (WorkerCommand.objects.all(), ("asked_at",)),
                (Lease.objects.all(), ("expires_at",)),
            )
            for column in columns
        )
    logger.warning(
        "The clock was set back %.0f s: %d times in the database were moved as well. Nothing is lost; polls go on",
        by_seconds,
        moved,
        extra={"action": "clock_set_back", "seconds": round(by_seconds), "rows": moved},
    )
    return moved
