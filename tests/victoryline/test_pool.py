"""The pool of PostgreSQL connections, with a real server that is restarted and frozen."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg2
import pytest
from psycopg2 import extensions

from tests.patience import stretched
from tests.servers import PostgresServer
from victoryline.lib import pg_wait
from victoryline.pool.connections import WAIT, Limits, Pool, PoolExhausted, ServerAway

LIMITS = Limits(
    maximum=4, kept=3, minimum=1, wait_seconds=0.3, idle_seconds=600, lifetime_seconds=1800, ping_seconds=0.5
)


class Clock:
    """A test clock for the pool."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    before = extensions.get_wait_callback()
    pg_wait.install(answer_seconds=2, connect_seconds=0.5)
    yield
    extensions.set_wait_callback(before)


@pytest.fixture
def pool(postgres: PostgresServer, clock: Clock) -> Iterator[Pool]:
    made = Pool(lambda: psycopg2.connect(postgres.url), LIMITS, clock=clock)
    yield made
    postgres.resume()
    made.close()


def backend_of(connection: extensions.connection) -> int:
    return connection.info.backend_pid


def ask(connection: extensions.connection, sql: str = "SELECT 1") -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def fastest_answers(connection: extensions.connection) -> float:
    """Returns the seconds of ten answers, the best of forty times."""

    def ten() -> float:
        began = time.perf_counter()
        for _ in range(10):
            ask(connection)
        return time.perf_counter() - began

    return min(ten() for _ in range(40))


@pytest.mark.requirement("FR-008")
class TestLimits:
    def test_lends_the_same_connection_again(self, pool: Pool) -> None:
        first = pool.take()
        pool.give(first)
        assert pool.take() is first
        pool.give(first)
        assert (pool.in_use, pool.idle) == (0, 1)

    def test_opens_no_more_than_the_maximum_and_names_it(self, pool: Pool) -> None:
        taken = [pool.take() for _ in range(4)]
        with pytest.raises(PoolExhausted, match=r"All 4 connections .* DB_CONNECTION_POOL_SIZE"):
            pool.take()
        assert pool.in_use == 4
        for one in taken:
            pool.give(one)

    def test_a_waiting_caller_gets_a_returned_connection(self, pool: Pool) -> None:
        taken = [pool.take() for _ in range(4)]
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(pool.take)
            pool.give(taken[0])
            assert waiting.result() is not None

    def test_keeps_a_few_idle_connections_and_closes_the_others(self, pool: Pool) -> None:
        taken = [pool.take() for _ in range(4)]
        for one in taken:
            pool.give(one)
        assert pool.idle == 3
        assert [bool(one.closed) for one in taken] == [False, False, False, True]

    def test_closes_long_idle_connections_except_the_minimum(self, pool: Pool, clock: Clock) -> None:
        taken = [pool.take() for _ in range(3)]
        for one in taken:
            pool.give(one)
        clock.ahead = LIMITS.idle_seconds + 1
        last = pool.take()
        pool.give(last)
        assert pool.idle == 1
        assert not last.closed

    def test_upkeep_opens_the_minimum_ahead_and_keeps_it(self, postgres: PostgresServer, clock: Clock) -> None:
        pool = Pool(
            lambda: psycopg2.connect(postgres.url), replace(LIMITS, maximum=20, kept=10, minimum=5), clock=clock
        )
        pool.upkeep()
        assert (pool.in_use, pool.idle) == (0, 5)
        taken = [pool.take() for _ in range(10)]
        pool.upkeep()
        assert (pool.in_use, pool.idle) == (10, 5), "five are ready beside those in use"
        for one in taken:
            pool.give(one)
        clock.ahead = LIMITS.idle_seconds + 1
        pool.upkeep()
        assert pool.idle == 5
        clock.ahead = LIMITS.lifetime_seconds + 1
        pool.upkeep()
        assert pool.idle == 5
        assert all(one.closed for one in taken), "none is older than its lifetime"
        pool.close()
        pool.upkeep()
        assert pool.idle == 0

    def test_upkeep_never_exceeds_the_maximum(self, pool: Pool) -> None:
        taken = [pool.take() for _ in range(4)]
        pool.upkeep()
        assert (pool.in_use, pool.idle) == (4, 0)
        for one in taken:
            pool.give(one)

    def test_replaces_a_connection_that_is_old(self, pool: Pool, clock: Clock) -> None:
        old = pool.take()
        pool.give(old)
        clock.ahead = LIMITS.lifetime_seconds + 1
        fresh = pool.take()
        assert old.closed
        assert fresh is not old
        clock.ahead *= 2
        pool.give(fresh)
        assert fresh.closed

    def test_a_transaction_left_open_is_rolled_back(self, pool: Pool) -> None:
        taken = pool.take()
        ask(taken, "CREATE TABLE left_open AS SELECT 1 AS id; SELECT 1")
        pool.give(taken)
        again = pool.take()
        assert again is taken
        assert ask(again, "SELECT to_regclass('left_open')") is None

    def test_a_closed_pool_takes_nothing_back(self, pool: Pool) -> None:
        lent, idle = pool.take(), pool.take()
        pool.give(idle)
        pool.close()
        pool.give(lent)
        assert idle.closed
        assert lent.closed


