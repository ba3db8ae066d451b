"""Limits the part of a source's traffic that may be retries.

Guards against a retry storm: where every call fails, retries would multiply the load on a source that is down already.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scraping.policies.source_breaker import CallWindow

LONGEST_WAIT_SECONDS = 60.0
RETRY_PERCENT = 20  # of a source's calls
# A fifth of a few calls is nothing: one match that is read every minute could never be retried. Ten in ten minutes is
# no storm, and lets two tasks fail through all their attempts.
MIN_RETRIES = 10


def is_retry(*, charged_attempts: int, due_at: datetime, scheduled_at: datetime | None, now: datetime) -> bool:
    """Returns whether this attempt is traffic on top of the schedule.

    It is not if the failures before were our own, if the match would be polled by now anyway (the attempt replaces that
    poll), or after a minute of waiting, which makes no storm and must end somewhere.
    """
    if not charged_attempts or (scheduled_at is not None and scheduled_at <= now):
        return False
    return now - due_at < timedelta(seconds=LONGEST_WAIT_SECONDS)


def retries_left(window: CallWindow, *, under_way: int = 0) -> int:
    allowed = max(MIN_RETRIES, window.calls * RETRY_PERCENT // 100)
    return max(0, allowed - window.retries - under_way)
