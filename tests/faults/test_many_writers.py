"""Fault 14: twenty-four processes write into one SQLite file. Nobody is told that it is locked."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.faults.conftest import Recovered
from tests.faults.crash.process import Driver
from victoryline.lib.processes import remove_tree

WRITERS, POLLS = 24, 20


@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.faults_only
@pytest.mark.fault_number(14)
@pytest.mark.requirement("BX-13")
def test_every_poll_is_written(recovered: Recovered) -> None:
    folder = Path(tempfile.mkdtemp(prefix="vl-writers-"))
    driver = Driver({"VAR_DIR": str(folder)})
    try:
        told = driver.ask("crowd", writers=WRITERS, polls=POLLS)["told"]
        assert told["failed"] == 0, driver.log()
        assert told["sequences"] == [POLLS] * WRITERS
        assert told["seconds_worst"] < 30
        recovered(f"{WRITERS} writers on SQLite, {told['rate']:.0f} polls/s, the slowest poll", told["seconds_worst"])
        assert driver.broken() == {}
    finally:
        driver.close()
        remove_tree(folder)