@pytest.mark.requirement("US4.4", "FR-008")
class TestManyThreads:
    def test_24_threads_share_4_connections(self, pool: Pool, postgres: PostgresServer) -> None:
        """Every call succeeds, no connection is lent twice at a time, none is lost."""
        pg_wait.install(answer_seconds=30, connect_seconds=30)
        patient = Pool(lambda: psycopg2.connect(postgres.url), replace(LIMITS, wait_seconds=30, ping_seconds=10))
        in_hand: set[int] = set()
        most, doubled = 0, 0
        lock = threading.Lock()

        def work(number: int) -> int:
            nonlocal most, doubled
            for _ in range(20):
                taken = patient.take()
                with lock:
                    doubled += id(taken) in in_hand
                    in_hand.add(id(taken))
                    most = max(most, len(in_hand))
                assert ask(taken, f"SELECT {number}") == number
                with lock:
                    in_hand.discard(id(taken))
                patient.give(taken)
            return number

        with ThreadPoolExecutor(24) as threads:
            assert sorted(threads.map(work, range(24))) == list(range(24))
        assert (most, doubled) == (4, 0)
        assert patient.in_use == 0
        patient.close()

    @pytest.mark.requirement("NFR-013")
    def test_a_hundred_connections_at_once_from_five_processes_pools(self, postgres: PostgresServer) -> None:
        pg_wait.install(answer_seconds=30, connect_seconds=30)  # a hundred at once are slow on a small machine
        limits = replace(LIMITS, maximum=20, kept=20, wait_seconds=30, ping_seconds=10)
        pools = [Pool(lambda: psycopg2.connect(postgres.url), limits) for _ in range(5)]
        all_hold_one = threading.Barrier(100)

        def work(number: int) -> int:
            pool = pools[number % 5]
            backends = set()
            for _ in range(3):
                taken = pool.take()
                all_hold_one.wait(stretched(30))
                backends.add(ask(taken, "SELECT pg_backend_pid()"))
                all_hold_one.wait(stretched(30))
                pool.give(taken)
            return len(backends)

        with ThreadPoolExecutor(100) as threads:
            assert all(threads.map(work, range(100)))
        assert [(pool.in_use, pool.idle) for pool in pools] == [(0, 20)] * 5, "each was opened once and is kept"
        for pool in pools:
            pool.close()

    @pytest.mark.requirement("NFR-013")
    def test_a_hundred_open_connections_do_not_slow_an_answer(self, postgres: PostgresServer) -> None:
        """Measured in turn, and the best of each counts: the load of the machine slows both."""
        pg_wait.install(answer_seconds=30, connect_seconds=30)
        limits = replace(LIMITS, maximum=101, kept=0, minimum=0, wait_seconds=30)  # closed when they are given back
        pool = Pool(lambda: psycopg2.connect(postgres.url), limits)
        alone, among_many = [], []
        for _ in range(3):
            one = pool.take()
            alone.append(fastest_answers(one))
            others = [pool.take() for _ in range(100)]
            assert [ask(each, "SELECT 7") for each in others] == [7] * 100
            among_many.append(fastest_answers(one))
            for each in (one, *others):
                pool.give(each)
        pool.close()
        assert min(among_many) < 5 * min(alone), (alone, among_many)

    def test_the_wait_is_measured(self, pool: Pool) -> None:
        before = counted()
        pool.give(pool.take())
        assert counted() == before + 1

    def test_the_mean_wait_is_below_a_tenth_of_a_second(
        self, postgres: PostgresServer, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Forty writers share the twenty connections of a process."""
        pg_wait.install(answer_seconds=30, connect_seconds=30)
        limits = replace(LIMITS, maximum=20, kept=10, minimum=5, wait_seconds=30, ping_seconds=10)
        pool = Pool(lambda: psycopg2.connect(postgres.url), limits, clock=clock)
        setup = pool.take()
        ask(setup, "CREATE TABLE IF NOT EXISTS waits AS SELECT generate_series(1, 40) AS id, 0 AS n; SELECT 1")
        setup.commit()
        pool.give(setup)
        pool.upkeep()
        before = waits()

        def write(number: int) -> None:
            for _ in range(25):
                taken = pool.take()
                ask(taken, f"UPDATE waits SET n = n + 1 WHERE id = {number} RETURNING n")
                taken.commit()
                pool.give(taken)

        with ThreadPoolExecutor(40) as threads:
            list(threads.map(write, range(1, 41)))
        seconds, number = (after - earlier for after, earlier in zip(waits(), before, strict=True))
        assert number == 1000
        assert seconds / number < 0.1
        pool.upkeep()
        assert not caplog.records, "no leak"
        pool.close()

    def test_a_connection_that_is_held_for_a_minute_is_reported_once(
        self, pool: Pool, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        held = pool.take()
        clock.ahead = 59
        pool.upkeep()
        assert not caplog.records
        clock.ahead = 61
        pool.upkeep()
        pool.upkeep()
        (line,) = caplog.records
        assert f"Thread {threading.current_thread().name} has held a database connection for 61 s" in line.message
        assert "test_a_connection_that_is_held" in line.stack  # type: ignore[attr-defined]
        pool.give(held)

    def test_a_connection_that_is_never_given_back_is_noticed(
        self, pool: Pool, caplog: pytest.LogCaptureFixture
    ) -> None:
        def forget() -> None:
            pool.take()

        thread = threading.Thread(target=forget, name="careless")
        thread.start()
        thread.join()
        gc.collect()
        taken = [pool.take() for _ in range(4)]
        assert len(taken) == 4
        assert "Thread careless never gave its database connection back" in caplog.text


@pytest.mark.fault
@pytest.mark.requirement("NFR-010")
class TestServerFailures:
    def test_after_a_restart_no_caller_gets_a_dead_connection(self, clock: Clock) -> None:
        with PostgresServer() as server:
            pool = Pool(lambda: psycopg2.connect(server.url), LIMITS, clock=clock)
            taken = [pool.take() for _ in range(3)]
            for one in taken:
                pool.give(one)
            server.stop()
            server.start()
            clock.ahead = 1
            fresh = [pool.take() for _ in range(3)]
            assert [ask(one) for one in fresh] == [1, 1, 1]
            assert all(one.closed for one in taken)
            pool.close()

    def test_a_terminated_backend_costs_only_its_holder(self, pool: Pool, clock: Clock) -> None:
        victim, other = pool.take(), pool.take()
        ask(other, f"SELECT pg_terminate_backend({backend_of(victim)})")
        with pytest.raises(psycopg2.OperationalError):
            ask(victim)
        pool.give(victim)
        assert ask(pool.take()) == 1

    def test_a_frozen_server_refuses_the_next_callers_at_once(
        self, pool: Pool, postgres: PostgresServer, clock: Clock
    ) -> None:
        pool.give(pool.take())
        postgres.pause()
        clock.ahead = 1
        with pytest.raises(psycopg2.OperationalError, match="not answered"):  # by the old and by a new connection
            pool.take()
        with pytest.raises(ServerAway, match="tried again every second"):  # without a query
            pool.take()
        postgres.resume()
        clock.ahead += 1.1
        assert ask(pool.take()) == 1

    def test_while_one_connects_the_others_are_refused_at_once(self) -> None:
        trying, go_on = threading.Event(), threading.Event()
        outcomes: list[Callable[[], Any]] = []

        def connect() -> Any:
            if outcomes:
                trying.set()
                assert go_on.wait(stretched(10))
            outcomes.append(connect)
            raise psycopg2.OperationalError("connection refused")

        pool = Pool(connect, replace(LIMITS, retry_seconds=0))
        with pytest.raises(psycopg2.OperationalError, match="refused"):
            pool.take()
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(pool.take)
            assert trying.wait(stretched(10))
            with pytest.raises(ServerAway):
                pool.take()
            go_on.set()
            with pytest.raises(psycopg2.OperationalError, match="refused"):
                first.result()
        assert pool.in_use == 0


def counted() -> float:
    return waits()[1]


def waits() -> tuple[float, float]:
    """Returns the seconds waited so far and the number of waits."""
    found = {sample.name.rpartition("_")[2]: sample.value for metric in WAIT.collect() for sample in metric.samples}
    return found["sum"], found["count"]
