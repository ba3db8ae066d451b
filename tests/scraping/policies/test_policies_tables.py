"""Policies as tables of cases. No database, no clock, no sleep."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from scraping.browser.faults import translate
from scraping.errors import (
    AuthExpired,
    Blocked,
    Drift,
    ErrorClass,
    Gone,
    PageCrashed,
    ReadTimeout,
    ResourceLost,
    ScrapingError,
    Transient,
)
from scraping.matches.lifecycle import LEGAL, NotAllowed, _move, priority_of
from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import SourceView, delta, fill_gaps, goes_backwards, is_empty, progress_summary
from scraping.models import HealthStatus, Match, MatchLifecycle, MatchRef, Priority, Scraper
from scraping.payloads import Status
from scraping.policies.interval import Pace, PollHistory, plan
from scraping.policies.retry import (
    MAX_UNCHARGED_ATTEMPTS,
    Complete,
    Dead,
    Failure,
    Retry,
    RetryPolicy,
    backoff_seconds,
    decide,
)
from scraping.reading.guard import checked, error_for
from scraping.readings import Document, Endpoint, Reading, ReadMode, RefInfo
from tests.factories import NOW
from tests.scraping.builders import later


class Never(random.Random):
    """A chance that adds nothing, so that a table can name the seconds."""

    def uniform(self, a: float, b: float) -> float:
        return a


class Always(random.Random):
    """A chance that adds all it can."""

    def uniform(self, a: float, b: float) -> float:
        return b


@pytest.mark.requirement("FR-002", "FR-017", "ZT-4")
class TestBackoff:
    @pytest.mark.parametrize(
        ("attempt", "shortest", "longest"), [(1, 1, 2), (2, 2, 4), (3, 4, 8), (4, 8, 16), (5, 16, 32), (50, 16, 32)]
    )
    def test_doubles_from_one_second_and_jitters(self, attempt: int, shortest: float, longest: float) -> None:
        policy = RetryPolicy()
        assert backoff_seconds(attempt, policy, Never()) == shortest
        assert backoff_seconds(attempt, policy, Always()) == longest

    def test_the_retries_of_one_task_lie_between_1_and_16_seconds(self) -> None:
        """The fifth failed attempt is the last, so the fifth pause is never waited for."""
        policy, chance = RetryPolicy(), random.Random(7)
        pauses = [backoff_seconds(attempt, policy, chance) for attempt in range(1, policy.max_attempts)] * 50
        assert len(set(pauses)) > 1
        assert all(1 <= pause <= 16 for pause in pauses)

    def test_a_source_may_have_its_own_policy(self) -> None:
        slow = RetryPolicy(max_attempts=4, base_delay_seconds=2, max_delay_seconds=16)
        assert [backoff_seconds(attempt, slow, Never()) for attempt in (1, 2, 3, 4)] == [2, 4, 8, 16]


E = ErrorClass


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
            (E.BLOCKED, 3, 120),
            (E.AUTH, 0, 0),
            (E.AUTH, 1, 30),
            (E.DRIFT, 0, 1),
            (E.GONE, 0, 1),
            (E.GONE, 1, 2),
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
            (E.TRANSIENT, 4, Dead("transient after 5 attempts: it broke")),
            (E.BLOCKED, 4, Dead("blocked after 5 attempts: it broke")),
            (E.AUTH, 4, Dead("auth after 5 attempts: it broke")),
            (E.DRIFT, 1, Dead("drift after 2 attempts: it broke")),
            (E.BUG, 0, Dead("bug after 1 attempt: it broke")),
            (E.GONE, 2, Complete("the source said 3 times that it is gone: it broke")),
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

    def test_every_class_has_a_policy(self) -> None:
        for error_class in ErrorClass:
            assert isinstance(self.decided(error_class), Retry | Dead | Complete)


class TestVerdict:
    """What an HTTP status means."""

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            (200, None),
            (204, None),
            (302, Drift),
            (400, Drift),
            (401, AuthExpired),
            (403, Blocked),
            (404, Gone),
            (408, Transient),
            (410, Gone),
            (418, Drift),
            (425, Transient),
            (429, Blocked),
            (500, Transient),
            (503, Transient),
            (599, Transient),
        ],
    )
    def test_becomes_an_error(self, status: int, expected: type[ScrapingError] | None) -> None:
        error = error_for(Document("live", "https://x/live", status, "text/plain", b"", retry_after_seconds=7))
        assert type(error) is (expected or type(None))
        assert error is None or (error.http_status, error.url, error.retry_after_seconds) == (
            status,
            "https://x/live",
            7,
        )

    @pytest.mark.parametrize(
        ("documents", "expected"),
        [
            ({"page": 200, "live": 200, "feed": 200}, {"page", "live", "feed"}),
            ({"page": 200, "live": 200, "feed": 500}, {"page", "live"}),
            ({"live": 200}, {"live"}),
            ({"page": 503, "live": 200}, Transient),
            ({"page": 200, "live": 403}, Blocked),
        ],
    )
    def test_only_what_is_required_fails_a_reading(self, documents: dict[str, int], expected: Any) -> None:
        answers = {name: Document(name, "https://x", status, "", b"") for name, status in documents.items()}
        reading = Reading(RefInfo("13KM", "https://x"), ReadMode.VISIT, NOW, answers)
        endpoints = (Endpoint("live", re.compile("live")), Endpoint("feed", re.compile("feed"), is_required=False))
        if isinstance(expected, set):
            assert set(checked(reading, endpoints).documents) == expected
        else:
            with pytest.raises(expected):
                checked(reading, endpoints)

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (PlaywrightError("Target page, context or browser has been closed"), ResourceLost),
            (PlaywrightError("Connection closed while reading from the driver"), ResourceLost),
            (PlaywrightError("Page crashed"), PageCrashed),
            (PlaywrightError("net::ERR_CONNECTION_RESET at https://x"), Transient),
            (PlaywrightError("net::ERR_NAME_NOT_RESOLVED at https://x"), Transient),
            (PlaywrightTimeout("Timeout 30000ms exceeded"), ReadTimeout),
            (ConnectionResetError("reset"), Transient),
            (Blocked("challenge"), Blocked),
        ],
    )
    def test_browser_errors_are_classified(self, error: Exception, expected: type[ScrapingError]) -> None:
        assert type(translate(error, url="https://x")) is expected

    def test_a_bug_stays_a_bug(self) -> None:
        with pytest.raises(KeyError):
            translate(KeyError("x"), url="https://x")


@pytest.mark.requirement("FR-022")
class TestInterval:
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
            ("starts in a day", PollHistory(Status.UPCOMING, NOW + timedelta(days=1)), 300),
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


class TestReconcile:
    @staticmethod
    def view(source: str, weight: int, *, age: float = 0, **state: Any) -> SourceView:
        return SourceView(source, weight, later(-age), state)

    @pytest.mark.parametrize(
        ("what", "views", "expected"),
        [
            ("one source", [("a", 50, 0, 1)], ("a", 1)),
            ("the heavier one", [("a", 50, 0, 1), ("b", 90, 0, 2)], ("b", 2)),
            ("the heavier one, though older", [("a", 50, 0, 1), ("b", 90, 60, 2)], ("b", 2)),
            ("of equals the newer one", [("a", 50, 60, 1), ("b", 50, 0, 2)], ("b", 2)),
            ("the only one that has it", [("a", 50, 0, 1), ("b", 90, 0, None)], ("a", 1)),
            ("zero is a value", [("a", 50, 0, 1), ("b", 90, 0, 0)], ("b", 0)),
            ("none has it", [("a", 50, 0, None), ("b", 90, 0, "")], ("b", "")),
            ("an object of nothing is nothing", [("a", 50, 0, {"g": 1}), ("b", 90, 0, {"g": None})], ("a", {"g": 1})),
        ],
    )
    def test_field_by_field(
        self, what: str, views: list[tuple[str, int, float, Any]], expected: tuple[str, Any]
    ) -> None:
        merged = reconcile([self.view(name, weight, age=age, f=value) for name, weight, age, value in views])
        assert (merged.provenance["f"]["source"], merged.state["f"]) == expected

    def test_provenance_has_source_and_time_of_each_field(self) -> None:
        merged = reconcile([self.view("a", 50, age=30, score=1, venue="Perth"), self.view("b", 90, score=2)])
        assert merged.state == {"score": 2, "venue": "Perth"}
        assert merged.provenance["venue"] == {
            "source": "a",
            "confidence": 1.0,
            "timestamp": "2026-01-10T11:59:30.000Z",
        }

    @pytest.mark.parametrize("empty", [None, "", [], {}, {"a": None}, {"a": {"b": ""}}])
    def test_nothing(self, empty: Any) -> None:
        assert is_empty(empty)

    @pytest.mark.parametrize("value", [0, False, "0", [None], {"a": 0}])
    def test_something(self, value: Any) -> None:
        assert not is_empty(value)

    def test_a_partial_state_erases_nothing(self) -> None:
        known = {
            "venue": "Perth",
            "score": {"a": {"goals": 1}, "b": {"goals": 0}},
            "last_event": {"t": "goal", "at": 5},
        }
        partial = {"venue": "", "score": {"a": {"goals": 2}, "b": {"goals": None}}, "last_event": {"t": "card"}}
        filled = fill_gaps(partial, known)
        assert filled["venue"] == "Perth"
        assert filled["score"] == {"a": {"goals": 2}, "b": {"goals": 0}}
        assert filled["last_event"] == {"t": "card"}  # not half of one event and half of another


class TestDelta:
    @pytest.mark.parametrize(
        ("what", "before", "after", "expected"),
        [
            ("the first state", {}, {"a": 1}, {"_diff_type": "initial", "a": 1}),
            ("one field", {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"_diff_type": "update", "b": 3}),
            ("a new field", {"a": 1}, {"a": 1, "b": 2}, {"_diff_type": "update", "b": 2}),
            ("a field that has gone", {"a": 1, "b": 2}, {"a": 1}, {"_diff_type": "update", "b": None}),
            ("no difference", {"a": 1}, {"a": 1}, {"_diff_type": "update"}),
            ("deep inside", {"a": {"x": 1}}, {"a": {"x": 2}}, {"_diff_type": "update", "a": {"x": 2}}),
        ],
    )
    def test_has_the_fields_that_differ(self, what: str, before: Any, after: Any, expected: Any) -> None:
        assert delta(before, after, sequence_delta=1) == {"_sequence_delta": 1, **expected}


def cricket(*innings: tuple[int, int], status: str = "live") -> dict[str, Any]:
    return {"status": status, "innings": [{"runs": runs, "wickets": wickets} for runs, wickets in innings]}


def football(home: int, away: int, *, status: str = "live", clock: str = "") -> dict[str, Any]:
    return {"status": status, "clock": clock, "score": {"team_a": {"goals": home}, "team_b": {"goals": away}}}


class TestGoesBackwards:
    @pytest.mark.parametrize(
        ("what", "before", "after", "expected"),
        [
            ("a run", cricket((95, 3)), cricket((96, 3)), False),
            ("a wicket", cricket((95, 3)), cricket((95, 4)), False),
            ("the same", cricket((95, 3)), cricket((95, 3)), False),
            ("a run less", cricket((95, 3)), cricket((94, 3)), True),
            ("a wicket less", cricket((95, 3)), cricket((95, 2)), True),
            ("the second innings begins", cricket((187, 5)), cricket((187, 5), (0, 0)), False),
            ("the second innings is lost", cricket((187, 5), (3, 0)), cricket((190, 5)), True),
            ("the score is lost", cricket((95, 3)), cricket(), True),
            ("a goal", football(1, 1), football(1, 2), False),
            ("a goal taken back", football(1, 2), football(1, 1), True),
            ("a goal taken back while the other side scores", football(1, 2), football(2, 1), True),
            ("the end", cricket((95, 3)), cricket((95, 3), status="completed"), False),
            ("the end taken back", cricket((95, 3), status="completed"), cricket((95, 3)), True),
            ("an abandoned match goes on", cricket((95, 3), status="abandoned"), cricket((99, 3)), True),
            ("a beginning taken back", cricket((0, 0)), cricket(status="upcoming"), True),
            (
                "a correction after the end",
                football(2, 1, status="completed"),
                football(1, 1, status="completed"),
                True,
            ),
        ],
    )
    def test_table(self, what: str, before: Any, after: Any, expected: bool) -> None:
        assert goes_backwards(before, after) is expected

    def test_equal_summaries_mean_the_same_score_whatever_the_clock(self) -> None:
        assert progress_summary(football(1, 1, clock="67")) == progress_summary(football(1, 1, clock="68"))
        assert progress_summary(football(1, 1)) != progress_summary(football(1, 0))
        assert progress_summary(cricket((95, 3))) != progress_summary(cricket((94, 3)))


@pytest.mark.requirement("DM-1")
class TestScraperRules:
    @staticmethod
    def scraper(**fields: Any) -> Scraper:
        values: dict[str, Any] = {"start_time": later(-600), "last_update_time": NOW}
        return Scraper(ref=MatchRef(), **values | fields)

    @pytest.mark.parametrize(
        ("what", "fields", "expected"),
        [
            ("all well", {}, "healthy"),
            ("two errors in a row", {"error_count": 2}, "healthy"),
            ("three", {"error_count": 3}, "degraded"),
            ("five", {"error_count": 5}, "degraded"),
            ("six", {"error_count": 6}, "failing"),
            ("silent for two minutes", {"last_update_time": later(-120)}, "healthy"),
            ("and a second", {"last_update_time": later(-121)}, "degraded"),
            ("for five minutes", {"last_update_time": later(-300)}, "degraded"),
            ("and a second more", {"last_update_time": later(-301)}, "failing"),
            ("never updated since its start", {"last_update_time": None}, "failing"),
            ("just started", {"start_time": later(-1), "last_update_time": None}, "healthy"),
        ],
    )
    def test_health(self, what: str, fields: dict[str, Any], expected: str) -> None:
        assert self.scraper(**fields).health_status(NOW) == HealthStatus(expected)

    @pytest.mark.parametrize(
        ("what", "fields", "expected"),
        [
            ("all well", {}, ""),
            ("ten errors in a row", {"error_count": 10}, ""),
            ("eleven", {"error_count": 11}, "11 errors in a row"),
            ("silent for five minutes", {"last_update_time": later(-300)}, ""),
            ("and a second", {"last_update_time": later(-301)}, "no update for 301 s"),
            ("six hours old", {"start_time": later(-6 * 3600)}, ""),
            ("and a second more", {"start_time": later(-6 * 3600 - 1)}, "lifetime of 6 h is over"),
        ],
    )
    def test_restart(self, what: str, fields: dict[str, Any], expected: str) -> None:
        reason = self.scraper(**fields).restart_reason(NOW, max_lifetime_seconds=6 * 3600.0, staleness_threshold=300.0)
        assert reason == expected

    def test_serialised_form(self) -> None:
        scraper = self.scraper(error_count=1, total_errors=4, total_updates=240, polling_interval=2.0)
        document = scraper.as_document(NOW, match_id="crex_13KM", url="https://x/13KM", memory_mb=412.34, cpu=7.26)
        assert document == {
            "scraper_id": str(scraper.pk),
            "match_id": "crex_13KM",
            "url": "https://x/13KM",
            "start_time": "2026-01-10T11:50:00.000Z",
            "last_update": "2026-01-10T12:00:00.000Z",
            "uptime_seconds": 600.0,
            "error_count": 1,
            "total_errors": 4,
            "total_updates": 240,
            "health_status": "healthy",
            "memory_mb": 412.3,
            "cpu_percent": 7.3,
            "polling_interval": 2.0,
        }


L = MatchLifecycle


@pytest.mark.requirement("SO-8")
class TestLifecycleTable:
    WAYS = frozenset(
        {
            (L.DISCOVERED, L.ACTIVE),
            (L.DISCOVERED, L.PAUSED),
            (L.DISCOVERED, L.COMPLETED),
            (L.ACTIVE, L.PAUSED),
            (L.ACTIVE, L.COMPLETED),
            (L.PAUSED, L.ACTIVE),
            (L.PAUSED, L.COMPLETED),
            (L.COMPLETED, L.ACTIVE),
            (L.COMPLETED, L.ARCHIVED),
        }
    )

    @pytest.mark.parametrize("to", list(L))
    @pytest.mark.parametrize("from_", list(L))
    def test_only_these_transitions_are_legal(self, from_: MatchLifecycle, to: MatchLifecycle) -> None:
        match = Match(lifecycle=from_, title="Kenya vs Nepal")
        if from_ == to or (from_, to) in self.WAYS:
            _move(match, to)
            assert match.lifecycle == to
        else:
            with pytest.raises(NotAllowed, match=f"is {from_} and cannot become {to}"):
                _move(match, to)

    def test_every_state_has_a_row(self) -> None:
        assert set(LEGAL) == set(L)

    @pytest.mark.parametrize(
        ("what", "status", "start", "expected"),
        [
            ("live", Status.LIVE, None, Priority.LIVE),
            ("starts within the hour", Status.UPCOMING, later(3600), Priority.IMMINENT),
            ("starts later", Status.UPCOMING, later(3601), Priority.COMPLETED),
            ("should have started", Status.UPCOMING, later(-60), Priority.IMMINENT),
            ("should have started this morning", Status.UPCOMING, later(-6 * 3600 - 1), Priority.COMPLETED),
            ("start unknown", Status.UPCOMING, None, Priority.COMPLETED),
            ("over", Status.COMPLETED, later(-9000), Priority.COMPLETED),
            ("abandoned", Status.ABANDONED, later(60), Priority.COMPLETED),
        ],
    )
    def test_priority(self, what: str, status: Status, start: Any, expected: Priority) -> None:
        assert priority_of(status, start, NOW) == expected
