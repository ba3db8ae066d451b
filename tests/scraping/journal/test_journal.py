"""The journal: claim, finish, retry, rescue and release of tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from scraping import journal, signals
from scraping.errors import ErrorClass, StaleFence
from scraping.journal import FailureNote, NewTask
from scraping.models import MatchRef, ScrapeTask, Stage, TaskState, TaskTransition
from scraping.payloads import Resource
from tests.factories import NOW, make_ref
from tests.patience import stretched
from tests.scraping.builders import LEASE_SECONDS, claimed, later, new_claim, open_task

pytestmark = [pytest.mark.both, pytest.mark.django_db]

BROKEN = FailureNote(ErrorClass.TRANSIENT, "the source answered 502", Stage.NAVIGATING, {"http_status": 502})


@pytest.fixture
def ref() -> MatchRef:
    return make_ref()


def row(task_id: int) -> ScrapeTask:
    return ScrapeTask.objects.get(pk=task_id)


def ways(task_id: int) -> list[str]:
    return [f"{step.from_state} -> {step.to_state}" for step in TaskTransition.objects.filter(task_id=task_id)]


def everything() -> list[dict[str, Any]]:
    return [*ScrapeTask.objects.order_by("pk").values(), *TaskTransition.objects.order_by("pk").values()]


class TestOpen:
    @pytest.mark.requirement("ZT-1")
    def test_writes_a_row_before_the_task_is_executed(self, ref: MatchRef) -> None:
        task = row(open_task(ref))
        assert (task.state, task.attempt, task.fence, task.run_at) == (TaskState.PENDING, 0, 0, NOW)

    def test_leaves_an_open_task_as_it_is(self, ref: MatchRef) -> None:
        task_id = open_task(ref)
        again = NewTask(ref.source_id, ref.pk, Resource.SCORECARD, priority=2, run_at=later(60))
        assert journal.open_tasks([again], now=NOW) == 0
        assert row(task_id).run_at == NOW

    def test_counts_only_new_tasks_of_a_batch(self, ref: MatchRef) -> None:
        open_task(ref)
        refs = [ref, make_ref(), make_ref()]
        new = [NewTask(one.source_id, one.pk, Resource.SCORECARD, 0, run_at=NOW) for one in refs]
        assert journal.open_tasks(new, now=NOW) == 2

    def test_nothing_to_open(self) -> None:
        assert journal.open_tasks([], now=NOW) == 0

    def test_two_resources_of_a_match_may_be_open_at_once(self, ref: MatchRef) -> None:
        open_task(ref, resource=Resource.SCORECARD)
        open_task(ref, resource=Resource.COMMENTARY)
        assert ScrapeTask.objects.count() == 2

    def test_a_finished_task_makes_room_for_the_next(self, ref: MatchRef) -> None:
        with journal.finishing(new_claim(ref), now=NOW):
            pass
        open_task(ref)
        assert ScrapeTask.objects.count() == 2


class TestConstraints:
    """The database itself enforces the invariants for any code that writes to it."""

    @staticmethod
    def write(ref: MatchRef, /, **columns: Any) -> None:
        values: dict[str, Any] = {"resource": "scorecard", "run_at": NOW, "created_at": NOW}
        with transaction.atomic():
            ScrapeTask.objects.create(source=ref.source, **values | {"ref": ref} | columns)

    @pytest.mark.parametrize("state", [TaskState.PENDING, TaskState.EXECUTING])
    def test_one_open_task_per_ref_and_resource(self, ref: MatchRef, state: TaskState) -> None:
        open_task(ref)
        with pytest.raises(IntegrityError):
            self.write(ref, state=state, worker_id="w", lease_until=NOW)

    def test_one_open_task_per_source_where_there_is_no_ref(self, ref: MatchRef) -> None:
        self.write(ref, ref=None, resource="discovery")
        with pytest.raises(IntegrityError):
            self.write(ref, ref=None, resource="discovery")

    def test_closed_tasks_are_not_limited(self, ref: MatchRef) -> None:
        for _ in range(3):
            self.write(ref, state=TaskState.SUCCESS, finished_at=NOW)
        open_task(ref)

    @pytest.mark.parametrize(
        ("broken", "columns"),
        [
            ("an unknown state", {"state": "ASLEEP", "finished_at": NOW}),
            ("executing without a lease", {"state": "EXECUTING", "worker_id": "w"}),
            ("executing without a worker", {"state": "EXECUTING", "lease_until": NOW}),
            ("dead without a reason", {"state": "DEAD", "finished_at": NOW}),
            ("ended without a time", {"state": "SUCCESS"}),
        ],
    )
    def test_refuses(self, ref: MatchRef, broken: str, columns: dict[str, Any]) -> None:
        with pytest.raises(IntegrityError):
            self.write(ref, **columns)


class TestClaim:
    def test_counts_the_attempt_and_sets_lease_and_fence(self, ref: MatchRef) -> None:
        task_id = open_task(ref)
        claim = claimed(task_id, worker="w-1")
        task = row(task_id)
        assert (task.state, task.worker_id, task.attempt, task.fence) == (TaskState.EXECUTING, "w-1", 1, 1)
        assert task.lease_until == later(LEASE_SECONDS)
        assert (claim.fence, claim.attempt, claim.charged_attempts) == (1, 1, 0)
        assert (claim.ref_id, claim.resource) == (ref.pk, Resource.SCORECARD)

    def test_refuses_a_task_that_another_worker_holds(self, ref: MatchRef) -> None:
        task_id = open_task(ref)
        claimed(task_id, worker="w-1")
        assert journal.claim(task_id, worker_id="w-2", lease_seconds=15, now=later(1)) is None
        assert row(task_id).worker_id == "w-1"

    def test_refuses_a_task_before_its_time(self, ref: MatchRef) -> None:
        task_id = open_task(ref, at=later(10))
        assert journal.claim(task_id, worker_id="w-1", lease_seconds=15, now=later(9.9)) is None
        assert claimed(task_id, at=later(10))

    def test_refuses_a_task_that_has_ended(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        with journal.finishing(claim, now=NOW):
            pass
        assert journal.claim(claim.task_id, worker_id="w-2", lease_seconds=15, now=later(60)) is None

    def test_refuses_an_unknown_task(self) -> None:
        assert journal.claim(10**9, worker_id="w-1", lease_seconds=15, now=NOW) is None

    def test_fifty_hints_are_one_claim(self, ref: MatchRef) -> None:
        task_id = open_task(ref)
        claims = [journal.claim(task_id, worker_id="w-1", lease_seconds=15, now=NOW) for _ in range(50)]
        assert [claim for claim in claims if claim] == claims[:1]
        assert row(task_id).attempt == 1

    def test_every_claim_gets_a_new_fence(self, ref: MatchRef) -> None:
        task_id = open_task(ref)
        fences = []
        for number in range(3):
            fences.append(claimed(task_id, at=later(20 * number)).fence)
            journal.rescue(max_rescues=9, now=later(20 * number + 16))
        assert fences == [1, 2, 3]

    def test_refuses_a_task_claimed_by_another_thread_of_the_worker(self, ref: MatchRef) -> None:
        """A thread that slept through its lease must not get the fence of its worker's next claim."""
        task_id = open_task(ref)
        claims = []

        def interrupt(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
            if sql.startswith("UPDATE") and not claims:
                claims.append(None)  # the interruption itself claims too: once is enough
                claims[0] = journal.claim(task_id, worker_id="w-1", lease_seconds=15, now=NOW)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(interrupt):
            ours = journal.claim(task_id, worker_id="w-1", lease_seconds=15, now=NOW)
        assert claims[0] is not None
        assert ours is None
        assert row(task_id).attempt == 1


@pytest.mark.django_db(transaction=True)
class TestClaimByThreads:
    @staticmethod
    def at_once(workers: int, do: Callable[[str], Any]) -> list[Any]:
        """Runs all functions at the same moment, each with its own connection."""
        gate = threading.Barrier(workers)

        def run(name: str) -> Any:
            try:
                connection.ensure_connection()
                gate.wait(timeout=stretched(10))
                return do(name)
            finally:
                connection.close()

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(run, [f"w-{number}" for number in range(workers)]))

    def test_two_threads_claim_the_same_task_and_exactly_one_wins(self, ref: MatchRef) -> None:
        for _ in range(10):
            task_id = open_task(ref)
            claims = self.at_once(
                2, lambda name, task=task_id: journal.claim(task, worker_id=name, lease_seconds=15, now=NOW)
            )
            (won,) = [claim for claim in claims if claim]
            assert row(task_id).worker_id == won.worker_id
            assert (row(task_id).attempt, row(task_id).fence) == (1, 1)
            with journal.finishing(won, now=NOW):
                pass

    def test_two_schedulers_open_the_same_task_once(self, ref: MatchRef) -> None:
        new = NewTask(ref.source_id, ref.pk, Resource.SCORECARD, 0, run_at=NOW)
        opened = self.at_once(2, lambda _: journal.open_tasks([new], now=NOW))
        assert sum(opened) == 1
        assert ScrapeTask.objects.count() == 1

    def test_a_rescue_and_a_finish_at_once_leave_one_outcome(self, ref: MatchRef) -> None:
        for _ in range(5):
            claim = new_claim(ref)

            def end(name: str, claim: journal.Claim = claim) -> str:
                if name == "w-0":
                    return "rescued" if journal.rescue(max_rescues=3, now=later(16)) else "nothing"
                try:
                    with journal.finishing(claim, now=later(16)):
                        return "finished"
                except StaleFence:
                    return "stale"

            outcome = tuple(self.at_once(2, end))
            task = row(claim.task_id)
            expected = {("rescued", "stale"): TaskState.PENDING, ("nothing", "finished"): TaskState.SUCCESS}
            assert task.state == expected[outcome]
            ScrapeTask.objects.filter(pk=task.pk).delete()


