"""Fault 14: twenty-four processes write into one SQLite file. No write fails because it is locked."""

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
        result = driver.ask("crowd", writers=WRITERS, polls=POLLS)["result"]
        assert result["failed"] == 0, driver.log()
        assert result["sequences"] == [POLLS] * WRITERS
        assert result["seconds_worst"] < 30
        recovered(f"{WRITERS} writers on SQLite, {result['rate']:.0f} polls/s, slowest poll", result["seconds_worst"])
        assert driver.broken() == {}
    finally:
        driver.close()
        remove_tree(folder)
