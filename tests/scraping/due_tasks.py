"""Counts of what the scheduler opens, for assertions."""

from __future__ import annotations

from datetime import datetime

from scraping.scheduler import due
from tests.factories import NOW


def open_due_tasks(now: datetime) -> int:
    return len(due.open_due(now))


def room_by_source(now: datetime = NOW) -> dict[int, int]:
    return {source_id: limits.room for source_id, limits in due.source_limits({}, now=now).items()}
