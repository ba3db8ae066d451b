"""Decides what follows a failed attempt, from the rule of its error class and the source's retry policy.

Guards against hammering a source that is in trouble: pauses double, and jitter keeps failed tasks out of step. The
decision is a value; the journal acts on it.
"""

import random
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scraping.errors import ERROR_RULES, MAX_UNCHARGED_ATTEMPTS, ErrorClass

LONGEST_TOKEN_PAUSE_SECONDS = 32.0
TOKEN_JITTER = 0.25
LIVE_LONGEST_SECONDS = 60.0  # no automatic pause of a live match is longer; its source's Retry-After may be
TIMEOUT_STRETCH = 1.5  # the attempt after a timeout gets 50 % more time, once per task


@dataclass(frozen=True)
class RetryPolicy:
    max_attempts: int = 6  # the first one and five retries
    base_delay_seconds: float = 1.0
    max_delay_seconds: float = 16.0  # jitter included
    jitter_seconds: float | None = None  # added to a pause at most; None: as much as the pause itself


@dataclass(frozen=True)
class Retry:
    """Try again at a time. `is_charged`: the failure counts as one of the task's attempts."""

    at: datetime
    is_charged: bool


@dataclass(frozen=True)
class Dead:
    """Give up; the task becomes a dead letter."""

    reason: str


@dataclass(frozen=True)
class Complete:
    """The source no longer has the match: nothing more will come."""

    reason: str


@dataclass(frozen=True)
class Skip:
    """Give this task up without a dead letter: neither a retry nor a repair would help."""

    reason: str


Decision = Retry | Dead | Complete | Skip


@dataclass(frozen=True)
class Failure:
    """The facts about a failed attempt that the decision needs."""

    error_class: ErrorClass
    message: str
    attempt: int
    charged_attempts: int  # before this one
    retry_after_seconds: float | None = None
    is_live: bool = False


def decide(failure: Failure, policy: RetryPolicy, now: datetime, chance: random.Random) -> Decision:
    """Returns what follows. The pause is the back-off, or the source's Retry-After where that is longer."""
    rule, message = ERROR_RULES[failure.error_class], failure.message
    if rule.first_pause_seconds is not None:
        policy = replace(policy, base_delay_seconds=rule.first_pause_seconds)
    longest = policy.max_delay_seconds if rule.longest_pause_seconds is None else rule.longest_pause_seconds
    policy = replace(policy, max_delay_seconds=min(longest, LIVE_LONGEST_SECONDS) if failure.is_live else longest)
    if not rule.is_charged:
        uncharged = failure.attempt - failure.charged_attempts
        if uncharged >= (rule.attempts or MAX_UNCHARGED_ATTEMPTS):
            return Dead(f"{uncharged} attempts ended by our own faults, the last one: {message}")
        return Retry(at=now + timedelta(seconds=_doubled_seconds(uncharged, policy)), is_charged=False)
    charged = failure.charged_attempts + 1
    if charged >= (rule.attempts or policy.max_attempts):
        if rule.completes_match:
            return Complete(f"the source said {charged} times that it is {failure.error_class.value}: {message}")
        attempts = "attempt" if charged == 1 else "attempts"
        reason = f"{failure.error_class.value} after {charged} {attempts}: {message}"
        return Skip(reason) if rule.skips_task else Dead(reason)
    seconds = failure.retry_after_seconds or 0.0
    if not (rule.first_retry_at_once and charged == 1):
        seconds = max(seconds, backoff_seconds(charged, policy, chance))
    return Retry(at=now + timedelta(seconds=seconds), is_charged=True)


def backoff_seconds(attempt: int, policy: RetryPolicy, chance: random.Random) -> float:
    """Returns the pause after failed attempt `attempt` (from 1): 1, 2, 4, 8, 16 s with jitter, at most the longest."""
    delay = _doubled_seconds(attempt, policy)
    jitter = delay if policy.jitter_seconds is None else policy.jitter_seconds
    return min(delay + chance.uniform(0.0, jitter), policy.max_delay_seconds)


def _doubled_seconds(attempt: int, policy: RetryPolicy) -> float:
    return min(policy.base_delay_seconds * 2.0 ** min(attempt - 1, 30), policy.max_delay_seconds)


def token_backoff_seconds(failures: int, chance: random.Random, *, retry_after: float | None = None) -> float:
    """Returns the pause before a token service is asked again, after so many failures in a row (from 1).

    1, 2, 4, 8, 16, 32 s, with jitter subtracted instead of added so that the longest pause is a hard limit. A service
    that sends a Retry-After is obeyed.
    """
    doubled = min(2.0 ** min(failures - 1, 10), LONGEST_TOKEN_PAUSE_SECONDS)
    return max(doubled * (1.0 - chance.uniform(0.0, TOKEN_JITTER)), retry_after or 0.0)