class TestHeartbeat:
    def test_extends_the_leases_of_executing_tasks(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        assert journal.extend_leases([claim.task_id], worker_id="w-1", until=later(25)) == 1
        assert journal.rescue(max_rescues=3, now=later(20)) == 0

    def test_does_not_touch_another_workers_task(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        assert journal.extend_leases([claim.task_id], worker_id="w-2", until=later(25)) == 0
        assert row(claim.task_id).lease_until == later(LEASE_SECONDS)

    def test_leaves_a_finished_task_alone(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        with journal.finishing(claim, now=NOW):
            pass
        assert journal.extend_leases([claim.task_id], worker_id="w-1", until=later(25)) == 0
        assert row(claim.task_id).lease_until is None


class TestFinish:
    def test_ends_the_task_with_its_effects(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        with journal.finishing(claim, now=later(1)):
            MatchRef.objects.filter(pk=ref.pk).update(unchanged_polls=7)
        task = row(claim.task_id)
        assert (task.state, task.stage, task.finished_at) == (TaskState.SUCCESS, Stage.DONE, later(1))
        assert task.lease_until is None
        assert MatchRef.objects.get().unchanged_polls == 7

    def test_an_error_rolls_back_state_and_effects(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        before = everything()

        def write_half() -> None:
            with journal.finishing(claim, now=later(1)):
                MatchRef.objects.filter(pk=ref.pk).update(unchanged_polls=7)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write_half()
        assert everything() == before
        assert MatchRef.objects.get().unchanged_polls == 0

    def test_finishes_after_an_expired_lease_that_was_not_rescued(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        with journal.finishing(claim, now=later(100)):
            pass
        assert row(claim.task_id).state == TaskState.SUCCESS


class TestOldFence:
    """I4: a worker that lost a task writes nothing, in every later state of the task."""

    @pytest.fixture(params=["rescued", "claimed again", "claimed again by the same worker", "finished", "released"])
    def old(self, ref: MatchRef, request: pytest.FixtureRequest) -> journal.Claim:
        old = new_claim(ref)
        if request.param == "released":
            journal.release([old.task_id], worker_id="w-1", now=later(1))
            return old
        journal.rescue(max_rescues=3, now=later(16))
        if request.param == "claimed again":
            claimed(old.task_id, worker="w-2", at=later(17))
        if request.param == "claimed again by the same worker":
            claimed(old.task_id, worker="w-1", at=later(17))
        if request.param == "finished":
            with journal.finishing(claimed(old.task_id, worker="w-2", at=later(17)), now=later(18)):
                pass
        return old

    def refuses(self, do: Callable[[], None]) -> None:
        before = everything()
        with pytest.raises(StaleFence):
            do()
        assert everything() == before

    def test_cannot_finish(self, old: journal.Claim, ref: MatchRef) -> None:
        def finish() -> None:
            with journal.finishing(old, now=later(20)):
                MatchRef.objects.filter(pk=ref.pk).update(unchanged_polls=7)

        self.refuses(finish)
        assert MatchRef.objects.get().unchanged_polls == 0

    def test_cannot_retry(self, old: journal.Claim) -> None:
        self.refuses(lambda: journal.retry_later(old, BROKEN, at=later(30), is_charged=True, now=later(20)))

    def test_cannot_mark_dead(self, old: journal.Claim) -> None:
        self.refuses(lambda: journal.mark_dead(old, BROKEN, reason="gave up", now=later(20)))

    def test_cannot_put_off(self, old: journal.Claim) -> None:
        self.refuses(lambda: journal.put_off(old, until=later(60)))

    def test_cannot_keep(self, old: journal.Claim) -> None:
        def keep() -> None:
            with transaction.atomic():
                journal.keep(old)

        self.refuses(keep)


@pytest.mark.requirement("SO-10")
class TestRetry:
    def test_goes_back_to_pending_with_a_time(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        journal.retry_later(claim, BROKEN, at=later(4), is_charged=True, now=later(1))
        task = row(claim.task_id)
        assert (task.state, task.run_at, task.worker_id) == (TaskState.PENDING, later(4), "")
        assert (task.lease_until, task.hinted_at) == (None, None)
        assert (task.error_class, task.reason) == ("transient", "the source answered 502")
        assert task.error == {"http_status": 502}
        assert ways(task.pk) == ["EXECUTING -> FAILED", "FAILED -> PENDING"]

    @pytest.mark.parametrize(("is_charged", "charged"), [(True, 1), (False, 0)])
    def test_charges_the_source_only_for_its_own_faults(self, ref: MatchRef, is_charged: bool, charged: int) -> None:
        claim = new_claim(ref)
        journal.retry_later(claim, BROKEN, at=later(4), is_charged=is_charged, now=later(1))
        assert (row(claim.task_id).attempt, row(claim.task_id).charged_attempts) == (1, charged)

    def test_mark_dead_makes_a_dead_letter(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        journal.mark_dead(claim, BROKEN, reason="transient after 5 attempts: 502", now=later(1))
        task = row(claim.task_id)
        assert (task.state, task.finished_at) == (TaskState.DEAD, later(1))
        assert task.reason == "transient after 5 attempts: 502"
        assert task.error == {"http_status": 502}
        assert ways(task.pk) == ["EXECUTING -> FAILED", "FAILED -> DEAD"]

    def test_a_death_is_announced(self, ref: MatchRef) -> None:
        received: list[dict[str, Any]] = []

        def listen(**announced: Any) -> None:
            received.append(announced)

        signals.task_died.connect(listen)
        try:
            journal.mark_dead(new_claim(ref), BROKEN, reason="gave up", now=NOW)
        finally:
            signals.task_died.disconnect(listen)
        assert received[0]["error_type"] == "network"

    def test_a_long_reason_is_cut_to_its_column(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        journal.mark_dead(claim, BROKEN, reason="x" * 2000, now=NOW)
        assert len(row(claim.task_id).reason) == 500


class TestRescue:
    def test_takes_back_tasks_of_a_worker_without_a_heartbeat(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        assert journal.rescue(max_rescues=3, now=later(LEASE_SECONDS)) == 0
        assert journal.rescue(max_rescues=3, now=later(LEASE_SECONDS + 0.1)) == 1
        task = row(claim.task_id)
        assert (task.state, task.worker_id, task.rescues) == (TaskState.PENDING, "", 1)
        assert task.run_at == later(LEASE_SECONDS + 0.1)
        assert ways(task.pk) == ["EXECUTING -> PENDING"]

    def test_costs_the_task_no_charged_attempt(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        journal.rescue(max_rescues=3, now=later(16))
        assert row(claim.task_id).charged_attempts == 0

    @pytest.mark.requirement("BX-12")
    def test_a_task_that_cost_too_many_workers_is_dead(self, ref: MatchRef) -> None:
        task_id = open_task(ref)
        for number in range(3):
            assert row(task_id).state == TaskState.PENDING
            claimed(task_id, worker=f"w-{number}", at=later(20 * number))
            journal.rescue(max_rescues=3, now=later(20 * number + 16))
        task = row(task_id)
        assert (task.state, task.rescues) == (TaskState.DEAD, 3)
        assert "w-2" in task.reason
        assert "killed or hung 3 times" in task.reason
        assert task.error is not None
        assert (task.error["error_code"], task.error["worker_id"]) == ("lease_expired", "w-2")

    def test_announces_a_death(self, ref: MatchRef) -> None:
        buried: list[ScrapeTask] = []
        claim = new_claim(ref)
        journal.rescue(max_rescues=0, now=later(16), on_death=buried.append)
        assert [task.pk for task in buried] == [claim.task_id]

    def test_rescues_the_oldest_lease_first_and_keeps_to_the_limit(self) -> None:
        claims = [new_claim(make_ref(), at=later(number)) for number in range(3)]
        assert journal.rescue(max_rescues=3, now=later(60), limit=2) == 2
        assert [row(claim.task_id).state for claim in claims] == ["PENDING", "PENDING", "EXECUTING"]


class TestPutOff:
    def test_gives_a_task_back_untried_until_a_time(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        journal.put_off(claim, until=later(60))
        task = row(claim.task_id)
        assert (task.state, task.run_at, task.attempt, task.lease_until) == (TaskState.PENDING, later(60), 0, None)


class TestRelease:
    def test_gives_tasks_back_as_if_never_claimed(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        assert journal.release([claim.task_id], worker_id="w-1", now=later(1)) == 1
        task = row(claim.task_id)
        assert (task.state, task.attempt, task.run_at) == (TaskState.PENDING, 0, later(1))
        assert claimed(task.pk, at=later(1)).fence == claim.fence + 1

    def test_leaves_other_workers_tasks_alone(self, ref: MatchRef) -> None:
        claim = new_claim(ref)
        assert journal.release([claim.task_id], worker_id="w-2", now=later(1)) == 0
        assert row(claim.task_id).state == TaskState.EXECUTING


class TestOperatorRetry:
    @pytest.fixture
    def dead(self, ref: MatchRef) -> int:
        claim = new_claim(ref)
        journal.mark_dead(claim, BROKEN, reason="gave up", now=NOW)
        return claim.task_id

    def test_reopens_a_dead_task_with_all_its_attempts(self, dead: int) -> None:
        outcome = journal.retry(task_ids=[dead], actor="anna", now=later(60))
        task = row(dead)
        assert outcome.retried == [dead]
        assert (task.state, task.run_at, task.finished_at) == (TaskState.PENDING, later(60), None)
        assert (task.attempt, task.charged_attempts, task.rescues) == (0, 0, 0)
        last = TaskTransition.objects.filter(task_id=dead).latest("pk")
        assert (last.from_state, last.to_state, last.actor) == ("DEAD", "PENDING", "anna")

    def test_keeps_the_fence_so_that_old_claims_stay_invalid(self, dead: int) -> None:
        before = row(dead).fence
        journal.retry(task_ids=[dead], actor="anna", now=later(60))
        assert claimed(dead, at=later(60)).fence == before + 1

    def test_never_opens_a_second_task_for_the_same_match(self, dead: int, ref: MatchRef) -> None:
        newer = open_task(ref)
        outcome = journal.retry(task_ids=[dead], actor="anna", now=later(60))
        assert "open already" in outcome.refused[dead]
        assert (row(dead).state, row(newer).state) == (TaskState.DEAD, TaskState.PENDING)

    @pytest.mark.parametrize("state", [TaskState.PENDING, TaskState.EXECUTING, TaskState.SUCCESS])
    def test_refuses_what_has_not_failed(self, ref: MatchRef, state: TaskState) -> None:
        task_id = open_task(ref)
        if state != TaskState.PENDING:
            claim = claimed(task_id)
            if state == TaskState.SUCCESS:
                with journal.finishing(claim, now=NOW):
                    pass
        outcome = journal.retry(task_ids=[task_id], actor="anna", now=later(60))
        assert f"it is {state}" in outcome.refused[task_id]
        assert row(task_id).state == state
