"""When the clock of the machine is set: what was planned by the old time is planned by the new one.

Guards against an hour of silence after a clock was set back an hour: every due time, lease and age in the database lies
in the future then, and nothing would be due. A clock that is set forward needs no mending: all is due at once, and the
watchdogs wait a little before they call that old.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Model, QuerySet

from scraping.models import (
    OPEN_STATES,
    Breaker,
    BreakerState,
    Lease,
    Match,
    MatchLifecycle,
    MatchRef,
    ScrapeTask,
    WorkerOrder,
)

logger = logging.getLogger(__name__)

JUMP_SECONDS = 5.0  # what is less is drift, a slow round, or a clock that is being corrected gently


class Jumps:
    """Compares the clock on the wall with the one that only ever goes forward."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def look(self, now: datetime, monotonic: float) -> float:
        """By how many seconds the clock was set since the last look; 0 for none. Below 0: back."""
        last, self._last = self._last, (now, monotonic)
        if last is None:
            return 0.0
        jump = (now - last[0]).total_seconds() - (monotonic - last[1])
        return jump if abs(jump) >= JUMP_SECONDS else 0.0


def set_back(by_seconds: float, *, now: datetime) -> int:
    """All that lies in the future is moved by as much as the clock was. How many times that were.

    All of it or nothing: what is moved twice is due too early. Locked as workers lock: tasks, matches, what is theirs.
    """
    by = timedelta(seconds=by_seconds)
    tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES)
    live = Match.objects.exclude(lifecycle=MatchLifecycle.ARCHIVED)
    refs = MatchRef.objects.filter(match__in=live)
    with transaction.atomic():
        for rows in (tasks, live):
            list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
        moved = sum(
            _move(rows, column, by, now)
            for rows, columns in (
                (tasks, ("run_at", "hinted_at", "lease_until")),
                (live, ("last_scraper_update", "silence_rung_at", "silent_since", "frozen_at", "pause_until")),
                (refs, ("next_poll_at", "captured_at", "slowed_until", "called_in_at")),
                (Breaker.objects.exclude(state=BreakerState.CLOSED), ("open_until",)),
                (WorkerOrder.objects.all(), ("asked_at",)),
                (Lease.objects.all(), ("expires_at",)),
            )
            for column in columns
        )
    logger.warning(
        "The clock was set back %.0f s: %d times in the database were moved along. Nothing is lost; polls go on",
        by_seconds,
        moved,
        extra={"action": "clock_set_back", "seconds": round(by_seconds), "rows": moved},
    )
    return moved


def _move(rows: QuerySet[Model], column: str, by: timedelta, now: datetime) -> int:
    return rows.filter(**{f"{column}__gt": now}).update(**{column: F(column) - by})
