"""The journal: the only truth about work. Sole writer of tasks and their transitions.

Guards against lost, doubled and late work. A task is written before it is done; one conditional UPDATE claims it,
counts the attempt and sets lease and fence; only the holder of the present fence can finish it; whoever falls silent
loses it. A message in the broker is only a hint that some task is due: losing it, or getting it fifty times, changes
nothing.
"""

from scraping.journal.cancelling import cancel_open
from scraping.journal.claiming import Claim, claim, claim_many, end_leases, extend_leases, hasten, holders, release
from scraping.journal.ending import FailureNote, bury, finishing, finishing_many, keep, put_off, retry_later
from scraping.journal.opening import NewTask, Opened, open_new, open_or_share, open_tasks
from scraping.journal.replaying import PastRead, record_past_read, release_strays
from scraping.journal.rescuing import rescue
from scraping.journal.retrying import RetryOutcome, Which, retry, retry_matching

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
