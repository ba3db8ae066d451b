"""The lists of the admin over a million tasks, beside the list of django_dramatiq's admin over as many.

On SQLite and on PostgreSQL. A page is measured from the request to the rendered answer, inside the process, because
the network is the same for both. Ours have errors, audit, logs and events too, a tenth of the tasks each. The peer
counts its table for every page and sorts it by a column without an index; its list has no search.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.benches.journal import make_environment, second_database
from benchmarks.errors import BenchError
from benchmarks.peers import virtualenvs
from benchmarks.programs.bench_process import BenchProcess
from benchmarks.progress import say
from benchmarks.results import percentile
from scripts.test import clean_environment
from tests.servers import PostgresServer, ServerFailedError
from victoryline.lib.processes import python, remove_tree

SUMMARY = "lists of the admin over a million tasks, against django_dramatiq's"
PEER = "django-dramatiq"
PINS = Path(virtualenvs.__file__).with_name("django-dramatiq.txt")
VENV = virtualenvs.FOLDER / "django-dramatiq-venv"
PEER_PROGRAM = Path(virtualenvs.__file__).with_name("django_dramatiq_program.py")
ENGINES = ("sqlite", "postgresql")
MOST_MS = 300.0

Took = dict[str, list[float]]  # milliseconds by page


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=1_000_000, help="tasks of each program (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="requests of each page (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    virtualenvs.ensure_installed(PEER, PINS, VENV)
    took: dict[str, dict[str, Took]] = {}
    for engine in ENGINES:  # one after the other: they would share the memory of the machine
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="vl-bench-"))
            stack.callback(remove_tree, folder)
            took[engine] = {
                name: _measure(one, options) for name, one in _start(stack, engine, folder, options).items()
            }
    return _result(options, took)


def _start(stack: ExitStack, engine: str, folder: Path, options: Namespace) -> dict[str, BenchProcess]:
    urls = {"ours": "", "peer": str(folder / "peer.sqlite3")}
    if engine == "postgresql":
        try:
            server = stack.enter_context(PostgresServer(durable=True))
        except ServerFailedError as error:
            raise BenchError(str(error)) from error
        urls = {"ours": server.url, "peer": second_database(server.url)}
    say(f"{engine}: filling {options.rows:,} rows for each program")
    ours = {**make_environment(folder / "ours", urls["ours"]), "DB_ANSWER_SECONDS": "600"}  # for the filling
    commands: dict[str, tuple[list[object], dict[str, str]]] = {
        "ours": ([*python("-m", "benchmarks.programs.console", "--rows", str(options.rows))], ours),
        "peer": (
            [VENV / "bin" / "python", "-P", PEER_PROGRAM, "--rows", options.rows, "--database", urls["peer"]],
            clean_environment(),
        ),
    }
    return {
        name: stack.enter_context(BenchProcess(f"{engine}-{name}", command, env=env, folder=folder, shares_stderr=True))
        for name, (command, env) in commands.items()
    }


def _measure(process: BenchProcess, options: Namespace) -> Took:
    process.request("go 1")  # templates are compiled, pages of the database are in memory
    took: Took = {}
    for number in range(1, options.rounds + 1):
        for name, milliseconds in process.request("go 1")["milliseconds"].items():
            took.setdefault(name, []).extend(milliseconds)
        if number % 5 == 0 or number == options.rounds:
            say(f"  {process.name}: {number} of {options.rounds} rounds")
    return took


def _result(options: Namespace, took: dict[str, dict[str, Took]]) -> dict[str, Any]:
    pages = {
        engine: {
            program: {name: round(percentile(each, 95), 1) for name, each in of_program.items()}
            for program, of_program in of_engine.items()
        }
        for engine, of_engine in took.items()
    }
    worst = {engine: max(of["ours"].values()) for engine, of in pages.items()}
    common = {engine: sorted(set(of["ours"]) & set(of["peer"])) for engine, of in pages.items()}
    ratio = {
        engine: round(
            sum(of["peer"][name] for name in common[engine]) / sum(of["ours"][name] for name in common[engine]), 2
        )
        for engine, of in pages.items()
    }
    slow = [
        f"{name} takes {p95:.0f} ms on {engine}, more than {MOST_MS:g}"
        for engine, of in pages.items()
        for name, p95 in of["ours"].items()
        if p95 > MOST_MS
    ]
    return {
        "p95_ms": worst,
        "tasks_ms": {engine: of["ours"]["tasks"] for engine, of in pages.items()},
        "peer_ms": {engine: of["peer"]["tasks"] for engine, of in pages.items()},
        "ratio": ratio,
        "unit": "milliseconds, p95 of a page",
        "pages": pages,
        "rows": options.rows,
        "rounds": options.rounds,
        "problems": slow,
    }
