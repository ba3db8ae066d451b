"""One table: what follows a failed attempt, by the class of its error. Returns a value; the journal acts on it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from scraping.errors import ErrorClass
from scraping.resilience.backoff import RetryPolicy, backoff_seconds

BLOCKED_BASE_SECONDS = 15.0  # a source that turns us away wants silence, not the pace of a network hiccup
LONGEST_FREE_PAUSE_SECONDS = 15.0  # at once the first time, patient when Chromium will not start for a minute
MAX_FREE_ATTEMPTS = 10  # our own faults cost a task nothing, but a page that kills every browser must end somewhere


@dataclass(frozen=True)
class Retry:
    """Try again at a time. `is_charged`: the failure was the source's and uses up one of the attempts."""

    at: datetime
    is_charged: bool


@dataclass(frozen=True)
class Dead:
    """Give up and keep everything that explains why."""

    reason: str


@dataclass(frozen=True)
class Complete:
    """The source no longer has the match: nothing more will come."""

    reason: str


Decision = Retry | Dead | Complete

# How many charged attempts a class gets; None: the policy's number.
ATTEMPTS: dict[ErrorClass, int | None] = {
    ErrorClass.TRANSIENT: None,
    ErrorClass.BLOCKED: None,
    ErrorClass.AUTH: None,
    ErrorClass.DRIFT: 2,
    ErrorClass.GONE: 3,
    ErrorClass.BUG: 1,
}

SOURCE_FAULTS = frozenset({ErrorClass.TRANSIENT, ErrorClass.BLOCKED, ErrorClass.AUTH, ErrorClass.DRIFT})
OUR_FAULTS = frozenset({ErrorClass.RESOURCE, ErrorClass.STORE})


@dataclass(frozen=True)
class Failure:
    """A failed attempt, as far as deciding needs it."""

    error_class: ErrorClass
    message: str
    attempt: int
    charged_attempts: int  # before this one
    retry_after_seconds: float | None = None


def decide(failure: Failure, policy: RetryPolicy, now: datetime, chance: random.Random) -> Decision:
    if failure.error_class in OUR_FAULTS:
        return _free_retry(failure, now)
    charged = failure.charged_attempts + 1
    allowed = ATTEMPTS[failure.error_class] or policy.max_attempts
    if charged >= allowed:
        return _final(failure, charged)
    seconds = _pause_seconds(failure, charged, policy, chance)
    return Retry(at=now + timedelta(seconds=seconds), is_charged=True)


def _free_retry(failure: Failure, now: datetime) -> Decision:
    free = failure.attempt - failure.charged_attempts
    if free >= MAX_FREE_ATTEMPTS:
        return Dead(f"{free} attempts ended by our own faults, the last one: {failure.message}")
    seconds = min(0.2 * 2.0 ** (free - 1), LONGEST_FREE_PAUSE_SECONDS)
    return Retry(at=now + timedelta(seconds=seconds), is_charged=False)


def _final(failure: Failure, charged: int) -> Decision:
    if failure.error_class is ErrorClass.GONE:
        return Complete(f"the source said {charged} times that it is gone: {failure.message}")
    attempts = "attempt" if charged == 1 else "attempts"
    return Dead(f"{failure.error_class.value} after {charged} {attempts}: {failure.message}")


def _pause_seconds(failure: Failure, charged: int, policy: RetryPolicy, chance: random.Random) -> float:
    if failure.error_class is ErrorClass.AUTH and charged == 1:
        return 0.0  # one fresh session at once; after that it counts as being turned away
    if failure.error_class in (ErrorClass.BLOCKED, ErrorClass.AUTH):
        slow = RetryPolicy(policy.max_attempts, BLOCKED_BASE_SECONDS, BLOCKED_BASE_SECONDS * 16)
        return max(failure.retry_after_seconds or 0.0, backoff_seconds(charged, slow, chance))
    return max(failure.retry_after_seconds or 0.0, backoff_seconds(charged, policy, chance))
