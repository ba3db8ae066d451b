"""When a browser or a worker is replaced, and adaptive timeouts: tables of cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from scraping.browser.care import (
    CarePolicy,
    Cause,
    Condition,
    MemoryLimits,
    MemorySeen,
    Relief,
    judge,
    judge_memory,
)
from scraping.browser.options import BrowserOptions
from scraping.browser.patience import Patience
from scraping.policies.timeouts import Timeouts, adapt

POLICY = CarePolicy(max_pages=100, max_age_seconds=3600, max_faults=2, fault_window_seconds=60)


@pytest.mark.requirement("FR-004", "FR-010")
class TestBrowser:
    @pytest.mark.parametrize(
        ("seen", "cause"),
        [
            pytest.param(Condition(0, 0, 0), None, id="new"),
            pytest.param(Condition(99, 3599, 1), None, id="just within all limits"),
            pytest.param(Condition(100, 10, 0), Cause.PAGES, id="pages"),
            pytest.param(Condition(1, 3600, 0), Cause.AGE, id="hours"),
            pytest.param(Condition(1, 10, 2), Cause.FAULTS, id="two faults"),
            pytest.param(Condition(500, 9999, 3), Cause.FAULTS, id="what is wrong now comes first"),
        ],
    )
    def test_is_replaced(self, seen: Condition, cause: Cause | None) -> None:
        worn = judge(seen, POLICY)
        assert (worn.cause if worn else None) == cause


LIMITS = MemoryLimits(soft_bytes=1000, hard_bytes=2000, settle_seconds=30, min_worker_seconds=120)


@pytest.mark.requirement("FR-006", "US2.1")
class TestMemory:
    @pytest.mark.parametrize(
        ("tree", "age", "replaced", "killed", "relief"),
        [
            pytest.param(800, 999, None, None, Relief.NONE, id="80 % are fine"),
            pytest.param(801, 999, None, None, Relief.WARN, id="a warning for more"),
            pytest.param(1000, 999, None, None, Relief.WARN, id="at the soft limit"),
            pytest.param(1001, 999, None, None, Relief.REPLACE_BROWSER, id="past it"),
            pytest.param(1001, 999, 0, None, Relief.WARN, id="its visits are not done yet"),
            pytest.param(1001, 999, 29, None, Relief.WARN, id="the new browser settles"),
            pytest.param(1001, 999, 30, None, Relief.STOP_WORKER, id="a new browser did not help"),
            pytest.param(1001, 119, 30, None, Relief.WARN, id="a worker that is new itself: no storm of restarts"),
            pytest.param(2000, 999, None, None, Relief.REPLACE_BROWSER, id="at the hard limit"),
            pytest.param(2001, 999, None, None, Relief.KILL_BROWSER, id="past it, at once"),
            pytest.param(2001, 1, 5, None, Relief.KILL_BROWSER, id="whatever was tried before"),
            pytest.param(2001, 999, None, 9, Relief.NONE, id="the dead give back what they had"),
            pytest.param(2001, 999, None, 10, Relief.KILL_WORKER, id="it was not the browser's"),
        ],
    )
    def test_is_relieved(
        self, tree: int, age: float, replaced: float | None, killed: float | None, relief: Relief
    ) -> None:
        assert judge_memory(MemorySeen(tree, age, replaced, killed), LIMITS) is relief


USUAL = Timeouts(page_seconds=30, navigation_seconds=30, selector_seconds=5, request_seconds=10)


@pytest.mark.requirement("FR-023")
class TestTimeouts:
    @pytest.mark.parametrize(
        ("latencies", "expected"),
        [
            pytest.param([], USUAL, id="nothing is known"),
            pytest.param([9.0] * 9, USUAL, id="nine answers are too few"),
            pytest.param([2.0] * 10, USUAL, id="two seconds are not slow yet"),
            pytest.param([2.1] * 10, Timeouts(45, 45, 10, 15), id="slow"),
            pytest.param([0.5] * 10, USUAL, id="half a second is not quick yet"),
            pytest.param([0.4] * 10, Timeouts(24, 24, 5, 8), id="quick"),
            pytest.param([0.1] * 90 + [3.0] * 10, Timeouts(45, 45, 10, 15), id="only the last ten count"),
            pytest.param([0.0] * 9 + [21.0], Timeouts(45, 45, 10, 15), id="it is the average that counts"),
        ],
    )
    def test_follow_the_last_ten_answers(self, latencies: list[float], expected: Timeouts) -> None:
        adapted = adapt(USUAL, latencies)
        assert adapted == Timeouts(*map(pytest.approx, vars(expected).values()))

    def test_never_go_below_fifteen_seconds(self) -> None:
        short = Timeouts(page_seconds=16, navigation_seconds=12, selector_seconds=5, request_seconds=10)
        adapted = adapt(short, [0.1] * 10)
        assert (adapted.page_seconds, adapted.navigation_seconds) == (15, 12), "what was lower stays"

    @pytest.mark.requirement("US5.2")
    def test_are_stretched_by_half_once_ten_answers_took_more_than_two_seconds_on_average(self) -> None:
        patience = Patience(BrowserOptions(executable=Path("chromium"), owner="w"))
        for seconds in (1.0, 3.2) * 4 + (1.0,):
            patience.note("slow", seconds)
        before = patience.timeouts("slow")
        assert (before.page_seconds, before.navigation_seconds, before.selector_seconds) == (30, 30, 5)
        patience.note("slow", 3.2)
        after = patience.timeouts("slow")
        assert (after.page_seconds, after.navigation_seconds, after.selector_seconds) == (45, 45, 10)

    @pytest.mark.requirement("FR-021")
    def test_each_source_has_its_own_and_a_second_try_gets_more(self) -> None:
        patience = Patience(BrowserOptions(executable=Path("chromium"), owner="w"))
        for _ in range(10):
            patience.note("slow", 3.0)
        assert patience.timeouts("slow").navigation_seconds == 45
        assert patience.timeouts("slow", factor=1.5).navigation_seconds == 67.5
        assert patience.timeouts("other").navigation_seconds == 30
        assert patience.timeouts("other", factor=1.5).request_seconds == 15

    def test_stay_as_they_are_where_that_is_wanted(self) -> None:
        patience = Patience(BrowserOptions(executable=Path("chromium"), owner="w"), is_adaptive=False)
        for _ in range(10):
            patience.note("slow", 3.0)
        assert patience.timeouts("slow").navigation_seconds == 30
