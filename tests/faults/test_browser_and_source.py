"""An embedded engine whose browser dies and whose sources misbehave. One engine goes through all of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psutil
import pytest

from tests.faults.conftest import Recovered
from tests.faults.system import System, impatient_system
from tests.patience import stretched, wait_for

pytestmark = [pytest.mark.usefixtures("calm"), pytest.mark.fault, pytest.mark.slow]

FAULT_SECONDS = 8.0
# More than one page of the ball feed: missed balls are on older pages only.
MISSED_SIMULATED_SECONDS = 900


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    more = {
        "BROWSER_HUNG_SECONDS": "5",
    }
    with impatient_system(**more) as running:
        yield running


@pytest.mark.fault_number(16)
@pytest.mark.requirement("NFR-005", "FR-004")
class TestBrowserKilled:
    @pytest.mark.parametrize("victim", ["Chromium", pytest.param("the driver", marks=pytest.mark.faults_only)])
    def test_the_next_update_follows_and_the_source_is_not_charged(
        self, system: System, victim: str, recovered: Recovered
    ) -> None:
        old = system.browsers()
        victims = old if victim == "Chromium" else system.drivers()
        assert old
        assert victims
        live = [match.ref_id for match in system.live()]
        killed_at = time.time()
        for process in victims:
            process.kill()
        seconds = system.await_updates(live, since=killed_at, seconds=30)
        recovered(f"SIGKILL of {victim}", seconds, bound=30)
        assert system.count_tasks("charged_attempts > 0", since=killed_at) == 0
        system.assert_is_true()
        _, alive = psutil.wait_procs(old, timeout=stretched(10))
        assert alive == []
        wait_for(lambda: len(system.browsers()) == 1, seconds=10, what="one browser and no other")


@pytest.mark.fault_number(17)
@pytest.mark.faults_only
@pytest.mark.requirement("NFR-005", "FR-004")
class TestBrowserHangs:
    def test_updates_continue_and_the_browser_is_replaced(self, system: System, recovered: Recovered) -> None:
        (old,) = system.browsers()
        live = [match.ref_id for match in system.live()]
        stopped_at = time.time()
        old.suspend()
        recovered(
            "Chromium stopped: the next updates",
            system.await_updates(live, since=stopped_at, seconds=45),
            bound=45,
        )
        wait_for(
            lambda: [one.pid for one in system.browsers()] not in ([], [old.pid]), seconds=60, what="another browser"
        )
        recovered("Chromium stopped: another one in its place", time.time() - stopped_at, bound=45)
        wait_for(lambda: len(system.browsers()) == 1, seconds=10, what="one browser and no other")
        assert system.count_tasks("charged_attempts > 0", since=stopped_at) == 0
        system.assert_is_true()


@pytest.mark.fault_number(19)
@pytest.mark.requirement("NFR-005", "US1.1")
class TestSourceFails:
    @pytest.mark.parametrize(
        ("words", "fault"),
        [
            ("answering 500", {"kind": "status", "value": 500}),
            pytest.param("hanging", {"kind": "hang"}, marks=pytest.mark.faults_only),
            pytest.param("sending half of every answer", {"kind": "malformed"}, marks=pytest.mark.faults_only),
        ],
    )
    def test_recovers_and_fetches_missed_events(
        self, system: System, words: str, fault: dict[str, object], recovered: Recovered
    ) -> None:
        live = [match.ref_id for match in system.live()]
        began_at = time.time()
        planted = system.stadium.fault(**fault, seconds=FAULT_SECONDS)
        system.stadium.skip(MISSED_SIMULATED_SECONDS)
        healed_at = _wait_until_over(system, planted["id"])
        seconds = system.await_updates(live, since=healed_at, seconds=30)  # US1.1
        recovered(f"source {words} for {FAULT_SECONDS:g} s", seconds)
        system.assert_is_true()
        filled = system.count_tasks("resource = %s AND state = %s", "commentary", "SUCCESS", since=began_at)
        assert filled > 0

    @pytest.mark.faults_only
    def test_a_gap_stays_open_while_the_ball_feed_fails(self, system: System, recovered: Recovered) -> None:
        """The score is always readable; the ball feed that shows and fills the gap fails every second time."""
        planted = system.stadium.fault(
            site="crex", target="feed", kind="status", value=500, probability=0.5, seconds=FAULT_SECONDS
        )
        system.stadium.skip(MISSED_SIMULATED_SECONDS)
        healed_at = _wait_until_over(system, planted["id"])
        system.assert_is_true()
        recovered(f"list of balls answering 500 every second time for {FAULT_SECONDS:g} s", time.time() - healed_at)


def _wait_until_over(system: System, fault_id: str) -> float:
    """Returns the end of the fault; fails if it hit no request."""

    def ended() -> bool:
        (fault,) = [one for one in system.stadium.ask("/control/faults") if one["id"] == fault_id]
        hits.append(fault["hits"])
        return not fault["active"]

    hits: list[int] = []
    wait_for(ended, seconds=FAULT_SECONDS + 10, what="the end of the fault")
    assert hits[-1] > 0
    return time.time()
