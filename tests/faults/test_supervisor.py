"""`manage.py run` with its demo: the engine is killed, the supervisor is killed, the system is stopped."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import Recovered
from tests.faults.database import SqliteFile, as_stored
from tests.faults.witness import Witness
from tests.patience import wait_for
from tests.stadium_process import StadiumProcess
from tests.system import EmbeddedSystem
from victoryline.embedded import is_free
from victoryline.lib.processes import remove_tree

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.alone]  # it has some seconds for a graceful stop

ALL_GONE_SECONDS = 10.0


class DemoWitness(Witness):
    """Observes `manage.py run`, whose stadium has another port after each start."""

    def __init__(self, system: EmbeddedSystem) -> None:
        super().__init__(SqliteFile(system.folder / "victoryline.sqlite3"), StadiumProcess())
        self.system = system

    def start(self) -> None:
        """Starts the system unless it runs, and waits for the first visit."""
        if self.system.process is None or self.system.process.poll() is not None:
            started_at = time.time()
            self.system.start()
            reads = "SELECT id FROM scrape_tasks WHERE state = 'SUCCESS' AND finished_at > %s"
            since = as_stored(self.database, started_at)
            wait_for(lambda: self.database.rows(reads, since), seconds=60, what="a task done")
        self.stadium.port = int((self.system.folder / "stadium.port").read_text())
        self.system.family()

    def remains(self) -> list[str]:
        """Returns its temporary folders and all processes with its VAR_DIR."""
        folder = str(self.system.folder)
        processes = [f"process {each.pid}" for each in psutil.process_iter() if _var_dir_of(each) == folder]
        return self.system.left_behind() + processes

    def logs(self) -> str:
        return self.system.said() + self.system.log("engine")[-3000:]


@pytest.fixture(scope="module")
def witness() -> Iterator[DemoWitness]:
    folder = Path(tempfile.mkdtemp(prefix="vl-run-"))
    demo = {"STADIUM_PROGRAMME": "demo", "STADIUM_PACE": "20", "DISCOVERY_INTERVAL_SECONDS": "5"}
    system = EmbeddedSystem(folder / "var", DATABASE_URL="", REDIS_URL="", BREAK_INTERVAL_SECONDS="3", **demo)
    witness = DemoWitness(system)
    try:
        yield witness
    finally:
        system.__exit__()
        witness.stadium.close()
        remove_tree(folder)


@pytest.fixture(autouse=True)
def running(witness: DemoWitness) -> None:
    witness.start()


@pytest.mark.fault_number(1)
@pytest.mark.requirement("NFR-005")
class TestEngineKilled:
    def test_is_restarted_and_continues(self, witness: DemoWitness, recovered: Recovered) -> None:
        witness.settle()
        engine, live = witness.system.child("run_worker"), [match.ref_id for match in witness.live()]
        witness.stadium.fault(kind="latency", value=2, seconds=4)
        held = "SELECT ref_id FROM scrape_tasks WHERE state = 'EXECUTING' AND ref_id IS NOT NULL"

        def is_suspended_during_a_task() -> bool:
            """Suspends the engine for the check, because a task that ends a moment later would prove nothing."""
            engine.suspend()
            if witness.database.rows(held):
                return True
            engine.resume()
            return False

        wait_for(is_suspended_during_a_task, seconds=20, what="a task in hand")
        killed_at = time.time()
        engine.kill()
        recovered(
            "SIGKILL of the engine in the middle of a scrape",
            witness.await_updates(live, since=killed_at, seconds=45),
            bound=20,
        )
        witness.assert_is_true()


@pytest.mark.fault_number(3)
class TestSupervisorKilled:
    def test_nothing_is_left_and_the_next_start_continues(self, witness: DemoWitness, recovered: Recovered) -> None:
        witness.settle()
        system, before = witness.system, {match.name: match for match in witness.matches()}
        assert system.process is not None
        killed_at = time.time()
        system.process.kill()
        system.process.wait()
        wait_for(lambda: not witness.remains(), seconds=ALL_GONE_SECONDS + 2, what="the end of its remains")
        recovered("SIGKILL of the supervisor, until nothing is left of it", time.time() - killed_at, bound=10)
        assert is_free("127.0.0.1", system.port)
        assert witness.count_tasks("state = %s", "EXECUTING") == 0, "the engine got the signal and released its tasks"
        witness.start()
        live = [match.ref_id for match in witness.live()]
        recovered(
            "SIGKILL of the supervisor, with a new start by hand",
            witness.await_updates(live, since=killed_at, seconds=90),
        )
        witness.assert_is_true()
        after = {match.name: match for match in witness.matches()}
        assert {name: after[name].match_id for name in before} == {name: one.match_id for name, one in before.items()}
        assert all(after[name].sequence >= one.sequence for name, one in before.items())
        assert any(after[name].sequence > one.sequence for name, one in before.items())


@pytest.mark.fault_number(5)
@pytest.mark.faults_only  # tests/victoryline/test_run.py stops a system both ways too
class TestStopRequested:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
    def test_everything_stops_gracefully(self, witness: DemoWitness, number: signal.Signals) -> None:
        system = witness.system
        assert system.stop(number) < ALL_GONE_SECONDS
        assert system.process is not None
        assert system.process.returncode == 0
        assert witness.remains() == []
        assert is_free("127.0.0.1", system.port)
        assert witness.count_tasks("state = %s", "EXECUTING") == 0, "tasks in hand are given back"


def _var_dir_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("VAR_DIR") if process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, OSError):
        return None
