"""Failed attempts from the claim to their effects; only the reader is scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from django.db import InterfaceError, OperationalError

from scraping import journal
from scraping.errors import (
    ERROR_RULES,
    AuthExpired,
    Blocked,
    Challenged,
    ErrorClass,
    Gone,
    LayoutChanged,
    PayloadRejected,
    ReadTimeout,
    ResourceLost,
    SchemaBreak,
    ScrapingError,
    StoreAway,
    Transient,
)
from scraping.matches import lifecycle
from scraping.models import (
    Breaker,
    ErrorGroup,
    Match,
    MatchLifecycle,
    MatchRef,
    ScrapeError,
    Scraper,
    ScraperStatus,
    ScrapeTask,
    Snapshot,
    Source,
    TaskState,
)
from scraping.payloads import Integrity, Resource, Status
from scraping.recovery import breakers
from scraping.recovery.breakers import rows
from scraping.scheduler.recover import end_pauses
from scraping.worker import failures
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import NOW, cricket_state, football_state, make_ref, make_source, make_unread_match
from tests.scraping.attempts import Clock, attempt, fail_for_good, fails, fingerprint, stopped_clock
from tests.scraping.builders import (
    POLICIES,
    ScriptedReader,
    balls,
    chasing,
    claimed,
    engine_with,
    later,
    open_task,
    payload_of,
)
from tests.scraping.due_tasks import open_due_tasks

pytestmark = [pytest.mark.both, pytest.mark.django_db]
ONE_OF_EACH = (Transient, Blocked, Challenged, AuthExpired, LayoutChanged, ResourceLost, StoreAway)  # else it is a bug


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    with stopped_clock(monkeypatch) as clock:
        yield clock


@pytest.fixture
def ref() -> MatchRef:
    return make_ref(make_unread_match(), captured_at=None, next_poll_at=NOW)


class TestErrorClasses:
    @pytest.mark.requirement("FR-017")
    @pytest.mark.parametrize(
        ("error", "charged", "waits"),
        [
            (Transient("502", http_status=502), 1, (1, 2)),
            (ReadTimeout("30 s"), 1, (1, 2)),
            (Blocked("403", http_status=403), 1, (15, 30)),
            (Blocked("429", http_status=429, retry_after_seconds=120), 1, (120, 120)),
            (AuthExpired("401", http_status=401), 1, (0, 0)),
            (LayoutChanged("no header"), 1, (0, 0)),
            (SchemaBreak("no score"), 1, (0, 0)),
            (PayloadRejected("another match"), 1, (0, 0)),
            (Gone("404", http_status=404), 1, (1, 2)),
            (ResourceLost("Chromium died"), 0, (0.2, 0.2)),
            (StoreAway("no database"), 0, (0.2, 0.2)),
            (OperationalError("server closed the connection"), 0, (0.2, 0.2)),
            (InterfaceError("connection already closed"), 0, (0.2, 0.2)),
        ],
        ids=lambda value: f"{type(value).__name__} {value}" if isinstance(value, Exception) else None,
    )
    def test_retries_after_the_pause_of_the_class(
        self, ref: MatchRef, clock: Clock, error: Exception, charged: int, waits: tuple[float, float]
    ) -> None:
        Source.objects.update(min_interval_seconds=0)
        task = attempt(ref, clock, error)
        assert (task.state, task.attempt, task.charged_attempts) == (TaskState.PENDING, 1, charged)
        assert later(waits[0]) <= task.run_at <= later(waits[1])

    @pytest.mark.parametrize("error", [AuthExpired("401", http_status=401), ResourceLost("Chromium died")])
    def test_retries_no_sooner_than_the_minimum_interval(self, ref: MatchRef, clock: Clock, error: Exception) -> None:
        Source.objects.update(min_interval_seconds=3)
        assert attempt(ref, clock, error).run_at == later(3)

    def test_a_bug_is_dead_at_once_with_its_stack(self, ref: MatchRef, clock: Clock) -> None:
        task = attempt(ref, clock, ValueError("we were wrong"))
        assert (task.state, task.error_class) == (TaskState.DEAD, "bug")
        assert task.reason == "bug after 1 attempt: we were wrong"
        assert "ValueError: we were wrong" in task.error["stack_trace"]
        assert "ValueError: we were wrong" in ScrapeError.objects.get().stack_trace

    @pytest.mark.requirement("FR-002")
    def test_five_retries_at_growing_distances_then_dead(self, ref: MatchRef, clock: Clock) -> None:
        waits, task = [], None
        breaker = replace(POLICIES.breaker, failure_threshold=99)
        policy = replace(POLICIES, breaker=breaker, pause_after_failures=99)
        for number in range(1, 7):
            task_id = task.pk if task else open_task(ref)
            scrape([task_id], engine_with(Transient("502"), policies=policy))
            task = ScrapeTask.objects.get(pk=task_id)
            assert task.attempt == number
            waits.append((task.run_at - clock.now).total_seconds())
            clock.now = max(clock.now, task.run_at)
        assert task.state == TaskState.DEAD
        assert task.reason == "transient after 6 attempts: 502"
        assert all(1 * 2**n <= wait <= min(16, 2 * 2**n) for n, wait in enumerate(waits[:5]))

    @pytest.mark.requirement("NFR-022")
    @pytest.mark.parametrize("error_class", sorted(set(ErrorClass) - {ErrorClass.GONE}))  # that one ends the match
    def test_the_log_of_a_final_failure_says_what_to_do(
        self, ref: MatchRef, clock: Clock, caplog: pytest.LogCaptureFixture, error_class: ErrorClass
    ) -> None:
        error = next((kind for kind in ONE_OF_EACH if kind.error_class is error_class), ValueError)("it broke")
        task = fail_for_good(ref, clock, error)
        last = next(one for one in reversed(caplog.records) if getattr(one, "action", "") == "attempt_failed")
        assert (last.levelname, "it broke" in last.getMessage()) == ("ERROR", True)
        assert ERROR_RULES[error_class].advice in last.getMessage()
        assert ("retry it in the admin" in last.getMessage()) is (task.state == TaskState.DEAD)

    @pytest.mark.requirement("ZT-6")
    def test_a_dead_letter_keeps_its_evidence(self, ref: MatchRef, clock: Clock) -> None:
        error = LayoutChanged("no header", url="https://crex.example/x", evidence="<html>something else</html>")
        task = fail_for_good(ref, clock, error)
        assert (task.state, task.attempt) == (TaskState.DEAD, 2)
        assert task.error["message"] == "no header"
        assert task.error["url"] == "https://crex.example/x"
        assert ScrapeError.objects.latest("pk").evidence == "<html>something else</html>"

    def test_the_hint_of_an_unknown_task_is_dropped(self, ref: MatchRef, clock: Clock) -> None:
        scrape([10**9], engine_with(ValueError("never read")))
        assert (ScrapeTask.objects.count(), ScrapeError.objects.count()) == (0, 0)


class TestOurOwnFaults:
    """I7: our own faults are not charged to the source."""

    @pytest.mark.parametrize(
        "fault", [ResourceLost("Chromium died"), OperationalError("away")], ids=["browser", "store"]
    )
    def test_charge_no_attempt_breaker_or_scraper(self, ref: MatchRef, clock: Clock, fault: Exception) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        for _ in range(9):
            task = attempt(ref, clock, fault)
            assert (task.state, task.charged_attempts) == (TaskState.PENDING, 0)
        assert Breaker.objects.get().total_failures == 0
        assert Scraper.objects.get().total_errors == 0
        task = attempt(ref, clock, payload_of(ref, chasing(99), at=clock.now))
        assert (task.state, task.attempt) == (TaskState.SUCCESS, 10)

    def test_leave_the_sources_attempts_untouched(self, ref: MatchRef, clock: Clock) -> None:
        for error in (*[ResourceLost("browser")] * 4, Transient("502"), *[ResourceLost("browser")] * 4):
            task = attempt(ref, clock, error)
        assert (task.state, task.attempt, task.charged_attempts) == (TaskState.PENDING, 9, 1)

    def test_are_dead_after_ten_attempts(self, ref: MatchRef, clock: Clock) -> None:
        task = fail_for_good(ref, clock, ResourceLost("the page kills every browser"))
        assert (task.state, task.attempt, task.charged_attempts) == (TaskState.DEAD, 10, 0)

    def test_the_lease_expires_if_the_failure_cannot_be_written(
        self, ref: MatchRef, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*args: Any, **more: Any) -> None:
            raise InterfaceError("connection already closed")

        monkeypatch.setattr(failures.journal, "keep", away)
        task = attempt(ref, clock, Transient("502"))
        assert (task.state, task.attempt) == (TaskState.EXECUTING, 1)
        assert journal.rescue(max_rescues=3, now=later(16)) == 1


class TestInvalidPayload:
    """I6, I11: an invalid payload is a failure, and the stored data stays."""

    @pytest.mark.requirement("ZT-5")
    @pytest.mark.parametrize(
        ("what", "rubbish", "why"),
        [
            ("another match", {"source_event_id": "OTHER"}, "received OTHER"),
            ("another sport", {"state": football_state()}, "described as football"),
            (
                "hardly anything",
                {"integrity": Integrity(missing_fields=("score", "teams"), null_field_rate=0.9)},
                "missing: score, teams",
            ),
            ("eleven balls an over", {"state": chasing(96, overs="12.11")}, "not a number of overs"),
        ],
    )
    def test_is_not_stored(self, ref: MatchRef, clock: Clock, what: str, rubbish: dict[str, Any], why: str) -> None:
        attempt(ref, clock, payload_of(ref))
        before = Match.objects.get()
        clock.forward(3)
        task = attempt(ref, clock, payload_of(ref, at=clock.now).model_copy(update=rubbish))
        assert (task.state, task.error_class) == (TaskState.PENDING, "drift")
        assert why in task.reason
        after = Match.objects.get()
        assert (after.checksum, after.sequence, after.payload) == (before.checksum, before.sequence, before.payload)
        assert after.last_scraper_update == NOW
        assert Snapshot.objects.count() == 1


class TestErrorRows:
    def test_one_row_per_attempt_with_all_facts(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        task = attempt(ref, clock, Transient("live answered 502", http_status=502, url="https://crex.example/live"))
        row = ScrapeError.objects.get()
        assert (row.task_id, row.match_id, row.scraper_id) == (task.pk, ref.match_id, Scraper.objects.get().pk)
        assert (row.error_class, row.error_type, row.http_status) == ("transient", "network", 502)
        assert (row.url, row.operation, row.retry_attempt) == ("https://crex.example/live", "scorecard", 1)
        assert (row.timestamp, row.resolved) == (later(3), False)

    @pytest.mark.requirement("DM-5", "FR-014")
    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (ReadTimeout("took longer than 30 s"), ("network", "timeout")),
            (Challenged("a challenge in place of the page"), ("network", "challenge")),
            (Gone("404"), ("network", "gone")),
            (LayoutChanged("no score in the page"), ("parsing", "layout")),
            (ValueError("no such over"), ("parsing", "bug")),
            (ResourceLost("the browser died"), ("browser", "browser")),
            (AuthExpired("401"), ("auth", "auth")),
        ],
    )
    def test_the_type_is_one_of_the_specification(
        self, ref: MatchRef, clock: Clock, error: Exception, expected: tuple[str, str]
    ) -> None:
        task = attempt(ref, clock, error)
        row = ScrapeError.objects.get()
        assert (row.error_type, row.error_code) == expected
        assert task.error is not None
        assert (task.error["error_type"], task.error["error_code"]) == expected

    def test_equal_causes_share_a_group(self, ref: MatchRef, clock: Clock) -> None:
        other = make_ref(make_unread_match(), captured_at=None)
        attempt(ref, clock, Transient("asked https://crex.example/13KM and got 502 after 31 ms"))
        attempt(other, clock, Transient("asked https://crex.example/14AB and got 503 after 7 ms"))
        attempt(other, clock, ReadTimeout("took longer than 30 s"))
        assert sorted(ErrorGroup.objects.values_list("count", flat=True)) == [1, 2]

    @pytest.mark.parametrize(
        ("one", "two", "are_equal"),
        [
            (Transient("502 of 13KM"), Transient("503 of 14AB"), True),
            (Transient("at 0x7f3a"), Transient("at 0x11bc"), True),
            (Transient("reset"), Transient("refused"), False),
            (Transient("slow"), ReadTimeout("slow"), False),
            (LayoutChanged("no header"), SchemaBreak("no header"), False),
        ],
    )
    def test_fingerprints(self, one: ScrapingError, two: ScrapingError, are_equal: bool) -> None:
        assert (fingerprint(one) == fingerprint(two)) is are_equal

    def test_the_same_error_at_another_source_is_another_group(self) -> None:
        assert fingerprint(Transient("x")) != fingerprint(Transient("x"), source_id=2)

    @pytest.mark.parametrize("error", [Transient("502"), ValueError("a bug"), ResourceLost("browser")])
    def test_are_resolved_by_the_next_success(self, ref: MatchRef, clock: Clock, error: Exception) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        attempt(ref, clock, error)
        clock.forward(3)
        attempt(ref, clock, payload_of(ref, at=clock.now))
        row = ScrapeError.objects.get()
        assert (row.resolved, row.resolution_method) == (True, "auto_retry")
        assert row.resolution_time == clock.now

    def test_are_resolved_for_a_match_that_has_not_begun_too(self, ref: MatchRef, clock: Clock) -> None:
        upcoming = payload_of(ref, cricket_state(status=Status.UPCOMING))
        attempt(ref, clock, ValueError("a bug"))
        attempt(ref, clock, upcoming)
        assert ScrapeError.objects.get().resolved

    def test_clean_text_that_postgresql_refuses(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, SchemaBreak("not JSON: \x00\x01", evidence="<html>\x00</html>"))
        row = ScrapeError.objects.get()
        assert "\x00" not in row.error_message + row.evidence + ScrapeTask.objects.get().reason

    def test_keep_secrets_out_of_the_evidence(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, Blocked("403", evidence="Authorization: Bearer abcdefghijklmnop"))
        assert "abcdefghijklmnop" not in ScrapeError.objects.get().evidence


class TestStaleFence:
    """I4: an attempt that lost its lease writes neither success nor failure."""

    def lose_the_lease(self, ref: MatchRef, clock: Clock) -> Callable[[], None]:
        def lose() -> None:
            clock.forward(16)
            journal.rescue(max_rescues=3, now=clock.now)
            claimed(ScrapeTask.objects.get(ref=ref).pk, worker="w-2", at=clock.now)

        return lose

    @pytest.mark.parametrize("outcome", ["a reading", "an error", "gone"])
    def test_writes_nothing(self, ref: MatchRef, clock: Clock, outcome: str) -> None:
        outcomes = {"a reading": payload_of(ref), "an error": Transient("502"), "gone": Gone("404")}
        scrape([open_task(ref)], engine_with(outcomes[outcome], before=self.lose_the_lease(ref, clock)))
        task = ScrapeTask.objects.get()
        assert (task.state, task.worker_id, task.fence) == (TaskState.EXECUTING, "w-2", 2)
        assert not Snapshot.objects.exists()
        assert not ScrapeError.objects.exists()
        assert not Breaker.objects.exists()
        assert Match.objects.get().lifecycle == MatchLifecycle.DISCOVERED


@pytest.mark.requirement("FR-003", "DM-2")
class TestBreaker:
    def open_it(self, ref: MatchRef, clock: Clock) -> Breaker:
        """Makes five failures, without the pause of the match that they cause."""
        for _ in range(5):
            attempt(ref, clock, Transient("502"), policies=replace(POLICIES, pause_after_failures=99))
        return Breaker.objects.get()

    def test_opens_after_five_failures_and_blocks_due_tasks(self, ref: MatchRef, clock: Clock) -> None:
        breaker = self.open_it(ref, clock)
        assert (breaker.state, breaker.open_until) == ("OPEN", clock.now + timedelta(seconds=60))
        assert ScrapeTask.objects.get().run_at == breaker.open_until
        ScrapeTask.objects.all().delete()
        clock.forward(59)
        assert open_due_tasks(clock.now) == 0
        clock.forward(1)
        assert open_due_tasks(clock.now) == 1

    def test_a_retry_waits_for_the_open_breaker(self, ref: MatchRef, clock: Clock) -> None:
        policy = replace(POLICIES, breaker=replace(POLICIES.breaker, failure_threshold=1))
        scrape([open_task(ref)], engine_with(Transient("502"), policies=policy))
        assert ScrapeTask.objects.get().run_at == later(60)

    def test_closes_after_five_successful_probes(self, ref: MatchRef, clock: Clock) -> None:
        self.open_it(ref, clock)
        clock.forward(60)
        states = []
        for number in range(5):
            clock.forward(3)
            attempt(ref, clock, payload_of(ref, chasing(90 + number), at=clock.now))
            states.append(Breaker.objects.get().state)
        assert states == ["HALF_OPEN"] * 4 + ["CLOSED"]

    def test_one_failed_probe_reopens_it(self, ref: MatchRef, clock: Clock) -> None:
        self.open_it(ref, clock)
        clock.forward(60)
        attempt(ref, clock, payload_of(ref, at=clock.now))
        attempt(ref, clock, Transient("502"))
        breaker = Breaker.objects.get()
        assert (breaker.state, breaker.open_until) == ("OPEN", clock.now + timedelta(seconds=60))

    def test_counts_calls_failures_and_rejections(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        attempt(ref, clock, Transient("502"))
        attempt(ref, clock, payload_of(ref, at=clock.now))
        assert Breaker.objects.get().as_document() == {
            "name": f"{ref.key}_scraper",
            "state": "CLOSED",
            "failure_count": 0,
            "success_count": 0,
            "total_calls": 3,
            "total_successes": 2,
            "total_failures": 1,
            "total_rejections": 0,
            "last_state_change": "2026-01-10T12:00:00.000Z",
        }

    def test_counts_concurrent_failures_of_two_workers(self, ref: MatchRef, clock: Clock) -> None:
        record = partial(breakers.record_failure, source_id=ref.source_id, ref=ref, policies=POLICIES, why="x", now=NOW)
        record(1)
        fetch = rows.fetch

        def outdated(pk: int) -> Breaker:
            """Another worker's failure is written between the first read and the update."""
            found = fetch(pk)
            if found.failure_count == 1:
                Breaker.objects.filter(pk=found.pk).update(failure_count=2, version=found.version + 1)
            return found

        with patch.object(rows, "fetch", outdated):
            view = record(2)
        assert view is not None
        assert view.failure_count == 3

    def test_postpones_a_task_that_was_hinted_before_it_opened(self, ref: MatchRef, clock: Clock) -> None:
        """I8: no request through an open breaker."""
        task_id = open_task(ref)
        Breaker.objects.create(
            name="x", ref=ref, state="OPEN", open_until=later(60), last_state_change=NOW, failure_count=5
        )
        engine = engine_with(payload_of(ref))
        scrape([task_id], engine)
        task = ScrapeTask.objects.get()
        assert (task.state, task.run_at, task.attempt, task.charged_attempts) == ("PENDING", later(60), 0, 0)
        assert isinstance(engine.reader, ScriptedReader)
        assert engine.reader.reads == 0
        assert (Breaker.objects.get().total_rejections, Breaker.objects.get().total_calls) == (1, 0)
        clock.forward(60)
        scrape([task_id], engine)
        assert (ScrapeTask.objects.get().state, Breaker.objects.get().state) == ("SUCCESS", "HALF_OPEN")

    def test_leaves_other_matches_alone(self, ref: MatchRef, clock: Clock) -> None:
        self.open_it(ref, clock)
        make_ref(next_poll_at=clock.now)
        assert open_due_tasks(clock.now) == 1


