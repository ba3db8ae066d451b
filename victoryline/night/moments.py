"""The clock of a night: seconds since its beginning, and the moments that policies are asked with."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 1, 10, 16, 0, tzinfo=UTC)
TICK_SECONDS = 0.1  # the scheduler's round


def moment(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def seconds_of(at: datetime) -> float:
    return (at - BEGIN).total_seconds()


def next_round(seconds: float, every: float = TICK_SECONDS) -> float:
    """The first round of the scheduler at or after a time."""
    return math.ceil(round(seconds / every, 6)) * every


def clock_time(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
