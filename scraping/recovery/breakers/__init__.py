"""The only writer of breaker rows. `policies/breaker.py` has the state machine; this package applies it to the rows.

Guards against hammering a failing source from many processes. Every change is a compare-and-swap on `version`: failures
of two workers at the same moment both count, and the last probe permit is given to one task only.
"""

from scraping.recovery.breakers.calls import (
    Outcomes,
    count_success_of_closed,
    guard,
    record_failure,
    record_invalid_reading,
    record_success,
    release_permits,
    windows,
)
from scraping.recovery.breakers.overrides import (
    BreakerOperationRefused,
    find,
    force_closed,
    force_open,
    probe_now,
    reset,
)
from scraping.recovery.breakers.rows import view_of
from scraping.recovery.breakers.source_breakers import add_totals, ensure_rows, evaluate_sources, probe_limits

__all__ = [
    "BreakerOperationRefused",
    "Outcomes",
    "add_totals",
    "count_success_of_closed",
    "ensure_rows",
    "evaluate_sources",
    "find",
    "force_closed",
    "force_open",
    "guard",
    "probe_limits",
    "probe_now",
    "record_failure",
    "record_invalid_reading",
    "record_success",
    "release_permits",
    "reset",
    "view_of",
    "windows",
]
