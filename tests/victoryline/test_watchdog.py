"""The watchdog: stalled threads and loops, exceptions, and the end of the process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import dramatiq
import psutil
import pytest
from dramatiq.asyncio import EventLoopThread
from dramatiq.brokers.stub import StubBroker

from scraping.browser.host import BrowserHost
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.models import Stage
from scraping.worker.engine import Engine
from scraping.worker.heartbeat import Heartbeat, watch_loop, watch_thread, watch_worker
from tests.factories import make_ref
from tests.patience import stretched
from tests.scraping.builders import engine_with, new_claim
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python
from victoryline.lib.watchdog import STALLED_EXIT_CODE, Pulse, StallLimits, Watchdog, stacks

LIMITS = StallLimits(task_seconds=90, stall_seconds=30, store_seconds=50)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watchdog(clock: Clock) -> Watchdog:
    """Its thread is not running: tests call `check`."""
    return Watchdog(clock=clock)


def checks(watchdog: Watchdog, clock: Clock, seconds: int) -> list[str]:
    """Checks once a second; returns the findings."""
    found = []
    for _ in range(seconds):
        clock.now += 1
        found.append(watchdog.check())
    return found


class TestSigns:
    def test_a_loop_that_goes_round_is_left_alone(self, watchdog: Watchdog, clock: Clock) -> None:
        pulse = Pulse()
        watchdog.watch(pulse.reads("the loop"), 3)
        for _ in range(10):
            pulse.beat()
            assert checks(watchdog, clock, 2) == ["", ""]

    def test_a_loop_that_stops_is_named_with_the_time(self, watchdog: Watchdog, clock: Clock) -> None:
        pulse = Pulse()
        watchdog.watch(pulse.reads("the loop"), 3)
        assert checks(watchdog, clock, 4) == ["", "", "", "the loop has not moved for 3 s"]

    def test_a_removed_entry_is_forgotten(self, watchdog: Watchdog, clock: Clock) -> None:
        values: dict[str, int] = {"task 7": 1}
        watchdog.watch(lambda: values, 3)
        checks(watchdog, clock, 3)
        del values["task 7"]
        checks(watchdog, clock, 1)
        values["task 7"] = 1
        assert checks(watchdog, clock, 3) == ["", "", ""]

    def test_time_in_which_the_process_was_stopped_does_not_count(self, watchdog: Watchdog, clock: Clock) -> None:
        pulse = Pulse()
        watchdog.watch(pulse.reads("the loop"), 30)
        checks(watchdog, clock, 20)
        clock.now += 3600
        assert watchdog.check() == ""
        assert checks(watchdog, clock, 5) == [""] * 5
        assert any(checks(watchdog, clock, 5)), "a real stall is still found"

    def test_a_sign_that_cannot_be_read_is_no_stall(
        self, watchdog: Watchdog, clock: Clock, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken() -> dict[str, int]:
            raise RuntimeError("dictionary changed size during iteration")

        watchdog.watch(broken, 1)
        assert checks(watchdog, clock, 3) == ["", "", ""]
        assert "could not read a sign" in caplog.text

    def test_a_stop_has_an_end_and_signs_no_longer_count(self, watchdog: Watchdog, clock: Clock) -> None:
        watchdog.watch(lambda: {"it": 1}, 1)
        watchdog.end_within(5)
        assert checks(watchdog, clock, 5) == [""] * 4 + ["the stop took longer than it may"]


class TestTasks:
    @pytest.mark.django_db
    def test_a_task_without_progress_hangs(self, watchdog: Watchdog, clock: Clock) -> None:
        engine = engine_with(ValueError("never read"))
        watchdog.watch(engine.steps, 90)
        claim = new_claim(make_ref())
        with engine.holding(claim):
            assert not any(checks(watchdog, clock, 80))
            engine.progress(claim, Stage.NAVIGATING)
            assert not any(checks(watchdog, clock, 80))
            engine.progress(claim)  # another page was read
            assert not any(checks(watchdog, clock, 90))
            assert checks(watchdog, clock, 1) == [f"task {claim.task_id} (fence {claim.fence}) has not moved for 90 s"]
        assert checks(watchdog, clock, 1) == [""]


class TestThreads:
    def test_a_dead_thread_is_noticed_within_seconds(self, watchdog: Watchdog, clock: Clock) -> None:
        ended = threading.Event()
        thread = threading.Thread(target=ended.wait)
        thread.start()
        watch_thread(watchdog, "the scheduler's thread", thread)
        assert not any(checks(watchdog, clock, 100))
        ended.set()
        thread.join()
        assert "the scheduler's thread has not moved" in checks(watchdog, clock, 3)[-1]

    def test_a_dead_consumer_and_a_dead_worker_thread_are_noticed(
        self, watchdog: Watchdog, clock: Clock, working: tuple[dramatiq.Worker, Engine, Heartbeat]
    ) -> None:
        worker, engine, heartbeat = working
        watch_worker(watchdog, worker, engine, heartbeat, LIMITS)
        for _ in range(3):
            assert not any(checks(watchdog, clock, 20))
            heartbeat.pulse.beat()
        consumer = worker.consumers["tasks"]
        consumer.stop()
        consumer.join(stretched(10))
        assert "the consumer thread of tasks has not moved" in checks(watchdog, clock, 3)[-1]
        worker.workers[1].stop()
        worker.workers[1].join(stretched(10))
        assert "worker thread 2 has not moved" in checks(watchdog, clock, 3)[-1]

    def test_a_heartbeat_that_hangs_is_noticed(
        self, watchdog: Watchdog, clock: Clock, working: tuple[dramatiq.Worker, Engine, Heartbeat]
    ) -> None:
        watch_worker(watchdog, *working, LIMITS)
        assert not any(checks(watchdog, clock, 50))
        assert checks(watchdog, clock, 1) == ["the heartbeat has not moved for 50 s"]


class TestLoop:
    def test_a_busy_loop_is_fine_and_a_blocked_one_is_not(self, watchdog: Watchdog, clock: Clock) -> None:
        thread = EventLoopThread(_NoLogger())
        thread.start(timeout=5)
        try:
            watch_loop(watchdog, thread.loop, LIMITS)
            for _ in range(100):
                assert checks(watchdog, clock, 1) == [""]
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), thread.loop).result(stretched(5))
            go_on = threading.Event()
            thread.loop.call_soon_threadsafe(go_on.wait)
            assert "the event loop has not moved for 30 s" in checks(watchdog, clock, 32)
            go_on.set()
        finally:
            thread.stop()  # type: ignore[no-untyped-call]


class TestReplacedProcess:
    @pytest.mark.requirement("NFR-010")
    def test_the_process_ends_with_its_children_and_logs_where_it_hung(self) -> None:
        process = subprocess.Popen(
            python("-c", STALLS), cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        _, said = process.communicate(timeout=stretched(30))
        assert process.returncode == STALLED_EXIT_CODE
        line = json.loads(said.splitlines()[-1])
        assert line["level"] == "CRITICAL"
        assert "the loop has not moved" in line["event"]
        assert "hangs_here" in line["stacks"]
        psutil.wait_procs([child], timeout=stretched(5))
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE

    def test_a_process_that_was_stopped_and_continued_is_not_ended(self) -> None:
        """Stopped for many times the limit, between two checks and two rounds."""
        process = subprocess.Popen(python("-c", GOES_ROUND), cwd=PROJECT_ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "round\n"
            process.send_signal(signal.SIGSTOP)
            time.sleep(2)  # real time is what this is about
            process.send_signal(signal.SIGCONT)
            rounds = [process.stdout.readline() for _ in range(20)]
            assert rounds == ["round\n"] * 20
            assert process.poll() is None
        finally:
            process.kill()
            process.communicate()

    def test_a_log_that_hangs_delays_no_exit(self) -> None:
        """A thread hangs while it holds the lock of the log handler."""
        script = STALLS.replace("def hangs_here():", "def hangs_here():\n    logging.getLogger().handlers[0].acquire()")
        done = subprocess.run(
            python("-c", script), cwd=PROJECT_ROOT, capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == STALLED_EXIT_CODE

    def test_the_stacks_name_the_threads(self) -> None:
        ended = threading.Event()
        thread = threading.Thread(target=ended.wait, name="the waiting one", daemon=True)
        thread.start()
        assert "--- the waiting one" in stacks()
        ended.set()
        thread.join()


STALLS = """
import logging.config, subprocess, sys, threading, time
from victoryline.lib import logs
from victoryline.lib.watchdog import Pulse, Watchdog
logging.config.dictConfig(logs.logging_config(level="INFO", format="json", service="test"))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
def hangs_here():
    time.sleep(600)
