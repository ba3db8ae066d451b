"""Breaker rows: sole writer. What the numbers mean is in resilience/breaker.py; here they meet the database.

Guards against hammering a source that is failing, across all processes: every change is compare-and-swap on `version`,
so that two workers that fail at the same moment both count, and two that want the last permit do not both get it.
"""

from scraping.recovery.breakers.operating import NotPossible, find, force_closed, force_open, probe_now, reset
from scraping.recovery.breakers.passing import (
    count_calm,
    give_back,
    guard,
    record_failure,
    record_nonsense,
    record_success,
)
from scraping.recovery.breakers.rows import view_of
from scraping.recovery.breakers.sources import add_totals, ensure_rows, judge, probe_limits

__all__ = [
    "NotPossible",
    "add_totals",
    "count_calm",
    "ensure_rows",
    "find",
    "force_closed",
    "force_open",
    "give_back",
    "guard",
    "judge",
    "probe_limits",
    "probe_now",
    "record_failure",
    "record_nonsense",
    "record_success",
    "reset",
    "view_of",
]
