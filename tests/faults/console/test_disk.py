"""The incident of a full disk, at the console of an embedded system in a small file system."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Recovered
from tests.faults.console.incident import Incident
from tests.faults.console.operator import NAME, Operator
from tests.faults.scaled import PATIENCE
from tests.faults.system import System
from tests.faults.test_disk import MIN_FREE_MB, fill, small_disk
from tests.stadium_process import StadiumProcess

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.faults_only,
    pytest.mark.fault_number(28),
]
__all__ = ["small_disk"]  # a fixture


@pytest.fixture(scope="module")
def system(small_disk: Path) -> Iterator[System]:
    with (
        StadiumProcess(programme="mixed:2:1", pace=20) as stadium,
        System(stadium, folder=small_disk / "var", **PATIENCE, MIN_FREE_DISK_MB=str(MIN_FREE_MB)) as running,
    ):
        yield running


class FullDisk(Incident):
    """The worker takes no tasks. The operator says who frees the disk; the work goes on by itself then."""

    name = "a full disk"
    seen = "MB left: it takes no new tasks"
    path = (seen, "Acknowledge")
    cause = ("The disk of worker", "Free space: manage.py prune")
    action = "Acknowledge"
    outcome = (f"acknowledged by {NAME}",)

    def begin(self, system: System) -> None:
        self.ballast = fill(system.folder.parent, leaving_mb=MIN_FREE_MB // 2)

    def is_over(self, operator: Operator, system: System) -> None:
        operator.overview()
        operator.sees(f"{NAME} is on it")
        self.ballast.unlink()
        super().is_over(operator, system)


@pytest.mark.requirement("BX-11")
def test_three_clicks_lead_to_the_cause_and_the_action(
    operator: Operator, system: System, recovered: Recovered
) -> None:
    system.settle()
    FullDisk().play(operator, system, recovered)