threading.Thread(target=hangs_here).start()
watchdog = Watchdog(every_seconds=0.05)
watchdog.watch(Pulse().reads("the loop"), 0.3)
watchdog.start()
"""


GOES_ROUND = """
import time
from victoryline.lib.watchdog import Pulse, Watchdog
pulse = Pulse()
watchdog = Watchdog(every_seconds=0.1)
watchdog.watch(pulse.reads("the loop"), 1.0)
watchdog.start()
while True:
    pulse.beat()
    print("round", flush=True)
    time.sleep(0.1)
"""


class _NoLogger:
    def info(self, *_: Any) -> None: ...


@pytest.fixture
def working(tmp_path: Any) -> Iterator[tuple[dramatiq.Worker, Engine, Heartbeat]]:
    """Real Dramatiq threads, and a heartbeat whose thread lives but has nothing to write."""
    broker = StubBroker(middleware=[])
    broker.declare_queue("tasks")
    worker = dramatiq.Worker(broker, worker_threads=2, worker_timeout=50)
    worker.start()
    engine = engine_with(ValueError("never read"))
    host = BrowserHost(BrowserOptions(executable=tmp_path / "chromium", owner="w-1"))
    heartbeat = Heartbeat(engine, Sessions(host), every_seconds=600)
    heartbeat.run = heartbeat._stopping.wait  # type: ignore[method-assign,assignment]
    heartbeat.start()
    deadline = time.monotonic() + 10
    while "tasks" not in worker.consumers or not worker.consumers["tasks"].running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    yield worker, engine, heartbeat
    heartbeat.stop()
    worker.stop(timeout=5000)
