"""Cost of the scheduler's dispatch in a grown journal: a tick over 1 M task rows against one over 10 k.

A tick runs the real steps on PostgreSQL: rescue, open a task for every due match, send hints. Two databases on one
server, one small and one large, are filled alike with finished tasks; the ticks alternate in short turns. `ratio`
compares the medians.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.benches.journal import make_environment, second_database
from benchmarks.errors import BenchError
from benchmarks.programs.bench_process import BenchProcess
from benchmarks.progress import say
from benchmarks.results import percentile
from tests.servers import PostgresServer, ServerFailedError
from victoryline.lib.processes import python, remove_tree

SUMMARY = "the scheduler's dispatch with 1 M task rows against 10 k"
TICKS_A_TURN = 5
STEPS = ("all", "rescue", "open", "hint")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=30.0, help="ticks of both journals together (%(default)s)")
    parser.add_argument("--matches", type=int, default=300, help="live matches, all of them due (%(default)s)")
    parser.add_argument("--small", type=int, default=10_000, help="task rows of the small journal (%(default)s)")
    parser.add_argument("--large", type=int, default=1_000_000, help="task rows of the large journal (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="vl-bench-"))
        stack.callback(remove_tree, folder)
        try:
            server = stack.enter_context(PostgresServer(durable=True))
        except ServerFailedError as error:
            raise BenchError(str(error)) from error
        urls = {"small": server.url, "large": second_database(server.url)}
        processes = {}
        for name, url in urls.items():
            rows = getattr(options, name)
            say(f"filling the {name} journal: {rows:,} rows")
            command = python(
                "-m", "benchmarks.programs.dispatch", "--rows", str(rows), "--matches", str(options.matches)
            )
            env = {**make_environment(folder / name, url), "DB_ANSWER_SECONDS": "600"}  # for the filling
            process = BenchProcess(name, command, env=env, folder=folder, shares_stderr=True)
            processes[name] = stack.enter_context(process)
        return _result(options, _measure(processes, options.seconds))


def _measure(processes: dict[str, BenchProcess], seconds: float) -> dict[str, dict[str, list[float]]]:
    took: dict[str, dict[str, list[float]]] = {name: {step: [] for step in STEPS} for name in processes}
    say("warming up")
    for process in processes.values():
        process.request(f"go {TICKS_A_TURN}")
    spent, reported = 0.0, 0.0
    while spent < seconds:
        for name, process in processes.items():
            took_ms = process.request(f"go {TICKS_A_TURN}")["milliseconds"]
            for step in STEPS:
                took[name][step] += took_ms[step]
            spent += sum(took_ms["all"]) / 1000
        if spent - reported >= 5:
            reported = spent
            small, large = (percentile(each["all"], 50) for each in took.values())
            say(f"  {spent:.0f} of {seconds:g} s: a tick takes {small:.1f} ms (small), {large:.1f} ms (large)")
    return took


def _result(options: Namespace, took: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    def median(process: str, step: str) -> float:
        return percentile(took[process][step], 50)

    ratio = median("large", "all") / median("small", "all")
    return {
        "ratio": round(ratio, 2),
        "small_ms": round(median("small", "all"), 2),
        "large_ms": round(median("large", "all"), 2),
        "unit": "milliseconds a tick",
        "p95_ratio": round(percentile(took["large"]["all"], 95) / percentile(took["small"]["all"], 95), 2),
        "steps": {
            step: {process: round(median(process, step), 2) for process in took} for step in STEPS if step != "all"
        },
        "ticks": len(took["large"]["all"]),
        "small": options.small,
        "large": options.large,
        "matches": options.matches,
        "seconds": options.seconds,
        "problems": [] if ratio <= 1.5 else [f"dispatch takes {ratio:.2f} times as long, more than 1.5"],
    }
