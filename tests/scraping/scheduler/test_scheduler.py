"""The scheduler's steps, one at a time. A step takes the time and returns how many things it found to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from inspect import isfunction, signature
from types import ModuleType
from typing import Any

import dramatiq
import pytest
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError
from dramatiq.brokers.stub import StubBroker

from scraping import journal
from scraping.configuration import policies
from scraping.errors import ErrorClass
from scraping.matches import lifecycle, scrapers
from scraping.matches.lifecycle import archive_old_matches
from scraping.models import (
    Breaker,
    BreakerState,
    Lease,
    Match,
    MatchLifecycle,
    MatchRef,
    Scraper,
    ScrapeTask,
    TaskState,
)
from scraping.payloads import Resource
from scraping.scheduler import hint, leader, other_tasks, recover, retention, upkeep
from scraping.scheduler.hint import dispatch_due, hint_due_tasks
from scraping.scheduler.loop import SchedulerLoop, Step, load_steps
from scraping.scheduler.other_tasks import open_discovery_tasks, open_gap_tasks
from scraping.scheduler.recover import end_pauses, rescue_expired, restart_scrapers
from tests.factories import NOW, make_match, make_ref, make_scraper, make_source
from tests.scraping.builders import POLICIES, claimed, later, new_claim, open_task
from tests.scraping.due_tasks import open_due_tasks, room_by_source
from victoryline.lib.hint_broker import QUEUE

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "current", lambda: POLICIES)


def due_ref(**fields: Any) -> MatchRef:
    return make_ref(fields.pop("match", None), **{"next_poll_at": NOW, "captured_at": later(-100), **fields})


def trip(ref: MatchRef, *, until: datetime) -> None:
    Breaker.objects.create(
        name=f"{ref.key}_scraper", ref=ref, state=BreakerState.OPEN, open_until=until, last_state_change=NOW
    )


class TestLeader:
    def test_one_holder_leads_the_other_stands_by(self) -> None:
        assert leader.hold("a", seconds=10, now=NOW)
        assert not leader.hold("b", seconds=10, now=later(1))
        assert leader.hold("a", seconds=10, now=later(5))
        assert not leader.hold("b", seconds=10, now=later(14))

    def test_the_lease_expires_without_renewal(self) -> None:
        leader.hold("a", seconds=10, now=NOW)
        assert leader.hold("b", seconds=10, now=later(10.1))
        assert not leader.hold("a", seconds=10, now=later(11))

    def test_only_a_new_holder_gets_a_new_fence(self) -> None:
        fences = []
        for holder, at in (("a", 0), ("a", 5), ("b", 20), ("a", 40)):
            leader.hold(holder, seconds=10, now=later(at))
            fences.append(Lease.objects.get().fence)
        assert fences == [1, 1, 2, 3]

    def test_a_released_lease_can_be_taken_at_once(self) -> None:
        leader.hold("a", seconds=10, now=NOW)
        leader.release("a", now=later(1))
        assert leader.hold("b", seconds=10, now=later(1))

    def test_only_the_holder_can_release(self) -> None:
        leader.hold("a", seconds=10, now=NOW)
        leader.release("b", now=later(1))
        assert not leader.hold("b", seconds=10, now=later(2))


class TestDue:
    def test_opens_a_task_for_a_match_that_is_due(self) -> None:
        ref = due_ref()
        assert open_due_tasks(NOW) == 1
        task = ScrapeTask.objects.get()
        assert (task.ref_id, task.resource, task.state) == (ref.pk, Resource.SCORECARD, TaskState.PENDING)

    def test_once(self) -> None:
        due_ref()
        assert [open_due_tasks(later(tick)) for tick in range(3)] == [1, 0, 0]

    @pytest.mark.parametrize(
        ("what", "fields"),
        [
            ("not yet due", {"next_poll_at": later(0.1)}),
            ("no longer watched", {"is_watched": False}),
            ("never to be polled", {"next_poll_at": None}),
        ],
    )
    def test_leaves_a_ref_alone(self, what: str, fields: dict[str, Any]) -> None:
        due_ref(**fields)
        assert open_due_tasks(NOW) == 0

    @pytest.mark.parametrize(
        ("state", "is_polled"),
        [("DISCOVERED", 1), ("ACTIVE", 1), ("COMPLETED", 1), ("PAUSED", 0), ("ARCHIVED", 0)],
    )
    def test_depends_on_the_lifecycle_of_the_match(self, state: str, is_polled: int) -> None:
        due_ref(match=make_match(lifecycle=state, pause_until=later(60)))
        assert open_due_tasks(NOW) == is_polled

    def test_leaves_a_disabled_source_alone(self) -> None:
        make_source(is_enabled=False)
        due_ref()
        assert open_due_tasks(NOW) == 0

    def test_waits_for_an_open_breaker_and_then_probes(self) -> None:
        trip(due_ref(), until=later(60))
        assert open_due_tasks(later(59)) == 0
        assert open_due_tasks(later(60)) == 1

    def test_keeps_to_the_sources_room(self) -> None:
        source = make_source(max_concurrency=3)
        for _ in range(5):
            due_ref(source=source)
        assert open_due_tasks(NOW) == 3
        assert room_by_source() == {source.pk: 0}
        assert open_due_tasks(NOW) == 0

    def test_a_finished_task_makes_room(self) -> None:
        source = make_source(max_concurrency=1)
        first, second = due_ref(source=source), due_ref(source=source, next_poll_at=later(1))
        open_due_tasks(NOW)
        with journal.finishing(claimed(ScrapeTask.objects.get(ref=first).pk), now=later(1)):
            MatchRef.objects.filter(pk=first.pk).update(next_poll_at=later(9))
        assert open_due_tasks(later(2)) == 1
        assert ScrapeTask.objects.filter(ref=second).exists()

    def test_a_source_without_room_does_not_keep_another_waiting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("scraping.scheduler.due.BATCH", 2)
        busy = make_source("crex", max_concurrency=1)
        for _ in range(4):
            due_ref(source=busy, next_poll_at=later(-60))
        other = due_ref(source="sofascore")
        assert open_due_tasks(NOW) == 2
        assert ScrapeTask.objects.filter(ref=other).exists()

    def test_live_matches_come_first_then_the_longest_waiting(self) -> None:
        make_source(max_concurrency=2)
        due_ref(match=make_match(priority=2), next_poll_at=later(-90))
        waiting = due_ref(match=make_match(priority=0), next_poll_at=later(-30))
        fresh = due_ref(match=make_match(priority=0), next_poll_at=later(-1))
        open_due_tasks(NOW)
        assert set(ScrapeTask.objects.values_list("ref", flat=True)) == {waiting.pk, fresh.pk}


class TestHint:
    def hints(self, broker: StubBroker) -> list[int]:
        queue = broker.queues[QUEUE]
        messages = [dramatiq.Message.decode(queue.get_nowait()) for _ in range(queue.qsize())]
        return [task_id for message in messages for task_id in message.args]

    def test_hints_due_tasks(self, broker: StubBroker) -> None:
        task_id = open_task(make_ref())
        assert hint_due_tasks(NOW) == 1
        assert self.hints(broker) == [task_id]

    def test_hints_again_until_the_task_is_claimed(self, broker: StubBroker) -> None:
        task_id = open_task(make_ref())
        assert [hint_due_tasks(later(seconds)) for seconds in (0, 1, 2, 3, 4)] == [1, 0, 1, 0, 1]
        claimed(task_id, at=later(5))
        assert hint_due_tasks(later(10)) == 0

    def test_hints_no_task_of_a_paused_match(self, broker: StubBroker) -> None:
        ref = make_ref()
        task_id = open_task(ref)
        lifecycle.pause(match_id=ref.match_id, until=later(60), reason="test", actor="test", now=NOW)
        assert hint_due_tasks(later(1)) == 0
        lifecycle.resume(match_id=ref.match_id, actor="test", now=later(2))
        assert hint_due_tasks(later(3)) == 1
        assert self.hints(broker) == [task_id]

    def test_hints_no_task_of_a_disabled_source(self, broker: StubBroker) -> None:
        ref = make_ref()
        open_task(ref)
        ref.source.is_enabled = False
        ref.source.save()
        assert hint_due_tasks(later(1)) == 0

    @pytest.mark.parametrize("state", ["not yet due", "in work", "finished"])
    def test_hints_no_other_tasks(self, broker: StubBroker, state: str) -> None:
        ref = make_ref()
        if state == "not yet due":
            open_task(ref, at=later(1))
        else:
            claim = new_claim(ref)
            if state == "finished":
                with journal.finishing(claim, now=NOW):
                    pass
        assert hint_due_tasks(NOW) == 0

    def test_hints_no_task_of_a_match_with_an_open_breaker(self, broker: StubBroker) -> None:
        """It was opened before the breaker opened, or by an operator."""
        ref = make_ref()
        open_task(ref)
        trip(ref, until=later(60))
        assert hint_due_tasks(later(59)) == 0
        assert hint_due_tasks(later(60)) == 1

    def test_a_task_without_a_match_is_hinted_too(self, broker: StubBroker) -> None:
        source = make_source()
        journal.open_tasks([journal.NewTask(source.pk, None, Resource.DISCOVERY, 1, run_at=NOW)], now=NOW)
        assert hint_due_tasks(NOW) == 1

    def test_live_matches_first(self, broker: StubBroker) -> None:
        late, live = make_ref(), make_ref()
        for ref, priority in ((late, 2), (live, 0)):
            new = journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, priority, run_at=NOW)
            journal.open_tasks([new], now=NOW)
        hint_due_tasks(NOW)
        assert self.hints(broker) == [ScrapeTask.objects.get(ref=ref).pk for ref in (live, late)]

    def test_groups_polls_of_a_source_and_sends_others_alone(
        self, broker: StubBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(policies, "current", lambda: replace(POLICIES, poll_group_size=2))
        cricket = [open_task(make_ref()) for _ in range(3)]
        football = open_task(make_ref(source=make_source("sofascore")))
        lists = journal.open_new([journal.NewTask(make_source().pk, None, Resource.DISCOVERY, 1, run_at=NOW)], now=NOW)
        assert hint_due_tasks(NOW) == 5
        queue = broker.queues[QUEUE]
        groups = sorted(dramatiq.Message.decode(queue.get_nowait()).args for _ in range(queue.qsize()))
        assert groups == sorted([tuple(cricket[:2]), (cricket[2],), (football,), (lists[0].task_id,)])

    def test_hints_opened_tasks_at_once_and_once(self, broker: StubBroker) -> None:
        due_ref()
        assert dispatch_due(NOW) == 1
        assert len(self.hints(broker)) == 1
        assert hint_due_tasks(NOW) == 0

    def test_tasks_opened_while_the_broker_was_away_are_due_at_once(
        self, broker: StubBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(message: dramatiq.Message[Any]) -> None:
            raise OSError("gone")

        due_ref()
        with monkeypatch.context() as patched:
            patched.setattr(broker, "enqueue", away)
            assert dispatch_due(NOW) == 1
        assert hint_due_tasks(later(0.1)) == 1

    @pytest.mark.requirement("ZT-1")
    @pytest.mark.parametrize("fault", [dramatiq.errors.ConnectionClosed("gone"), OSError("reset"), RuntimeError("OOM")])
    def test_a_broker_that_is_away_loses_nothing(
        self, broker: StubBroker, monkeypatch: pytest.MonkeyPatch, fault: Exception
    ) -> None:
        monkeypatch.setattr(policies, "current", lambda: replace(POLICIES, poll_group_size=1))
        tasks = [open_task(make_ref()) for _ in range(3)]
        sent: list[int] = []

        def breaks_down(message: dramatiq.Message[Any]) -> None:
            if len(sent) == 1:
                raise fault
            sent.extend(message.args)

        monkeypatch.setattr(broker, "enqueue", breaks_down)
        assert hint_due_tasks(NOW) == 1
        monkeypatch.undo()
        monkeypatch.setattr(policies, "current", lambda: POLICIES)
        assert hint_due_tasks(later(1)) == 2
        assert sorted(sent + self.hints(broker)) == tasks

    def test_a_broker_that_forgets_everything_loses_nothing(self, broker: StubBroker) -> None:
        task_id = open_task(make_ref())
        hint_due_tasks(NOW)
        broker.flush_all()
        assert hint_due_tasks(later(3)) == 1
        assert self.hints(broker) == [task_id]


class TestRescue:
    def test_takes_back_tasks_of_workers_without_a_heartbeat(self) -> None:
        claim = new_claim(make_ref())
        assert rescue_expired(later(14)) == 0
        assert rescue_expired(later(16)) == 1
        assert ScrapeTask.objects.get(pk=claim.task_id).state == TaskState.PENDING

    def test_pauses_a_match_whose_tasks_kill_workers(self) -> None:
        ref = due_ref()
        at = 0.0
        for _ in range(5):
            assert open_due_tasks(later(at)) == 1
            task_id = ScrapeTask.objects.latest("pk").pk
            for _ in range(3):
                claimed(task_id, at=later(at))
                at += 16
                rescue_expired(later(at))
            assert ScrapeTask.objects.get(pk=task_id).state == TaskState.DEAD
            assert open_due_tasks(later(at)) == 0  # the next task waits, too
            at += 30
        match = Match.objects.get(pk=ref.match_id)
        assert (match.lifecycle, match.total_failures) == (MatchLifecycle.PAUSED, 5)

    def test_a_dead_discovery_pauses_nothing(self) -> None:
        source = make_source()
        journal.open_tasks([journal.NewTask(source.pk, None, Resource.DISCOVERY, 1, run_at=NOW)], now=NOW)
        for attempt in range(3):
            claimed(ScrapeTask.objects.get().pk, at=later(20 * attempt))
            rescue_expired(later(20 * attempt + 16))
        assert ScrapeTask.objects.get().state == TaskState.DEAD


class TestGaps:
    @pytest.fixture
    def holed(self) -> MatchRef:
        return make_ref(events_through=3, events_seen=9)

    def test_opens_a_task_for_a_gap(self, holed: MatchRef) -> None:
        make_ref(events_through=9, events_seen=9)
        assert open_gap_tasks(NOW) == 1
        assert (ScrapeTask.objects.get().ref_id, ScrapeTask.objects.get().resource) == (holed.pk, "commentary")

    def test_once(self, holed: MatchRef) -> None:
        assert [open_gap_tasks(NOW), open_gap_tasks(later(1))] == [1, 0]

    @pytest.mark.parametrize(("is_success", "again_after"), [(True, 5), (False, 60)])
    def test_opens_another_task_after_a_while(self, holed: MatchRef, is_success: bool, again_after: float) -> None:
        open_gap_tasks(NOW)
        state = TaskState.SUCCESS if is_success else TaskState.SKIPPED
        with journal.finishing(claimed(ScrapeTask.objects.get().pk), now=NOW, to_state=state):
            pass
        assert open_gap_tasks(later(again_after - 1)) == 0
        assert open_gap_tasks(later(again_after)) == 1

    def test_opens_one_task_a_minute_for_a_gap_that_stays(self, holed: MatchRef) -> None:
        """A source may have numbered a ball that its list never has, or list half of its events for a while."""
        opened = []
        for second in range(0, 300, 5):
            if open_gap_tasks(later(second)):
                opened.append(second)
            ScrapeTask.objects.filter(finished_at=None).update(state=TaskState.SUCCESS, finished_at=later(second))
        assert opened == [0, 5, 10, 15, 20, 80, 140, 200, 260]

    def test_not_through_an_open_breaker(self, holed: MatchRef) -> None:
        trip(holed, until=later(60))
        assert [open_gap_tasks(NOW), open_gap_tasks(later(60))] == [0, 1]

    def test_not_for_a_paused_match(self, holed: MatchRef) -> None:
        lifecycle.pause(match_id=holed.match_id, until=later(60), reason="rain", actor="anna", now=NOW)
        assert open_gap_tasks(NOW) == 0


class TestDiscovery:
    def test_opens_a_task_for_each_enabled_source(self) -> None:
        make_source("crex")
        make_source("sofascore", is_enabled=False)
        assert open_discovery_tasks(NOW) == 1
        task = ScrapeTask.objects.get()
        assert (task.source.key, task.resource, task.ref) == ("crex", "discovery", None)
        assert open_discovery_tasks(later(29)) == 0

    def test_opens_another_task_after_the_interval(self) -> None:
        make_source(last_discovery_at=later(-31))
        assert open_discovery_tasks(NOW) == 1

    def test_opens_no_task_for_a_recent_list(self) -> None:
        make_source(last_discovery_at=later(-29))
        assert open_discovery_tasks(NOW) == 0

    def test_opens_no_task_right_after_a_dead_one(self) -> None:
        make_source()
        open_discovery_tasks(NOW)
        note = journal.FailureNote(ErrorClass.BUG, "broken", "INIT")
        journal.mark_dead(claimed(ScrapeTask.objects.get().pk), note, reason="broken", now=later(1))
        assert [open_discovery_tasks(later(2)), open_discovery_tasks(later(31))] == [0, 1]


class TestRestarts:
    def test_replaces_a_worn_scraper(self) -> None:
        ref = make_ref()
        worn = make_scraper(ref, error_count=11, total_errors=40, total_updates=9)
        assert restart_scrapers(NOW) == 1
        old, new = Scraper.objects.get(pk=worn.pk), Scraper.objects.get(stopped_at=None)
        assert (old.stopped_at, old.stop_reason) == (NOW, "11 errors in a row")
        assert (new.error_count, new.total_updates, new.start_time) == (0, 0, NOW)
        assert MatchRef.objects.get().next_poll_at == NOW

    @pytest.mark.requirement("FR-001", "FR-010")
    @pytest.mark.parametrize(
        ("fields", "is_replaced"),
        [
            ({}, 0),
            ({"last_update_time": later(-301)}, 1),
            ({"start_time": later(-6 * 3600 - 1)}, 1),
            ({"start_time": later(-6 * 3600 + 1)}, 0),
        ],
    )
    def test_needs_a_reason(self, fields: dict[str, Any], is_replaced: int) -> None:
        make_scraper(make_ref(), **fields)
        assert restart_scrapers(NOW) == is_replaced

    def test_a_fresh_scraper_has_its_own_five_minutes(self) -> None:
        make_scraper(make_ref(), last_update_time=later(-301))
        assert [restart_scrapers(later(seconds)) for seconds in (0, 5, 299, 301)] == [1, 0, 0, 1]

    def test_does_not_restart_for_a_match_that_is_not_polled(self) -> None:
        match = make_match(lifecycle=MatchLifecycle.PAUSED, pause_until=later(60))
        make_scraper(make_ref(match), last_update_time=later(-301))
        assert restart_scrapers(NOW) == 0

    def test_the_second_of_two_schedulers_restarts_nothing(self) -> None:
        worn = make_scraper(make_ref())
        assert scrapers.restart(worn, reason="old", now=NOW) is not None
        assert scrapers.restart(worn, reason="old", now=NOW) is None
        assert Scraper.objects.filter(stopped_at=None).count() == 1


@pytest.mark.requirement("BX-8")
class TestPauses:
    def pause(self, ref: MatchRef) -> None:
        lifecycle.pause(match_id=ref.match_id, until=later(300), reason="rain", actor="anna", now=NOW)

    def test_end_by_themselves(self) -> None:
        ref = due_ref(match=make_match(consecutive_failure_count=5, failing_since=NOW))
        self.pause(ref)
        assert (end_pauses(later(299)), open_due_tasks(later(299))) == (0, 0)
        assert (end_pauses(later(300)), open_due_tasks(later(300))) == (1, 1)
        match = Match.objects.get()
        assert (match.lifecycle, match.pause_until, match.pause_reason) == (MatchLifecycle.ACTIVE, None, "")
        assert (match.consecutive_failure_count, match.failing_since) == (0, None)

    def test_a_pause_without_an_end_is_impossible(self) -> None:
        ref = due_ref()
        with pytest.raises(lifecycle.NotAllowed, match="must end in the future"):
            lifecycle.pause(match_id=ref.match_id, until=NOW, reason="rain", actor="anna", now=NOW)
        with pytest.raises(IntegrityError):
            Match.objects.update(lifecycle=MatchLifecycle.PAUSED, pause_until=None)

    def test_stops_the_scraper_and_a_fresh_one_follows(self) -> None:
        ref = due_ref()
        make_scraper(ref)
        self.pause(ref)
        assert Scraper.objects.get().stop_reason == "paused: rain"

    def test_a_person_may_resume_at_the_same_moment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = due_ref(), due_ref()
        self.pause(first)
        self.pause(second)
        resume = lifecycle.resume

        def by_hand_first(**asked: Any) -> Match:
            if asked["match_id"] == first.match_id:
                resume(match_id=first.match_id, actor="anna", now=later(300))
            return resume(**asked)

        monkeypatch.setattr(lifecycle, "resume", by_hand_first)
        assert end_pauses(later(300)) == 1
        assert not Match.objects.paused().exists()

    @pytest.mark.parametrize(
        ("what", "life", "error"),
        [
            ("paused already", "PAUSED", "paused already"),
            ("over", "COMPLETED", "cannot become PAUSED"),
            ("archived", "ARCHIVED", "cannot become PAUSED"),
        ],
    )
    def test_refuses_to_pause_what_is(self, what: str, life: str, error: str) -> None:
        match = make_match(lifecycle=life, pause_until=later(9))
        with pytest.raises(lifecycle.NotAllowed, match=error):
            lifecycle.pause(match_id=match.pk, until=later(300), reason="rain", actor="anna", now=NOW)


@pytest.mark.requirement("SO-16")
class TestArchive:
    def test_a_day_after_its_end_a_match_is_no_longer_polled(self) -> None:
        ref = due_ref(match=make_match(lifecycle=MatchLifecycle.COMPLETED, completed_at=later(-24 * 3600)))
        assert archive_old_matches(NOW) == 0
        assert archive_old_matches(later(1)) == 1
        assert Match.objects.get().lifecycle == MatchLifecycle.ARCHIVED
        ref.refresh_from_db()
        assert (ref.is_watched, ref.next_poll_at) == (False, None)

    def test_others_stay(self) -> None:
        make_match(lifecycle=MatchLifecycle.ACTIVE, completed_at=None)
        make_match(lifecycle=MatchLifecycle.COMPLETED, completed_at=later(-3600))
        assert archive_old_matches(NOW) == 0


class TestLoop:
    def loop(self, *steps: Step, holder: str = "a") -> SchedulerLoop:
        return SchedulerLoop(steps, holder=holder, tick_seconds=0.01, lease_seconds=10)

    def test_runs_each_step_and_adds_up_the_counts(self) -> None:
        seen: list[datetime] = []

        def step(now: datetime) -> int:
            seen.append(now)
            return 2

        assert self.loop(Step("one", step, 0), Step("two", step, 0)).tick(now=NOW) == 4
        assert seen == [NOW, NOW]

    def test_a_step_waits_for_its_turn(self) -> None:
        loop = self.loop(Step("often", lambda _: 1, 0), Step("seldom", lambda _: 10, 3600))
        assert [loop.tick(now=NOW) for _ in range(3)] == [11, 1, 1]

    @pytest.mark.parametrize("fault", [ZeroDivisionError("a bug"), IntegrityError("a wrong row")])
    def test_a_failing_step_does_not_stop_the_others(self, fault: Exception) -> None:
        def breaks(now: datetime) -> int:
            raise fault

        assert self.loop(Step("broken", breaks, 0), Step("good", lambda _: 1, 0)).tick(now=NOW) == 1

    @pytest.mark.parametrize(
        "fault",
        [
            OperationalError("away"),
            InterfaceError("connection already closed"),
            DatabaseError("?"),
            TimeoutError("pool"),
        ],
    )
    def test_survives_a_database_that_is_away(self, monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
        """Also if it is lost while the lease is renewed, with any error of the driver."""
        calls: list[str] = []
        hold = leader.hold

        def away_once(*args: Any, **more: Any) -> bool:
            calls.append("hold")
            if len(calls) == 1:
                raise fault
            return hold(*args, **more)

        monkeypatch.setattr(leader, "hold", away_once)
        monkeypatch.setattr("scraping.scheduler.loop.close_old_connections", lambda: None)
        loop = self.loop(Step("last", lambda _: loop.stop() or 0, 0))
        monkeypatch.setattr(loop._stopping, "wait", lambda seconds: None)
        loop.run()
        assert len(calls) == 2

    def test_a_standby_does_nothing_until_the_lease_is_released(self) -> None:
        first, second = (self.loop(Step("one", lambda _: 1, 0), holder=name) for name in "ab")
        assert (first.tick(now=NOW), second.tick(now=NOW)) == (1, 0)
        leader.release("a", now=NOW)
        second._leadership.check_at_once()
        assert second.tick(now=later(1)) == 1

    def test_the_table_of_the_settings_can_be_loaded(self, settings: Any) -> None:
        names = {step.name for step in load_steps(settings.SCHEDULER_STEPS)}
        assert {"dispatch_due", "hint_due_tasks", "rescue_expired"} <= names

    @pytest.mark.parametrize("module", [hint, other_tasks, recover, retention, upkeep])
    def test_every_step_is_in_the_table_of_the_settings(self, settings: Any, module: ModuleType) -> None:
        steps = {
            f"{module.__name__}.{name}"
            for name, function in vars(module).items()
            if isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
            if [*signature(function).parameters] == ["now"]
        }
        assert steps
        assert steps <= dict(settings.SCHEDULER_STEPS).keys()


def test_two_schedulers_at_once_open_nothing_twice() -> None:
    """Even if both schedulers lead: steps are idempotent."""
    for _ in range(3):
        due_ref()
    assert open_due_tasks(NOW) + open_due_tasks(NOW) == 3


def test_follows_a_changed_policy(monkeypatch: pytest.MonkeyPatch, broker: StubBroker) -> None:
    monkeypatch.setattr(policies, "current", lambda: replace(POLICIES, hint_again_seconds=30.0))
    open_task(make_ref())
    assert [hint_due_tasks(later(seconds)) for seconds in (0, 29, 30)] == [1, 0, 1]
