"""The freshness of a match's data: state, age, time of the next update. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from scraping.payloads import Status
from scraping.policies.interval import UPCOMING_LONGEST_SECONDS

if TYPE_CHECKING:
    from scraping.documents.cached_match import CachedMatch

FRESH_SECONDS = 10.0


class DataState(StrEnum):
    FRESH = "fresh"
    AGING = "aging"
    PARTIAL = "partial"  # as young as fresh or aging data, but parts of it could not be read
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


def measure(match: CachedMatch, now: datetime, *, stale_after: float) -> Freshness:
    """Returns the freshness at `now`. A clock that ran backwards makes no age negative.

    A match that has not begun is read as seldom as planned: it is stale when it is late by `stale_after`.
    """
    scraped_at, status = match.scraped_at, match.status
    age = None if scraped_at is None else max(0.0, (now - scraped_at).total_seconds())
    if scraped_at is None or age is None:
        state = DataState.UNKNOWN
    elif status in {Status.COMPLETED, Status.ABANDONED}:
        state = DataState.FINAL
    elif match.paused_until is not None:
        state = DataState.PAUSED
    elif match.frozen_at is not None and scraped_at < match.frozen_at:
        state = DataState.FROZEN
    elif age > stale_after + _planned_seconds(match, scraped_at):
        state = DataState.STALE
    elif match.left_out:
        state = DataState.PARTIAL
    else:
        state = DataState.AGING if status == Status.LIVE and age > FRESH_SECONDS else DataState.FRESH
    next_at = None if state == DataState.FINAL else match.next_update_at
    wait = None if next_at is None else max(0.0, (next_at - now).total_seconds())
    return Freshness(state=state, scraped_at=scraped_at, age_seconds=age, next_update_in=wait)


def _planned_seconds(match: CachedMatch, scraped_at: datetime) -> float:
    """Returns the planned time between the last poll and the next one of an upcoming match."""
    if match.status != Status.UPCOMING or match.planned_at is None:
        return 0.0
    return min(UPCOMING_LONGEST_SECONDS, max(0.0, (match.planned_at - scraped_at).total_seconds()))
