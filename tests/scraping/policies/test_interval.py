"""The interval between polls, and the slow-down by errors: the policies as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.health.grading import DEGRADED_FROM_SECONDS
from scraping.configuration.policies import from_config
from scraping.payloads import Status
from scraping.policies.error_slowdown import MAX_LEVEL, NO_SLOWDOWN, Slowdown, after_error, after_success
from scraping.policies.interval import ENDING_POLLS, HIGH, LOW, NORMAL, Pace, PollHistory, plan
from scraping.policies.milestones import ScoreProgress
from tests.factories import NOW
from tests.scraping.builders import later
from victoryline.configuration import load

RUSH = "1011011010"  # six of the last ten polls brought something
HALF = "1010101010"


def live(**fields: Any) -> PollHistory:
    return PollHistory(Status.LIVE, **fields)


def starts(seconds: float, **fields: Any) -> PollHistory:
    return PollHistory(Status.UPCOMING, later(seconds), **fields)


class TestLiveMatch:
    @pytest.mark.requirement("FR-022")
    @pytest.mark.parametrize(
        ("history", "seconds", "reason"),
        [
            pytest.param(live(), 2.5, "in play", id="play"),
            pytest.param(live(slowed_seconds=5), 5, "slowed by errors", id="after five errors"),
            pytest.param(live(slowed_seconds=10), 10, "slowed by errors", id="after ten"),
            pytest.param(live(slowed_seconds=20), 20, "slowed by errors", id="after twenty"),
            pytest.param(live(recent_changes=RUSH, slowed_seconds=5), 5, "slowed by errors", id="errors in a rush"),
        ],
    )
    def test_has_a_baseline_that_errors_stretch(self, history: PollHistory, seconds: float, reason: str) -> None:
        planned = plan(history, Pace(), NOW)
        assert (planned.seconds, planned.reason) == (seconds, reason)

    @pytest.mark.requirement("US5.3", "FR-022", "FR-024")
    @pytest.mark.parametrize(
        ("history", "seconds", "reason"),
        [
            pytest.param(live(is_break=True, unchanged_polls=9), 2.5, "in play", id="nine polls of a break"),
            pytest.param(
                live(is_break=True, unchanged_polls=10), 30, "a break: no change in 10 polls", id="ten of them"
            ),
            pytest.param(live(is_break=True, recent_changes="0" * 9 + "1"), 2.5, "in play", id="then something moves"),
            pytest.param(
                live(is_break=True, unchanged_polls=10, slowed_seconds=20),
                30,
                "a break: no change in 10 polls",
                id="a break is slower than what its errors ask for",
            ),
            pytest.param(live(unchanged_polls=39), 2.5, "in play", id="a minute and a half between two balls"),
            pytest.param(
                live(unchanged_polls=40),
                30,
                "nothing moves: no change in 40 polls",
                id="too long for play, no break announced",
            ),
            pytest.param(
                live(unchanged_polls=10, score=ScoreProgress.INNINGS_FINISHED),
                30,
                "between innings: no change in 10 polls",
                id="all out, no break announced",
            ),
            pytest.param(
                live(unchanged_polls=40, score=ScoreProgress.MATCH_FINISHED),
                2.5,
                "its end is due: no change in 40 polls",
                id="won, not announced",
            ),
            pytest.param(
                live(unchanged_polls=ENDING_POLLS, score=ScoreProgress.MATCH_FINISHED),
                30,
                f"nothing moves: no change in {ENDING_POLLS} polls",
                id="nor ten minutes later",
            ),
        ],
    )
    def test_is_polled_rarely_in_a_break(self, history: PollHistory, seconds: float, reason: str) -> None:
        planned = plan(history, Pace(), NOW)
        assert (planned.seconds, planned.reason) == (seconds, reason)

    @pytest.mark.requirement("US5.3", "NFR-021")
    @pytest.mark.parametrize(("is_break", "polls"), [(True, 4), (False, 6)])
    def test_is_in_a_break_after_the_configured_polls(self, is_break: bool, polls: int) -> None:
        pace = Pace(break_after_polls=4, break_after_polls_in_play=6)
        before, then = (
            plan(live(is_break=is_break, unchanged_polls=number), pace, NOW) for number in (polls - 1, polls)
        )
        assert (before.seconds, then.seconds) == (2.5, 30)

    @pytest.mark.requirement("US5.4", "FR-022")
    @pytest.mark.parametrize(
        ("changes", "seconds", "reason"),
        [
            pytest.param(RUSH, 2, "a rush: 6 of 10 polls brought something", id="more than half"),
            pytest.param("1" * 10, 2, "a rush: 10 of 10 polls brought something", id="all of them"),
            pytest.param(HALF, 2.5, "in play", id="half of them"),
            pytest.param("111111", 2.5, "in play", id="too few polls"),
        ],
    )
    def test_is_polled_more_often_in_a_rush(self, changes: str, seconds: float, reason: str) -> None:
        planned = plan(live(recent_changes=changes), Pace(), NOW)
        assert (planned.seconds, planned.reason) == (seconds, reason)

    @pytest.mark.requirement("FR-025")
    @pytest.mark.parametrize(
        ("fields", "by_importance"),
        [
            pytest.param({}, (2.0, 2.5, 5.0), id="play"),
            pytest.param({"recent_changes": RUSH}, (2.0, 2.0, 2.0), id="a rush is no low history"),
            pytest.param({"is_break": True, "unchanged_polls": 10}, (15.0, 30.0, 45.0), id="a break"),
            pytest.param({"unchanged_polls": 40}, (15.0, 30.0, 45.0), id="nothing moves"),
            pytest.param({"slowed_seconds": 10}, (10.0, 10.0, 10.0), id="errors"),
        ],
    )
    def test_of_higher_importance_is_polled_more_often(
        self, fields: dict[str, Any], by_importance: tuple[float, ...]
    ) -> None:
        found = [plan(live(importance=one, **fields), Pace(), NOW).seconds for one in (HIGH, NORMAL, LOW)]
        assert tuple(found) == by_importance

    def test_in_a_break_is_never_old_enough_to_degrade_the_system(self) -> None:
        for importance in (HIGH, NORMAL, LOW):
            quiet = live(is_break=True, unchanged_polls=10, importance=importance)
            assert plan(quiet, Pace(), NOW).seconds < DEGRADED_FROM_SECONDS - 10

    @pytest.mark.parametrize(
        ("variable", "history", "without"),
        [
            pytest.param("ENABLE_ADAPTIVE_POLLING", live(slowed_seconds=20), 2.5, id="errors"),
            pytest.param("ENABLE_ADAPTIVE_POLLING", live(recent_changes=RUSH), 2.5, id="a rush"),
            pytest.param("ENABLE_ADAPTIVE_POLLING", live(importance=LOW), 2.5, id="importance"),
            pytest.param("ENABLE_ADAPTIVE_POLLING", live(is_break=True, unchanged_polls=10), 2.5, id="breaks too"),
            pytest.param("ENABLE_MATCH_STATE_DETECTION", live(is_break=True, unchanged_polls=10), 2.5, id="a break"),
            pytest.param("ENABLE_MATCH_STATE_DETECTION", live(unchanged_polls=99), 2.5, id="a silence"),
        ],
    )
    def test_has_a_fixed_interval_where_adaptation_is_off(
        self, variable: str, history: PollHistory, without: float
    ) -> None:
        on, off = (from_config(load({variable: word})).pace for word in ("true", "false"))
        assert plan(history, on, NOW).seconds != without
        assert plan(history, off, NOW).seconds == without

    def test_errors_still_slow_where_only_phases_are_switched_off(self) -> None:
        assert plan(live(unchanged_polls=99, slowed_seconds=5), Pace(detects_phases=False), NOW).seconds == 5


class TestMatchThatIsNotLive:
    @pytest.mark.parametrize(
        ("history", "seconds", "reason"),
        [
            pytest.param(starts(86_400), 300, "it has not begun", id="tomorrow"),
            pytest.param(starts(1200), 300, "it has not begun", id="in twenty minutes"),
            pytest.param(starts(600), 150, "it has not begun", id="in ten minutes"),
            pytest.param(starts(60), 15, "it has not begun", id="in a minute"),
            pytest.param(starts(8), 5, "it has not begun", id="in a moment"),
            pytest.param(starts(0), 5, "it should have begun", id="now"),
            pytest.param(starts(-1800), 5, "it should have begun", id="half an hour ago, and not announced"),
            pytest.param(starts(-3600), 10, "it should have begun", id="an hour ago"),
            pytest.param(starts(-6 * 3600), 60, "it should have begun", id="six hours ago"),
            pytest.param(starts(-9 * 86_400), 300, "it should have begun", id="last week"),
            pytest.param(starts(30, is_postponed=True), 300, "it is postponed", id="put off"),
            pytest.param(PollHistory(Status.UPCOMING), 60, "its start is unknown", id="without a time"),
            pytest.param(starts(8, slowed_seconds=20), 20, "slowed by errors", id="soon, but failing"),
            pytest.param(PollHistory(Status.COMPLETED, slowed_seconds=20), 300, "it is over", id="completed"),
            pytest.param(PollHistory(Status.ABANDONED, unchanged_polls=99), 300, "it is over", id="abandoned"),
        ],
    )
    def test_is_polled_by_the_time_until_its_start(self, history: PollHistory, seconds: float, reason: str) -> None:
        planned = plan(history, Pace(), NOW)
        assert (planned.seconds, planned.reason) == (seconds, reason)

    @given(st.floats(0, 9e5), st.floats(0, 9e5))
    def test_the_interval_never_grows_before_the_start(self, one: float, other: float) -> None:
        near, far = sorted((one, other))
        assert plan(starts(near), Pace(), NOW).seconds <= plan(starts(far), Pace(), NOW).seconds

    @given(st.floats(0, 9e5), st.floats(0, 9e5))
    def test_the_interval_never_shrinks_after_the_start(self, one: float, other: float) -> None:
        near, far = sorted((one, other))
        assert plan(starts(-near), Pace(), NOW).seconds <= plan(starts(-far), Pace(), NOW).seconds


activities = st.builds(
    PollHistory,
    status=st.sampled_from(Status),
    start_time=st.none() | st.integers(-(10**6), 10**6).map(later),
    is_break=st.booleans(),
    unchanged_polls=st.integers(0, 500),
    recent_changes=st.text("01", max_size=10),
    importance=st.sampled_from((HIGH, NORMAL, LOW)),
    slowed_seconds=st.sampled_from((0.0, 5.0, 10.0, 20.0)),
    score=st.sampled_from(ScoreProgress),
    is_postponed=st.booleans(),
)
paces = st.builds(
    Pace,
    baseline_seconds=st.floats(0.5, 60),
    break_seconds=st.floats(1, 600),
    is_adaptive=st.booleans(),
    detects_phases=st.booleans(),
)


@given(activities, paces)
def test_every_plan_is_in_the_future_and_has_a_reason(history: PollHistory, pace: Pace) -> None:
    planned = plan(history, pace, NOW)
    assert 0 < planned.seconds <= 1200
    assert 0 < len(planned.reason) <= 80


@given(activities, paces, st.sampled_from((5.0, 10.0, 20.0)))
def test_errors_make_nothing_faster(history: PollHistory, pace: Pace, seconds: float) -> None:
    calm, failing = (replace(history, slowed_seconds=one) for one in (0.0, seconds))
    assert plan(failing, pace, NOW).seconds >= plan(calm, pace, NOW).seconds


CALM = 300.0
Poll = tuple[float, bool]  # seconds, is it an error


def slowdown_after(*polls: Poll, before: Slowdown = NO_SLOWDOWN) -> Slowdown:
    """Returns the slow-down after these polls."""
    slowdown, in_a_row = before, 0
    for seconds, is_error in polls:
        at = later(seconds)
        in_a_row = in_a_row + 1 if is_error else 0
        slowdown = (
            after_error(slowdown, errors_in_a_row=in_a_row, calm_seconds=CALM, now=at)
            if is_error
            else after_success(slowdown, now=at)
        )
    return slowdown


def every(seconds: float, number: int, *, good_between: bool = True) -> tuple[Poll, ...]:
    """So many errors, a success between each two."""
    polls = [(seconds * (n + half / 2), not half) for n in range(number) for half in range(1 + good_between)]
    return tuple(polls)


@pytest.mark.requirement("US5.1", "FR-022")
class TestErrorSlowdown:
    @pytest.mark.parametrize(
        ("polls", "seconds"),
        [
            pytest.param(every(5, 4), 0, id="four errors at twelve a minute"),
            pytest.param(every(5, 5), 5, id="five"),
            pytest.param(every(5, 9), 5, id="nine"),
            pytest.param(every(5, 10), 10, id="ten"),
            pytest.param(every(5, 20), 20, id="twenty"),
            pytest.param(every(5, 500), 20, id="no more than that"),
            pytest.param(every(10, 5), 5, id="six a minute are too many"),
            pytest.param(every(12, 300), 0, id="five a minute may come for an hour"),
            pytest.param(every(60, 60), 0, id="so may one a minute"),
            pytest.param(every(60, 4, good_between=False), 0, id="four in a row, a minute between them"),
            pytest.param(every(60, 5, good_between=False), 5, id="five in a row count at any rate"),
            pytest.param(every(60, 20, good_between=False), 20, id="and twenty"),
        ],
    )
    def test_step_by_step(self, polls: tuple[Poll, ...], seconds: float) -> None:
        assert slowdown_after(*polls).seconds_at(later(polls[-1][0])) == seconds

    def test_one_success_resets_nothing(self) -> None:
        slowed = slowdown_after(*every(5, 10))
        assert after_success(slowed, now=later(60)).seconds_at(later(60)) == 10

    @pytest.mark.parametrize(("quiet_for", "seconds"), [(0.0, 10.0), (299.0, 10.0), (300.0, 0.0), (9000.0, 0.0)])
    def test_lasts_for_five_calm_minutes(self, quiet_for: float, seconds: float) -> None:
        slowed = slowdown_after(*every(5, 10, good_between=False))
        assert slowed.seconds_at(later(45 + quiet_for)) == seconds

    def test_errors_that_go_on_keep_it_slow(self) -> None:
        slowed = slowdown_after(*every(5, 10, good_between=False))
        again = slowdown_after(*[(45 + seconds, True) for seconds in range(10, 290, 10)], before=slowed)
        assert again.seconds_at(later(45 + 280 + 299)) == 20

    def test_after_the_calm_nothing_is_left(self) -> None:
        assert after_success(slowdown_after(*every(5, 500)), now=later(2500 + CALM)) == NO_SLOWDOWN

    def test_a_single_error_after_the_calm_is_like_the_first(self) -> None:
        slowed = slowdown_after(*every(5, 500), (2500 + CALM, True))
        assert slowed == Slowdown(1.0, later(2500 + CALM))

    def test_what_is_left_of_a_few_errors_is_no_step(self) -> None:
        few = slowdown_after(*every(5, 4))
        assert (few.level, few.seconds, few.until) == (4, 0, None)


polls = st.lists(st.tuples(st.floats(0.1, 400), st.booleans()), max_size=60)


def moments(gaps: list[Poll]) -> tuple[Poll, ...]:
    at, found = 0.0, []
    for gap, is_error in gaps:
        at += gap
        found.append((at, is_error))
    return tuple(found)


class TestSlowdownProperties:
    @given(polls)
    def test_it_is_bounded_and_a_step_has_an_end(self, gaps: list[Poll]) -> None:
        slowdown = slowdown_after(*moments(gaps))
        assert 0 <= slowdown.level <= MAX_LEVEL
        assert slowdown.seconds in (0, 5, 10, 20)
        assert bool(slowdown.seconds) == (slowdown.until is not None)

    @given(polls)
    def test_it_ends(self, gaps: list[Poll]) -> None:
        polls = moments(gaps)
        end = (polls[-1][0] if polls else 0) + CALM
        assert after_success(slowdown_after(*polls), now=later(end)) == NO_SLOWDOWN

    @given(polls, st.integers(0, 60), st.floats(0.01, 0.99))
    def test_one_more_error_makes_nothing_faster(self, gaps: list[Poll], where: int, part: float) -> None:
        """An additional error among scattered ones, none in a row: only the distance counts."""
        errors = [(at, True) for at, _ in moments(gaps)]
        before = errors[: where % (len(errors) + 1)]
        after = errors[len(before) :]
        low, high = (before[-1][0] if before else 0.0), (after[0][0] if after else 9e4)
        more = [*before, (low + (high - low) * part, True), *after]
        end = later(more[-1][0])
        assert scattered(errors).seconds_at(end) <= scattered(more).seconds_at(end)


def scattered(polls: list[Poll]) -> Slowdown:
    slowdown = NO_SLOWDOWN
    for seconds, _ in polls:
        slowdown = after_error(slowdown, errors_in_a_row=1, calm_seconds=CALM, now=later(seconds))
    return slowdown


@pytest.mark.requirement("FR-022")
class TestIntervalTable:
    @pytest.mark.parametrize(
        ("what", "history", "seconds"),
        [
            ("in play", PollHistory(Status.LIVE), 2.5),
            ("nine polls without news in a break", PollHistory(Status.LIVE, is_break=True, unchanged_polls=9), 2.5),
            ("ten polls without news in a break", PollHistory(Status.LIVE, is_break=True, unchanged_polls=10), 30),
            ("no news while play goes on", PollHistory(Status.LIVE, unchanged_polls=39), 2.5),
            ("no news for so long that play cannot go on", PollHistory(Status.LIVE, unchanged_polls=40), 30),
            ("news in most of the last ten polls", PollHistory(Status.LIVE, recent_changes="1011011010"), 2),
            ("news in half of them", PollHistory(Status.LIVE, recent_changes="1010101010"), 2.5),
            ("too few polls", PollHistory(Status.LIVE, recent_changes="11111"), 2.5),
            ("slowed by errors", PollHistory(Status.LIVE, slowed_seconds=5), 5),
            ("errors in a break", PollHistory(Status.LIVE, is_break=True, unchanged_polls=10, slowed_seconds=20), 30),
            ("errors in action", PollHistory(Status.LIVE, recent_changes="1" * 10, slowed_seconds=5), 5),
            ("completed", PollHistory(Status.COMPLETED, slowed_seconds=20), 300),
            ("abandoned", PollHistory(Status.ABANDONED), 300),
            ("starts in a day", PollHistory(Status.UPCOMING, later(24 * 3600)), 300),
            ("starts in two minutes", PollHistory(Status.UPCOMING, later(120)), 30),
            ("should have started", PollHistory(Status.UPCOMING, later(-60)), 5),
            ("start unknown", PollHistory(Status.UPCOMING), 60),
            ("soon, but failing", PollHistory(Status.UPCOMING, later(8), slowed_seconds=20), 20),
        ],
    )
    def test_follows_the_match(self, what: str, history: PollHistory, seconds: float) -> None:
        assert plan(history, Pace(), NOW).seconds == seconds

    def test_can_be_switched_off(self) -> None:
        steady = Pace(is_adaptive=False)
        assert plan(PollHistory(Status.LIVE, unchanged_polls=99, slowed_seconds=20), steady, NOW).seconds == 2.5

    def test_action_never_slows_a_faster_pace(self) -> None:
        assert plan(PollHistory(Status.LIVE, recent_changes="1" * 10), Pace(baseline_seconds=0.5), NOW).seconds == 0.5
