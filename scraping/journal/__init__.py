"""The journal: the only source of truth about work. Sole writer of tasks and their transitions.

Guards against lost, duplicate and late work. A task is written before it is executed (`open`); one conditional UPDATE
claims it, counts the attempt and sets lease and fence (`claims`); only the holder of the current fence can finish it
(`finish`); a worker without a heartbeat loses it (`rescues`). A message in the broker is only a hint that a task is
due: losing it, or receiving it fifty times, changes nothing. `error_log` and `evidence` keep what failed attempts saw.
"""

from scraping.journal.claims import (
    Claim,
    claim,
    claim_many,
    end_leases,
    extend_leases,
    hasten,
    holders,
    release,
    release_strays,
)
from scraping.journal.finish import (
    FailureNote,
    bury,
    cancel_open,
    finishing,
    finishing_many,
    keep,
    put_off,
    retry_later,
)
from scraping.journal.open import (
    NewTask,
    Opened,
    PastRead,
    open_new,
    open_or_share,
    open_tasks,
    record_past_read,
)
from scraping.journal.rescues import rescue
from scraping.journal.retries import RetryOutcome, Which, retry, retry_matching

__all__ = [
    "Claim",
    "FailureNote",
    "NewTask",
    "Opened",
    "PastRead",
    "RetryOutcome",
    "Which",
    "bury",
    "cancel_open",
    "claim",
    "claim_many",
    "end_leases",
    "extend_leases",
    "finishing",
    "finishing_many",
    "hasten",
    "holders",
    "keep",
    "open_new",
    "open_or_share",
    "open_tasks",
    "put_off",
    "record_past_read",
    "release",
    "release_strays",
    "rescue",
    "retry",
    "retry_later",
    "retry_matching",
]
