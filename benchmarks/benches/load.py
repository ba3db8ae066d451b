"""Latency and errors of the API at 100 requests a second, for minutes, while matches are live.

Requests are sent at a fixed rate, and their latency counts from the planned time: 70 % match reads, half of them with
the last ETag, 15 % lists, 10 % events and deltas, the rest usage, /health and /status. In addition /health is requested
once a second over new connections, and for every new state of a match the time from its commit to the first response
that has it is measured (`lag`).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks import results
from benchmarks.benches.api import UNLIMITED
from benchmarks.benches.live import WARM_UP_SECONDS_A_MATCH, steady
from benchmarks.environment import BenchEnvironment, bench_environment
from benchmarks.errors import BenchError
from benchmarks.programs import commit_lag, open_loop_client
from benchmarks.progress import let_run, say, wait_until
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

if TYPE_CHECKING:
    from benchmarks.measurement import Measurement

SUMMARY = "latency, errors and age of the API at 100 requests a second while matches are live"
HEALTH_EVERY_SECONDS = 1.0
SETTLING_SECONDS = 10.0  # after the first visits gaps and line-ups are read
END_SECONDS = 60.0
LOG_SECONDS = 30.0
LATE_MS = 10.0  # a client later than this measures other load of the machine


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (%(default)s)")
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second (%(default)s)")
    parser.add_argument("--matches", type=int, default=100, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--consumers", type=int, default=20, help="consumers, used in rotation (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="speed of the matches; 1 is real time (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        environment = stack.enter_context(
            bench_environment(
                database="postgresql",
                programme=f"load:{options.matches}",
                pace=options.pace,
                settings=steady(options.interval) | UNLIMITED,
                has_commit_times=True,
            )
        )
        return _measured(environment, options, stack)


@dataclass(frozen=True)
class ClientResults:
    """The results of the client processes."""

    requests: dict[str, Any]
    lags: dict[str, Any]
    health: dict[str, Any]


def _measured(environment: BenchEnvironment, options: Namespace, stack: contextlib.ExitStack) -> dict[str, Any]:
    from benchmarks import consumers, measurement, polling
    from scraping.models import Match

    polling.set_up_source(max_open_tasks=options.matches)
    polling.add_matches(environment, up_to=options.matches)
    environment.start_engine(workers=options.workers)
    url = environment.start_web()
    warm_up = 60 + WARM_UP_SECONDS_A_MATCH * options.matches
    polling.wait_for_first_readings(environment, matches=options.matches, seconds=warm_up)
    parts = urlsplit(url)
    address = parts.hostname or "127.0.0.1", parts.port or 0
    tokens = consumers.fetch_tokens(address, consumers.make(options.consumers))
    watcher = consumers.fetch_tokens(address, consumers.make(1, prefix="lag-"))[0]
    ids = list(Match.objects.values_list("pk", flat=True))
    seconds = options.minutes * 60
    first = _end("probe", _start_health_probe(environment, f"{url}/health", 0.0))  # finds no prepared response
    let_run(SETTLING_SECONDS, what="settling", progress=lambda: "", do=environment.check)
    say(f"{options.rate:g} requests a second")
    processes = {
        "requests": _start(
            environment,
            open_loop_client.__name__,
            open_loop_client.RequestPlan(*address, ids, tokens, options.rate, seconds),
        ),
        "lags": _start(environment, commit_lag.__name__, commit_lag.RequestPlan(*address, watcher, seconds)),
        "health": _start_health_probe(environment, f"{url}/health", seconds),
    }
    for process in processes.values():
        stack.callback(process.kill)  # no effect on an ended process
    meanwhile = measurement.measure(environment, matches=options.matches, seconds=seconds)
    clients = ClientResults(**{name: _end(name, process) for name, process in processes.items()})
    found = _result(options, meanwhile, clients, unlogged=_unlogged(clients.requests["logged"]))
    return found | {"health_first_ms": round(max(first["milliseconds"], default=0.0), 1)}


def _start(
    environment: BenchEnvironment, module: str, plan: open_loop_client.RequestPlan | commit_lag.RequestPlan
) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        python("-m", module), cwd=PROJECT_ROOT, env=environment.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(plan)).encode())
    process.stdin.close()
    process.stdin = None  # or communicate() would write to it
    return process


def _start_health_probe(environment: BenchEnvironment, url: str, seconds: float) -> subprocess.Popen[bytes]:
    times = max(1, int(seconds / HEALTH_EVERY_SECONDS))
    command = python(
        *("-m", "benchmarks.programs.health_probe", url, "--every", str(HEALTH_EVERY_SECONDS), "--times", str(times))
    )
    return subprocess.Popen(command, cwd=PROJECT_ROOT, env=environment.env, stdout=subprocess.PIPE)


def _end(name: str, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    try:
        output, _ = process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise BenchError(f"{name} did not end in time") from None
    if process.returncode:
        raise BenchError(f"{name} ended with {process.returncode}")
    result: dict[str, Any] = json.loads(output)
    return result


def _unlogged(asked: int) -> list[str]:
    """Waits until every request is in the access log."""
    from benchmarks import consumers

    with contextlib.suppress(BenchError):
        wait_until(lambda: consumers.logged() >= asked, seconds=LOG_SECONDS, what="waiting for the access log")
    known = consumers.logged()
    return [] if known == asked else [f"the access log has {known} of {asked} requests"]


def _result(
    options: Namespace, meanwhile: Measurement, clients: ClientResults, *, unlogged: list[str]
) -> dict[str, Any]:
    by_kind: dict[str, list[float]] = clients.requests["milliseconds"]
    every = [value for values in by_kind.values() for value in values]
    live = meanwhile.figures()
    health = clients.health
    return {
        **_percentiles("", every),
        "max_ms": round(max(every, default=0.0), 1),
        "errors": clients.requests["error_count"],
        "requests": len(every),
        "statuses": clients.requests["statuses"],
        "matches": options.matches,
        **_percentiles("lag_", clients.lags["lags_ms"]),
        "lag_max_ms": round(max(clients.lags["lags_ms"], default=0.0), 1),
        "changes": len(clients.lags["lags_ms"]),
        **_percentiles("health_", health["milliseconds"]),
        "health_max_ms": round(max(health["milliseconds"], default=0.0), 1),
        "served_age_s": {f"p{each}": results.percentile(clients.requests["ages"], each) for each in (50, 95, 99)},
        "kinds": {
            kind: {"requests": len(values), **_percentiles("", values)} for kind, values in sorted(by_kind.items())
        },
        "crowd_late_p95_ms": round(results.percentile(clients.requests["late_ms"], 95), 2),
        "live": {
            name: live[name]
            for name in ("age_p50_s", "age_p99_s", "polls_a_second", "commit_ms", "cpu_percent_by_part")
        },
        "minutes": options.minutes,
        "rate": options.rate,
        "consumers": options.consumers,
        "workers": options.workers,
        "pace": options.pace,
        "problems": [*_problems(clients), *unlogged, *meanwhile.problems()],
    }


def _percentiles(prefix: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{prefix}p{each}_ms": round(results.percentile(values, each), 2) for each in (50, 95, 99)}


def _problems(clients: ClientResults) -> list[str]:
    found = [f"{clients.requests['error_count']} errors, the first: {one}" for one in clients.requests["errors"][:1]]
    found += [f"never served: {', '.join(clients.lags['never'][:5])}"] if clients.lags["never"] else []
    found += [] if clients.lags["lags_ms"] else ["no match has changed"]
    late = results.percentile(clients.requests["late_ms"], 95)
    found += [f"the machine was too busy: requests were sent up to {late:.0f} ms late (p95)"] if late > LATE_MS else []
    codes = {code: number for code, number in clients.health["codes"].items() if code != "200"}
    return found + [f"/health: {number} responses with {code}" for code, number in codes.items()]