class TestPausedByFailures:
    @pytest.mark.requirement("US2.2")
    @pytest.mark.parametrize(
        "error",
        [
            Transient("connection refused"),
            ReadTimeout("30 s"),
            Blocked("403", http_status=403),
            AuthExpired("401", http_status=401),
            LayoutChanged("no header"),
            ValueError("a bug"),
        ],
        ids=["network", "timeout", "blocked", "auth", "drift", "bug"],
    )
    def test_five_failed_attempts_in_a_row_pause_the_match_for_five_minutes(
        self, ref: MatchRef, clock: Clock, error: Exception
    ) -> None:
        """Each attempt is made at the end of the previous back-off, as in an outage of the source."""
        for number in range(1, 6):
            assert Match.objects.get().lifecycle == MatchLifecycle.DISCOVERED
            task = attempt(ref, clock, error)
            assert Match.objects.get().consecutive_failure_count == number
        match = Match.objects.get()
        assert match.lifecycle == MatchLifecycle.PAUSED
        assert match.pause_until == clock.now + timedelta(seconds=300)
        assert clock.now - NOW < lifecycle.FAILURE_WINDOW
        assert "5 failed attempts within ten minutes" in match.pause_reason
        assert open_due_tasks(clock.now) == 0
        assert task.state == TaskState.DEAD or task.run_at == match.pause_until

    @pytest.mark.requirement("US2.2", "BX-8")
    def test_a_network_outage_ends_with_a_read_by_a_new_scraper(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        worn = Scraper.objects.get()
        for _ in range(5):
            attempt(ref, clock, Transient("connection refused"))
        clock.forward(300)
        assert end_pauses(clock.now) == 1
        attempt(ref, clock, payload_of(ref, at=clock.now))
        match, fresh = Match.objects.get(), Scraper.objects.get(stopped_at=None)
        assert (match.lifecycle, match.consecutive_failure_count) == (MatchLifecycle.ACTIVE, 0)
        assert (fresh.pk != worn.pk, fresh.total_updates) == (True, 1)

    def test_an_operator_who_resumes_the_match_need_not_wait_for_the_retry(self, ref: MatchRef, clock: Clock) -> None:
        for _ in range(5):
            task = attempt(ref, clock, Transient("connection refused"))
        clock.forward(10)
        lifecycle.resume(match_id=ref.match_id, actor="anna", now=clock.now)
        task.refresh_from_db()
        assert task.run_at == clock.now

    def test_another_source_that_delivers_prevents_the_pause(self, ref: MatchRef, clock: Clock) -> None:
        other = make_ref(ref.match, source="sofascore", captured_at=None)
        for _ in range(6):
            attempt(ref, clock, Transient("connection refused"))
            attempt(other, clock, payload_of(other, at=clock.now))
        assert Match.objects.get().lifecycle == MatchLifecycle.ACTIVE

    def test_the_pause_ends_with_a_new_scraper(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        worn = Scraper.objects.get()
        for _ in range(5):
            attempt(ref, clock, ValueError("a bug"))
        clock.forward(300)
        assert (end_pauses(clock.now), open_due_tasks(clock.now)) == (1, 1)
        attempt(ref, clock, payload_of(ref, at=clock.now))
        match, fresh = Match.objects.get(), Scraper.objects.get(stopped_at=None)
        assert (match.lifecycle, match.consecutive_failure_count) == (MatchLifecycle.ACTIVE, 0)
        assert (fresh.pk != worn.pk, fresh.total_updates) == (True, 1)

    def test_a_success_in_between_prevents_the_pause(self, ref: MatchRef, clock: Clock) -> None:
        for _ in range(4):
            attempt(ref, clock, ValueError("a bug"))
        attempt(ref, clock, payload_of(ref, at=clock.now))
        attempt(ref, clock, ValueError("a bug"))
        assert Match.objects.get().lifecycle == MatchLifecycle.ACTIVE

    @pytest.mark.requirement("US2.2")
    def test_the_window_of_ten_minutes_slides(self, ref: MatchRef, clock: Clock) -> None:
        """One old failure, then five close together: the old one does not restart the count."""
        for seconds in (0, 560, 60, 20, 20, 20):
            assert Match.objects.get().lifecycle == MatchLifecycle.DISCOVERED
            clock.forward(seconds)
            attempt(ref, clock, ValueError("a bug"))
        assert Match.objects.get().lifecycle == MatchLifecycle.PAUSED

    @pytest.mark.requirement("US2.2")
    def test_old_failures_leave_the_count(self, ref: MatchRef, clock: Clock) -> None:
        counts = []
        for seconds in (0, 10, 10, 585, 10, 10):
            clock.forward(seconds)
            attempt(ref, clock, ValueError("a bug"))
            counts.append(Match.objects.get().consecutive_failure_count)
        assert counts == [1, 2, 3, 3, 3, 3]
        assert Match.objects.get().lifecycle == MatchLifecycle.DISCOVERED

    def test_a_failed_list_of_events_does_not_pause_the_match(self, ref: MatchRef, clock: Clock) -> None:
        for _ in range(6):
            task = attempt(ref, clock, ValueError("a bug"), resource=Resource.COMMENTARY)
            assert task.state == TaskState.DEAD
        match = Match.objects.get()
        assert (match.lifecycle, match.consecutive_failure_count) == (MatchLifecycle.DISCOVERED, 0)

    def test_failures_further_apart_do_not_pause(self, ref: MatchRef, clock: Clock) -> None:
        for _ in range(8):
            attempt(ref, clock, ValueError("a bug"))
            clock.forward(180)
        assert Match.objects.get().lifecycle == MatchLifecycle.DISCOVERED

    def test_a_failed_task_is_not_followed_by_the_next_at_once(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, ValueError("a bug"))
        assert open_due_tasks(clock.now) == 0
        assert MatchRef.objects.get().next_poll_at > clock.now

    def test_a_match_that_an_operator_paused_meanwhile_stays_paused(self, ref: MatchRef, clock: Clock) -> None:
        for _ in range(4):
            attempt(ref, clock, ValueError("a bug"))

        def pause() -> None:
            lifecycle.pause(match_id=ref.match_id, until=later(3600), reason="rain", actor="anna", now=clock.now)

        task_id = open_task(ref, at=clock.now)
        scrape([task_id], engine_with(ValueError("a bug"), before=pause))
        assert ScrapeTask.objects.get(pk=task_id).state == TaskState.DEAD
        assert (Match.objects.get().pause_until, Match.objects.get().scraper_status) == (later(3600), "stopped")

    def test_failures_are_counted_on_the_reloaded_match(self, ref: MatchRef, clock: Clock) -> None:
        """Not on the copy from before the other source's failure."""

        other = make_ref(ref.match, source="sofascore")

        def other_failure() -> None:
            attempt(other, clock, ValueError("a bug there"))

        scrape([open_task(ref)], engine_with(ValueError("a bug"), before=other_failure))
        match = Match.objects.get()
        assert (match.consecutive_failure_count, match.total_failures) == (2, 2)
        assert match.scraper_status == ScraperStatus.ERROR


@pytest.mark.requirement("FS-9")
class TestChallenge:
    def test_is_skipped_with_its_reason_when_a_fresh_session_meets_it_too(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        task = fail_for_good(ref, clock, Challenged("the page is a bot challenge"))
        assert (task.state, task.attempt) == (TaskState.SKIPPED, 2)
        assert task.reason == "challenge after 2 attempts: the page is a bot challenge"
        assert Match.objects.get().lifecycle == MatchLifecycle.ACTIVE

    def test_is_tried_again_after_a_minute(self, ref: MatchRef, clock: Clock) -> None:
        Match.objects.update(status="live")
        fail_for_good(ref, clock, Challenged("the page is a bot challenge"))
        clock.forward(59)
        assert open_due_tasks(clock.now) == 0
        clock.forward(1)
        assert open_due_tasks(clock.now) == 1


class TestGone:
    def test_completes_the_match_when_a_second_read_confirms_it(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        task = fail_for_good(ref, clock, Gone("404", http_status=404))
        match = Match.objects.get()
        assert (task.state, task.attempt) == (TaskState.SKIPPED, 2)
        assert "said 2 times that it is gone" in task.reason
        assert (match.lifecycle, match.status, match.payload["status"]) == ("COMPLETED", "completed", "completed")
        assert not Scraper.objects.filter(stopped_at=None).exists()

    def test_is_not_polled_again_at_once(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        fail_for_good(ref, clock, Gone("404", http_status=404))
        assert open_due_tasks(clock.now) == 0
        clock.forward(299)
        assert open_due_tasks(clock.now) == 0
        clock.forward(1)
        assert open_due_tasks(clock.now) == 1

    def test_does_not_count_against_the_source(self, ref: MatchRef, clock: Clock) -> None:
        fail_for_good(ref, clock, Gone("404", http_status=404))
        assert not Breaker.objects.exists()

    def test_a_single_404_is_an_ordinary_error(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        clock.forward(3)
        attempt(ref, clock, Gone("404", http_status=404))
        task = attempt(ref, clock, payload_of(ref, at=clock.now))
        assert (task.state, Match.objects.get().lifecycle) == (TaskState.SUCCESS, MatchLifecycle.ACTIVE)


@pytest.mark.django_db(transaction=True)
class TestOneTransaction:
    """I3: all effects of a failure are written together, or none after a crash."""

    TABLES = (ScrapeTask, ScrapeError, ErrorGroup, Breaker, Scraper, Match, MatchRef, Snapshot)

    def everything(self) -> list[list[dict[str, Any]]]:
        return [list(table._default_manager.order_by("pk").values()) for table in self.TABLES]

    @pytest.mark.parametrize(
        ("error", "state"),
        [(Transient("502"), "PENDING"), (ResourceLost("browser"), "PENDING"), (ValueError("a bug"), "DEAD")],
        ids=["retried", "our own", "dead"],
    )
    def test_a_crash_at_any_point_writes_nothing(
        self, ref: MatchRef, clock: Clock, error: Exception, state: str
    ) -> None:
        attempt(ref, clock, payload_of(ref))
        claim = claimed(open_task(ref))
        before, cuts = self.everything(), 0
        while not fails(claim, error, cut_at=cuts + 1):
            cuts += 1
            assert self.everything() == before, f"after a cut at statement {cuts}"
        assert cuts > 10
        assert ScrapeTask.objects.get(pk=claim.task_id).state == state
        assert ScrapeError.objects.count() == 1


class TestScraperCounters:
    def test_consecutive_errors_slow_polling_down(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        for expected in (2.5, 2.5, 2.5, 2.5, 5.0):
            clock.forward(61)
            attempt(ref, clock, Transient("502"), policies=replace(POLICIES, pause_after_failures=99))
            assert Scraper.objects.get().polling_interval == expected
        assert (Scraper.objects.get().error_count, Scraper.objects.get().total_errors) == (5, 5)

    def test_a_success_resets_the_errors(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref))
        attempt(ref, clock, Transient("502"))
        attempt(ref, clock, payload_of(ref, at=clock.now))
        assert (Scraper.objects.get().error_count, Scraper.objects.get().total_errors) == (0, 1)

    def test_a_slow_source_is_not_polled_sooner_after_an_error(self, ref: MatchRef, clock: Clock) -> None:
        make_source()
        ref.source.min_interval_seconds = 40
        ref.source.save()
        attempt(ref, clock, Transient("502"))
        assert MatchRef.objects.get().next_poll_at == later(300 / 5)  # not begun: every minute
        Match.objects.update(status="live")
        attempt(ref, clock, Transient("502"))
        assert MatchRef.objects.get().next_poll_at == clock.now + timedelta(seconds=40)


class TestCommentary:
    def test_fills_the_gap(self, ref: MatchRef, clock: Clock) -> None:
        attempt(ref, clock, payload_of(ref, events=balls(1, 2)))
        clock.forward(3)
        attempt(ref, clock, payload_of(ref, at=clock.now, events=balls(6, 7)))
        older = payload_of(ref, at=clock.now, events=balls(2, 3, 4, 5, 6))
        task = attempt(ref, clock, older, resource=Resource.COMMENTARY)
        assert task.state == TaskState.SUCCESS
        assert not MatchRef.objects.get().has_gap

    def test_its_failure_is_retried_like_any_other(self, ref: MatchRef, clock: Clock) -> None:
        task = attempt(ref, clock, Transient("502"), resource=Resource.COMMENTARY)
        assert (task.state, task.charged_attempts) == (TaskState.PENDING, 1)

    def test_its_failure_leaves_later_readings_untouched(self, ref: MatchRef, clock: Clock) -> None:
        """Storing evidence takes time; the score is read meanwhile."""
        attempt(ref, clock, payload_of(ref))
        MatchRef.objects.update(unchanged_polls=39, recent_changes="0000")
        store = failures.evidence.store

        def stored(*args: Any, **more: Any) -> Any:
            attempt(ref, clock, payload_of(ref, chasing(99), at=clock.now))
            return store(*args, **more)

        with patch.object(failures.evidence, "store", stored):
            attempt(ref, clock, Transient("502"), resource=Resource.COMMENTARY)
        kept = MatchRef.objects.get()
        assert (kept.unchanged_polls, kept.recent_changes) == (0, "00001")


class TestEngine:
    def test_lists_the_running_tasks(self, ref: MatchRef, clock: Clock) -> None:
        task_id = open_task(ref)
        seen: list[list[int]] = []
        engine = engine_with(payload_of(ref))
        engine.reader = ScriptedReader(payload_of(ref), before=lambda: seen.append(engine.held_tasks()))
        scrape([task_id], engine)
        assert (seen, engine.held_tasks()) == ([[task_id]], [])

    def test_releasing_an_old_claim_keeps_the_new_one(self, ref: MatchRef, clock: Clock) -> None:
        """A thread slept through its lease while its own worker claimed the task again."""
        engine: Engine = engine_with(payload_of(ref))
        old = claimed(open_task(ref))
        journal.rescue(max_rescues=3, now=later(16))
        new = claimed(old.task_id, at=later(16))
        with engine.holding(new):
            with engine.holding(old):
                pass
            assert engine.held_tasks() == [new.task_id]
