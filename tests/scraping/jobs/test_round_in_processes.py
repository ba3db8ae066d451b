"""A round of ten finished matches through real processes: commands, journal, workers, Chromium, the stadium's pages."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from stadium.matches.ids import custom_id, event_id
from tests.faults import truth
from tests.faults.database import new_database
from tests.faults.system import System
from tests.patience import stretched
from tests.servers import PostgresServer, RedisServer, are_installed
from tests.stadium_process import StadiumProcess
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("ZT-1", "ZT-2", "ZT-3", "ZT-8", "ZT-12"),
]

MATCHES = range(10)
KEYS = [str(event_id(number)) for number in MATCHES]
ROUND = ("sofascore", "tournament=325", "season=87678", "round=1")
# In simulated seconds. By then the first round's matches are in no list: only the job reads them.
LONG_OVER = 16_000


@pytest.fixture(
    params=[
        pytest.param("embedded", marks=pytest.mark.faults_only),
        pytest.param("scaled", marks=[pytest.mark.fault, pytest.mark.faults_only]),
    ]
)
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    servers: dict[str, str] = {}
    if request.param == "scaled":
        if not are_installed():
            pytest.skip("needs PostgreSQL and Redis: make test installs them")
        postgres: PostgresServer = request.getfixturevalue("postgres")
        redis: RedisServer = request.getfixturevalue("redis_server")
        servers = {"database_url": new_database(postgres, "rounds"), "redis_url": redis.url}
    with StadiumProcess(programme="mixed:0:10", pace=0) as stadium:
        stadium.skip(LONG_OVER)
        with System(stadium, **servers) as running:
            yield running


def manage(system: System, *words: str) -> str:
    """Runs a management command on the database of the running system."""
    done = subprocess.run(
        python("manage.py", *words),
        cwd=PROJECT_ROOT,
        env={**os.environ, **system.env},
        capture_output=True,
        text=True,
        check=False,
        timeout=stretched(60),
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{system.logs()}"
    return done.stdout


def ended(system: System, state: str) -> list[str]:
    """Returns the matches of the round whose task is in this state, by key."""
    sql = """
        SELECT r.source_event_id FROM scraping_jobitem i JOIN scrape_tasks t ON t.id = i.task_id
        JOIN match_external_refs r ON r.id = i.ref_id WHERE t.state = %s
    """
    return [key for (key,) in system.database.rows(sql, state)]


def visits(system: System) -> dict[str, dict[str, int]]:
    """Returns the number of reads of each match, without the one read of line-ups and figures after its end."""
    asked = system.stadium.requests()["sites"].get("sofascore", {}).get("matches", {})
    return {key: {what: n for what, n in asked.get(key, {}).items() if what in ("page", "feed")} for key in KEYS}


def untrue(system: System) -> list[str]:
    return [line for line in truth.differences(system.database, system.stadium) if any(key in line for key in KEYS)]


def kill_workers(system: System) -> list[str]:
    names = [name for name in system.processes if name != "scheduler"]
    for name in names:
        system.kill(name)
    return names


def test_killed_in_the_middle_it_ends_with_ten_whole_matches_each_read_once(
    system: System, record_property: Callable[[str, object], None]
) -> None:
    broken, pages = KEYS[9], "|".join(f"/{custom_id(number)}$" for number in MATCHES)
    slow = system.stadium.fault(site="sofascore", target="page", path=pages, kind="latency", value=1)
    system.stadium.fault(site="sofascore", match=broken, kind="layout")
    job = json.loads(manage(system, "job", "round", *ROUND, "--matches", "10", "--json"))
    system._wait(lambda: len(ended(system, "SUCCESS")) >= 3, 120, "three matches")
    names = kill_workers(system)
    done, asked = ended(system, "SUCCESS"), visits(system)
    assert 3 <= len(done) < 9
    (row,) = system.database.rows("SELECT COUNT(*) FROM scraping_jobitem WHERE job_id = %s", job["id"])
    assert row[0] == 10, "expected matches were stored before the first read"

    system.stadium.ask(f"/control/faults/{slow['id']}", method="DELETE")
    began = time.monotonic()
    for name in names:
        system.launch(name, "run_worker", *(("--with-scheduler",) if name == "engine" else ()))
    system._wait(lambda: len(ended(system, "SUCCESS")) == 9, 60, "nine matches")
    record_property("recovery_seconds", round(time.monotonic() - began, 1))
    system._wait(lambda: ended(system, "DEAD") == [broken], 60, "the dead letter of the broken one")
    after = visits(system)
    assert {key: after[key] for key in done} == {key: asked[key] for key in done}, "finished matches were read again"

    system.stadium.clear()
    assert "Retried 1 task." in manage(system, "task", "retry", "--job", str(job["id"]))
    system._wait(lambda: len(ended(system, "SUCCESS")) == 10, 60, "the tenth match")
    closed = "SELECT id FROM scrape_jobs WHERE id = %s AND finished_at IS NOT NULL"
    system._wait(lambda: bool(system.database.rows(closed, job["id"])), 30, "the end of the job")
    assert [key for key, read in visits(system).items() if read] == [broken], "only failed matches are read again"
    assert untrue(system) == []

    system.stadium.clear()
    again = json.loads(manage(system, "job", "round", *ROUND, "--watch", "--json"))
    assert (again["id"] != job["id"], again["state"], again["skipped"]) == (True, "complete", 10)
    assert not any(visits(system).values()), "a complete round is not read again"
