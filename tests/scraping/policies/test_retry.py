"""The decision after a failed attempt, and the back-off."""

from __future__ import annotations

import random
from typing import Any

import pytest

from scraping.errors import ERROR_RULES, ErrorClass
from scraping.policies.retry import (
    MAX_UNCHARGED_ATTEMPTS,
    Complete,
    Dead,
    Failure,
    Retry,
    RetryPolicy,
    Skip,
    backoff_seconds,
    decide,
)
from tests.factories import NOW
from tests.scraping.builders import later


class Never(random.Random):
    """Jitter that adds nothing."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Always(random.Random):
    """Jitter that adds its maximum."""

    def uniform(self, a: float, b: float) -> float:
        return b


E = ErrorClass


@pytest.mark.requirement("FR-002", "FR-017", "ZT-4")
class TestBackoff:
    @pytest.mark.parametrize(
        ("attempt", "shortest", "longest"), [(1, 1, 2), (2, 2, 4), (3, 4, 8), (4, 8, 16), (5, 16, 16), (50, 16, 16)]
    )
    def test_doubles_from_one_second_and_jitters(self, attempt: int, shortest: float, longest: float) -> None:
        policy = RetryPolicy()
        assert backoff_seconds(attempt, policy, Never()) == shortest
        assert backoff_seconds(attempt, policy, Always()) == longest

    @pytest.mark.parametrize(("chance", "pauses"), [(Never(), [1, 2, 4, 8, 16]), (Always(), [2, 4, 8, 16, 16])])
    def test_five_retries_follow_the_first_attempt(self, chance: random.Random, pauses: list[float]) -> None:
        """The pauses of one task, from its first failed attempt to its last, as `decide` returns them."""
        waited, charged = [], 0
        while isinstance(
            decision := decide(Failure(E.TRANSIENT, "down", charged + 1, charged), RetryPolicy(), NOW, chance), Retry
        ):
            waited.append((decision.at - NOW).total_seconds())
            charged += 1
        assert waited == pauses
        assert decision == Dead("transient after 6 attempts: down")

    def test_a_source_has_its_own_attempts_base_and_jitter(self) -> None:
        slow = RetryPolicy(max_attempts=4, base_delay_seconds=2, max_delay_seconds=16, jitter_seconds=1)
        assert [backoff_seconds(attempt, slow, Never()) for attempt in (1, 2, 3)] == [2, 4, 8]
        assert [backoff_seconds(attempt, slow, Always()) for attempt in (1, 2, 3)] == [3, 5, 9]


@pytest.mark.requirement("ZT-4", "BX-17", "FS-9")
class TestDecide:
    """One policy for each class of error."""

    @staticmethod
    def decided(
        error_class: ErrorClass, *, attempt: int = 1, charged: int = 0, retry_after: float | None = None
    ) -> Any:
        failure = Failure(error_class, "it broke", attempt, charged, retry_after)
        return decide(failure, RetryPolicy(), NOW, Never())

    @pytest.mark.parametrize(
        ("error_class", "charged", "seconds"),
        [
            (E.TRANSIENT, 0, 1),
            (E.TRANSIENT, 1, 2),
            (E.TRANSIENT, 3, 8),
            (E.BLOCKED, 0, 15),
            (E.BLOCKED, 1, 30),
            (E.BLOCKED, 3, 60),
            (E.AUTH, 0, 0),
            (E.AUTH, 1, 30),
            (E.DRIFT, 0, 0),
            (E.GONE, 0, 1),
        ],
    )
    def test_the_sources_faults_are_charged_and_wait(
        self, error_class: ErrorClass, charged: int, seconds: float
    ) -> None:
        assert self.decided(error_class, attempt=charged + 1, charged=charged) == Retry(later(seconds), is_charged=True)

    @pytest.mark.parametrize("error_class", [E.RESOURCE, E.STORE])
    @pytest.mark.parametrize(("attempt", "charged", "seconds"), [(1, 0, 0.2), (5, 0, 3.2), (9, 0, 15.0), (5, 4, 0.2)])
    def test_our_own_faults_cost_nothing_and_wait_longer_each_time(
        self, error_class: ErrorClass, attempt: int, charged: int, seconds: float
    ) -> None:
        decision = self.decided(error_class, attempt=attempt, charged=charged)
        assert decision == Retry(later(seconds), is_charged=False)

    @pytest.mark.parametrize("error_class", [E.RESOURCE, E.STORE])
    def test_a_page_that_kills_every_browser_becomes_dead(self, error_class: ErrorClass) -> None:
        decision = self.decided(error_class, attempt=MAX_UNCHARGED_ATTEMPTS)
        assert decision == Dead("10 attempts ended by our own faults, the last one: it broke")

    @pytest.mark.parametrize(
        ("error_class", "charged", "expected"),
        [
            (E.TRANSIENT, 5, Dead("transient after 6 attempts: it broke")),
            (E.BLOCKED, 5, Dead("blocked after 6 attempts: it broke")),
            (E.AUTH, 5, Dead("auth after 6 attempts: it broke")),
            (E.DRIFT, 1, Dead("drift after 2 attempts: it broke")),
            (E.CHALLENGE, 1, Skip("challenge after 2 attempts: it broke")),
            (E.BUG, 0, Dead("bug after 1 attempt: it broke")),
            (E.GONE, 1, Complete("the source said 2 times that it is gone: it broke")),
        ],
    )
    def test_and_end(self, error_class: ErrorClass, charged: int, expected: Any) -> None:
        assert self.decided(error_class, attempt=charged + 1, charged=charged) == expected

    @pytest.mark.parametrize(
        ("error_class", "retry_after", "seconds"),
        [(E.BLOCKED, 90, 90), (E.BLOCKED, 5, 15), (E.TRANSIENT, 7, 7), (E.TRANSIENT, 0.1, 1)],
    )
    def test_a_retry_after_is_obeyed(self, error_class: ErrorClass, retry_after: float, seconds: float) -> None:
        assert self.decided(error_class, retry_after=retry_after) == Retry(later(seconds), is_charged=True)

    @pytest.mark.parametrize("error_class", ErrorClass)
    def test_every_class_ends_as_its_rule_says(self, error_class: ErrorClass) -> None:
        rule, attempt, charged = ERROR_RULES[error_class], 1, 0
        while isinstance(decision := self.decided(error_class, attempt=attempt, charged=charged), Retry):
            assert (decision.at >= NOW, decision.is_charged) == (True, rule.is_charged)
            attempt, charged = attempt + 1, charged + decision.is_charged
        assert attempt == (rule.attempts or RetryPolicy().max_attempts)
        assert type(decision) is (Complete if rule.completes_match else Skip if rule.skips_task else Dead)

    @pytest.mark.parametrize("error_class", ErrorClass)
    def test_a_live_match_waits_no_longer_than_a_minute(self, error_class: ErrorClass) -> None:
        """Whatever the settings allow; another match waits as long as they say."""
        patient = RetryPolicy(max_attempts=99, base_delay_seconds=600, max_delay_seconds=3600)
        waits = {}
        for is_live in (True, False):
            failures = (Failure(error_class, "it broke", 9, charged, is_live=is_live) for charged in range(8))
            decisions = [decide(one, patient, NOW, Always()) for one in failures]
            waits[is_live] = [one.at for one in decisions if isinstance(one, Retry)]
        assert all(at <= later(60) for at in waits[True])
        assert error_class is not E.TRANSIENT or max(waits[False]) == later(3600)

    def test_a_retry_after_of_a_live_match_is_obeyed(self) -> None:
        failure = Failure(E.BLOCKED, "429", 1, 0, retry_after_seconds=600, is_live=True)
        assert decide(failure, RetryPolicy(), NOW, Always()) == Retry(later(600), is_charged=True)
