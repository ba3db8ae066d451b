"""Latency of /health, and age of its figures, while many live matches are polled.

A process sends twenty requests a second, each over a new connection, then a few at the interval of a health check. The
very first request finds no prepared response. The age is that of the response's `timestamp` on arrival.
"""

from __future__ import annotations

import json
import subprocess
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import results
from benchmarks.benches.live import WARM_UP_SECONDS_A_MATCH, steady
from benchmarks.environment import DATABASES, BenchEnvironment, bench_environment
from benchmarks.errors import BenchError
from benchmarks.progress import let_run, say
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

if TYPE_CHECKING:
    from benchmarks.measurement import Measurement

SUMMARY = "latency of /health while many live matches are polled"


@dataclass(frozen=True)
class ProbeResult:
    milliseconds: list[float]
    ages: list[float]
    codes: dict[str, int]
    statuses: dict[str, int]

    def at(self, percent: float) -> float:
        return round(results.percentile(self.milliseconds, percent), 2)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="length at the full rate (%(default)s)")
    parser.add_argument("--rate", type=float, default=20.0, help="requests a second (%(default)s)")
    parser.add_argument(
        "--probes", type=int, default=5, help="requests at the interval of a health check (%(default)s)"
    )
    parser.add_argument("--probe-every", type=float, default=15.0, help="seconds between two of those (%(default)s)")
    parser.add_argument("--matches", type=int, default=300, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    programme = f"load:{options.matches}"
    with bench_environment(
        database=options.database, programme=programme, pace=1.0, settings=steady(options.interval)
    ) as environment:
        return _measured(environment, options)


def _measured(environment: BenchEnvironment, options: Namespace) -> dict[str, Any]:
    from benchmarks import measurement, polling

    polling.set_up_source(max_open_tasks=options.matches)
    polling.add_matches(environment, up_to=options.matches)
    environment.start_engine(workers=options.workers)
    url = f"{environment.start_web()}/health"
    seconds = 60 + WARM_UP_SECONDS_A_MATCH * options.matches
    polling.wait_for_first_readings(environment, matches=options.matches, seconds=seconds)
    first = _probe(environment, url, every=1.0, times=1)
    say(f"{options.rate:g} requests a second")
    probe = _start(environment, url, every=1 / options.rate, times=int(options.seconds * options.rate))
    measured = measurement.measure(environment, matches=options.matches, seconds=options.seconds)
    steadily = _end(probe)
    say(f"a request every {options.probe_every:g} s")
    probe = _start(environment, url, every=options.probe_every, times=options.probes)
    let_run((options.probes - 1) * options.probe_every, what="probes", progress=lambda: "", do=environment.check)
    return _result(options, measured, first=first, steadily=steadily, probed=_end(probe))


def _start(environment: BenchEnvironment, url: str, *, every: float, times: int) -> subprocess.Popen[bytes]:
    command = python("-m", "benchmarks.programs.health_probe", url, "--every", str(every), "--times", str(times))
    return subprocess.Popen(command, cwd=PROJECT_ROOT, env=environment.env, stdout=subprocess.PIPE)


def _end(probe: subprocess.Popen[bytes]) -> ProbeResult:
    output, _ = probe.communicate(timeout=120)
    if probe.returncode:
        raise BenchError(f"the probe ended with {probe.returncode}")
    return ProbeResult(**json.loads(output))


def _probe(environment: BenchEnvironment, url: str, *, every: float, times: int) -> ProbeResult:
    return _end(_start(environment, url, every=every, times=times))


def _result(
    options: Namespace, measured: Measurement, *, first: ProbeResult, steadily: ProbeResult, probed: ProbeResult
) -> dict[str, Any]:
    codes = {
        code: steadily.codes.get(code, 0) + probed.codes.get(code, 0) for code in {**steadily.codes, **probed.codes}
    }
    figures = measured.figures()
    return {
        "p50_ms": steadily.at(50),
        "p95_ms": steadily.at(95),
        "p99_ms": steadily.at(99),
        "max_ms": steadily.at(100),
        "first_ms": first.at(100),
        "probe_p50_ms": probed.at(50),
        "probe_max_ms": probed.at(100),
        "max_age_s": round(max([*steadily.ages, *probed.ages], default=0.0), 2),
        "asked": len(steadily.milliseconds) + len(probed.milliseconds),
        "codes": codes,
        "statuses": {
            status: steadily.statuses.get(status, 0) + probed.statuses.get(status, 0)
            for status in {**steadily.statuses, **probed.statuses}
        },
        "rate": options.rate,
        "database": options.database,
        "live": {
            name: figures[name]
            for name in ("matches", "age_p50_s", "age_p95_s", "age_p99_s", "polls_a_second", "cpu_percent")
        },
        "problems": [*_unanswered(codes), *measured.problems()],
    }


def _unanswered(codes: dict[str, int]) -> list[str]:
    """Returns responses other than 200: the system is never down here."""
    return [f"{number} requests got {code}" for code, number in codes.items() if code != "200"]
