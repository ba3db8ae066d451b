"""A scaled system (PostgreSQL, Redis, a scheduler, two workers) that loses a worker, and Redis its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg2
import pytest

from tests.faults.conftest import Recovered
from tests.faults.system import System
from tests.servers import PostgresServer, RedisServer, are_installed
from tests.stadium_process import StadiumProcess
from tests.system import wait_for

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
]

FLUSHING_SECONDS = 6.0


@pytest.fixture(scope="module")
def system(postgres: PostgresServer, redis_server: RedisServer) -> Iterator[System]:
    with (
        StadiumProcess(programme="mixed:6:2", pace=20) as stadium,
        System(
            stadium,
            database_url=_new_database(postgres, "faults"),
            redis_url=redis_server.url,
            BREAK_INTERVAL_SECONDS="3",
        ) as running,
    ):
        yield running


@pytest.fixture(autouse=True)
def calm(system: System) -> Iterator[None]:
    system.settle()
    yield
    system.stadium.clear()


class TestRedisFlushed:
    def test_hints_resume_and_nothing_is_lost(
        self, system: System, redis_server: RedisServer, recovered: Recovered
    ) -> None:
        began_at = time.time()
        flushed = 0
        while time.time() < began_at + FLUSHING_SECONDS:  # as fast as it goes: hardly a hint survives
            redis_server.flushall()
            flushed += 1
        live = [match.ref_id for match in system.live()]
        seconds = system.await_updates(live, since=time.time(), seconds=20)
        recovered(f"{flushed} times FLUSHALL in {FLUSHING_SECONDS:g} s", seconds)
        assert system.count_tasks("state = %s OR charged_attempts > 0", "DEAD", since=began_at) == 0
        system.assert_is_true()


@pytest.mark.requirement("NFR-005")
class TestWorkerKilled:
    def test_its_matches_go_on_at_the_other_worker(self, system: System, recovered: Recovered) -> None:
        """Default lease and heartbeat: the time is the one that an operator would see."""
        worker_id = system.worker_id("worker-1")
        system.stadium.fault(kind="latency", value=2, seconds=6)
        wait_for(lambda: system.tasks_held_by(worker_id), seconds=20, what="a task in hand")
        killed_at = system.kill("worker-1")
        held = system.tasks_held_by(worker_id)
        assert held, "it was killed between two scrapes"
        seconds = system.await_updates([ref for _, ref in held], since=killed_at, seconds=45)
        recovered(f"SIGKILL of one of two workers with {len(held)} matches in hand", seconds)
        assert all(system.count_tasks("id = %s AND rescues = 1", task) for task, _ in held)
        assert system.count_tasks("state = %s OR charged_attempts > 0", "DEAD") == 0
        system.assert_is_true()
        wait_for(lambda: len(system.browsers()) == 1, seconds=15, what="the end of the dead worker's browser")

    def test_a_new_worker_takes_part_at_once(self, system: System, recovered: Recovered) -> None:
        began_at = time.time()
        system.launch("worker-3", "run_worker")
        worker_id = system.worker_id("worker-3")
        done = "state = %s AND worker_id = %s"
        wait_for(lambda: system.count_tasks(done, "SUCCESS", worker_id), seconds=60, what="a task done by the new one")
        recovered("a worker in the place of a dead one", time.time() - began_at)
        system.assert_is_true()


def _new_database(server: PostgresServer, name: str) -> str:
    connection = psycopg2.connect(server.url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name}")
    connection.close()
    return server.url.rpartition("/")[0] + f"/{name}"
