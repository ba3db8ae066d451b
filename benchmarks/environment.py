"""The environment of a bench: private servers, a stadium, and our own processes, as in production.

Settings read the environment variables once, so a process has one bench environment; Django is set up inside it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.cpu import tree
from benchmarks.errors import BenchError
from benchmarks.progress import say, wait_until
from scripts.test import clean_environment
from tests.processes import end_group
from tests.servers import PostgresServer, RedisServer, ServerFailedError
from tests.stadium_process import StadiumProcess
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib import chromium
from victoryline.lib.processes import python, remove_tree, spawn

DATABASES = ("postgresql", "sqlite")
STOP_SECONDS = 15.0
SUPERVISOR = "supervisor"
COMMANDS = {"engine": "--with-scheduler", "worker": "run_worker", "scheduler": "run_scheduler"}


@dataclass
class BenchEnvironment:
    database: str
    stadium: StadiumProcess
    chromium: Path
    env: dict[str, str]
    folder: Path
    servers: dict[str, int]  # name -> process id; their CPU time counts too
    ours: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_engine(self, *, workers: int = 1, is_supervised: bool = False) -> None:
        """On PostgreSQL a scheduler and workers that meet in Redis; on SQLite the embedded engine.

        `is_supervised`: a process that dies is started again, as by `manage.py run`.
        """
        if is_supervised:
            arguments = ["--embedded"] if self.database == "sqlite" else ["--workers", str(workers)]
            self._spawn(SUPERVISOR, python("-m", "benchmarks.programs.supervised", *arguments))
        elif self.database == "sqlite":
            self._start("engine", "run_worker", "--with-scheduler")
        else:
            for number in range(workers):
                self._start("worker" if workers == 1 else f"worker-{number + 1}", "run_worker")
            self._start("scheduler", "run_scheduler")

    def start_web(self) -> str:
        """Starts the web process as `manage.py run` does, and returns its URL."""
        from django.conf import settings

        from victoryline.embedded import web_command

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._spawn("web", web_command(settings.CONFIG.model_copy(update={"host": "127.0.0.1", "port": port})))
        wait_until(lambda: _answers(port), seconds=60, what="waiting for the web process")
        return f"http://127.0.0.1:{port}"

    def freeze(self) -> None:
        """Suspends our processes and their browsers (SIGSTOP), so that they use no CPU while a peer is measured."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def check(self) -> None:
        """Raises BenchError if one of our processes has ended."""
        for name, process in self.ours.items():
            if process.poll() is not None:
                raise BenchError(
                    f"the {name} ended unexpectedly (code {process.returncode}):\n{self.log(name)[-3000:]}"
                )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def close(self) -> None:
        self.thaw()
        for process in self.ours.values():  # signal all of them first, then wait for each
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self.ours.values():
            end_group(process, grace_seconds=STOP_SECONDS)
        self.ours.clear()

    def trees(self) -> dict[str, list[psutil.Process]]:
        """Returns all processes by role: worker, scheduler, browser, driver, servers, stadium."""
        parts: dict[str, list[psutil.Process]] = {}
        for name, pid in self._parts().items():
            for process in tree(pid):
                parts.setdefault(_part_of(process, name), []).append(process)
        return parts

    def _parts(self) -> dict[str, int]:
        ours = {name: process.pid for name, process in self.ours.items()}
        stadium = {"stadium": self.stadium.process.pid} if self.stadium.process else {}
        return ours | self.servers | stadium

    def _start(self, name: str, *command: str) -> None:
        self._spawn(name, python("manage.py", *command))

    def _spawn(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.ours[name] = spawn(command, env=self.env, cwd=PROJECT_ROOT, stdout=log, stderr=log)

    def _signal(self, number: int) -> None:
        for process in self.ours.values():
            for one in tree(process.pid):
                with contextlib.suppress(psutil.Error):
                    one.send_signal(number)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _part_of(process: psutil.Process, name: str) -> str:
    with contextlib.suppress(psutil.Error):
        program = process.name()
        if "chrom" in program:
            return "browser"
        if program.startswith("node"):
            return "driver"
        if name == SUPERVISOR:  # its children are recognised by their command line
            arguments = process.cmdline()
            return next((part for part, command in COMMANDS.items() if command in arguments), name)
    return name


@dataclass(frozen=True)
class BenchServers:
    """The servers of a bench, and the environment variables with their addresses."""

    env: dict[str, str]
    folder: Path
    pids: dict[str, int]  # by name


class PostgresWithCommitTimes(PostgresServer):
    """Stores the commit time of every row: `pg_xact_commit_timestamp(xmin)`."""

    def command(self) -> list[str]:
        return [*super().command(), "-c", "track_commit_timestamp=on"]


@contextmanager
def bench_environment(
    *,
    database: str,
    programme: str,
    pace: float,
    settings: Mapping[str, str],
    has_commit_times: bool = False,
    browser_only: tuple[str, ...] = (),
) -> Iterator[BenchEnvironment]:
    """Starts servers and stadium, migrates the database and sets up Django.

    `settings`: configuration variables; `browser_only`: sites of the stadium that refuse every client but a browser.
    """
    program = chromium.find(chosen=None, var_dir=PROJECT_ROOT / "var", environ=os.environ)
    if chosen := os.environ.get("CHROMIUM_PATH"):
        program = Path(chosen)
    if program is None:
        raise BenchError("no Chromium was found; run `make doctor`")
    with ExitStack() as stack:
        say(f"starting {database} and the stadium ({programme}, pace {pace:g})")
        stadium = stack.enter_context(StadiumProcess(programme=programme, pace=pace, browser_only=browser_only))
        env = {"CHROMIUM_PATH": str(program), "STADIUM_URL": stadium.url, **settings}
        servers = stack.enter_context(bench_servers(database=database, settings=env, has_commit_times=has_commit_times))
        environment = BenchEnvironment(database, stadium, program, servers.env, servers.folder, servers.pids)
        stack.callback(environment.close)
        yield environment


@contextmanager
def bench_servers(
    *, database: str, settings: Mapping[str, str], has_commit_times: bool = False
) -> Iterator[BenchServers]:
    """Starts servers, migrates the database and sets up Django; for benches without a source."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="vl-bench-"))
        stack.callback(remove_tree, folder)
        servers, addresses = _servers(stack, database, PostgresWithCommitTimes if has_commit_times else PostgresServer)
        env = {
            **clean_environment(),
            **addresses,
            "VAR_DIR": str(folder / "var"),
            "TMPDIR": str(folder / "tmp"),
            "ENABLE_PROMETHEUS_METRICS": "false",
            "SECRET_KEY": "a secret key for one benchmark run, 50 characters or more",
            "JWT_SIGNING_KEY": "a signing key for one benchmark run, 50 characters or more",
            "DJANGO_SETTINGS_MODULE": "tests.shortened",
            **settings,
        }
        (folder / "tmp").mkdir()
        _prepare_django(env)
        yield BenchServers(env, folder, servers)


def _servers(
    stack: ExitStack, database: str, postgresql: type[PostgresServer]
) -> tuple[dict[str, int], dict[str, str]]:
    """Starts PostgreSQL (durable, as in production) and Redis. SQLite needs no server."""
    if database == "sqlite":
        return {}, {}
    try:
        postgres = stack.enter_context(postgresql(durable=True))
        redis = stack.enter_context(RedisServer())
    except ServerFailedError as error:
        raise BenchError(str(error)) from error
    assert postgres.process is not None
    assert redis.process is not None
    pids = {"postgresql": postgres.process.pid, "redis": redis.process.pid}
    return pids, {"DATABASE_URL": postgres.url, "REDIS_URL": redis.url}


def _prepare_django(env: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(env)
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    with Path(os.devnull).open("w") as nowhere:
        call_command("sync_sources", stdout=nowhere)
