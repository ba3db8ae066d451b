"""A whole engine in its own processes for fault tests: embedded (one process) or scaled (scheduler and workers)."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import psutil

from tests import migrated
from tests.faults.crash.process import Driver
from tests.faults.database import PostgresDatabase, SqliteFile
from tests.faults.witness import Witness
from tests.patience import wait_for
from tests.processes import end_group
from tests.servers import free_port
from tests.stadium_process import StadiumProcess
from victoryline import parent_watch
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import mark_as_own, python, remove_tree, signal_group, spawn

SECRETS = {
    "SECRET_KEY": "for the fault tests only, and long enough for everyone who counts",
    "JWT_SIGNING_KEY": "for the fault tests only too, and just as long as the other one",
}
PREPARE = """
import os, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False)
call_command("sync_sources")
"""


class System(Witness):
    """The processes of an engine, by name. `env` overrides the configuration and the constants in `tests.shortened`.

    Stops everything it started, whatever happened.
    """

    def __init__(
        self,
        stadium: StadiumProcess,
        *,
        database_url: str = "",
        redis_url: str = "",
        workers: int = 2,
        folder: Path | None = None,
        **env: str,
    ) -> None:
        self.is_scaled = bool(database_url)
        self.folder = folder or Path(tempfile.mkdtemp(prefix="vl-fault-"))
        self.folder.mkdir(exist_ok=True)
        file = SqliteFile(self.folder / "victoryline.sqlite3")
        super().__init__(PostgresDatabase(database_url) if database_url else file, stadium)
        self.env = {
            "DJANGO_SETTINGS_MODULE": "tests.shortened",
            "VAR_DIR": str(self.folder),
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "STADIUM_URL": stadium.url,
            **(SECRETS if database_url else {}),
            **env,
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.exits: list[str] = []  # processes that ended without a kill by the test
        self._workers = workers
        self._temp_dirs: list[Path] = []
        self._driver: Driver | None = None

    def start(self) -> Self:
        self._prepare_database()
        self.revive()
        return self

    def revive(self) -> None:
        """Starts processes that are not running, as a supervisor does."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.exits.append(f"{name} ended with {process.returncode}")
                del self.processes[name]
        for name, command in self._wanted().items():
            if name not in self.processes:
                self.launch(name, *command)

    def _wanted(self) -> dict[str, tuple[str, ...]]:
        if not self.is_scaled:
            return {"engine": ("run_worker", "--with-scheduler")}
        workers = {f"worker-{number + 1}": ("run_worker",) for number in range(self._workers)}
        return {"scheduler": ("run_scheduler",), **workers}

    def launch(self, name: str, *command: str, **more: str) -> subprocess.Popen[bytes]:
        """Starts a process as the supervisor does: own session, own temporary folder, output to a file."""
        return self.launch_program(name, python("manage.py", *command), **more)

    def launch_program(self, name: str, command: list[str], **more: str) -> subprocess.Popen[bytes]:
        temp_dir = self.folder / "tmp" / name
        remove_tree(temp_dir)
        temp_dir.mkdir(parents=True)
        mark_as_own(temp_dir)
        self._temp_dirs.append(temp_dir)
        env = {**self.environment(), "TMPDIR": str(temp_dir), "PROMETHEUS_PORT": str(free_port()), **more}
        with self.log_of(name).open("ab") as log:
            self.processes[name] = spawn(command, env=env, cwd=PROJECT_ROOT, stdout=log, stderr=log)
        return self.processes[name]

    def log_of(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    @property
    def driver(self) -> Driver:
        """Returns the driver process, which checks the invariants with our own code."""
        if self._driver is None:
            self._driver = Driver(self.env)
        return self._driver

    def assert_is_whole(self, seconds: float = 20.0, *, bound: float = 60.0) -> None:
        """Asserts that every invariant holds within this time, which a recovery may need."""
        found: dict[str, list[str]] = {}

        def is_whole() -> bool:
            found.clear()
            found.update(self.driver.broken(bound=bound))
            return not found

        try:
            self._wait(is_whole, seconds, "every invariant holds")
        except AssertionError as error:
            raise AssertionError(f"{found}\n{error}") from None

    def kill(self, name: str) -> float:
        """Sends SIGKILL to one process but not to its children; returns the time."""
        process = self.processes.pop(name)
        killed_at = time.time()
        process.send_signal(signal.SIGKILL)
        process.wait()
        return killed_at

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.close()
        for process in self.processes.values():
            signal_group(process.pid, signal.SIGCONT)
        for process in self.processes.values():
            signal_group(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            end_group(process, grace_seconds=8)
        self.processes.clear()
        parent_watch.clean_up(self._temp_dirs, grace_seconds=0)
        remove_tree(self.folder)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def browsers(self) -> list[psutil.Process]:
        """Returns the main processes of all its Chromiums, including orphaned ones."""
        return [each for each in parent_watch.using(self._temp_dirs) if _is_main_browser(each)]

    def drivers(self) -> list[psutil.Process]:
        """Returns the Playwright driver processes, which connect our processes with Chromium."""
        return [each for each in parent_watch.using(self._temp_dirs) if "run-driver" in " ".join(_command(each))]

    def worker_id(self, name: str) -> str:
        """Waits for the row of a worker and returns its id."""

        def announced() -> str:
            pid = self.processes[name].pid
            rows = self.database.rows("SELECT worker_id FROM scraping_worker WHERE pid = %s", pid)
            return str(rows[0][0]) if rows else ""

        return str(wait_for(announced, seconds=60, what=f"the row of {name}"))

    def logs(self) -> str:
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {path.stem}\n{path.read_text(errors='replace')[-3000:]}" for path in files)

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.env, "PYTHONUNBUFFERED": "1"}

    def _prepare_database(self) -> None:
        if not self.is_scaled:
            migrated.place(self.folder / "victoryline.sqlite3")
        done = subprocess.run(
            python("-c", PREPARE),
            cwd=PROJECT_ROOT,
            env=self.environment(),
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


# Short timeouts and retries: hours of a real system in seconds.
IMPATIENCE = {
    "NAVIGATION_TIMEOUT_SECONDS": "5",
    "PAGE_TIMEOUT_SECONDS": "5",
    "SELECTOR_TIMEOUT_SECONDS": "2",
    "CIRCUIT_BREAKER_TIMEOUT_SECONDS": "5",
    "PAUSE_SECONDS": "5",
    "BREAK_INTERVAL_SECONDS": "3",
    "ERROR_CALM_SECONDS": "10",
}


@contextmanager
def impatient_system(**settings: str) -> Iterator[System]:
    """Starts both sports at twenty times real speed, and an engine with short timeouts."""
    with (
        StadiumProcess(programme="mixed:5:2", pace=20) as stadium,
        System(stadium, **IMPATIENCE, **settings) as running,
    ):
        yield running
