"""One table: what follows a failed attempt, by the class of its error. Returns a value; the journal acts on it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from scraping.errors import ErrorClass
from scraping.policies.backoff import RetryPolicy, backoff_seconds

BLOCKED_BASE_SECONDS = 15.0  # a source that turns us away wants silence, not the pace of a network hiccup
FREE_BASE_SECONDS = 0.2
LONGEST_FREE_PAUSE_SECONDS = 15.0  # at once the first time, patient when Chromium will not start for a minute
MAX_FREE_ATTEMPTS = 10  # our own faults cost a task nothing, but a page that kills every browser must end somewhere
TIMEOUT_STRETCH = 1.5  # an attempt after a timeout gets half as much time again, once a task


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


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a class of errors means. `is_soft`: time may heal it; a hard one needs somebody who looks at it."""

    attempts: int | None = None  # None: as many as the source's policy gives
    base_delay_seconds: float | None = None  # None: the source's policy's
    feeds_breaker: bool = False
    is_charged: bool = True
    rotates_session: bool = False
    is_soft: bool = True


RULES: dict[ErrorClass, Rule] = {
    ErrorClass.TRANSIENT: Rule(feeds_breaker=True),
    ErrorClass.BLOCKED: Rule(base_delay_seconds=BLOCKED_BASE_SECONDS, feeds_breaker=True, rotates_session=True),
    ErrorClass.AUTH: Rule(base_delay_seconds=BLOCKED_BASE_SECONDS, feeds_breaker=True, rotates_session=True),
    ErrorClass.DRIFT: Rule(attempts=2, feeds_breaker=True, is_soft=False),
    ErrorClass.GONE: Rule(attempts=3, is_soft=False),
    ErrorClass.RESOURCE: Rule(attempts=MAX_FREE_ATTEMPTS, base_delay_seconds=FREE_BASE_SECONDS, is_charged=False),
    ErrorClass.STORE: Rule(attempts=MAX_FREE_ATTEMPTS, base_delay_seconds=FREE_BASE_SECONDS, is_charged=False),
    ErrorClass.BUG: Rule(attempts=1, is_soft=False),
}

SOURCE_FAULTS = frozenset(one for one, rule in RULES.items() if rule.feeds_breaker)
OUR_FAULTS = frozenset(one for one, rule in RULES.items() if not rule.is_charged)


@dataclass(frozen=True)
class Failure:
    """A failed attempt, as far as deciding needs it."""

    error_class: ErrorClass
    message: str
    attempt: int
    charged_attempts: int  # before this one
    retry_after_seconds: float | None = None


def decide(failure: Failure, policy: RetryPolicy, now: datetime, chance: random.Random) -> Decision:
    rule = RULES[failure.error_class]
    if not rule.is_charged:
        return _free_retry(failure, rule, now)
    charged = failure.charged_attempts + 1
    if charged >= (rule.attempts or policy.max_attempts):
        return _final(failure, charged)
    seconds = _pause_seconds(failure, charged, policy, chance)
    return Retry(at=now + timedelta(seconds=seconds), is_charged=True)


def _free_retry(failure: Failure, rule: Rule, now: datetime) -> Decision:
    free = failure.attempt - failure.charged_attempts
    if free >= (rule.attempts or MAX_FREE_ATTEMPTS):
        return Dead(f"{free} attempts ended by our own faults, the last one: {failure.message}")
    base = rule.base_delay_seconds or FREE_BASE_SECONDS
    seconds = min(base * 2.0 ** (free - 1), LONGEST_FREE_PAUSE_SECONDS)
    return Retry(at=now + timedelta(seconds=seconds), is_charged=False)


def _final(failure: Failure, charged: int) -> Decision:
    if failure.error_class is ErrorClass.GONE:
        return Complete(f"the source said {charged} times that it is gone: {failure.message}")
    attempts = "attempt" if charged == 1 else "attempts"
    return Dead(f"{failure.error_class.value} after {charged} {attempts}: {failure.message}")


def _pause_seconds(failure: Failure, charged: int, policy: RetryPolicy, chance: random.Random) -> float:
    """A source that says when to come back is obeyed, whatever it answered."""
    asked = failure.retry_after_seconds or 0.0
    if failure.error_class is ErrorClass.AUTH and charged == 1:
        return asked  # one fresh session at once; after that it counts as being turned away
    base = RULES[failure.error_class].base_delay_seconds
    if base is not None:
        policy = RetryPolicy(policy.max_attempts, base, base * 16)
    return max(asked, backoff_seconds(charged, policy, chance))
