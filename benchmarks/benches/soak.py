"""Leftovers of many kills and recycled browsers: memory, processes, open files, temporary folders.

Killed in turns (SIGKILL): Chromium, one of its renderers, Playwright's driver. Two matches of another source are always
visited, so that the browser reaches its page limit (BROWSER_MAX_PAGES is low) and is replaced at least every two
minutes. Ages, memory, processes, open files and temporary folders are sampled; at the end they must be as at the
beginning. The slope is the least-squares fit of the memory after the first minute: of all processes, and of the Python
processes alone.
"""

from __future__ import annotations

import itertools
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import process_kills
from benchmarks.benches.live import steady
from benchmarks.benches.recovery import dead_tasks, start_system
from benchmarks.environment import DATABASES, BenchEnvironment, bench_environment
from benchmarks.progress import let_run, say

if TYPE_CHECKING:
    from benchmarks.sampler import ResourceSample, Sampler

SUMMARY = "memory, processes, files and folders over many minutes of kills and recycled browsers"
WARM_UP_SECONDS = 60.0  # memory of the warm-up is not part of the slope
QUIET_SECONDS = 15.0  # after the last kill
# A pool may have opened a few more connections, and a spare renderer may be there that was not at the beginning.
MAY_GROW = {"processes": 4, "files": 24, "folders": 2}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (%(default)s)")
    parser.add_argument("--matches", type=int, default=100, help="live matches (%(default)s)")
    parser.add_argument(
        "--visited", type=int, default=2, help="those that are always visited, among them (%(default)s)"
    )
    parser.add_argument("--crash-every", type=float, default=60.0, help="seconds between two kills (%(default)s)")
    parser.add_argument(
        "--recycle-pages", type=int, default=36, help="pages before a browser is recycled (%(default)s)"
    )
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="speed of the matches; 1 is real time (%(default)s)")


@dataclass(frozen=True)
class IdleResources:
    """Resources of an idle system: the minimum of several samples, because an open page is no leak."""

    processes: int
    files: int
    folders: int


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    direct = options.matches - options.visited
    with bench_environment(
        database=options.database,
        programme=f"mixed:{direct}:{options.visited}",
        pace=options.pace,
        settings={**steady(options.interval), "BROWSER_MAX_PAGES": str(options.recycle_pages)},
    ) as environment:
        start_system(environment, direct=direct, visited=options.visited, workers=options.workers)
        let_run(2 * options.interval, what="settling", progress=lambda: "", do=environment.check)
        return _measure(environment, options)


def _measure(environment: BenchEnvironment, options: Namespace) -> dict[str, Any]:
    from django.utils import timezone

    from benchmarks import polling
    from benchmarks.cpu import CpuTimes
    from benchmarks.sampler import Sampler, is_ours

    before = _idle_resources(environment)
    sampler, start, cpu = Sampler(environment), timezone.now(), CpuTimes.of(environment.trees())
    crash = Crashes(environment, sampler, every_seconds=options.crash_every, until=60 * options.minutes - QUIET_SECONDS)
    say(f"{options.minutes:g} minutes, with a kill every {options.crash_every:g} s")

    def sample() -> None:
        sampler.sample()
        crash()

    let_run(60 * options.minutes, what="soaking", progress=lambda: _progress(sampler), do=sample)
    used, end = cpu.until(CpuTimes.of(environment.trees())), timezone.now()
    sampler.sample_resources()
    say("idle: counting leftovers")
    after = _idle_resources(environment)
    for at, reason in recycled_since(start):
        sampler.mark_at((at - start).total_seconds(), "recycle", reason)
    polls = polling.between(start, end).polls
    return {
        **_figures(options, sampler),
        "before": asdict(before),
        "after": asdict(after),
        "polls_a_second": round(polls / used.elapsed, 1),
        "cpu_percent": round(sum(value for part, value in used.percent().items() if is_ours(part)), 1),
        "problems": [*_leftovers(before, after), *dead_tasks()],
    }


