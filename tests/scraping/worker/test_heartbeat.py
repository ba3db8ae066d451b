"""The heartbeat extends leases, writes the worker's row, and survives errors."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from scraping import journal
from scraping.browser.host import BrowserHost, Replacement
from scraping.browser.launcher import BrowserOptions
from scraping.browser.sessions import Sessions
from scraping.models import ScrapeTask, TaskState, Worker
from scraping.signals import browser_replaced
from scraping.worker import heartbeat
from scraping.worker.heartbeat import Heartbeat
from tests.factories import NOW, make_ref
from tests.patience import stretched
from tests.scraping.builders import LEASE_SECONDS, claimed, engine_with, later, open_task

pytestmark = [pytest.mark.both, pytest.mark.django_db]


@pytest.fixture
def beating(tmp_path: Any) -> Heartbeat:
    """A heartbeat of a worker without a browser; its thread is not running, tests call `beat`."""
    host = BrowserHost(BrowserOptions(executable=tmp_path / "chromium", owner="w-1"))
    return Heartbeat(engine_with(ValueError("never read")), Sessions(host), every_seconds=0.01)


class TestBeat:
    def test_extends_the_leases_of_running_tasks(self, beating: Heartbeat) -> None:
        claim = claimed(open_task(make_ref()))
        with beating._engine.holding(claim):
            for number in range(1, 6):
                beating.beat(now=later(5 * number))
                assert journal.rescue(max_rescues=3, now=later(5 * number + LEASE_SECONDS)) == 0
        beating.beat(now=later(30))
        assert journal.rescue(max_rescues=3, now=later(25 + LEASE_SECONDS + 1)) == 1

    def test_does_not_extend_the_lease_of_a_hung_task(
        self, beating: Heartbeat, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(heartbeat, "LONGEST_TASK_SECONDS", 0.0)
        with beating._engine.holding(claimed(open_task(make_ref()))):
            beating.beat(now=later(5))
            assert journal.rescue(max_rescues=3, now=later(LEASE_SECONDS + 1)) == 1

    def test_does_not_extend_a_lost_lease(self, beating: Heartbeat) -> None:
        claim = claimed(open_task(make_ref()))
        journal.rescue(max_rescues=3, now=later(16))
        with beating._engine.holding(claim):
            beating.beat(now=later(17))
        assert ScrapeTask.objects.get().state == TaskState.PENDING

    def test_writes_the_workers_row(self, beating: Heartbeat) -> None:
        with beating._engine.holding(claimed(open_task(make_ref()))):
            beating.beat(now=NOW)
        worker = Worker.objects.get()
        assert (worker.worker_id, worker.heartbeat_at, worker.stopped_at) == ("w-1", NOW, None)
        assert (worker.active_tasks, worker.browser_pid) == (1, None)
        assert worker.memory_bytes > 10_000_000
        assert worker.peak_memory_bytes >= worker.memory_bytes
        assert worker.free_memory_bytes > 0

    @pytest.mark.requirement("DM-1")
    def test_measures_the_renderers_of_open_pages(self, beating: Heartbeat) -> None:
        pages = {"crex_1": os.getpid(), "crex_2": os.getpid(), "crex_gone": 2**22}
        beating._renderers = lambda: pages
        beating.beat(now=NOW)
        beating.beat(now=later(5))
        found = Worker.objects.get().renderers
        assert set(found) == {"crex_1", "crex_2"}, "a process that is not of this worker's tree does not count"
        assert found["crex_1"] == found["crex_2"], "pages of one renderer share its figures"
        memory, cpu = found["crex_1"]
        assert 5_000_000 < memory <= Worker.objects.get().memory_bytes
        assert cpu >= 0

    def test_the_last_one_marks_the_worker_as_stopped(self, beating: Heartbeat) -> None:
        beating.beat(now=NOW)
        beating.beat(now=later(5), is_last=True)
        assert Worker.objects.get().stopped_at == later(5)

    def test_sends_the_signal_of_a_replaced_browser(self, beating: Heartbeat) -> None:
        received: list[tuple[str, str, float, int]] = []

        def listen(worker_id: str, reason: str, seconds: float, pids_before: int, **_: Any) -> None:
            received.append((worker_id, reason, seconds, pids_before))

        browser_replaced.connect(listen)
        try:
            beating.announce(Replacement("Chromium died", 0.7, 2, pids_before=9))
            beating.beat(now=NOW)
            beating.beat(now=later(5))
        finally:
            browser_replaced.disconnect(listen)
        assert received == [("w-1", "Chromium died", 0.7, 9)]


class TestThread:
    @pytest.mark.parametrize(
        "fault", [OperationalError("away"), InterfaceError("connection already closed"), TimeoutError("no connection")]
    )
    def test_continues_after_an_error(
        self, beating: Heartbeat, monkeypatch: pytest.MonkeyPatch, fault: Exception
    ) -> None:
        beats: list[bool] = []
        enough = threading.Event()

        def beat(*, now: Any, is_last: bool = False) -> None:
            beats.append(is_last)
            if len(beats) >= 3:
                enough.set()
            raise fault

        monkeypatch.setattr(beating, "beat", beat)
        monkeypatch.setattr(heartbeat, "close_old_connections", lambda: None)
        beating.start()
        assert enough.wait(timeout=stretched(10))
        beating.stop()
        assert not beating.is_alive()
        assert beats[-1] is True
