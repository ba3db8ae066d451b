"""Recycling of browsers, actions of the memory guard, and adaptive timeouts, as tables."""

from __future__ import annotations

import pytest

from scraping.browser.health import BrowserUsage, LaunchCause, RecyclePolicy, recycle_reason
from scraping.browser.memory_guard import MemoryAction, MemoryLimits, memory_action
from scraping.policies.timeouts import AdaptiveTimeouts, Timeouts, adapt

POLICY = RecyclePolicy(max_pages=100, max_age_seconds=3600, max_faults=2, fault_window_seconds=60)


@pytest.mark.requirement("FR-004", "FR-010")
class TestRecycleReason:
    @pytest.mark.parametrize(
        ("usage", "cause"),
        [
            pytest.param(BrowserUsage(0, 0, 0), None, id="new"),
            pytest.param(BrowserUsage(99, 3599, 1), None, id="just within all limits"),
            pytest.param(BrowserUsage(100, 10, 0), LaunchCause.PAGES, id="pages"),
            pytest.param(BrowserUsage(1, 3600, 0), LaunchCause.AGE, id="hours"),
            pytest.param(BrowserUsage(1, 10, 2), LaunchCause.FAULTS, id="two faults"),
            pytest.param(BrowserUsage(500, 9999, 3), LaunchCause.FAULTS, id="faults come first"),
        ],
    )
    def test_names_the_exceeded_limit(self, usage: BrowserUsage, cause: LaunchCause | None) -> None:
        reason = recycle_reason(usage, POLICY)
        assert (reason[0] if reason else None) == cause


LIMITS = MemoryLimits(soft_bytes=1000, hard_bytes=2000, settle_seconds=30, min_worker_seconds=120)


@pytest.mark.requirement("FR-006", "US2.1")
class TestMemoryAction:
    @pytest.mark.parametrize(
        ("tree", "age", "replaced", "killed", "action"),
        [
            pytest.param(800, 999, None, None, MemoryAction.NONE, id="80 %"),
            pytest.param(801, 999, None, None, MemoryAction.WARN, id="a warning for more"),
            pytest.param(1000, 999, None, None, MemoryAction.WARN, id="at the soft limit"),
            pytest.param(1001, 999, None, None, MemoryAction.REPLACE_BROWSER, id="above it"),
            pytest.param(1001, 999, 0, None, MemoryAction.WARN, id="its visits are not done"),
            pytest.param(1001, 999, 29, None, MemoryAction.WARN, id="the new browser settles"),
            pytest.param(1001, 999, 30, None, MemoryAction.STOP_WORKER, id="a new browser did not help"),
            pytest.param(1001, 119, 30, None, MemoryAction.WARN, id="a new worker is not restarted"),
            pytest.param(2000, 999, None, None, MemoryAction.REPLACE_BROWSER, id="at the hard limit"),
            pytest.param(2001, 999, None, None, MemoryAction.KILL_BROWSER, id="above it, at once"),
            pytest.param(2001, 1, 5, None, MemoryAction.KILL_BROWSER, id="regardless of a replacement"),
            pytest.param(2001, 999, None, 9, MemoryAction.NONE, id="the killed browser frees its memory"),
            pytest.param(2001, 999, None, 10, MemoryAction.KILL_WORKER, id="the worker itself is too large"),
        ],
    )
    def test_follows_the_limits(
        self, tree: int, age: float, replaced: float | None, killed: float | None, action: MemoryAction
    ) -> None:
        since = {"since_replaced": replaced, "since_killed": killed}
        assert memory_action(tree, LIMITS, worker_age_seconds=age, **since) is action


USUAL = Timeouts(page_seconds=30, navigation_seconds=30, selector_seconds=5, request_seconds=10)


@pytest.mark.requirement("FR-023")
class TestAdaptiveTimeouts:
    @pytest.mark.parametrize(
        ("latencies", "expected"),
        [
            pytest.param([], USUAL, id="no latencies"),
            pytest.param([9.0] * 9, USUAL, id="nine are too few"),
            pytest.param([2.0] * 10, USUAL, id="two seconds are not slow yet"),
            pytest.param([2.1] * 10, Timeouts(45, 45, 10, 15), id="slow"),
            pytest.param([0.5] * 10, USUAL, id="half a second is not quick yet"),
            pytest.param([0.4] * 10, Timeouts(24, 24, 5, 8), id="quick"),
            pytest.param([0.1] * 90 + [3.0] * 10, Timeouts(45, 45, 10, 15), id="only the last ten count"),
            pytest.param([0.0] * 9 + [21.0], Timeouts(45, 45, 10, 15), id="the average counts"),
        ],
    )
    def test_follow_the_last_ten_latencies(self, latencies: list[float], expected: Timeouts) -> None:
        adapted = adapt(USUAL, latencies)
        assert adapted == Timeouts(*map(pytest.approx, vars(expected).values()))

    def test_never_go_below_fifteen_seconds(self) -> None:
        short = Timeouts(page_seconds=16, navigation_seconds=12, selector_seconds=5, request_seconds=10)
        adapted = adapt(short, [0.1] * 10)
        assert (adapted.page_seconds, adapted.navigation_seconds) == (15, 12), "a lower one is kept"

    @pytest.mark.requirement("US5.2")
    def test_are_stretched_by_half_once_ten_answers_took_more_than_two_seconds_on_average(self) -> None:
        timeouts = AdaptiveTimeouts(USUAL)
        for seconds in (1.0, 3.2) * 4 + (1.0,):
            timeouts.record("slow", seconds)
        before = timeouts.of("slow")
        assert (before.page_seconds, before.navigation_seconds, before.selector_seconds) == (30, 30, 5)
        timeouts.record("slow", 3.2)
        after = timeouts.of("slow")
        assert (after.page_seconds, after.navigation_seconds, after.selector_seconds) == (45, 45, 10)

    @pytest.mark.requirement("FR-021")
    def test_each_source_has_its_own_and_a_retry_gets_more(self) -> None:
        timeouts = AdaptiveTimeouts(USUAL)
        for _ in range(10):
            timeouts.record("slow", 3.0)
        assert timeouts.of("slow").navigation_seconds == 45
        assert timeouts.of("slow", factor=1.5).navigation_seconds == 67.5
        assert timeouts.of("other").navigation_seconds == 30
        assert timeouts.of("other", factor=1.5).request_seconds == 15

    def test_do_not_change_when_adaptation_is_off(self) -> None:
        timeouts = AdaptiveTimeouts(USUAL, is_adaptive=False)
        for _ in range(10):
            timeouts.record("slow", 3.0)
        assert timeouts.of("slow").navigation_seconds == 30
