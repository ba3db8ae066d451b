"""Attached pages: causes of reopening, and the age of the content."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from scraping.browser.attached_page import (
    MAX_UNCHANGED_FACTOR,
    UNCHANGED_SECONDS,
    AttachedPage,
    Extraction,
)
from scraping.browser.blocking import PageTraffic
from scraping.readings import PAGE, Document

HERE = "https://board.example/match/a-1"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def page_at(clock: Clock) -> AttachedPage:
    """Returns a page without a browser; only its own state is tested."""
    unused = cast("Any", None)
    loaded = Document(PAGE, HERE, 200, "text/html", b"")
    return AttachedPage(unused, unused, PageTraffic(), loaded, clock, changed_at=clock.now)


def extraction(pulse: object = "12:00", *, address: str = HERE, score: str = "1/0") -> Extraction:
    return Extraction({"score": score}, pulse, address)


class TestReopenCause:
    def test_a_changing_page_is_never_reopened(self) -> None:
        clock = Clock()
        page = page_at(clock)
        for second in range(100):
            clock.now += UNCHANGED_SECONDS - 1
            assert page.reopen_cause(extraction(f"12:{second}")) == ""

    def test_an_unchanged_page_is_reopened(self) -> None:
        clock = Clock()
        page = page_at(clock)
        page.reopen_cause(extraction())
        clock.now += UNCHANGED_SECONDS - 1
        assert page.reopen_cause(extraction()) == ""
        clock.now += 2
        assert page.reopen_cause(extraction()) == "it has not changed"

    def test_a_page_that_navigated_away_is_reopened(self) -> None:
        page = page_at(Clock())
        assert page.reopen_cause(extraction()) == ""
        assert page.reopen_cause(extraction(address=HERE + "0")) == "it navigated away"

    @pytest.mark.parametrize(("pulse", "stays"), [("12:00", True), (None, False)])
    def test_an_unchanged_page_with_a_pulse_gets_older(self, pulse: object, stays: bool) -> None:
        page = page_at(Clock())
        page.reopen_cause(extraction(pulse))
        page.fresh_at = earlier = datetime(2026, 5, 2, tzinfo=UTC)
        page.reopen_cause(extraction(pulse))
        assert (page.fresh_at == earlier) is stays


class TestInherit:
    def test_doubles_the_interval_of_an_unchanged_current_page(self) -> None:
        before = page_at(Clock())
        for times in (2, 4, 8, 8):
            page = page_at(Clock())
            page.inherit(before, extraction(None), extraction(None))
            assert page.max_unchanged_seconds == UNCHANGED_SECONDS * min(times, MAX_UNCHANGED_FACTOR)
            before = page

    @pytest.mark.parametrize("now", [extraction(None, score="2/0"), extraction()])
    def test_keeps_the_interval_where_the_page_was_stale(self, now: Extraction) -> None:
        page = page_at(Clock())
        page.inherit(page_at(Clock()), extraction(None), now)
        assert page.max_unchanged_seconds == UNCHANGED_SECONDS
