"""The journal: the only source of truth about work. Sole writer of tasks and their transitions.

Guards against lost, duplicate and late work. A task is written before it is executed (`open`); one conditional UPDATE
claims it, counts the attempt and sets lease and fence (`claims`); only the holder of the current fence can finish it
(`finish`), and a worker without a heartbeat loses it. A message in the broker is only a hint that a task is
due: losing it, or receiving it fifty times, changes nothing. `error_log` and `evidence` keep what failed attempts saw.
"""

from scraping.journal.claims import (
    Claim,
    claim,
    claim_many,
    end_leases,
    extend_leases,
    holders,
    make_tasks_due,
    release,
    release_unknown_claims,
)
from scraping.journal.finish import (
    FailureNote,
    cancel_open,
    finishing,
    keep,
    mark_dead,
    put_off,
    rescue,
    retry_later,
)
from scraping.journal.open import (
    NewTask,
    Opened,
    open_new,
    open_or_share,
    open_tasks,
    record_past_read,
)
from scraping.journal.retries import (
    AT_ONCE,
    RETRIABLE,
    RetryOutcome,
    TaskSelection,
    cancel,
    discard,
    discard_superseded,
    retry,
    retry_matching,
    selected,
)
