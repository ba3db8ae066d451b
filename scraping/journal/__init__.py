"""The journal: the only truth about work. Sole writer of tasks and their transitions.

Guards against lost, doubled and late work. A task is written before it is done; one conditional UPDATE claims it,
counts the attempt and sets lease and fence; only the holder of the present fence can finish it; whoever falls silent
loses it. A message in the broker is only a hint that some task is due: losing it, or getting it fifty times, changes
nothing.
"""

from scraping.journal.claiming import Claim, claim, end_leases, extend_leases, holders, release
from scraping.journal.ending import FailureNote, bury, finishing, keep, put_off, retry_later
from scraping.journal.opening import NewTask, open_tasks
from scraping.journal.rescuing import rescue
from scraping.journal.retrying import RetryOutcome, retry

__all__ = [
    "Claim",
    "FailureNote",
    "NewTask",
    "RetryOutcome",
    "bury",
    "claim",
    "end_leases",
    "extend_leases",
    "finishing",
    "holders",
    "keep",
    "open_tasks",
    "put_off",
    "release",
    "rescue",
    "retry",
    "retry_later",
]
