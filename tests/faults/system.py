"""A whole engine in processes of its own, to be broken: embedded (one process) or scaled (scheduler and workers)."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import psutil

from tests.faults import truth
from tests.faults.database import Database, PostgresDatabase, SqliteFile, StoredMatch, as_stored, matches
from tests.servers import free_port
from tests.stadium_process import StadiumProcess
from tests.system import wait_for
from victoryline.env import PROJECT_ROOT
from victoryline.lib import warden
from victoryline.lib.processes import end_group, mark_as_own, python, remove_tree, signal_group, spawn

SECRETS = {
    "SECRET_KEY": "for the fault tests only, and long enough for everyone who counts",
    "JWT_SIGNING_KEY": "for the fault tests only too, and just as long as the other one",
}
SETTLE_SECONDS = 60.0
PREPARE = """
import os, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
call_command("sync_sources")
"""


class System:
    """Its processes, by name. `env` overrides the configuration. Stops everything it started, whatever happened."""

    def __init__(self, stadium: StadiumProcess, *, database_url: str = "", redis_url: str = "", **env: str) -> None:
        self.stadium = stadium
        self.is_scaled = bool(database_url)
        self.folder = Path(tempfile.mkdtemp(prefix="vl-fault-"))
        self.database: Database = (
            PostgresDatabase(database_url) if database_url else SqliteFile(self.folder / "victoryline.sqlite3")
        )
        self.env = {
            "VAR_DIR": str(self.folder),
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "STADIUM_URL": stadium.url,
            **(SECRETS if database_url else {}),
            **env,
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._temp_dirs: list[Path] = []

    def start(self) -> Self:
        self._prepare_database()
        if self.is_scaled:
            self.launch("scheduler", "run_scheduler")
            self.launch("worker-1", "run_worker")
            self.launch("worker-2", "run_worker")
        else:
            self.launch("engine", "run_worker", "--with-scheduler")
        return self

    def launch(self, name: str, *command: str) -> None:
        """Start a process as the supervisor does: own session, own temporary folder, output into a file."""
        temp_dir = self.folder / "tmp" / name
        remove_tree(temp_dir)
        temp_dir.mkdir(parents=True)
        mark_as_own(temp_dir)
        self._temp_dirs.append(temp_dir)
        env = {**self._environment(), "TMPDIR": str(temp_dir), "PROMETHEUS_PORT": str(free_port())}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = spawn(
                python("manage.py", *command), env=env, cwd=PROJECT_ROOT, stdout=log, stderr=log
            )

    def kill(self, name: str) -> float:
        """SIGKILL one process, and nothing that it had started; when that was."""
        process = self.processes.pop(name)
        killed_at = time.time()
        process.send_signal(signal.SIGKILL)
        process.wait()
        return killed_at

    def stop(self) -> None:
        for process in self.processes.values():
            signal_group(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            end_group(process, grace_seconds=8)
        self.processes.clear()
        warden.clean_up(self._temp_dirs, grace_seconds=0)
        remove_tree(self.folder)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Its processes

    def browsers(self) -> list[psutil.Process]:
        """The main processes of all Chromiums that were started in its name, orphaned ones included."""
        return [each for each in warden.using(self._temp_dirs) if _is_main_browser(each)]

    def drivers(self) -> list[psutil.Process]:
        """The Playwright drivers: what our processes talk to, and what talks to Chromium."""
        return [each for each in warden.using(self._temp_dirs) if "run-driver" in " ".join(_command(each))]

    def worker_id(self, name: str) -> str:
        """The id that a worker gave itself, once it has announced it."""

        def announced() -> str:
            pid = self.processes[name].pid
            rows = self.database.rows("SELECT worker_id FROM scraping_worker WHERE pid = %s", pid)
            return str(rows[0][0]) if rows else ""

        return str(wait_for(announced, seconds=30, what=f"the row of {name}"))

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # What it has stored

    def matches(self) -> list[StoredMatch]:
        return matches(self.database)

    def live(self) -> list[StoredMatch]:
        return [match for match in self.matches() if match.status == "live"]

    def tasks_held_by(self, worker_id: str) -> list[tuple[int, int]]:
        """Task and ref of what a worker has in hand, matches only."""
        sql = "SELECT id, ref_id FROM scraping_scrapetask WHERE state = %s AND worker_id = %s AND ref_id IS NOT NULL"
        return [(task, ref) for task, ref in self.database.rows(sql, "EXECUTING", worker_id)]

    def count_tasks(self, where: str, *values: Any, since: float = 0.0) -> int:
        sql = f"SELECT COUNT(*) FROM scraping_scrapetask WHERE created_at >= %s AND {where}"
        (row,) = self.database.rows(sql, as_stored(self.database, since), *values)
        return int(row[0])

    # Waiting and judging

    def settle(self, seconds: float = SETTLE_SECONDS) -> Self:
        """Wait until every match on show was read and its list of events has no hole."""

        def is_settled() -> bool:
            stored = {match.name: match for match in self.matches()}
            shown = [stored.get((one["site"], one["key"])) for one in self.stadium.matches()]
            return bool(shown) and all(one and one.payload and not one.has_gap for one in shown)

        self._wait(is_settled, seconds, "every match read, without holes")
        return self

    def await_updates(self, refs: list[int], *, since: float, seconds: float) -> float:
        """Wait until each of these was read again after `since`; how long after it that was."""
        wanted = set(refs)
        assert wanted, "no match to wait for"

        def are_updated() -> bool:
            fresh = {match.ref_id for match in self.matches() if match.captured_at > since}
            return wanted <= fresh

        self._wait(are_updated, seconds, f"updates of {len(wanted)} matches")
        return time.time() - since

    def assert_is_true(self, seconds: float = 45.0) -> None:
        """Freeze play, let the system catch up, and hold all it has against the truth. Play goes on afterwards."""
        pace = self.stadium.ask("/control/health")["pace"]
        self.stadium.ask("/control/pace", {"pace": 0})
        frozen_at = time.time()
        try:
            live = [match.ref_id for match in self.live()]
            if live:
                self.await_updates(live, since=frozen_at, seconds=seconds)
            found: list[str] = []

            def is_true() -> bool:
                found[:] = truth.differences(self.database, self.stadium)
                return not found

            try:
                self._wait(is_true, seconds, "what is stored is what happened")
            except AssertionError as error:
                raise AssertionError("\n".join([*found, str(error)])) from None
            assert truth.holes_in_history(self.database) == []
        finally:
            self.stadium.ask("/control/pace", {"pace": pace})

    def _wait(self, condition: Any, seconds: float, what: str) -> None:
        try:
            wait_for(condition, seconds=seconds, what=what)
        except AssertionError as error:
            logs = "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self._log_names())
            raise AssertionError(f"{error}\n{logs}") from None

    def _log_names(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.log"))

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.env, "PYTHONUNBUFFERED": "1"}

    def _prepare_database(self) -> None:
        done = subprocess.run(
            python("-c", PREPARE),
            cwd=PROJECT_ROOT,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == 0, f"the database could not be prepared:\n{done.stdout}{done.stderr}"


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _is_main_browser(process: psutil.Process) -> bool:
    words = _command(process)
    is_ours = any(word.startswith("--victoryline-owner=") for word in words)
    return is_ours and not any(word.startswith("--type=") for word in words)