class Crashes:
    """Kills the next process when it is due; if there is none at the moment, at the next call."""

    def __init__(self, environment: BenchEnvironment, sampler: Sampler, *, every_seconds: float, until: float) -> None:
        self._environment, self._sampler = environment, sampler
        self._every_seconds, self._until = every_seconds, until
        self._kinds: Iterator[str] = itertools.cycle(process_kills.BROWSER_KINDS)
        self._next = next(self._kinds)
        self._due = every_seconds

    def __call__(self) -> None:
        if self._due <= self._sampler.now < self._until and process_kills.kill(self._environment, self._next):
            self._sampler.mark("crash", self._next)
            say(f"  killed: {self._next}")
            self._due += self._every_seconds
            self._next = next(self._kinds)


def recycled_since(start: Any) -> list[tuple[Any, str]]:
    """Returns the browsers that were replaced after their number of pages, from the audit."""
    from monitoring.audit import BROWSER_RECYCLE
    from monitoring.models import AuditEntry

    rows = AuditEntry.objects.filter(action_type=BROWSER_RECYCLE, timestamp__gte=start).order_by("timestamp")
    return [(row.timestamp, row.trigger_condition) for row in rows if "pages" in row.trigger_condition]


def _idle_resources(environment: BenchEnvironment) -> IdleResources:
    from benchmarks.sampler import sample_resources

    samples: list[ResourceSample] = []
    for _ in range(6):
        samples.append(sample_resources(environment))
        time.sleep(0.7)

    def least(of: Callable[[ResourceSample], int]) -> int:
        return min(of(sample) for sample in samples)

    return IdleResources(least(lambda one: one.processes), least(lambda one: one.files), least(lambda one: one.folders))


def _progress(sampler: Sampler) -> str:
    kills = sum(mark.kind == "crash" for mark in sampler.marks)
    return f"{sampler.progress()}, {kills} kills"


def _figures(options: Namespace, sampler: Sampler) -> dict[str, Any]:
    from benchmarks.pictures import picture

    kills = [mark.what for mark in sampler.marks if mark.kind == "crash"]
    recycles = sum(mark.kind == "recycle" for mark in sampler.marks)
    title = f"{options.matches} live matches, {len(kills)} kills, {recycles} recycled browsers"
    return {
        "matches": options.matches,
        "minutes": options.minutes,
        "kills": {kind: kills.count(kind) for kind in process_kills.BROWSER_KINDS},
        "recycles": recycles,
        **sampler.figures(),
        **_slopes(sampler),
        "database": options.database,
        "interval_seconds": options.interval,
        "workers": options.workers,
        "visited": options.visited,
        "picture": picture(title, age_s=5, memory_mb=1536),
        "series": sampler.series(),
    }


def _slopes(sampler: Sampler) -> dict[str, float]:
    from benchmarks.sampler import slope_an_hour

    late = [one for one in sampler.resource_samples if one.at >= WARM_UP_SECONDS]
    everything = [(one.at, one.memory / 2**20) for one in late]
    python = ("worker", "scheduler", "engine")
    own = [(one.at, sum(one.memory_bytes.get(part, 0) for part in python) / 2**20) for one in late]
    found = {}
    for name, points in (("memory", everything), ("python_memory", own)):
        slope, mean = slope_an_hour(points), sum(value for _, value in points) / max(1, len(points))
        found[f"{name}_slope_mb_an_hour"] = round(slope, 1)
        found[f"{name}_slope_percent_an_hour"] = round(100 * slope / mean, 1) if mean else 0.0
    return found


def _leftovers(before: IdleResources, after: IdleResources) -> list[str]:
    return [
        f"{name}: {asdict(before)[name]} at the beginning, {asdict(after)[name]} at the end"
        for name, room in MAY_GROW.items()
        if asdict(after)[name] > asdict(before)[name] + room
    ]
