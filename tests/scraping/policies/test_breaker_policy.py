"""The breaker policies, call windows and error rules as pure functions."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from scraping.configuration.policies import SOURCE_BREAKER, from_config
from scraping.errors import ERROR_RULES, OUR_FAULTS, SOURCE_FAULTS, ErrorClass
from scraping.policies.breaker import (
    CLOSED,
    HALF_OPEN,
    OPEN,
    PERMIT_SECONDS,
    BreakerPolicy,
    BreakerView,
    admit,
    after_failure,
    after_success,
    closed,
    forced_closed,
    forced_open,
    give_back,
    half_opened,
    probe_limit,
    settled,
)
from scraping.policies.retry import Failure, Retry, RetryPolicy, decide
from scraping.policies.source_breaker import BUCKET_SECONDS, CallWindow, WindowPolicy, is_failing
from tests.factories import NOW
from tests.scraping.builders import later
from victoryline import configuration
from victoryline.lib.bulk_sql import bucket_start

POLICY = BreakerPolicy()
HALF = half_opened("test")


def play(outcomes: str, view: BreakerView | None = None, policy: BreakerPolicy = POLICY) -> BreakerView:
    """Plays a text: `-` a failure, `+` a success, `.` the open time; requests are made only if admitted."""
    view, now = view or BreakerView(), NOW
    for number, outcome in enumerate(outcomes):
        if outcome == ".":
            now += timedelta(seconds=policy.timeout_seconds)
            continue
        admission = admit(view, str(number), policy, now)
        if admission.refused_until is None:
            after = after_failure if outcome == "-" else after_success
            view = after(admission.view, str(number), policy, now)
    return view


@pytest.mark.requirement("FR-003")
class TestBreakerOfAMatch:
    @pytest.mark.parametrize(
        ("outcomes", "state"),
        [
            ("", CLOSED),
            ("----", CLOSED),
            ("-----", OPEN),
            ("----+----", CLOSED),
            ("----+-----", OPEN),
            ("-----+", OPEN),
            ("-----.+", HALF_OPEN),
            ("-----.++++", HALF_OPEN),
            ("-----.+++++", CLOSED),
            ("-----.++++-", OPEN),
            ("-----.++++-.+++++", CLOSED),
            ("-----.+++++----", CLOSED),
            ("-----.+++++-----", OPEN),
        ],
    )
    def test_five_failures_open_five_good_probes_close(self, outcomes: str, state: str) -> None:
        assert play(outcomes).state == state

    def test_stays_open_for_sixty_seconds(self) -> None:
        view = play("-----")
        assert view.open_until == later(60)
        assert admit(view, "1", POLICY, later(59.9)).refused_until == later(60)
        assert admit(view, "1", POLICY, later(60)).refused_until is None

    def test_the_thresholds_are_settings(self) -> None:
        policy = BreakerPolicy(failure_threshold=2, timeout_seconds=5, success_threshold=1)
        assert play("--", policy=policy).open_until == later(5)
        assert play("--.+", policy=policy).state == CLOSED

    def test_has_a_reason(self) -> None:
        view = after_failure(replace(BreakerView(), failure_count=4), "1", POLICY, NOW, "live answered 502")
        assert view.reason == "5 failures in a row, the last: live answered 502"

    def test_a_request_from_before_it_opened_changes_nothing(self) -> None:
        opened = play("-----")
        assert after_success(opened, "from before", POLICY, later(1)) == opened
        assert after_failure(opened, "from before", POLICY, later(1)) == opened
        tried = admit(opened, "probe", POLICY, later(61)).view
        assert after_success(tried, "from before", POLICY, later(62)) == tried
        assert after_failure(tried, "from before", POLICY, later(62)) == tried


class TestPermits:
    def test_one_probe_at_a_time(self) -> None:
        first = admit(HALF, "1", POLICY, NOW)
        assert first.refused_until is None
        assert admit(first.view, "2", POLICY, NOW).refused_until == later(5)
        assert admit(first.view, "2", POLICY, NOW).view == first.view

    def test_the_outcome_gives_it_back(self) -> None:
        view = after_success(admit(HALF, "1", POLICY, NOW).view, "1", POLICY, later(1))
        assert (view.success_count, dict(view.probes)) == (1, {})
        assert admit(view, "2", POLICY, later(1)).refused_until is None

    def test_an_end_without_evidence_gives_it_back_too(self) -> None:
        view = give_back(admit(HALF, "1", POLICY, NOW).view, "1")
        assert (view.state, view.success_count, dict(view.probes)) == (HALF_OPEN, 0, {})

    def test_a_lost_probe_expires(self) -> None:
        view = admit(HALF, "1", POLICY, NOW).view
        assert admit(view, "2", POLICY, later(PERMIT_SECONDS - 1)).refused_until is not None
        taken = admit(view, "2", POLICY, later(PERMIT_SECONDS))
        assert (taken.refused_until, list(taken.view.probes)) == (None, ["2"])

    def test_a_task_that_was_taken_over_keeps_its_permit(self) -> None:
        view = admit(HALF, "1", POLICY, NOW).view
        again = admit(view, "1", POLICY, later(16))
        assert (again.refused_until, again.view.probes["1"]) == (None, later(16 + PERMIT_SECONDS))

    def test_a_late_probe_counts_until_another_one_has_its_place(self) -> None:
        view = admit(HALF, "1", POLICY, NOW).view
        assert after_failure(view, "1", POLICY, later(600)).state == OPEN
        replaced = admit(view, "2", POLICY, later(600)).view
        assert after_failure(replaced, "1", POLICY, later(601)) == replaced

    @pytest.mark.parametrize(("successes", "permits"), [(0, 3), (1, 2), (2, 1)])
    def test_a_source_gets_three_and_never_more_than_are_needed(self, successes: int, permits: int) -> None:
        view = replace(HALF, success_count=successes)
        for task in range(permits):
            admission = admit(view, str(task), SOURCE_BREAKER, NOW)
            assert admission.refused_until is None
            view = admission.view
        assert admit(view, "one more", SOURCE_BREAKER, NOW).refused_until is not None

    @pytest.mark.parametrize(
        ("view", "limit"), [(BreakerView(), None), (HALF, 3), (play("-----"), 0), (forced_open(later(9), "x"), 0)]
    )
    def test_probe_limit_is_what_the_scheduler_may_open(self, view: BreakerView, limit: int | None) -> None:
        assert probe_limit(view, SOURCE_BREAKER, NOW) == limit


@pytest.mark.requirement("FS-12")
class TestBreakerOfASource:
    @pytest.mark.parametrize(("outcomes", "state"), [("++", HALF_OPEN), ("+++", CLOSED), ("++-", OPEN), ("-++", OPEN)])
    def test_three_canary_probes_decide(self, outcomes: str, state: str) -> None:
        view = HALF
        for task in "012":
            view = admit(view, task, SOURCE_BREAKER, NOW).view
        for task, outcome in enumerate(outcomes):
            after = after_success if outcome == "+" else after_failure
            view = after(view, str(task), SOURCE_BREAKER, later(1))
        assert view.state == state
        assert view.open_until == (later(901) if state == OPEN else None)

    def test_failures_in_a_row_do_not_open_it(self) -> None:
        assert play("-" * 200, policy=SOURCE_BREAKER) == BreakerView()

    @pytest.mark.parametrize(
        ("calls", "bad", "expected"),
        [(0, 0, False), (29, 29, False), (30, 10, False), (30, 11, True), (100, 34, False), (100, 35, True)],
    )
    def test_thirty_calls_with_35_percent_bad_are_too_many(self, calls: int, bad: int, expected: bool) -> None:
        assert is_failing(CallWindow(calls, bad, bad_seconds=60), WindowPolicy()) is expected
        assert not is_failing(CallWindow(calls, bad, bad_seconds=50), WindowPolicy()), "too short a time"

    @pytest.mark.parametrize(("seconds", "start"), [(0, 0), (9.99, 0), (10, 10), (27.5, 20)])
    def test_calls_fall_into_buckets_of_ten_seconds(self, seconds: float, start: float) -> None:
        assert bucket_start(later(seconds), BUCKET_SECONDS) == later(start)

    def test_the_cool_down_is_a_setting(self) -> None:
        policies = from_config(configuration.load({"SOURCE_BREAKER_COOLDOWN_SECONDS": "30"}))
        assert policies.window == WindowPolicy(600, 30, 35, 60)
        assert (policies.source_breaker.timeout_seconds, policies.source_breaker.probes) == (30, 3)
        assert (policies.source_breaker.success_threshold, policies.source_breaker.failure_threshold) == (3, 0)


@pytest.mark.requirement("BX-7")
class TestForced:
    def test_open_refuses_every_task_until_its_end_and_then_probes(self) -> None:
        view = forced_open(later(600), "they asked us to")
        assert admit(view, "1", POLICY, later(599)).refused_until == later(600)
        assert after_success(view, "1", POLICY, later(599)) == view
        probing = settled(view, later(600))
        assert (probing.state, probing.forced) == (HALF_OPEN, "")

    def test_closed_admits_every_task_until_its_end(self) -> None:
        view = forced_closed(later(600), "we know better")
        for number in range(20):
            assert admit(view, str(number), POLICY, later(1)).refused_until is None
            view = after_failure(view, str(number), POLICY, later(1))
        assert (view.state, view.failure_count) == (CLOSED, 0)
        for number in range(5):
            view = after_failure(view, str(number), POLICY, later(600))
        assert (view.state, view.forced) == (OPEN, "")

    def test_reset_clears_all_counts(self) -> None:
        assert replace(closed("reset"), reason="") == BreakerView()


@pytest.mark.requirement("BX-17", "FS-9")
class TestRules:
    def test_every_class_has_one(self) -> None:
        assert set(ERROR_RULES) == set(ErrorClass)

    def test_only_faults_of_the_source_feed_breakers_and_only_our_own_are_free(self) -> None:
        assert sorted(SOURCE_FAULTS) == ["auth", "blocked", "challenge", "drift", "transient"]
        assert sorted(OUR_FAULTS) == ["resource", "store"]
        assert not SOURCE_FAULTS & OUR_FAULTS

    def test_only_refusals_change_the_session(self) -> None:
        rotating = {one for one, rule in ERROR_RULES.items() if rule.rotates_session}
        assert rotating == {ErrorClass.BLOCKED, ErrorClass.CHALLENGE, ErrorClass.AUTH}

    def test_a_class_that_needs_an_operator_is_hard(self) -> None:
        hard = {one for one, rule in ERROR_RULES.items() if not rule.is_soft}
        assert hard == {ErrorClass.CHALLENGE, ErrorClass.DRIFT, ErrorClass.GONE, ErrorClass.BUG}

    @pytest.mark.parametrize("error_class", sorted(set(ErrorClass) - OUR_FAULTS - {ErrorClass.BUG}))
    def test_a_retry_after_is_obeyed_for_every_class(self, error_class: ErrorClass) -> None:
        failure = Failure(error_class, "503", 1, 0, retry_after_seconds=90)
        assert decide(failure, RetryPolicy(), NOW, random.Random(1)) == Retry(later(90), is_charged=True)
