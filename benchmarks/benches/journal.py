"""Tasks per second through the journal: opened, hinted, claimed and finished, without work in between.

Compared with procrastinate, a job queue on PostgreSQL, on the same durable server in the same run: its tasks are empty
coroutines, deferred in batches and run by its own workers. Both keep finished tasks. Each program opens all tasks of a
round and then runs them; both parts are timed. Turns alternate, because the speed of a machine varies. `cpu_ratio`
compares the CPU time of one task, the server included; it is also valid on a busy machine. SQLite has no peer: `sqlite`
is the rate of the embedded system, with one process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg2

from benchmarks.cpu import milliseconds_each
from benchmarks.errors import BenchError
from benchmarks.peers import virtualenvs
from benchmarks.programs.bench_process import BenchProcess, Turn
from benchmarks.progress import say
from scripts.test import clean_environment
from tests.servers import PostgresServer, ServerFailedError
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python, remove_tree

SUMMARY = "tasks a second through the journal, against procrastinate"
PEER = "procrastinate"
PINS = Path(virtualenvs.__file__).with_name("procrastinate.txt")
VENV = virtualenvs.FOLDER / "procrastinate-venv"
PEER_PROGRAM = Path(virtualenvs.__file__).with_name("procrastinate_program.py")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=10.0, help="a turn of each program, about (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each program (%(default)s)")
    parser.add_argument("--matches", type=int, default=2000, help="tasks opened at once (%(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="worker processes of each program (%(default)s)")
    parser.add_argument("--threads", type=int, default=4, help="threads per process of ours (%(default)s)")
    parser.add_argument(
        "--concurrency", type=int, default=10, help="jobs at once in a process of the peer (%(default)s)"
    )


def run(options: Namespace) -> dict[str, Any]:
    virtualenvs.ensure_installed(PEER, PINS, VENV)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="vl-bench-"))
        stack.callback(remove_tree, folder)
        processes = _start(stack, options, folder)
        say("warming up")
        for process in processes.values():
            process.take_turn(seconds=0.1, tasks=min(300, options.matches))
        turns: dict[str, list[Turn]] = {name: [] for name in processes}
        for number in range(1, options.rounds + 1):
            say(f"round {number} of {options.rounds}, about {options.seconds:g} s each")
            for name, process in processes.items():
                turns[name].append(process.take_turn(seconds=options.seconds, tasks=options.matches))
        return _result(options, turns)


def _start(stack: ExitStack, options: Namespace, folder: Path) -> dict[str, BenchProcess]:
    say("starting PostgreSQL (durable), both programs on it, and ours on SQLite")
    try:
        server = stack.enter_context(PostgresServer(durable=True))
    except ServerFailedError as error:
        raise BenchError(str(error)) from error
    assert server.process is not None
    peer_url = second_database(server.url)
    ours, sqlite = make_environment(folder / "postgresql", server.url), make_environment(folder / "sqlite", "")
    command = python("-m", "benchmarks.programs.journal", "--tasks", str(options.matches))
    sizes = ("--processes", str(options.processes), "--threads", str(options.threads))
    embedded = ("--processes", "1", "--threads", str(options.threads * options.processes))
    peer = [VENV / "bin" / "python", "-P", PEER_PROGRAM, "--url", peer_url, "--processes", options.processes]
    pid = server.process.pid
    processes = {
        "ours": BenchProcess("VictoryLine", [*command, *sizes], env=ours, folder=folder, server_pid=pid),
        "peer": BenchProcess(
            PEER,
            [*peer, "--concurrency", options.concurrency],
            env=clean_environment(),
            folder=folder,
            server_pid=pid,
        ),
        "sqlite": BenchProcess("VictoryLine on SQLite", [*command, *embedded], env=sqlite, folder=folder),
    }
    for process in processes.values():
        stack.enter_context(process)
    return processes


def second_database(url: str) -> str:
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE peer")
    connection.close()
    return f"{url.rpartition('/')[0]}/peer"


def make_environment(folder: Path, database_url: str) -> dict[str, str]:
    """Migrates a database and returns the environment variables of a program of ours on it."""
    env = {
        **clean_environment(),
        "DATABASE_URL": database_url,
        "VAR_DIR": str(folder),
        "SECRET_KEY": "a secret key for one benchmark run, 50 characters or more",
        "JWT_SIGNING_KEY": "a signing key for one benchmark run, 50 characters or more",
        "DJANGO_SETTINGS_MODULE": "victoryline.settings",
        "LOG_LEVEL": "WARNING",
    }
    migrate = python("manage.py", "migrate", "--verbosity", "0")
    if subprocess.run(migrate, cwd=PROJECT_ROOT, env=env, stdout=sys.stderr, check=False).returncode:
        raise BenchError("the database could not be migrated; see the output above")
    return env


def _result(options: Namespace, turns: dict[str, list[Turn]]) -> dict[str, Any]:
    rates = {name: _rate(each) for name, each in turns.items()}
    costs = {name: _cost(each) for name, each in turns.items()}
    rounds = [round(ours.rate / peer.rate, 2) for ours, peer in zip(turns["ours"], turns["peer"], strict=True)]
    return {
        "ours": round(rates["ours"], 1),
        "peer": round(rates["peer"], 1),
        "ratio": round(rates["ours"] / rates["peer"], 2),
        "sqlite": round(rates["sqlite"], 1),
        "unit": "tasks a second",
        "round_ratios": rounds,
        "cpu_ratio": round(costs["peer"]["all"] / costs["ours"]["all"], 2),
        "cpu_ms_a_task": costs,
        "tasks": {name: sum(turn.tasks for turn in each) for name, each in turns.items()},
        "open_share": {name: _open_share(each) for name, each in turns.items()},
        "seconds": options.seconds,
        "rounds": options.rounds,
        "open_at_once": options.matches,
        "processes": options.processes,
        "threads": options.threads,
        "peer_concurrency": options.concurrency,
        "versions": {"django": version("django"), **virtualenvs.pins(PINS)},
        "problems": [],
    }


def _rate(turns: list[Turn]) -> float:
    return sum(turn.tasks for turn in turns) / sum(turn.seconds for turn in turns)


def _cost(turns: list[Turn]) -> dict[str, float]:
    return milliseconds_each([cpu for turn in turns for cpu in turn.cpu], sum(turn.tasks for turn in turns))


def _open_share(turns: list[Turn]) -> float:
    return round(sum(turn.open_seconds for turn in turns) / sum(turn.seconds for turn in turns), 2)
