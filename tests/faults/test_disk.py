"""Fault 15: the disk is full. No task is claimed, an alert is raised, nothing is written partially."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.conftest import Recovered
from tests.faults.database import as_stored
from tests.faults.scaled import PATIENCE, assert_healed, bring_to_rest, live_refs
from tests.faults.system import System
from tests.patience import wait_for
from tests.stadium_process import StadiumProcess

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(15),
]

DISK_MB, MIN_FREE_MB = 400, 60
FULL_SECONDS = 12.0


@pytest.fixture(scope="module")
def small_disk() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="vl-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=777", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        with suppress(OSError):
            folder.rmdir()


@pytest.fixture(scope="module")
def system(small_disk: Path) -> Iterator[System]:
    with (
        StadiumProcess(programme="mixed:4:1", pace=20) as stadium,
        System(stadium, folder=small_disk / "var", **PATIENCE, MIN_FREE_DISK_MB=str(MIN_FREE_MB)) as running,
    ):
        yield running


@pytest.fixture(autouse=True)
def calm(system: System) -> None:
    bring_to_rest(system)


def fill(folder: Path, *, leaving_mb: int) -> Path:
    """Writes a file that leaves only this much free space."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - leaving_mb * 2**20
    with suppress(OSError), ballast.open("wb") as file:
        for _ in range(max(0, free) // 65536 + (2 if leaving_mb == 0 else 0)):
            file.write(bytes(65536))
    return ballast


def claims_since(system: System, at: float) -> int:
    return system.count_tasks("started_at > %s", as_stored(system.database, at))


def open_alerts(system: System) -> list[str]:
    return [key for (key,) in system.database.rows("SELECT key FROM monitoring_alert WHERE closed_at IS NULL")]


class TestShort:
    def test_no_task_is_claimed_and_an_alert_is_raised(
        self, system: System, small_disk: Path, recovered: Recovered
    ) -> None:
        live, began_at = live_refs(system), time.time()
        ballast = fill(small_disk, leaving_mb=MIN_FREE_MB // 2)
        wait_for(lambda: any("disk" in key for key in open_alerts(system)), seconds=20, what="an alert")
        stopped_at = time.time() + 3  # running tasks are finished
        wait_for(lambda: time.time() > stopped_at + 4, seconds=10, what="a while without work")
        assert claims_since(system, stopped_at) == 0
        ballast.unlink()
        seconds = system.await_updates(live, since=time.time(), seconds=90)
        recovered(f"disk with less than {MIN_FREE_MB} MB", seconds, bound=30)
        assert_healed(system, since=began_at)
        assert not any("disk" in key for key in open_alerts(system))


class TestFull:
    def test_nothing_is_written_partially(self, system: System, small_disk: Path, recovered: Recovered) -> None:
        live, began_at = live_refs(system), time.time()
        ballast = fill(small_disk, leaving_mb=0)
        over = time.time() + FULL_SECONDS
        wait_for(lambda: time.time() > over, seconds=FULL_SECONDS + 1, what="a while without room")
        ballast.unlink()
        healed_at = time.time()
        system.revive()
        seconds = system.await_updates(live, since=healed_at, seconds=90)
        recovered(f"disk full for {FULL_SECONDS:g} s", seconds, bound=30)
        assert_healed(system, since=began_at)
