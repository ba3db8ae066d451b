"""Fault 2: a process is killed at each crash point; its data is consistent, and the next process continues."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults import truth
from tests.faults.crash.process import Driver
from tests.faults.database import Database, PostgresDatabase, SqliteFile, new_database
from tests.faults.system import SECRETS
from tests.servers import PostgresServer, are_installed
from tests.stadium_process import StadiumProcess
from victoryline.configuration import PROJECT_ROOT

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.fault_number(2)]

STEP_SECONDS, GAP_SECONDS = 45, 1500  # simulated: a ball or two, and more than a page of them
Worst = Callable[[str, float], None]

BEFORE_COMMIT = [
    *[("scorecard", point) for point in ("claim.before", "claim.after", "read.before", "read.after", "finish.ended")],
    *[
        ("scorecard", f"ingest.{step}")
        for step in ("locked", "events", "scraper", "snapshot", "match", "ref", "applied")
    ],
    *[("scorecard", point) for point in ("events.superseded", "events.written", "finish.effects")],
    *[("together", point) for point in ("claim.after", "finish.ended", "ingest.match", "ingest.ref", "ingest.applied")],
    *[("gap", point) for point in ("fill.ref", "fill.match", "finish.effects")],
    *[("failing", f"failure.{step}") for step in ("kept", "counted", "settled")],
    *[(flow, point) for flow in ("failing", "dying") for point in ("fail.left", "fail.transitions")],
    ("dying", "failure.settled"),
    *[("gone", "gone.completed"), ("gone", "gone.closed"), ("gone", "finish.effects")],
    *[("silent_worker", "rescue.taken"), ("silent_worker", "rescue.transitions")],
    *[("silent_worker_once_too_often", "rescue.taken"), ("silent_worker_once_too_often", "rescue.transitions")],
    *[("job", f"job.{step}") for step in ("created", "tasks", "items", "begun")],
    *[("whole", "ingest.applied"), ("whole", "finish.effects")],
    *[
        ("due", "open_tasks.before"),
        ("due", "open_tasks.after"),
        ("by_hand", "retry.reopened"),
        ("bulk", "operation.applied"),
        ("discovery", "discover.match"),
    ],
]
AFTER_COMMIT = [
    *[
        ("whole", "finish.committed"),
        ("scorecard", "finish.committed"),
        ("together", "finish.committed"),
        ("gap", "finish.committed"),
        ("failing", "failure.committed"),
    ],
    *[("dying", "failure.committed"), ("silent_worker", "rescue.committed")],
    *[("silent_worker_once_too_often", "rescue.committed"), ("due", "due.committed"), ("bulk", "operation.committed")],
]
CASES = [(*case, False) for case in BEFORE_COMMIT] + [(*case, True) for case in AFTER_COMMIT]
DEATHS = 3  # MAX_RESCUES by default
QUICK = {"claim.after", "ingest.snapshot", "finish.effects", "finish.committed", "failure.settled", "rescue.committed"}
MOST_IN_FAULTS = [
    case if case[1] in QUICK else pytest.param(*case, marks=pytest.mark.faults_only) for case in CASES
]  # all of them in `make faults`


@dataclass(frozen=True)
class Ground:
    stadium: StadiumProcess
    database: Database
    driver: Driver


@pytest.fixture(scope="module")
def ground() -> Iterator[StadiumProcess]:
    """A stadium with a stopped clock, so that the truth does not change during a comparison."""
    with StadiumProcess(programme="load:2", pace=1) as stadium:
        stadium.ask("/control/pace", {"pace": 0})
        yield stadium


@pytest.fixture(scope="module")
def on_postgres(ground: StadiumProcess, postgres: PostgresServer) -> Iterator[Ground]:
    url = new_database(postgres, "crashes")
    yield from _driver(ground, PostgresDatabase(url), DATABASE_URL=url, **SECRETS)


@pytest.fixture(scope="module")
def on_sqlite(ground: StadiumProcess) -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="vl-crash-"))
    yield from _driver(ground, SqliteFile(folder / "victoryline.sqlite3"), folder=folder)


def _driver(stadium: StadiumProcess, database: Database, *, folder: Path | None = None, **env: str) -> Iterator[Ground]:
    folder = folder or Path(tempfile.mkdtemp(prefix="vl-crash-"))
    driver = Driver({**env, "VAR_DIR": str(folder), "STADIUM_URL": stadium.url})
    try:
        assert driver.ask("prepare")["result"]["broken"] == {}
        yield Ground(stadium, database, driver)
    finally:
        driver.close()
        shutil.rmtree(folder, ignore_errors=True)


def die_and_recover(ground: Ground, flow: str, point: str, *, is_done: bool) -> float:
    """Kills a process at the point; returns the seconds that the next process needed to recover."""
    driver = ground.driver
    ground.stadium.skip(GAP_SECONDS if flow == "gap" else STEP_SECONDS)
    death = driver.ask("die", flow=flow, at=point)
    assert death["signal"] == signal.SIGKILL, f"{flow} does not pass {point}"
    left = driver.ask("check")["result"]
    assert left["broken"] == {}, "what it left is half written"
    assert (left["rows"] != death["result"]) is is_done, f"before {death['result']}, after {left['rows']}"
    began = time.monotonic()
    healed = driver.ask("recover")["result"]
    seconds = time.monotonic() - began
    assert healed["broken"] == {}
    assert truth.differences(ground.database, ground.stadium) == []
    assert truth.holes_in_history(ground.database) == []
    assert truth.steps_back(ground.database) == []
    return seconds


@pytest.mark.requirement("ZT-8", "BX-13", "NFR-009")
@pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL: make test installs it")
class TestOnPostgres:
    @pytest.mark.parametrize(("flow", "point", "is_done"), MOST_IN_FAULTS)
    def test_all_or_nothing(self, on_postgres: Ground, flow: str, point: str, is_done: bool, worst: Worst) -> None:
        worst("SIGKILL at a crash point", die_and_recover(on_postgres, flow, point, is_done=is_done))


@pytest.mark.requirement("BX-12")
@pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL: make test installs it")
class TestCrashLoop:
    def test_a_task_that_kills_every_worker_becomes_dead(self, on_postgres: Ground) -> None:
        """The attempts are counted before the work, so the count survives SIGKILL; the third kill is the last."""
        driver, seen = on_postgres.driver, []
        for _ in range(DEATHS):
            assert driver.ask("die", flow="scorecard", at="read.before")["signal"] == signal.SIGKILL
            seen.append(driver.ask("rescue")["result"])
        assert len({one["task"] for one in seen}) == 1, seen
        assert [one["state"] for one in seen] == ["PENDING"] * (DEATHS - 1) + ["DEAD"]
        assert "lease_expired" in seen[-1]["reason"]
        assert "killed" in seen[-1]["reason"]
        assert seen[-1]["charged"] == 0, "the source is not to blame"
        assert driver.broken() == {}, "it has its reason, its history and its alert"
        assert driver.ask("recover")["result"]["broken"] == {}
        assert truth.differences(on_postgres.database, on_postgres.stadium) == []


@pytest.mark.requirement("ZT-8", "BX-13", "NFR-009")
@pytest.mark.faults_only
class TestOnSqlite:
    @pytest.mark.parametrize(("flow", "point", "is_done"), [case for case in CASES if case[1] in QUICK])
    def test_all_or_nothing(self, on_sqlite: Ground, flow: str, point: str, is_done: bool) -> None:
        die_and_recover(on_sqlite, flow, point, is_done=is_done)


def test_every_point_has_its_case() -> None:
    """Every crash point is used by a flow; those of the spool and of submissions have tests of their own."""
    sources = [path.read_text() for path in (PROJECT_ROOT / "scraping").rglob("*.py")]
    placed = {name for source in sources for name in re.findall(r'crash_point\("([^"]+)"\)', source)}
    elsewhere = {name for name in placed if name.startswith(("replay.", "spool.", "submit."))}
    assert placed - elsewhere == {point for _, point, _ in CASES}
