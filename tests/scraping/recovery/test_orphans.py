"""Orphaned browsers: found by their tag, ended with proof; other browsers are not touched."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import call_command
from django.utils import timezone

from scraping.browser.launcher import OWNER_SWITCH
from scraping.browser.processes import end_tree, tagged_browsers
from scraping.models import Worker
from scraping.recovery import orphans
from scraping.signals import orphan_killed
from tests.faults.system import System
from tests.patience import stretched, wait_for
from tests.scraping.hosted_browser import HERE, find_program, is_alive, owner_id
from tests.stadium_process import StadiumProcess
from victoryline.lib.processes import OWN

pytestmark = pytest.mark.slow

START = """
import os, subprocess, sys, time
arguments = [each.replace("PID", str(os.getpid())) for each in sys.argv[1:]]
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
print(subprocess.Popen(arguments, start_new_session=True, **quiet).pid, flush=True)
time.sleep(600)
"""


class Zoo:
    """Starts Chromiums without a driver, so that they outlive their parent."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._started: list[psutil.Process] = []

    def arguments(self, owner: str | None) -> list[str]:
        profile = self._folder / uuid.uuid4().hex
        tag = [f"{OWNER_SWITCH}={owner}"] if owner else []
        return [
            *(str(self._program), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *tag),
            *(f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"),
        ]

    def start(self, owner: str | None) -> psutil.Process:
        started = subprocess.Popen(
            self.arguments(owner), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return self._note(psutil.Process(started.pid))

    def start_and_orphan(self, owner: str) -> psutil.Process:
        """Starts a browser of a worker process that is then killed; its process id is part of the tag."""
        worker = subprocess.Popen([sys.executable, "-c", START, *self.arguments(owner)], stdout=subprocess.PIPE)
        assert worker.stdout is not None
        browser = self._note(psutil.Process(int(worker.stdout.readline())))
        wait_for(lambda: len(browser.children()) > 1)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
        return browser

    def _note(self, process: psutil.Process) -> psutil.Process:
        self._started.append(process)
        return process

    def close(self) -> None:
        family = [each for top in self._started if top.is_running() for each in (*top.children(recursive=True), top)]
        for process in family:
            if process.is_running():
                process.kill()
        psutil.wait_procs(family, timeout=stretched(5))


@pytest.fixture
def zoo(tmp_path: Path) -> Iterator[Zoo]:
    animals = Zoo(find_program(), tmp_path)
    yield animals
    animals.close()


class TestOwnerTag:
    def test_a_process_without_the_tag_is_never_ended(self, zoo: Zoo) -> None:
        foreign = zoo.start(owner=None)
        assert end_tree(foreign.pid) == 0
        assert is_alive(foreign)


@pytest.mark.requirement("FR-009", "BX-14", "US2.4")
@pytest.mark.django_db
def test_only_browsers_whose_worker_is_gone_are_ended(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    me, tag = owner_id(), uuid.uuid4().hex[:6]
    orphan = zoo.start_and_orphan(f"{HERE}-PID-{tag}")
    healthy, foreign, untagged = zoo.start(me), zoo.start(f"another-machine-999999999-{tag}"), zoo.start(None)
    tree = [orphan, *orphan.children(recursive=True)]
    # Other tests on this machine have browsers too: only ours are looked at.
    monkeypatch.setattr(
        orphans, "tagged_browsers", lambda: [one for one in tagged_browsers() if one.owner == me or tag in one.owner]
    )
    wait_for(lambda: len([one for one in tagged_browsers() if one.owner == me or tag in one.owner]) == 3)
    sent: list[dict[str, Any]] = []

    def listen(**announced: Any) -> None:
        sent.append(announced)

    orphan_killed.connect(listen)
    try:
        preview, done, again = StringIO(), StringIO(), StringIO()
        call_command("browsers", "cleanup", "--dry-run", stdout=preview)
        assert is_alive(orphan)
        call_command("browsers", "cleanup", stdout=done)
        call_command("browsers", "cleanup", stdout=again)
    finally:
        orphan_killed.disconnect(listen)
    assert f"pid {orphan.pid} of worker" in preview.getvalue()
    assert "would be ended" in preview.getvalue()
    assert f"pid {orphan.pid} of worker" in done.getvalue()
    assert " MB in " in done.getvalue()
    assert again.getvalue() == "no orphaned browsers\n"
    assert not any(is_alive(process) for process in tree)
    assert all(is_alive(process) for process in (healthy, foreign, untagged))
    assert [(one["pid"], one["dry_run"]) for one in sent] == [(orphan.pid, True), (orphan.pid, False)]
    assert all(one["memory_bytes"] > 0 for one in sent)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> str:
    """Registers this process as a worker that has just reported its browser; ignores other tests' browsers."""
    name, now = owner_id(), timezone.now()
    monkeypatch.setattr(orphans, "tagged_browsers", lambda: [one for one in tagged_browsers() if one.owner == name])
    Worker.objects.create(worker_id=name, host="here", pid=1, started_at=now, heartbeat_at=now)
    return name


@pytest.mark.requirement("FR-009", "BX-14", "US2.4")
@pytest.mark.django_db
class TestLeftOver:
    """A living worker's browser that it does not use any more."""

    def reasons(self, registered: str, *, later: float) -> dict[int, str]:
        """Returns the reasons to end this worker's browsers some seconds from now."""
        now = timezone.now() + timedelta(seconds=later)
        Worker.objects.update(heartbeat_at=now)
        found = orphans.end_orphans(now=now, is_dry_run=True)
        return {one.browser.pid: one.reason for one in found if one.browser.owner == registered}

    def test_is_ended_after_a_while_and_the_one_in_use_is_not(self, zoo: Zoo, registered: str) -> None:
        old, used = zoo.start(registered), zoo.start(registered)
        Worker.objects.update(browser_pid=used.pid)
        wait_for(lambda: len([one for one in tagged_browsers() if one.owner == registered]) == 2)
        assert self.reasons(registered, later=0) == {}, "it may be closing"
        assert self.reasons(registered, later=orphans.GRACE_SECONDS + 5) == {old.pid: orphans.LEFT_OVER}
        now = timezone.now() + timedelta(seconds=orphans.GRACE_SECONDS + 5)
        ended = [one for one in orphans.end_orphans(now=now) if one.browser.owner == registered]
        assert [(one.browser.pid, one.was_ended) for one in ended] == [(old.pid, True)]
        assert (is_alive(old), is_alive(used)) == (False, True)

    def test_a_silent_worker_proves_nothing(self, zoo: Zoo, registered: str) -> None:
        zoo.start(registered)
        wait_for(lambda: any(one.owner == registered for one in tagged_browsers()))
        now = timezone.now() + timedelta(seconds=orphans.GRACE_SECONDS + 5)
        found = orphans.end_orphans(now=now, is_dry_run=True)
        assert registered not in {one.browser.owner for one in found}


@pytest.mark.requirement("FR-009", "US2.4")
class TestEveryWorker:
    @pytest.mark.django_db(transaction=True)
    def test_sweeps_its_machine_at_its_start_regularly_and_without_memory(
        self, zoo: Zoo, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tag, has_little_memory = uuid.uuid4().hex[:6], threading.Event()
        monkeypatch.setattr(orphans, "tagged_browsers", lambda: [one for one in tagged_browsers() if tag in one.owner])
        monkeypatch.setattr(orphans, "CHECK_SECONDS", 0.1)
        assert orphans.SWEEP_SECONDS == 30 * 60
        sweep = orphans.OrphanSweep(is_memory_short=has_little_memory.is_set)
        first = zoo.start_and_orphan(f"{HERE}-PID-{tag}")
        sweep.start()
        try:
            wait_for(lambda: not is_alive(first), 60, "the sweep at the start")
            second = zoo.start_and_orphan(f"{HERE}-PID-{tag}")
            has_little_memory.set()
            wait_for(lambda: not is_alive(second), 60, "the sweep without memory")
            has_little_memory.clear()
            monkeypatch.setattr(orphans, "SWEEP_SECONDS", 0.1)
            third = zoo.start_and_orphan(f"{HERE}-PID-{tag}")
            wait_for(lambda: not is_alive(third), 60, "the regular sweep")
        finally:
            sweep.stop()
        assert not sweep.is_alive()

    def test_a_started_worker_process_ends_the_orphan_of_a_dead_one(self, zoo: Zoo) -> None:
        orphan = zoo.start_and_orphan(f"{HERE}-PID-{uuid.uuid4().hex[:6]}")
        with StadiumProcess(programme="mixed:1:1") as stadium, System(stadium, workers=1) as system:
            system._wait(lambda: not is_alive(orphan), 90, "the end of the orphan")
            assert system.processes["engine"].poll() is None


@pytest.mark.requirement("FR-009", "FR-004")
@pytest.mark.django_db
def test_the_temporary_folders_of_killed_workers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(orphans, "tagged_browsers", list)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    owners = {"of-the-dead": owner_id(gone.pid), "of-the-living": owner_id(), "of-another-machine": "far-away-1-abc"}
    for name, owner in owners.items():
        (tmp_path / name / "playwright_chromiumdev_profile-x").mkdir(parents=True)
        (tmp_path / name / OWN).write_text(owner)
    (tmp_path / "foreign").mkdir()
    orphans.end_orphans(now=timezone.now(), is_dry_run=True)
    assert (tmp_path / "of-the-dead").exists()
    orphans.end_orphans(now=timezone.now())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["foreign", "of-another-machine", "of-the-living"]
