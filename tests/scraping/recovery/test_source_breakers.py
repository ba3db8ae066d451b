"""Breakers of sources: counted calls, evaluation, probes and waiting tasks, with real rows and a test clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

import dramatiq
import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from dramatiq.brokers.stub import StubBroker

from monitoring.models import Alert, AuditEntry
from scraping import journal
from scraping.configuration import policies
from scraping.errors import Blocked, BreakerOpen, Gone, ReadTimeout, ResourceLost, SchemaBreak, Transient
from scraping.models import Breaker, MatchRef, OutcomeBucket, Priority, ScrapeTask, Source, TaskState
from scraping.payloads import Resource
from scraping.policies.source_breaker import CallWindow, WindowPolicy
from scraping.recovery import breakers
from scraping.recovery.breakers import calls
from scraping.recovery.breakers.calls import Outcomes
from scraping.scheduler import due
from scraping.scheduler.hint import hint_due_tasks
from scraping.scheduler.other_tasks import open_discovery_tasks, open_gap_tasks
from scraping.scheduler.recover import evaluate_source_breakers, rescue_expired
from scraping.worker import failures
from scraping.worker.scrape import scrape
from tests.factories import NOW, make_match, make_ref, make_source
from tests.patience import stretched
from tests.scraping import builders
from tests.scraping.builders import ScriptedReader, claimed, engine_with, later, open_task, payload_of
from tests.scraping.due_tasks import open_due_tasks
from victoryline.lib import hint_broker
from victoryline.lib.hint_broker import QUEUE

pytestmark = [pytest.mark.both, pytest.mark.django_db]


class Clock:
    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


# Most tests are about shares of calls, not about durations.
POLICIES = replace(builders.POLICIES, window=WindowPolicy(min_bad_seconds=0))


@pytest.fixture(autouse=True)
def any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "current", lambda: POLICIES)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    monkeypatch.setattr(policies, "current", lambda: POLICIES)
    monkeypatch.setattr(failures, "close_old_connections", lambda: None)  # it would end the test's own transaction
    clock = Clock()
    with patch("django.utils.timezone.now", clock):
        yield clock


@pytest.fixture
def broker() -> Iterator[StubBroker]:
    before = dramatiq.broker.global_broker
    installed = hint_broker.install_broker("")
    assert isinstance(installed, StubBroker)
    yield installed
    dramatiq.set_broker(before)


@pytest.fixture
def source() -> Source:
    return make_source()


def row() -> Breaker:
    return Breaker.objects.get(source__isnull=False)


def write(source: Source, *, calls: int, bad: int, at: datetime = NOW, retries: int = 0) -> None:
    counted = Outcomes()
    for number in range(calls):
        counted.count(source.pk, is_bad=number < bad, is_retry=number < retries, now=at)
    counted.flush(now=at)


def half_open(source: Source, *, at: datetime = NOW) -> Breaker:
    evaluate_source_breakers(at)
    found = row()
    breakers.force_open(found, minutes=1, reason="test", actor="test", now=at)
    breakers.probe_now(found, actor="test", now=at)
    return found


def hints(broker: StubBroker) -> list[int]:
    queue = broker.queues[QUEUE]
    messages = [dramatiq.Message.decode(queue.get_nowait()) for _ in range(queue.qsize())]
    return [task_id for message in messages for task_id in message.args]


class TestOutcomes:
    def test_are_counted_in_memory_and_written_in_batches(self, source: Source) -> None:
        counted = Outcomes()
        for seconds in (0, 3, 9.9, 10, 25):
            counted.count(source.pk, is_bad=seconds > 5, is_retry=seconds > 20, now=later(seconds))
        assert not OutcomeBucket.objects.exists()
        assert counted.flush(now=later(26)) == 5
        rows = OutcomeBucket.objects.order_by("starts_at").values_list("starts_at", "calls", "bad", "retries")
        assert list(rows) == [(NOW, 3, 1, 0), (later(10), 1, 1, 0), (later(20), 1, 1, 1)]
        assert counted.flush(now=later(29)) == 0

    def test_add_to_what_is_there(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=4, bad=1)
        write(source, calls=6, bad=2)
        assert OutcomeBucket.objects.values_list("calls", "bad").get() == (10, 3)
        found = row()
        assert (found.total_calls, found.total_successes, found.total_failures) == (10, 7, 3)
        assert found.last_failure_time == NOW

    def test_cost_one_statement_each_while_a_bucket_lasts(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=1, bad=0)
        counted = Outcomes()
        counted.count(source.pk, now=NOW)
        with CaptureQueriesContext(
            connection,
        ) as seen:
            counted.flush(now=NOW)
        written = [query["sql"].split()[0] for query in seen if query["sql"].startswith(("INSERT", "UPDATE"))]
        assert written == ["INSERT", "INSERT", "UPDATE"]  # the bucket, the rates of its periods, the breaker

    def test_that_could_not_be_written_are_kept(self, source: Source) -> None:
        counted = Outcomes()
        counted.count(source.pk, is_bad=True, now=NOW)
        with (
            patch.object(calls.bulk_sql, "add_up", side_effect=RuntimeError("no database")),
            pytest.raises(RuntimeError),
        ):
            counted.flush(now=NOW)
        counted.count(source.pk, now=NOW)
        assert counted.flush(now=later(3)) == 2
        assert OutcomeBucket.objects.values_list("calls", "bad").get() == (2, 1)


@pytest.mark.requirement("FS-12", "DM-2")
class TestEvaluation:
    def test_every_source_has_a_breaker(self, source: Source) -> None:
        make_source("sofascore")
        assert (evaluate_source_breakers(NOW), evaluate_source_breakers(later(1))) == (2, 0)
        assert sorted(Breaker.objects.values_list("name", flat=True)) == ["crex_source", "sofascore_source"]

    def test_opens_at_35_percent_of_at_least_30_calls_for_15_minutes(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=29, bad=29, at=later(20))
        assert evaluate_source_breakers(later(21)) == 0
        write(source, calls=60, bad=3, at=later(30))
        assert evaluate_source_breakers(later(31)) == 1
        found = row()
        assert (found.state, found.open_until, found.total_opens) == ("OPEN", later(31 + 900), 1)
        assert found.reason == "32 of 89 calls in 10 min were bad (36 %)"

    def test_a_fault_rate_below_it_does_not(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=100, bad=34, at=later(20))
        assert (evaluate_source_breakers(later(21)), row().state) == (0, "CLOSED")

    def test_a_short_burst_of_failures_does_not_open_it(self, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
        """A short window has few calls: some bad seconds do not open the breaker for 15 minutes."""
        monkeypatch.setattr(policies, "current", lambda: builders.POLICIES)
        evaluate_source_breakers(NOW)
        for at in (20, 30, 40, 50, 60):
            write(source, calls=40, bad=40, at=later(at))
        assert (evaluate_source_breakers(later(61)), row().state) == (0, "CLOSED")
        write(source, calls=40, bad=40, at=later(70))
        assert (evaluate_source_breakers(later(71)), row().state) == (1, "OPEN")

    def test_calls_older_than_the_window_do_not_count(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=30, bad=30, at=later(20))
        assert evaluate_source_breakers(later(621)) == 0

    def test_another_source_goes_on(self, source: Source) -> None:
        other = make_source("sofascore")
        evaluate_source_breakers(NOW)
        write(source, calls=50, bad=50, at=later(20))
        write(other, calls=50, bad=0, at=later(20))
        evaluate_source_breakers(later(21))
        assert dict(Breaker.objects.values_list("source__key", "state")) == {"crex": "OPEN", "sofascore": "CLOSED"}

    def test_half_opens_when_its_time_is_over(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=50, bad=50, at=later(20))
        evaluate_source_breakers(later(21))
        assert (evaluate_source_breakers(later(920)), row().state) == (0, "OPEN")
        assert (evaluate_source_breakers(later(921)), row().state) == (1, "HALF_OPEN")

    def test_earlier_failures_do_not_reopen_it(self, source: Source) -> None:
        """A short cooldown: the bad calls are still in the window when the probes have closed it."""
        half_open(source, at=later(30))
        write(source, calls=500, bad=500, at=later(20))
        for task_id in (1, 2, 3):
            pass_and_succeed(source, task_id, at=later(40))
        assert (row().state, evaluate_source_breakers(later(41)), row().state) == ("CLOSED", 0, "CLOSED")
        write(source, calls=30, bad=30, at=later(60))
        assert (evaluate_source_breakers(later(61)), row().state) == (1, "OPEN")

    def test_an_override_ends_by_itself(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        breakers.force_closed(row(), minutes=5, reason="we know", actor="anna", now=NOW)
        write(source, calls=50, bad=50, at=later(20))
        assert (evaluate_source_breakers(later(299)), row().state, row().forced) == (0, "CLOSED", "CLOSED")
        assert (evaluate_source_breakers(later(300)), row().forced, row().forced_reason) == (1, "", "")
        assert evaluate_source_breakers(later(301)) == 0  # by new calls only, not by those during the override
        write(source, calls=50, bad=50, at=later(310))
        assert evaluate_source_breakers(later(311)) == 1

    def test_opening_and_closing_change_alert_and_audit(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=50, bad=50, at=later(20))
        evaluate_source_breakers(later(21))
        alert = Alert.objects.get()
        assert (alert.key, alert.severity) == ("breaker:crex_source", "critical")
        assert alert.summary == "Crex is not polled until 12:15:21 UTC; the data of its matches grows old until then"
        evaluate_source_breakers(later(921))
        for task_id in (1, 2, 3):
            pass_and_succeed(source, task_id, at=later(930))
        alert.refresh_from_db()
        assert alert.closed_at is not None
        actions = AuditEntry.objects.order_by("pk").values_list("action_type", flat=True)
        assert list(actions) == ["breaker_open", "breaker_half_open", "breaker_close"]


def fresh(source: Source) -> Source:
    return Source.objects.select_related("breaker").get(pk=source.pk)


def pass_and_succeed(source: Source, task_id: int, *, at: datetime) -> None:
    seen = fresh(source)
    breakers.guard(task_id, seen, policies=POLICIES, now=at)
    breakers.record_success(task_id, seen, policies=POLICIES, now=at)


class TestProbes:
    def test_three_at_a_time_the_others_are_put_off(self, source: Source, clock: Clock) -> None:
        half_open(source)
        for task_id in (1, 2, 3):
            breakers.guard(task_id, fresh(source), policies=POLICIES, now=NOW)
        with pytest.raises(BreakerOpen) as refusal:
            breakers.guard(4, fresh(source), policies=POLICIES, now=NOW)
        assert refusal.value.until == later(5)
        assert (sorted(row().probes), row().total_rejections) == (["1", "2", "3"], 1)

    def test_a_bad_one_opens_it_again(self, source: Source, clock: Clock) -> None:
        ref = make_ref(source=source)
        half_open(source)
        scrape([open_task(ref)], engine_with(Blocked("403", http_status=403)))
        assert (row().state, row().reason) == ("OPEN", "a probe failed: 403")
        assert row().open_until == later(900)

    @pytest.mark.parametrize("error", [ResourceLost("Chromium died"), Gone("404", http_status=404), ValueError("bug")])
    def test_one_without_evidence_returns_its_permit(self, source: Source, clock: Clock, error: Exception) -> None:
        ref = make_ref(source=source)
        half_open(source)
        scrape([open_task(ref)], engine_with(error))
        assert (row().state, row().probes, row().success_count) == ("HALF_OPEN", {}, 0)

    def test_three_good_polls_close_it(self, source: Source, clock: Clock) -> None:
        refs = [make_ref(source=source) for _ in range(3)]
        half_open(source)
        for ref in refs:
            scrape([open_task(ref)], engine_with(payload_of(ref)))
        assert (row().state, row().probes) == ("CLOSED", {})

    def test_a_match_behind_its_own_breaker_returns_the_sources_permit(self, source: Source, clock: Clock) -> None:
        ref = make_ref(source=source)
        Breaker.objects.create(name="x", ref=ref, state="OPEN", open_until=later(60), last_state_change=NOW)
        half_open(source)
        task_id = open_task(ref)
        scrape([task_id], engine_with(payload_of(ref)))
        task = ScrapeTask.objects.get(pk=task_id)
        assert (task.state, task.attempt, task.run_at) == ("PENDING", 0, later(60))
        assert row().probes == {}

    def test_a_killed_workers_probe_is_taken_over_with_its_permit(
        self, source: Source, clock: Clock, broker: StubBroker
    ) -> None:
        half_open(source)
        refs = [make_ref(source=source) for _ in range(5)]
        tasks = [open_task(ref) for ref in refs]
        for task_id in tasks[:3]:
            claimed(task_id)
            breakers.guard(task_id, fresh(source), policies=POLICIES, now=NOW)
        assert hint_due_tasks(later(1)) == 0
        rescue_expired(later(16))
        hint_due_tasks(later(16))
        assert sorted(hints(broker)) == tasks[:3]
        clock.now = later(17)
        for ref, task_id in zip(refs[:3], tasks[:3], strict=True):
            scrape([task_id], engine_with(payload_of(ref)))
        assert row().state == "CLOSED"

    def test_lost_probes_leave_their_places_to_others(self, source: Source, clock: Clock) -> None:
        half_open(source)
        for task_id in (1, 2, 3):
            breakers.guard(task_id, fresh(source), policies=POLICIES, now=NOW)
        for task_id in (4, 5, 6):
            pass_and_succeed(source, task_id, at=later(61))
        assert row().state == "CLOSED"


class TestTasksBehindAnOpenBreaker:
    def trip(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        breakers.force_open(row(), minutes=10, reason="test", actor="anna", now=NOW)

    @pytest.mark.requirement("FS-12")
    def test_are_not_opened(self, source: Source, clock: Clock) -> None:
        make_ref(source=source, next_poll_at=NOW, events_through=3, events_seen=9)
        self.trip(source)
        assert [step(later(1)) for step in (open_due_tasks, open_gap_tasks, open_discovery_tasks)] == [0, 0, 0]

    @pytest.mark.parametrize("resource", list(Resource))
    def test_are_not_hinted_for_any_resource(
        self, source: Source, clock: Clock, broker: StubBroker, resource: Resource
    ) -> None:
        ref = None if resource in (Resource.DISCOVERY, Resource.ROUND) else make_ref(source=source)
        new = journal.NewTask(source.pk, ref.pk if ref else None, resource, 0, run_at=NOW)
        journal.open_tasks([new], now=NOW)
        self.trip(source)
        assert hint_due_tasks(later(1)) == 0
        assert ScrapeTask.objects.get().state == TaskState.PENDING
        breakers.reset(row(), actor="anna", now=later(2))
        assert hint_due_tasks(later(2)) == 1

    def test_hinted_ones_are_put_off_and_lose_nothing(self, source: Source, clock: Clock) -> None:
        ref = make_ref(source=source)
        task_id = open_task(ref)
        self.trip(source)
        engine = engine_with(payload_of(ref))
        scrape([task_id], engine)
        task = ScrapeTask.objects.get()
        assert (task.state, task.attempt, task.charged_attempts, task.run_at) == ("PENDING", 0, 0, later(5))
        assert isinstance(engine.reader, ScriptedReader)
        assert (engine.reader.reads, row().total_rejections) == (0, 1)

    def test_those_of_another_source_are_hinted(self, source: Source, clock: Clock, broker: StubBroker) -> None:
        self.trip(source)
        make_ref(source="sofascore", next_poll_at=NOW, captured_at=later(-3))
        assert (open_due_tasks(NOW), hint_due_tasks(NOW)) == (1, 1)

    def test_of_three_hundred_matches_only_three_start_when_it_half_opens(
        self, source: Source, clock: Clock, broker: StubBroker
    ) -> None:
        source.max_concurrency = 30
        source.save()
        match = make_match()
        MatchRef.objects.bulk_create(
            MatchRef(source=source, match=match, source_event_id=str(n), next_poll_at=NOW, created_at=NOW)
            for n in range(300)
        )
        half_open(source)
        assert open_due_tasks(NOW) == 3
        assert (hint_due_tasks(NOW), hint_due_tasks(later(1)), open_due_tasks(later(1))) == (3, 0, 0)

    @pytest.mark.requirement("FS-12")
    @pytest.mark.parametrize(
        ("canary", "is_only_probe"),
        [
            pytest.param({}, True, id="polled"),
            pytest.param({"is_watched": False}, False, id="not watched"),
            pytest.param({"next_poll_at": later(300)}, False, id="due in five minutes"),
        ],
    )
    def test_only_canary_matches_are_probes_if_one_can_be_read(
        self, source: Source, clock: Clock, broker: StubBroker, canary: dict[str, Any], is_only_probe: bool
    ) -> None:
        """The others stay, whether their task waits or they are due, although they are more urgent."""
        quiet = make_match(priority=Priority.COMPLETED)
        columns = {"next_poll_at": NOW, "captured_at": None, **canary}
        named = make_ref(quiet, source=source, source_event_id="canary", **columns)
        tasks = [open_task(make_ref(source=source, next_poll_at=later(600))) for _ in range(4)]
        for _ in range(4):
            make_ref(source=source, next_poll_at=NOW, captured_at=None)
        Source.objects.update(canary_matches=["canary", "of last week"])
        half_open(source)
        if not is_only_probe:
            assert (due.open_due(NOW), hint_due_tasks(NOW)) == ([], 3)
            assert set(hints(broker)) < set(tasks)
            return
        for _ in range(3):
            assert row().state == "HALF_OPEN"
            with patch.object(due, "BATCH", 2):
                (probe,) = due.open_due(clock.now)
            assert (hint_due_tasks(clock.now), hints(broker)) == (1, [probe.task_id])
            assert ScrapeTask.objects.get(pk=probe.task_id).ref == named
            scrape([probe.task_id], engine_with(payload_of(named, at=clock.now)))
            clock.now += timedelta(seconds=3)
        assert row().state == "CLOSED"

    def test_only_three_waiting_tasks_start(self, source: Source, clock: Clock, broker: StubBroker) -> None:
        for _ in range(20):
            open_task(make_ref(source=source))
        half_open(source)
        assert [hint_due_tasks(later(seconds)) for seconds in (0, 1, 1.9)] == [3, 0, 0]
        assert hint_due_tasks(later(2)) == 3  # not claimed: hinted again


class TestCountedCalls:
    @pytest.mark.parametrize(
        ("outcome", "expected"),
        [
            ("good", CallWindow(1, 0, 0)),
            (Transient("502"), CallWindow(1, 1, 0, bad_seconds=10)),
            (Blocked("429", http_status=429), CallWindow(1, 1, 0, bad_seconds=10)),
            (SchemaBreak("no score"), CallWindow(1, 1, 0, bad_seconds=10)),
            (Gone("404"), CallWindow(1, 0, 0)),
            (ValueError("our bug"), CallWindow(1, 0, 0)),
            (ResourceLost("Chromium died"), CallWindow()),
        ],
        ids=str,
    )
    def test_only_the_sources_own_faults_are_bad(
        self, source: Source, clock: Clock, outcome: Any, expected: CallWindow
    ) -> None:
        ref = make_ref(source=source)
        engine = engine_with(payload_of(ref) if outcome == "good" else outcome)
        scrape([open_task(ref)], engine)
        engine.outcomes.flush(now=NOW)
        assert breakers.windows(since=later(-60)).get(source.pk, CallWindow()) == expected

    def test_a_retry_counts_as_one(self, source: Source, clock: Clock) -> None:
        ref = make_ref(source=source)
        engine = engine_with(Transient("502"))
        task_id = open_task(ref)
        scrape([task_id], engine)
        clock.now = ScrapeTask.objects.get().run_at
        scrape([task_id], engine)
        engine.outcomes.flush(now=clock.now)
        assert breakers.windows(since=later(-60))[source.pk] == CallWindow(2, 2, 1, bad_seconds=10)

    def test_a_good_poll_needs_no_statement_more_for_it(self, source: Source, clock: Clock) -> None:
        evaluate_source_breakers(NOW)
        ref = make_ref(source=source)
        engine = engine_with(payload_of(ref))
        scrape([open_task(ref)], engine)
        clock.now = later(3)
        task_id = open_task(ref, at=clock.now)
        engine.reader = ScriptedReader(payload_of(ref, at=clock.now))
        with CaptureQueriesContext(connection) as seen:
            scrape([task_id], engine)
        statements = [query["sql"] for query in seen if "scraping_breaker" in query["sql"] or "outcome" in query["sql"]]
        assert [sql.split()[0] for sql in statements] == [
            "SELECT",
            "UPDATE",
        ]  # the match's own row and its ref


class TestStretchedTimeouts:
    def attempt(self, task_id: int, clock: Clock, error: Exception) -> float:
        clock.now = max(clock.now, ScrapeTask.objects.get(pk=task_id).run_at)
        reader = ScriptedReader(error)
        seen: list[float] = []
        scorecard = reader.scorecard

        def noted(target: Any, **more: Any) -> Any:
            seen.append(target.timeout_factor)
            return scorecard(target, **more)

        engine = engine_with(error)
        engine.reader = reader
        with patch.object(reader, "scorecard", noted):
            scrape([task_id], engine)
        return seen[0]

    @pytest.mark.requirement("FR-021")
    def test_a_timeout_is_retried_once_with_half_as_much_time_again(self, source: Source, clock: Clock) -> None:
        task_id = open_task(make_ref(source=source))
        errors = [Transient("502"), ReadTimeout("30 s"), ReadTimeout("45 s"), ReadTimeout("30 s")]
        assert [self.attempt(task_id, clock, error) for error in errors] == [1.0, 1.0, 1.5, 1.0]

    @pytest.mark.requirement("FS-9")
    @pytest.mark.parametrize(("error", "is_soft"), [(Transient("502"), True), (SchemaBreak("no score"), False)])
    def test_the_journal_says_whether_it_is_soft(
        self, source: Source, clock: Clock, error: Exception, is_soft: bool
    ) -> None:
        task_id = open_task(make_ref(source=source))
        self.attempt(task_id, clock, error)
        assert ScrapeTask.objects.get().error["is_soft"] is is_soft


@contextmanager
def together(number: int, work: Any) -> Iterator[list[Any]]:
    """Runs the same function in several threads at the same moment, each with its own connection."""
    barrier, answers = threading.Barrier(number), []

    def run(index: int) -> None:
        barrier.wait(timeout=stretched(20))
        try:
            answers.append(work(index))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=stretched(60))
    yield answers


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    def test_three_permits_are_three(self, source: Source) -> None:
        half_open(source)
        stale = [fresh(source) for _ in range(8)]  # all have read the row before the first asks

        def ask(index: int) -> str:
            breakers.guard(100 + index, stale[index], policies=POLICIES, now=NOW)
            return "in"

        with together(8, ask) as answers:
            assert sum(answer == "in" for answer in answers) == 3
            assert sum(isinstance(answer, BreakerOpen) for answer in answers) == 5
        assert (len(row().probes), row().total_rejections) == (3, 5)

    def test_no_call_is_lost_between_two_workers(self, source: Source) -> None:
        evaluate_source_breakers(NOW)

        def count(index: int) -> int:
            counted = Outcomes()
            for number in range(50):
                counted.count(source.pk, is_bad=number % 2 == 0, now=later(number))
            return counted.flush(now=later(50))

        with together(6, count) as answers:
            assert answers == [50] * 6
        assert breakers.windows(since=NOW)[source.pk] == CallWindow(300, 150, 0, bad_seconds=50)
        assert row().total_calls == 300

    def test_two_steps_open_it_once(self, source: Source) -> None:
        evaluate_source_breakers(NOW)
        write(source, calls=50, bad=50, at=later(20))
        with together(4, lambda _: breakers.evaluate_sources(policies=POLICIES, now=later(21))) as answers:
            assert not [answer for answer in answers if isinstance(answer, Exception)]
        assert (row().state, row().total_opens) == ("OPEN", 1)


def test_the_step_is_in_the_schedulers_list() -> None:
    from django.conf import settings

    steps = dict(settings.SCHEDULER_STEPS)
    assert steps["scraping.scheduler.recover.evaluate_source_breakers"] <= timedelta(seconds=1).total_seconds()
