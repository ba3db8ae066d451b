"""A part of a process hangs, or the process is signalled to stop while it runs tasks."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.faults.conftest import Recovered
from tests.faults.scaled import PATIENCE, bring_to_rest, hold_tasks, live_refs
from tests.faults.system import System
from tests.patience import stretched, wait_for
from tests.stadium_process import StadiumProcess
from victoryline.engine_process import ONE_SIGNAL_SECONDS
from victoryline.lib.processes import python
from victoryline.lib.watchdog import STALLED_EXIT_CODE
from victoryline.supervisor import CLOSING_SECONDS

pytestmark = [pytest.mark.fault, pytest.mark.slow]

STALL_SECONDS, STOP_SECONDS = 3, 12
# The real engine with a thread that waits for a file and then breaks a part of the process.
SABOTAGE = """
import os, pathlib, sys, threading, time
import django
django.setup()
from django.core.management import call_command

def block_the_loop():
    from dramatiq.asyncio import get_event_loop_thread
    get_event_loop_thread().loop.call_soon_threadsafe(time.sleep, 600)

def end_the_consumer():
    (consumer,) = [each for each in threading.enumerate() if getattr(each, "queue_name", "") == "tasks"]
    consumer.stop()

def hang_in_a_task():
    from scraping.worker import scrape
    scrape.check = lambda *_, **__: time.sleep(600)

def freeze_the_scheduler():
    from scraping.scheduler.loop import SchedulerLoop
    SchedulerLoop.tick = lambda *_, **__: time.sleep(600)

def wait_and_break():
    while not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.02)
    globals()[sys.argv[1]]()

threading.Thread(target=wait_and_break, daemon=True).start()
call_command("run_worker", with_scheduler=True)
"""


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    limits = {"STALL_SECONDS": str(STALL_SECONDS), "STOP_SECONDS": str(STOP_SECONDS)}
    with (
        StadiumProcess(programme="mixed:3:1", pace=20) as stadium,
        System(stadium, workers=1, folder=None, **{**PATIENCE, **limits}) as running,
    ):
        yield running


@pytest.mark.fault_number(5)
@pytest.mark.requirement("FR-005")
class TestStopRequested:
    def test_one_signal_finishes_running_tasks(self, system: System, recovered: Recovered) -> None:
        bring_to_rest(system)
        worker_id = system.worker_id("engine")
        held = hold_tasks(system, "engine", latency=3)
        took, code = _stop(system, signal.SIGTERM)
        recovered("SIGTERM in the middle of slow reads, until the process is gone", took, bound=STOP_SECONDS)
        assert code == 0
        done = "SELECT state, worker_id FROM scrape_tasks WHERE id = %s"
        assert [system.database.rows(done, task)[0] for task, _ in held] == [("SUCCESS", worker_id)] * len(held)
        assert system.count_tasks("state = %s", "EXECUTING") == 0
        assert system.database.rows("SELECT stopped_at FROM scraping_worker WHERE worker_id = %s", worker_id)[0][0]
        assert system.browsers() == []

    @pytest.mark.faults_only
    def test_a_second_signal_stops_at_once(self, system: System, recovered: Recovered) -> None:
        bring_to_rest(system)
        held = hold_tasks(system, "engine", latency=4)
        system.processes["engine"].send_signal(signal.SIGTERM)
        time.sleep(ONE_SIGNAL_SECONDS + 0.2)  # signals closer together are merged into one
        took, _ = _stop(system, signal.SIGTERM)
        recovered("a second SIGTERM, until the process is gone", took, bound=2)
        wait_for(lambda: not system.browsers(), seconds=5, what="the end of its browser")
        system.stadium.clear()
        stopped_at = time.time()
        system.revive()
        system.await_updates([ref for _, ref in held], since=stopped_at, seconds=60)


@pytest.mark.fault_number(7)
@pytest.mark.requirement("NFR-010")
class TestHangs:
    @pytest.mark.parametrize(
        ("what", "words"),
        [
            pytest.param("block_the_loop", "the event loop has not moved", marks=pytest.mark.faults_only),
            pytest.param("end_the_consumer", "the consumer thread of tasks", marks=pytest.mark.faults_only),
            pytest.param("hang_in_a_task", "task ", marks=pytest.mark.faults_only),
            pytest.param("freeze_the_scheduler", "the scheduler has not moved", marks=pytest.mark.faults_only),
        ],
    )
    def test_the_process_is_replaced(self, system: System, what: str, words: str, recovered: Recovered) -> None:
        if "engine" in system.processes:
            _stop(system, signal.SIGTERM)
        go = system.folder / f"{what}.go"
        engine = system.launch_program("engine", python("-c", SABOTAGE, what, str(go)))
        system.settle()
        live = live_refs(system)
        system.await_updates(live, since=time.time(), seconds=60)
        log_before = len(system.log_of("engine").read_text())
        go.touch()
        broken_at = time.time()
        code = engine.wait(timeout=stretched(120))
        recovered(f"{what}: until the process has ended itself", time.time() - broken_at)
        said = system.log_of("engine").read_text()[log_before:]
        assert code == STALLED_EXIT_CODE, said[-3000:]
        assert words in said
        assert '"stacks"' in said
        assert system.browsers() == [], "its browser went with it"
        system.revive()
        system.exits.clear()
        ended_at = time.time()
        recovered(
            f"{what}: from there to the next updates", system.await_updates(live, since=ended_at, seconds=120), bound=60
        )
        system.assert_is_whole()


def _stop(system: System, number: signal.Signals) -> tuple[float, int]:
    """Sends a signal to the engine; returns the seconds until its end and its exit code."""
    engine: subprocess.Popen[bytes] = system.processes["engine"]
    began = time.monotonic()
    engine.send_signal(number)
    code = engine.wait(timeout=STOP_SECONDS + CLOSING_SECONDS + 10)
    del system.processes["engine"]
    return time.monotonic() - began, code
