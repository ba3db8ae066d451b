"""What is left behind in the long run: many live matches, a kill every minute, a browser recycled again and again.

Killed in turns, by SIGKILL: Chromium, one of its renderers, Playwright's driver. Two matches of another source are
always visited, so that the browser wears out (BROWSER_MAX_PAGES is set low) and is replaced in good order between the
kills, at least every two minutes. Ages, memory, processes, open files and temporary folders are watched all the time;
at the end, when nobody has been killed for a while, they must be back where they were. The slope is that of the line of
least squares through the memory after the first minute: of everything, and of the Python processes alone.
"""

from __future__ import annotations

import itertools
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks import victims
from benchmarks.arena import DATABASES, Arena, arena
from benchmarks.benches.live import steady
from benchmarks.benches.recovery import dead_tasks, start_watch
from benchmarks.progress import let_run, say

if TYPE_CHECKING:
    from benchmarks.gauge import Gauge, Holding

SUMMARY = "memory, processes, files and folders over many minutes of kills and recycled browsers"
WARM_UP_SECONDS = 60.0  # what memory does then is no slope
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
    parser.add_argument("--recycle-pages", type=int, default=36, help="pages of a browser's life (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="how fast the matches move; 1 is life (%(default)s)")


@dataclass(frozen=True)
class Rest:
    """What a system at rest holds: the least of several looks, for a page that is just open is no leak."""

    processes: int
    files: int
    folders: int


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    direct = options.matches - options.visited
    with arena(
        database=options.database,
        programme=f"mixed:{direct}:{options.visited}",
        pace=options.pace,
        settings={**steady(options.interval), "BROWSER_MAX_PAGES": str(options.recycle_pages)},
    ) as place:
        start_watch(place, direct=direct, visited=options.visited, workers=options.workers)
        let_run(2 * options.interval, what="settling", how_far=lambda: "", do=place.check)
        return _measure(place, options)


def _measure(place: Arena, options: Namespace) -> dict[str, Any]:
    from django.utils import timezone

    from benchmarks import watch
    from benchmarks.cpu import CpuMark
    from benchmarks.gauge import Gauge, is_ours

    before = _rest(place)
    gauge, start, cpu = Gauge(place), timezone.now(), CpuMark.of(place.trees())
    crash = Crashes(place, gauge, every_seconds=options.crash_every, until=60 * options.minutes - QUIET_SECONDS)
    say(f"{options.minutes:g} minutes, with a kill every {options.crash_every:g} s")

    def look() -> None:
        gauge.look()
        crash()

    let_run(60 * options.minutes, what="soaking", how_far=lambda: _how_far(gauge), do=look)
    used, end = cpu.until(CpuMark.of(place.trees())), timezone.now()
    gauge.hold()
    say("at rest: looking at what is left")
    after = _rest(place)
    for at, reason in recycled_since(start):
        gauge.mark_at((at - start).total_seconds(), "recycle", reason)
    polls = watch.between(start, end).polls
    return {
        **_figures(options, gauge),
        "before": asdict(before),
        "after": asdict(after),
        "polls_a_second": round(polls / used.elapsed, 1),
        "cpu_percent": round(sum(value for part, value in used.percent().items() if is_ours(part)), 1),
        "problems": [*_leftovers(before, after), *dead_tasks()],
    }


class Crashes:
    """Called all the time; kills when it is time to. Where there is nobody to kill, at the next call."""

    def __init__(self, place: Arena, gauge: Gauge, *, every_seconds: float, until: float) -> None:
        self._place, self._gauge = place, gauge
        self._every_seconds, self._until = every_seconds, until
        self._kinds: Iterator[str] = itertools.cycle(victims.BROWSER_KINDS)
        self._next = next(self._kinds)
        self._due = every_seconds

    def __call__(self) -> None:
        if self._due <= self._gauge.now < self._until and victims.kill(self._place, self._next):
            self._gauge.mark("crash", self._next)
            say(f"  killed: {self._next}")
            self._due += self._every_seconds
            self._next = next(self._kinds)


def recycled_since(start: Any) -> list[tuple[Any, str]]:
    """Browsers that were replaced because they were worn, from the audit."""
    from monitoring.audit import BROWSER_RECYCLE
    from monitoring.models import AuditEntry

    rows = AuditEntry.objects.filter(action_type=BROWSER_RECYCLE, timestamp__gte=start).order_by("timestamp")
    return [(row.timestamp, row.trigger_condition) for row in rows if "pages" in row.trigger_condition]


def _rest(place: Arena) -> Rest:
    from benchmarks.gauge import hold

    looks: list[Holding] = []
    for _ in range(6):
        looks.append(hold(place))
        time.sleep(0.7)

    def least(of: Callable[[Holding], int]) -> int:
        return min(of(look) for look in looks)

    return Rest(least(lambda one: one.processes), least(lambda one: one.files), least(lambda one: one.folders))


def _how_far(gauge: Gauge) -> str:
    kills = sum(mark.kind == "crash" for mark in gauge.marks)
    return f"{gauge.how_far()}, {kills} kills"


def _figures(options: Namespace, gauge: Gauge) -> dict[str, Any]:
    from benchmarks.pictures import picture

    kills = [mark.what for mark in gauge.marks if mark.kind == "crash"]
    recycles = sum(mark.kind == "recycle" for mark in gauge.marks)
    title = f"{options.matches} live matches, {len(kills)} kills, {recycles} recycled browsers"
    return {
        "matches": options.matches,
        "minutes": options.minutes,
        "kills": {kind: kills.count(kind) for kind in victims.BROWSER_KINDS},
        "recycles": recycles,
        **gauge.figures(),
        **_slopes(gauge),
        "database": options.database,
        "interval_seconds": options.interval,
        "workers": options.workers,
        "visited": options.visited,
        "picture": picture(title, age_s=5, memory_mb=1536),
        "series": gauge.series(),
    }


def _slopes(gauge: Gauge) -> dict[str, float]:
    from benchmarks.gauge import slope_an_hour

    late = [one for one in gauge.holdings if one.at >= WARM_UP_SECONDS]
    everything = [(one.at, one.memory / 2**20) for one in late]
    python = ("worker", "scheduler", "engine")
    own = [(one.at, sum(one.memory_bytes.get(part, 0) for part in python) / 2**20) for one in late]
    found = {}
    for name, points in (("memory", everything), ("python_memory", own)):
        slope, mean = slope_an_hour(points), sum(value for _, value in points) / max(1, len(points))
        found[f"{name}_slope_mb_an_hour"] = round(slope, 1)
        found[f"{name}_slope_percent_an_hour"] = round(100 * slope / mean, 1) if mean else 0.0
    return found


def _leftovers(before: Rest, after: Rest) -> list[str]:
    return [
        f"{name}: {asdict(before)[name]} at the beginning, {asdict(after)[name]} at the end"
        for name, room in MAY_GROW.items()
        if asdict(after)[name] > asdict(before)[name] + room
    ]
