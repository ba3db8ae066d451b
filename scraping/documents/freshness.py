"""The freshness of a match's data: state, age, time of the next update. Pure functions of times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from scraping.payloads import Status
from scraping.policies.interval import UPCOMING_LONGEST_SECONDS

FRESH_SECONDS = 10.0


class DataState(StrEnum):
    FRESH = "fresh"
    AGING = "aging"
    STALE = "stale"
    FROZEN = "frozen"
    PAUSED = "paused"
    FINAL = "final"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Freshness:
    state: DataState
    scraped_at: datetime | None
    age_seconds: float | None
    next_update_in: float | None

    @property
    def whole_age_seconds(self) -> int | None:
        return None if self.age_seconds is None else math.floor(self.age_seconds)

    def is_older_than(self, max_age: float) -> bool:
        """Final data is never too old: it does not change any more."""
        return self.state != DataState.FINAL and (self.age_seconds is None or self.age_seconds > max_age)


def measure(
    *,
    status: Status,
    scraped_at: datetime | None,
    paused_until: datetime | None,
    planned_at: datetime | None,
    now: datetime,
    stale_after: float,
    frozen_at: datetime | None = None,
    next_read_at: datetime | None = None,
) -> Freshness:
    """Returns the freshness at `now`. A clock that ran backwards makes no age negative.

    One that has not begun is read seldom, as it was planned: it is stale when it is late by `stale_after`.
    `next_read_at`: when that is later than `planned_at`, because the match cannot be polled as planned.
    `frozen_at`: when all had been tried to hear of it, in vain; what was heard since is not frozen.
    """
    age = None if scraped_at is None else max(0.0, (now - scraped_at).total_seconds())
    if scraped_at is None or age is None:
        state = DataState.UNKNOWN
    elif status in {Status.COMPLETED, Status.ABANDONED}:
        state = DataState.FINAL
    elif paused_until is not None:
        state = DataState.PAUSED
    elif frozen_at is not None and scraped_at < frozen_at:
        state = DataState.FROZEN
    elif age > stale_after + _planned_seconds(status, scraped_at, planned_at):
        state = DataState.STALE
    else:
        state = DataState.AGING if status == Status.LIVE and age > FRESH_SECONDS else DataState.FRESH
    next_at = None if state == DataState.FINAL else not_before(paused_until, next_read_at or planned_at)
    wait = None if next_at is None else max(0.0, (next_at - now).total_seconds())
    return Freshness(state=state, scraped_at=scraped_at, age_seconds=age, next_update_in=wait)


def not_before(earliest: datetime | None, planned: datetime | None) -> datetime | None:
    return planned if planned is None or earliest is None else max(planned, earliest)


def _planned_seconds(status: Status, scraped_at: datetime, planned_at: datetime | None) -> float:
    """Returns the planned time between the last poll and the next one of an upcoming match."""
    if status != Status.UPCOMING or planned_at is None:
        return 0.0
    return min(UPCOMING_LONGEST_SECONDS, max(0.0, (planned_at - scraped_at).total_seconds()))
