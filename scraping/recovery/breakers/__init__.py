"""The only writer of breaker rows. `policies/breaker.py` has the state machine; this package applies it to the rows.

Guards against hammering a failing source from many processes. Every change is a compare-and-swap on `version`: failures
of two workers at the same moment both count, and the last probe permit is given to one task only.
"""

from scraping.recovery.breakers.calls import (
    Outcomes,
    count_success_of_closed,
    ensure_rows,
    evaluate_sources,
    guard,
    probe_limits,
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
