"""Helpers of tests of a scaled system: start it, wait until it is idle, check it afterwards."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.faults.system import System
from tests.patience import wait_for
from tests.stadium_process import StadiumProcess

LEASE_SECONDS = 5.0
SETTLE_SECONDS = 150.0
# Short leases: a test waits for the fault, not for long timeouts of the system.
PATIENCE = {
    "BREAK_INTERVAL_SECONDS": "3",
    "TASK_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
    "NAVIGATION_TIMEOUT_SECONDS": "15",
    "PAGE_TIMEOUT_SECONDS": "15",
}


@contextmanager
def scaled_system(
    *, database_url: str, redis_url: str, programme: str = "mixed:6:2", workers: int = 2, **env: str
) -> Iterator[System]:
    with (
        StadiumProcess(programme=programme, pace=20) as stadium,
        System(
            stadium, database_url=database_url, redis_url=redis_url, workers=workers, **{**PATIENCE, **env}
        ) as running,
    ):
        yield running


def bring_to_rest(system: System) -> None:
    """Waits until every process runs and the data is up to date."""
    system.revive()
    for name in [name for name in system.processes if name.startswith("worker")]:
        system.worker_id(name)
    system.settle(seconds=SETTLE_SECONDS)


def live_refs(system: System) -> list[int]:
    return [match.ref_id for match in system.live()]


def assert_healed(system: System, *, since: float) -> None:
    """Asserts that nothing is lost, doubled, dead or charged to the source, and that every invariant holds."""
    assert system.count_tasks("state = %s OR charged_attempts > 0", "DEAD", since=since) == 0
    system.assert_is_true()
    system.assert_is_whole()


def hold_tasks(system: System, name: str, *, seconds: float = 6, latency: float = 2) -> list[tuple[int, int]]:
    """Slows the source down until this worker runs tasks; returns them."""
    worker_id = system.worker_id(name)
    system.stadium.fault(kind="latency", value=latency, seconds=seconds)
    held = wait_for(lambda: system.tasks_held_by(worker_id), seconds=20, what="a task in hand")
    return list(held)


def suspend_with_tasks(system: System, name: str) -> list[tuple[int, int]]:
    """Suspends a worker (SIGSTOP) while it runs polls; returns them. One that finished them just before continues."""
    process, worker_id = system.processes[name], system.worker_id(name)

    def suspend() -> list[tuple[int, int]]:
        hold_tasks(system, name)
        process.send_signal(signal.SIGSTOP)
        held = system.tasks_held_by(worker_id)
        if not held:
            process.send_signal(signal.SIGCONT)
        return held

    return list(wait_for(suspend, seconds=60, what="a worker suspended in the middle of a poll"))


def pass_time(seconds: float, meanwhile: Callable[[], None]) -> None:
    """Waits while a fault lasts and calls the checks repeatedly."""
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        meanwhile()
        time.sleep(0.25)
