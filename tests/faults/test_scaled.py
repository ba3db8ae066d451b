"""A scaled system (PostgreSQL, Redis, a scheduler, two workers) whose processes are killed, suspended and stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.faults.conftest import Recovered
from tests.faults.database import as_stored, new_database
from tests.faults.scaled import (
    LEASE_SECONDS,
    assert_healed,
    bring_to_rest,
    hold_tasks,
    live_refs,
    scaled_system,
    suspend_with_tasks,
)
from tests.faults.system import System
from tests.patience import stretched, wait_for
from tests.servers import PostgresServer, RedisServer, are_installed

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL and Redis: make test installs them"),
]

FLUSHING_SECONDS = 6.0
HINTS = 50


@pytest.fixture(scope="module")
def system(postgres: PostgresServer, redis_server: RedisServer) -> Iterator[System]:
    url = new_database(postgres, "faults")
    with scaled_system(database_url=url, redis_url=redis_server.url) as running:
        yield running


@pytest.fixture(autouse=True)
def calm(system: System) -> Iterator[None]:
    """Starts every test with a complete, up-to-date system and removes its faults afterwards."""
    bring_to_rest(system)
    yield
    system.stadium.clear()


def failures(system: System, workers: list[str], *, since: float) -> list[Any]:
    """Returns why tasks of these workers have failed since."""
    failed = "SELECT reason FROM scraping_tasktransition WHERE actor = ANY(%s) AND to_state = 'FAILED' AND at > %s"
    return system.database.rows(failed, workers, as_stored(system.database, since))


@pytest.mark.fault_number(8)
@pytest.mark.requirement("NFR-009")
class TestRedisEmptied:
    def test_hints_resume_and_nothing_is_lost(
        self, system: System, redis_server: RedisServer, recovered: Recovered
    ) -> None:
        began_at = time.time()
        flushed = 0
        while time.time() < began_at + FLUSHING_SECONDS:  # in a busy loop: hardly any hint survives
            redis_server.flushall()
            flushed += 1
        seconds = system.await_updates(live_refs(system), since=time.time(), seconds=20)
        recovered(f"{flushed} times FLUSHALL in {FLUSHING_SECONDS:g} s", seconds, bound=5)
        assert_healed(system, since=began_at)


@pytest.mark.fault_number(1)
class TestWorkerKilled:
    @pytest.mark.requirement("NFR-005", "NFR-009")
    def test_the_other_worker_takes_over_its_matches(self, system: System, recovered: Recovered) -> None:
        began_at = time.time()
        held = suspend_with_tasks(system, "worker-1")
        killed_at = system.kill("worker-1")
        seconds = system.await_updates([ref for _, ref in held], since=killed_at, seconds=60)
        recovered(f"SIGKILL of one of two workers with {len(held)} matches in hand", seconds, bound=20)
        assert all(system.count_tasks("id = %s AND rescues = 1", task) for task, _ in held)
        assert_healed(system, since=began_at)
        wait_for(lambda: len(system.browsers()) == 1, seconds=15, what="the end of the dead worker's browser")

    @pytest.mark.requirement("NFR-014")
    def test_a_new_worker_joins_at_once_without_disturbing_others(self, system: System, recovered: Recovered) -> None:
        began_at, pids = time.time(), {name: process.pid for name, process in system.processes.items()}
        others = [system.worker_id(name) for name in ("worker-1", "worker-2")]
        system.launch("worker-3", "run_worker")
        worker_id = system.worker_id("worker-3")
        done = "state = %s AND worker_id = %s"
        wait_for(lambda: system.count_tasks(done, "SUCCESS", worker_id), seconds=60, what="a task done by the new one")
        recovered("a third worker started", time.time() - began_at, bound=20)
        system.await_updates(live_refs(system), since=began_at, seconds=60)
        assert_healed(system, since=began_at)
        assert {name: process.pid for name, process in system.processes.items() if name in pids} == pids
        assert not system.exits
        assert failures(system, others, since=began_at) == []
        system.kill("worker-3")

    @pytest.mark.faults_only
    def test_idle(self, system: System, recovered: Recovered) -> None:
        worker_id, began_at = system.worker_id("worker-1"), time.time()
        wait_for(lambda: not system.tasks_held_by(worker_id), seconds=20, what="empty hands")
        killed_at = system.kill("worker-1")
        seconds = system.await_updates(live_refs(system), since=killed_at, seconds=60)
        recovered("SIGKILL of an idle worker", seconds, bound=20)
        assert_healed(system, since=began_at)


@pytest.mark.fault_number(16)
class TestBrowserKilled:
    @pytest.mark.requirement("US1.2", "FR-004")
    def test_the_other_worker_is_undisturbed(self, system: System, recovered: Recovered) -> None:
        began_at, other = time.time(), system.worker_id("worker-2")
        worker = psutil.Process(system.processes["worker-1"].pid)

        def own_browser() -> psutil.Process | None:
            own = worker.children(recursive=True)
            return next((process for process in system.browsers() if process in own), None)

        browser = wait_for(own_browser, seconds=60, what="the browser of worker-1")
        family = [browser, *browser.children(recursive=True)]
        killed_at = time.time()
        browser.kill()
        seconds = system.await_updates(live_refs(system), since=killed_at, seconds=60)  # the bound of US1.2
        recovered("SIGKILL of one of two browsers", seconds, bound=30)
        _, alive = psutil.wait_procs(family, timeout=stretched(15))
        assert alive == []
        assert failures(system, [other], since=killed_at) == []
        assert_healed(system, since=began_at)


@pytest.mark.fault_number(6)
@pytest.mark.faults_only
class TestWorkerSuspended:
    @pytest.mark.requirement("BX-13")
    def test_late_commits_are_refused(self, system: System, recovered: Recovered) -> None:
        """A worker is suspended for three leases: others run its tasks, and its own results are too late."""
        began_at, worker_id = time.time(), system.worker_id("worker-1")
        held, stopped_at = suspend_with_tasks(system, "worker-1"), time.time()
        process = system.processes["worker-1"]
        system.await_updates([ref for _, ref in held], since=stopped_at, seconds=60)
        over = stopped_at + 3 * LEASE_SECONDS
        wait_for(lambda: time.time() > over, seconds=3 * LEASE_SECONDS + 1, what="the end of three leases")
        woken_at = time.time()
        process.send_signal(signal.SIGCONT)
        done, since = "state = %s AND worker_id = %s AND finished_at > %s", as_stored(system.database, woken_at)
        wait_for(
            lambda: system.count_tasks(done, "SUCCESS", worker_id, since),
            seconds=60,
            what="a task done after it",
        )
        recovered(f"worker STOP for 3 leases with {len(held)} matches in hand", time.time() - woken_at, bound=15)
        log = system.log_of("worker-1")
        wait_for(lambda: '"work_dropped"' in log.read_text(), seconds=20, what="work that came too late")
        assert_healed(system, since=began_at)


@pytest.mark.fault_number(5)
@pytest.mark.faults_only
@pytest.mark.requirement("FR-005")
class TestStopRequested:
    def test_one_signal_finishes_running_tasks(self, system: System, recovered: Recovered) -> None:
        began_at, worker_id = time.time(), system.worker_id("worker-1")
        hold_tasks(system, "worker-1")
        seconds = self._stop(system, signals=1)
        recovered("SIGTERM of a worker with matches in hand", seconds, bound=30)
        assert system.tasks_held_by(worker_id) == [], "they were finished, or given back"
        system.await_updates(live_refs(system), since=time.time(), seconds=60)
        assert_healed(system, since=began_at)

    def test_a_second_signal_stops_at_once(self, system: System, recovered: Recovered) -> None:
        began_at = time.time()
        hold_tasks(system, "worker-1", seconds=12, latency=12)
        seconds = self._stop(system, signals=2)
        recovered("SIGTERM, SIGTERM again of a worker in the middle of its work", seconds, bound=5)
        system.stadium.clear()
        system.await_updates(live_refs(system), since=time.time(), seconds=60)
        system.assert_is_true()
        system.assert_is_whole()
        assert system.count_tasks("state = %s", "DEAD", since=began_at) == 0

    def _stop(self, system: System, *, signals: int) -> float:
        process = system.processes.pop("worker-1")
        browsers = psutil.Process(process.pid).children(recursive=True)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        if signals > 1:
            time.sleep(1.5)  # a separate second signal, not merged with the first
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=stretched(90))
        _, alive = psutil.wait_procs(browsers, timeout=stretched(15))
        assert alive == []
        return time.monotonic() - began


@pytest.mark.fault_number(11)
@pytest.mark.requirement("BX-13")
@pytest.mark.faults_only
class TestTooManyHints:
    def test_the_same_hint_fifty_times(self, system: System, recovered: Recovered) -> None:
        """Every open task is announced fifty times, to two workers with eight threads each."""
        began_at, done = time.time(), "state = %s"
        sent = system.driver.ask("hint_again", times=HINTS)["result"]["tasks"]
        assert sent
        wait_for(
            lambda: all(system.count_tasks(done + " AND id = %s", "SUCCESS", task) for task in sent),
            seconds=30,
            what="the tasks that were announced done",
        )
        recovered(f"the same hint {HINTS} times for {len(sent)} tasks", time.time() - began_at, bound=5)
        assert system.count_tasks("fence > 1 AND id IN %s", tuple(sent)) == 0, "one was claimed twice"
        assert_healed(system, since=began_at)

    @pytest.mark.faults_only
    def test_two_schedulers_with_the_lease(self, system: System, recovered: Recovered) -> None:
        began_at, first = time.time(), self._leader(system)
        system.launch("scheduler-2", "run_scheduler")
        process = system.processes["scheduler"]
        wait_for(lambda: '"leadership_changed"' in system.log_of("scheduler").read_text(), seconds=30, what="a leader")
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: self._leader(system) != first, seconds=60, what="another leader")
        process.send_signal(signal.SIGCONT)  # a resumed scheduler first continues its current tick
        seconds = system.await_updates(live_refs(system), since=time.time(), seconds=60)
        recovered("two schedulers at once", seconds, bound=5)
        assert_healed(system, since=began_at)
        system.kill("scheduler-2")

    def _leader(self, system: System) -> str:
        ((holder,),) = system.database.rows("SELECT holder FROM scraping_lease WHERE name = 'scheduler'")
        return str(holder)


@pytest.mark.fault_number(2)
@pytest.mark.faults_only
@pytest.mark.requirement("ZT-8", "BX-13")
class TestCrashPoints:
    @pytest.mark.parametrize("point", ["read.before", "read.after", "ingest.snapshot", "finish.committed"])
    def test_a_worker_with_its_browser_is_killed(self, system: System, point: str, recovered: Recovered) -> None:
        began_at = time.time()
        doomed = system.launch("doomed", "run_worker", CRASH_AT=f"{point}:3")
        wait_for(lambda: doomed.poll() is not None, seconds=60, what=f"its end at {point}")
        died_at = time.time()
        assert doomed.returncode == -signal.SIGKILL
        del system.processes["doomed"]
        seconds = system.await_updates(live_refs(system), since=died_at, seconds=60)
        recovered(f"SIGKILL of a worker at {point}, with its browser", seconds, bound=20)
        assert_healed(system, since=began_at)
        wait_for(lambda: len(system.browsers()) == 2, seconds=15, what="the end of the dead worker's browser")
