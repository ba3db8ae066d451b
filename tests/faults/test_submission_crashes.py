"""Fault 2 for submissions: a web process or worker is killed (SIGKILL); each submission is ingested exactly once."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import migrated
from tests.faults import truth
from tests.faults.crash.process import Driver
from tests.faults.database import Database, PostgresDatabase, SqliteFile, new_database
from tests.faults.system import SECRETS
from tests.servers import PostgresServer, are_installed
from victoryline.configuration import PROJECT_ROOT

pytestmark = [pytest.mark.fault, pytest.mark.slow, pytest.mark.fault_number(2)]

NOT_DONE = [
    ("submitting", "submit.written"),
    *[("submitted", point) for point in ("claim.after", "finish.ended", "ingest.events", "ingest.snapshot")],
    *[("submitted", point) for point in ("submit.ended", "submit.ended:2", "ingest.applied", "finish.effects")],
]
CASES = [(*case, False) for case in NOT_DONE] + [("submitted", "finish.committed", True)]
QUICK = {"submit.ended:2"}  # in `make test`; the others in `make faults`


@dataclass(frozen=True)
class Ground:
    database: Database
    driver: Driver


@pytest.fixture(scope="module")
def on_sqlite() -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="vl-submit-"))
    migrated.place(folder / "victoryline.sqlite3")
    yield from _driver(SqliteFile(folder / "victoryline.sqlite3"), folder)


@pytest.fixture(scope="module")
def on_postgres(postgres: PostgresServer) -> Iterator[Ground]:
    url = new_database(postgres, "submissions")
    yield from _driver(PostgresDatabase(url), Path(tempfile.mkdtemp(prefix="vl-submit-")), DATABASE_URL=url, **SECRETS)


def _driver(database: Database, folder: Path, **env: str) -> Iterator[Ground]:
    driver = Driver({**env, "VAR_DIR": str(folder)})
    try:
        assert driver.ask("prepare")["result"]["broken"] == {}
        yield Ground(database, driver)
    finally:
        driver.close()
        shutil.rmtree(folder, ignore_errors=True)


def die_and_recover(ground: Ground, flow: str, point: str, *, is_done: bool) -> None:
    death = ground.driver.ask("die", flow=flow, at=point)
    assert death["signal"] == signal.SIGKILL, f"{flow} does not pass {point}"
    left = ground.driver.ask("check")["result"]
    assert left["broken"] == {}, "what it left is half written"
    assert (left["rows"] != death["result"]) is is_done, f"before {death['result']}, after {left['rows']}"
    healed = ground.driver.ask("recover")["result"]
    assert healed["broken"] == {}
    rows = healed["rows"]
    assert rows["submitted"] == rows["Submission"], "none is left waiting"
    assert rows["Snapshot"] == rows["MatchEvent"] == rows["Submission"], "each was taken once"
    assert truth.holes_in_history(ground.database) == []
    assert truth.steps_back(ground.database) == []


@pytest.mark.requirement("ZT-1", "ZT-8", "BX-13")
class TestOnSqlite:
    @pytest.mark.parametrize(
        ("flow", "point", "is_done"),
        [case if case[1] in QUICK else pytest.param(*case, marks=pytest.mark.faults_only) for case in CASES],
    )
    def test_all_or_nothing(self, on_sqlite: Ground, flow: str, point: str, is_done: bool) -> None:
        die_and_recover(on_sqlite, flow, point, is_done=is_done)


@pytest.mark.requirement("ZT-1", "ZT-8", "BX-13")
@pytest.mark.faults_only
@pytest.mark.skipif(not are_installed(), reason="needs PostgreSQL: make test installs it")
class TestOnPostgres:
    @pytest.mark.parametrize(("flow", "point", "is_done"), CASES)
    def test_all_or_nothing(self, on_postgres: Ground, flow: str, point: str, is_done: bool) -> None:
        die_and_recover(on_postgres, flow, point, is_done=is_done)


def test_every_crash_point_of_submissions_has_a_case() -> None:
    placed = re.findall(
        r'crash_point\("(submit[^"]+)"\)', (PROJECT_ROOT / "scraping" / "jobs" / "submissions.py").read_text()
    )
    assert set(placed) == {point.partition(":")[0] for _, point, _ in CASES if point.startswith("submit.")}
