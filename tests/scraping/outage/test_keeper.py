"""The outage keeper: a worker between the loss and the return of the database, with a scripted reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from scraping import journal
from scraping.errors import Transient
from scraping.models import Match, MatchRef, ScrapeTask, TaskState
from scraping.outage import keeper as keeper_module
from scraping.outage.keeper import OutageKeeper
from scraping.outage.spool import HeldMatch, Spool, SpoolLimits
from scraping.worker.engine import Engine
from scraping.worker.scrape import scrape
from tests.factories import make_ref
from tests.patience import wait_for
from tests.scraping.builders import POLICIES, Outcome, ScriptedReader, balls, chasing, later, open_task, payload_of

pytestmark = [
    pytest.mark.both,
    pytest.mark.django_db(transaction=True),
    pytest.mark.requirement("EC-2", "FR-011", "FR-020", "BX-13"),
]


@contextmanager
def database_away() -> Iterator[None]:
    """Makes every statement of this thread fail as after the loss of the server."""

    def refuse(*_: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(refuse):
        yield


@pytest.fixture
def ref() -> MatchRef:
    return make_ref()


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Engine]]:
    """An engine whose keeper polls only on request, and recovers in the test's own thread."""
    made: list[OutageKeeper] = []
    monkeypatch.setattr(OutageKeeper, "_start_recovery", lambda _: None)

    def build(*outcomes: Outcome, name: str = "w-1") -> Engine:
        reader = ScriptedReader(*outcomes)
        keeper = OutageKeeper(
            worker_id=name,
            reader=reader,
            policies=POLICIES,
            spool=Spool(tmp_path / "spool", name=name, limits=SpoolLimits()),
            threads=2,
            running_tasks=list,
        )
        made.append(keeper)
        return Engine(worker_id=name, reader=reader, policies=POLICIES, keeper=keeper)

    yield build
    for keeper in made:
        keeper.spool.close()


def keeper_of(engine: Engine) -> OutageKeeper:
    assert engine.keeper is not None
    return engine.keeper


def poll_all(engine: Engine) -> None:
    keeper = keeper_of(engine)
    for held in keeper.matches.due(time.monotonic() + 1000):
        keeper._poll(held)


