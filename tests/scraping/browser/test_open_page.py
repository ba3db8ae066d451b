"""When an open page is trusted, when it is opened anew, and how old what it shows is said to be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from scraping.browser.blocking import PageTally
from scraping.browser.open_page import MOST_PATIENT, QUIET_SECONDS, Answer, OpenPage, SocketBytes
from scraping.readings import PAGE, Document

HERE = "https://board.example/match/a-1"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def page_at(clock: Clock) -> OpenPage:
    """Only what it remembers is looked at; there is no browser behind it."""
    nobody = cast("Any", None)
    loaded = Document(PAGE, HERE, 200, "text/html", b"")
    return OpenPage(nobody, nobody, PageTally(), SocketBytes(), loaded, clock, moved_at=clock.now)


def answer(pulse: object = "12:00", *, has_pulse: bool = True, address: str = HERE, score: str = "1/0") -> Answer:
    return Answer({"score": score}, pulse, has_pulse, address)


class TestJudge:
    def test_one_that_moves_is_trusted_for_ever(self) -> None:
        clock = Clock()
        page = page_at(clock)
        for second in range(100):
            clock.now += QUIET_SECONDS - 1
            assert page.judge(answer(f"12:{second}")) == ""

    def test_one_that_stands_still_is_opened_anew(self) -> None:
        clock = Clock()
        page = page_at(clock)
        page.judge(answer())
        clock.now += QUIET_SECONDS - 1
        assert page.judge(answer()) == ""
        clock.now += 2
        assert page.judge(answer()) == "it stands still"

    def test_one_that_went_elsewhere_is_opened_anew(self) -> None:
        page = page_at(Clock())
        assert page.judge(answer()) == ""
        assert page.judge(answer(address=HERE + "0")) == "it went elsewhere"

    @pytest.mark.parametrize(("has_pulse", "stays"), [(True, True), (False, False)])
    def test_without_a_beat_a_page_with_a_pulse_grows_old(self, has_pulse: bool, stays: bool) -> None:
        page = page_at(Clock())
        page.judge(answer(7, has_pulse=has_pulse))
        page.fresh_at = earlier = datetime(2026, 5, 2, tzinfo=UTC)
        page.judge(answer(7, has_pulse=has_pulse))
        assert (page.fresh_at == earlier) is stays


class TestLearn:
    def test_a_quiet_page_that_was_right_is_given_more_time_each_time(self) -> None:
        before = page_at(Clock())
        for times in (2, 4, 8, 8):
            page = page_at(Clock())
            page.learn(before, answer(has_pulse=False), answer(has_pulse=False))
            assert page.patience_seconds == QUIET_SECONDS * min(times, MOST_PATIENT)
            before = page

    @pytest.mark.parametrize("now", [answer(has_pulse=False, score="2/0"), answer(has_pulse=True)])
    def test_one_that_was_wrong_is_not(self, now: Answer) -> None:
        page = page_at(Clock())
        page.learn(page_at(Clock()), answer(has_pulse=False), now)
        assert page.patience_seconds == QUIET_SECONDS
