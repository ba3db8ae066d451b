"""How quickly /health answers, and how old its figures are, while many live matches are polled.

A process of its own asks twenty times a second, each time over a fresh connection; then as a probe would, once in a
while. The very first question finds nothing prepared. The age is that of the answer's `timestamp`, when it arrives.
"""

from __future__ import annotations

import json
import subprocess
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import results
from benchmarks.arena import DATABASES, Arena, arena
from benchmarks.benches.live import WARM_UP_SECONDS_A_MATCH, steady
from benchmarks.errors import BenchError
from benchmarks.progress import let_run, say
from victoryline.configuration import PROJECT_ROOT
from victoryline.lib.processes import python

if TYPE_CHECKING:
    from benchmarks.stretch import Stretch

SUMMARY = "how quickly /health answers while many live matches are polled"


@dataclass(frozen=True)
class Asked:
    milliseconds: list[float]
    ages: list[float]
    codes: dict[str, int]
    words: dict[str, int]

    def at(self, percent: float) -> float:
        return round(results.percentile(self.milliseconds, percent), 2)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="how long twenty times a second (%(default)s)")
    parser.add_argument("--rate", type=float, default=20.0, help="questions a second (%(default)s)")
    parser.add_argument("--probes", type=int, default=5, help="then so many, as a probe asks (%(default)s)")
    parser.add_argument("--probe-every", type=float, default=15.0, help="seconds between two of those (%(default)s)")
    parser.add_argument("--matches", type=int, default=300, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    programme = f"load:{options.matches}"
    with arena(database=options.database, programme=programme, pace=1.0, settings=steady(options.interval)) as place:
        return _measured(place, options)


def _measured(place: Arena, options: Namespace) -> dict[str, Any]:
    from benchmarks import stretch, watch

    watch.set_up_source(max_open_tasks=options.matches)
    watch.add_matches(place, up_to=options.matches)
    place.start_engine(workers=options.workers)
    url = f"{place.start_web()}/health"
    seconds = 60 + WARM_UP_SECONDS_A_MATCH * options.matches
    watch.wait_for_first_readings(place, matches=options.matches, seconds=seconds)
    first = _ask(place, url, every=1.0, times=1)
    say(f"asking {options.rate:g} times a second")
    asking = _start(place, url, every=1 / options.rate, times=int(options.seconds * options.rate))
    while_asked = stretch.measure(place, matches=options.matches, seconds=options.seconds)
    steadily = _end(asking)
    say(f"asking every {options.probe_every:g} s")
    asking = _start(place, url, every=options.probe_every, times=options.probes)
    let_run((options.probes - 1) * options.probe_every, what="probes", how_far=lambda: "", do=place.check)
    return _result(options, while_asked, first=first, steadily=steadily, probed=_end(asking))


def _start(place: Arena, url: str, *, every: float, times: int) -> subprocess.Popen[bytes]:
    command = python("-m", "benchmarks.sides.prober", url, "--every", str(every), "--times", str(times))
    return subprocess.Popen(command, cwd=PROJECT_ROOT, env=place.env, stdout=subprocess.PIPE)


def _end(asking: subprocess.Popen[bytes]) -> Asked:
    said, _ = asking.communicate(timeout=120)
    if asking.returncode:
        raise BenchError(f"whoever asks ended with {asking.returncode}")
    return Asked(**json.loads(said))


def _ask(place: Arena, url: str, *, every: float, times: int) -> Asked:
    return _end(_start(place, url, every=every, times=times))


def _result(
    options: Namespace, while_asked: Stretch, *, first: Asked, steadily: Asked, probed: Asked
) -> dict[str, Any]:
    codes = {
        code: steadily.codes.get(code, 0) + probed.codes.get(code, 0) for code in {**steadily.codes, **probed.codes}
    }
    figures = while_asked.figures()
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
            word: steadily.words.get(word, 0) + probed.words.get(word, 0) for word in {**steadily.words, **probed.words}
        },
        "rate": options.rate,
        "database": options.database,
        "live": {
            name: figures[name]
            for name in ("matches", "age_p50_s", "age_p95_s", "age_p99_s", "polls_a_second", "cpu_percent")
        },
        "problems": [*_unanswered(codes), *while_asked.problems()],
    }


def _unanswered(codes: dict[str, int]) -> list[str]:
    """Who asks for health gets an answer: 200, or 503 where the system is down, which it is not here."""
    return [f"{number} questions were answered with {code}" for code, number in codes.items() if code != "200"]