class TestLosingTheDatabase:
    def test_at_the_commit_spools_the_reading(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        engine = make(payload_of(ref, chasing(100), at=later(10), events=balls(1, 2)))
        task_id = open_task(ref)
        away = database_away()

        def go_away() -> None:
            away.__enter__()

        engine.reader._before = go_away  # type: ignore[attr-defined]
        scrape([task_id], engine)
        away.__exit__(None, None, None)
        keeper = keeper_of(engine)
        assert keeper.away.is_set()
        assert not engine.takes_work
        assert [one.ref_id for one in keeper.spool.batch(9)] == [ref.pk]
        assert ScrapeTask.objects.get().state == TaskState.EXECUTING

        keeper._recover()
        assert not keeper.away.is_set()
        assert engine.takes_work
        assert Match.objects.get().payload["innings"][1]["runs"] == 100
        task = ScrapeTask.objects.get(pk=task_id)
        assert (task.state, task.attempt, task.charged_attempts, task.rescues) == (TaskState.PENDING, 0, 0, 0)

    def test_logs_the_statement_that_failed(
        self,
        ref: MatchRef,
        make: Callable[..., Engine],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        engine, task_id = make(payload_of(ref)), open_task(ref)
        keeper = keeper_of(engine)
        monkeypatch.setattr(keeper._stopping, "wait", lambda _: keeper._stopping.set())
        with database_away():
            scrape([task_id], engine)
            keeper._recover()
        (line,) = [record for record in caplog.records if getattr(record, "action", "") == "store_lost"]
        assert line.sql.startswith("UPDATE")  # type: ignore[attr-defined]
        assert "scrape" in line.sql  # type: ignore[attr-defined]

    def test_at_the_claim_loses_nothing(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        engine = make(payload_of(ref))
        task_id = open_task(ref)
        with database_away():
            scrape([task_id], engine)
        assert keeper_of(engine).away.is_set()
        assert engine.reader.reads == 0  # type: ignore[attr-defined]
        assert ScrapeTask.objects.get().state == TaskState.PENDING

    def test_after_a_commit_that_succeeded_changes_nothing(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        """The reply to COMMIT was lost: the reading is in the database and in the spool."""
        payload = payload_of(ref, chasing(100), at=later(10), events=balls(1, 2))
        engine = make(payload)
        scrape([open_task(ref)], engine)
        keeper = keeper_of(engine)
        keeper.matches.pop(ref.pk)
        keeper.not_stored(_match(ref), payload)
        sequence = Match.objects.get().sequence
        keeper.lost(OperationalError("gone"))
        keeper._recover()
        assert Match.objects.get().sequence == sequence
        assert len(keeper.spool) == 0


class TestPollingOn:
    def test_spools_only_what_is_new(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        first = payload_of(ref, chasing(100), at=later(10), events=balls(1, 2))
        second = payload_of(ref, chasing(104), at=later(20), events=balls(1, 2, 3))
        engine = make(first, first, second, second)
        scrape([open_task(ref)], engine)
        keeper = keeper_of(engine)
        keeper.lost(OperationalError("gone"))
        for _ in range(3):
            poll_all(engine)
        assert [one.payload for one in keeper.spool.batch(9)] == [second]

    def test_a_failure_only_slows_polling_down(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        first, second = payload_of(ref, chasing(100), at=later(10)), payload_of(ref, chasing(104), at=later(20))
        engine = make(first, Transient("no route to host"), ValueError("a bug"), second)
        scrape([open_task(ref)], engine)
        keeper = keeper_of(engine)
        keeper.lost(OperationalError("gone"))
        poll_all(engine)
        assert keeper.matches.due(time.monotonic()) == []
        poll_all(engine)
        poll_all(engine)
        assert len(keeper.spool) == 1

    def test_an_invalid_payload_is_not_spooled(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        other = payload_of(ref, chasing(150)).model_copy(update={"source_event_id": "another"})
        engine = make(payload_of(ref, chasing(100), at=later(10)), other)
        scrape([open_task(ref)], engine)
        keeper_of(engine).lost(OperationalError("gone"))
        poll_all(engine)
        assert len(keeper_of(engine).spool) == 0

    def test_a_match_whose_breaker_is_open_is_left_alone(self, ref: MatchRef, make: Callable[..., Engine]) -> None:
        engine = make(payload_of(ref, chasing(100), at=later(10)), Transient("no route to host"))
        scrape([open_task(ref)], engine)
        assert len(keeper_of(engine).matches) == 1
        for _ in range(POLICIES.breaker.failure_threshold):
            ScrapeTask.objects.filter(state=TaskState.PENDING).delete()
            scrape([open_task(ref)], engine)
        assert len(keeper_of(engine).matches) == 0

    @pytest.mark.requirement("EC-2")
    def test_logs_the_size_of_the_spool_every_minute(
        self, ref: MatchRef, make: Callable[..., Engine], caplog: pytest.LogCaptureFixture
    ) -> None:
        engine = make(payload_of(ref))
        keeper = keeper_of(engine)
        keeper.lost(OperationalError("gone"))
        keeper._log_progress()
        keeper._log_at -= 60
        keeper._log_progress()
        keeper._log_progress()
        logged = [record for record in caplog.records if getattr(record, "action", "") == "spool_waits"]
        assert [record.levelname for record in logged] == ["WARNING"]


class TestRecovery:
    def test_probes_with_a_growing_pause(
        self, make: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch, ref: MatchRef
    ) -> None:
        engine = make(payload_of(ref))
        keeper = keeper_of(engine)
        keeper.lost(OperationalError("gone"))
        pauses: list[float] = []
        failing = database_away()
        failing.__enter__()

        def pause(seconds: float) -> bool:
            pauses.append(seconds)
            if len(pauses) == 6:
                failing.__exit__(None, None, None)
            return False

        monkeypatch.setattr(keeper._stopping, "wait", pause)
        monkeypatch.setattr(keeper_module.connection, "close", lambda: None)
        keeper._recover()
        assert pauses == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
        assert not keeper.away.is_set()

    def test_releases_only_its_own_tasks_that_are_not_running(self, make: Callable[..., Engine], ref: MatchRef) -> None:
        engine = make(payload_of(ref))
        mine, others = open_task(ref), open_task(make_ref())
        now = keeper_module.timezone.now()
        journal.claim(mine, worker_id="w-1", lease_seconds=15, now=now)
        journal.claim(others, worker_id="w-2", lease_seconds=15, now=now)
        keeper_of(engine).lost(OperationalError("gone"))
        keeper_of(engine)._recover()
        states = dict(ScrapeTask.objects.values_list("pk", "state"))
        assert states == {mine: TaskState.PENDING, others: TaskState.EXECUTING}


class TestAfterACrash:
    def test_the_next_worker_replays_the_spool(self, make: Callable[..., Engine], ref: MatchRef) -> None:
        old = keeper_of(make(payload_of(ref), name="old"))
        old.not_stored(_match(ref), payload_of(ref, chasing(100), at=later(10), events=balls(1, 2)))
        old.spool.close()
        new = keeper_of(make(payload_of(ref), name="new"))
        new._adopt()
        assert new.away.is_set()
        new._recover()
        assert Match.objects.get().payload["innings"][1]["runs"] == 100

    def test_the_next_worker_polls_the_matches_of_the_dead_one(
        self, make: Callable[..., Engine], ref: MatchRef
    ) -> None:
        first = payload_of(ref, chasing(100), at=later(10))
        engine = make(first, name="old")
        scrape([open_task(ref)], engine)
        keeper_of(engine)._report_loss()
        keeper_of(engine).spool.close()
        new = make(payload_of(ref, chasing(104), at=later(20)), name="new")
        keeper_of(new)._adopt()
        poll_all(new)
        assert [one.payload.state for one in keeper_of(new).spool.batch(9)] == [chasing(104)]


class TestThreads:
    def test_a_whole_outage_with_the_real_threads(
        self, make: Callable[..., Engine], ref: MatchRef, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine = make(payload_of(ref, chasing(100), at=later(10)), payload_of(ref, chasing(104), at=later(20)))
        scrape([open_task(ref)], engine)
        keeper = keeper_of(engine)
        keeper.start()
        keeper.lost(OperationalError("gone"))
        wait_for(lambda: len(keeper.spool) == 1, seconds=10, what="an update in the spool")
        monkeypatch.undo()  # the recovery thread may start
        keeper._start_recovery()
        wait_for(lambda: not keeper.away.is_set(), seconds=10, what="the end of the outage")
        assert Match.objects.get().payload["innings"][1]["runs"] == 104
        keeper.stop()

    def test_no_connection_is_held_between_two_checks(self, make: Callable[..., Engine]) -> None:
        keeper = keeper_of(make())

        def check() -> bool:
            keeper._between_outages()
            return connection.connection is None

        with ThreadPoolExecutor(1) as another:
            assert another.submit(check).result()


def _match(ref: MatchRef) -> HeldMatch:
    return HeldMatch(ref.pk, ref.key, "cricket", ref.source.site, ref.source_event_id, ref.url, 0.5)
