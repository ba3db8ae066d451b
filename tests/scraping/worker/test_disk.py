"""A nearly full disk stops new work while space for running work is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitoring.models import Alert
from scraping.worker.engine import Engine
from scraping.worker.upkeep import DiskGuard
from tests.factories import make_ref
from tests.scraping.builders import POLICIES, ScriptedReader, payload_of

pytestmark = [pytest.mark.both, pytest.mark.django_db]


class Disk(DiskGuard):
    """A disk guard with scripted free space."""

    free = 1000

    def free_mb(self) -> int:
        return self.free


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path, worker_id="host.abc-12-xyz")


def test_no_task_is_taken_while_the_disk_is_full(disk: Disk) -> None:
    engine = Engine(worker_id="w-1", reader=ScriptedReader(payload_of(make_ref())), policies=POLICIES, disk=disk)
    assert engine.takes_work
    disk.free = 199
    disk.check()
    assert not engine.takes_work
    disk.free = 201  # hardly more: not yet
    disk.check()
    assert not engine.takes_work
    disk.free = 240
    disk.check()
    assert engine.takes_work


def test_one_alert_per_machine_ends_with_the_shortage(disk: Disk) -> None:
    disk.free = 10
    disk.check()
    disk.check()
    alert = Alert.objects.get(closed_at__isnull=True)
    assert (alert.key, alert.severity, alert.count) == ("disk:host.abc", "critical", 1)
    assert "10 MB" in alert.summary
    disk.free = 1000
    disk.check()
    assert not Alert.objects.filter(closed_at__isnull=True).exists()


def test_measures_the_real_disk(tmp_path: Path) -> None:
    assert DiskGuard(tmp_path, worker_id="w").free_mb() > 0
