"""Time from a kill (SIGKILL) of a process to the next update of live matches, which are polled every 2.5 s.

Killed in turns, --times each: Chromium, one of its renderers, Playwright's driver, and the worker, which our supervisor
starts again. Most matches are read directly and do not need the browser. A few of another source are always visited
(--visited), so that the recovery of the browser is measured too.

Measured is the time from the kill to the commit of a reading captured after it, including the wait for the next poll.
`next_update_s` has every match after every kill, `next_visit_s` the always visited matches, `all_matches_s` the slowest
match of each kill. `browser_p95_s` is the highest 95th percentile of the first two over the three ways to lose a
browser; `worker_p95_s` that of all matches after a kill of the worker.
"""

from __future__ import annotations

import random
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks import process_kills, results
from benchmarks.benches.live import WARM_UP_SECONDS_A_MATCH, steady
from benchmarks.environment import DATABASES, BenchEnvironment, bench_environment
from benchmarks.progress import say, wait_until

SUMMARY = "time from a kill of browser, renderer, driver or worker to the next good update"
VISITED_SITE = "sofascore"
LONGEST_SECONDS = 60.0  # longer counts as not recovered
POLL_SECONDS = 0.04


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=20, help="kills of each kind (%(default)s)")
    parser.add_argument("--matches", type=int, default=50, help="live matches (%(default)s)")
    parser.add_argument(
        "--visited", type=int, default=3, help="those that are always visited, among them (%(default)s)"
    )
    parser.add_argument(
        "--kinds", nargs="+", choices=process_kills.KINDS, default=process_kills.KINDS, help="the processes to kill"
    )
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="speed of the matches; 1 is real time (%(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the moments of the kills (%(default)s)")


@dataclass(frozen=True)
class Recovery:
    """The seconds from one kill to the next update of each match, always visited ones separately."""

    kind: str
    direct: list[float]
    visited: list[float]
    missing: int  # matches without an update in time

    @property
    def slowest(self) -> float:
        return LONGEST_SECONDS if self.missing else max([*self.direct, *self.visited], default=0.0)


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    cricket = options.matches - options.visited
    with bench_environment(
        database=options.database,
        programme=f"mixed:{cricket}:{options.visited}",
        pace=options.pace,
        settings=steady(options.interval),
    ) as environment:
        start_system(environment, direct=cricket, visited=options.visited, workers=options.workers)
        recoveries = _kills(environment, options)
        return _result(options, recoveries)


def start_system(environment: BenchEnvironment, *, direct: int, visited: int, workers: int) -> None:
    """Starts a supervised system and waits for its first visits."""
    from benchmarks import polling
    from scraping.models import ReadWay, Source

    polling.set_up_source(max_open_tasks=direct)
    polling.add_matches(environment, up_to=direct)
    if visited:
        Source.objects.filter(key=VISITED_SITE).update(is_enabled=True, read_way=ReadWay.VISIT)
        polling.add_matches(environment, site=VISITED_SITE, up_to=visited)
    environment.start_engine(workers=workers, is_supervised=True)
    matches = direct + visited
    polling.wait_for_first_readings(environment, matches=matches, seconds=60 + WARM_UP_SECONDS_A_MATCH * matches)


def _kills(environment: BenchEnvironment, options: Namespace) -> list[Recovery]:
    moments, found = random.Random(options.seed), []
    order = [kind for _ in range(options.times) for kind in options.kinds]
    for number, kind in enumerate(order, 1):
        _wait_until_fresh(options.interval)
        time.sleep(moments.uniform(0, 1))  # kill at a random moment
        found.append(_kill(environment, kind))
        say(f"kill {number} of {len(order)}, {kind}: all matches updated after {found[-1].slowest:.1f} s")
    return found


def _wait_until_fresh(interval: float) -> None:
    from datetime import timedelta

    from django.utils import timezone

    from scraping.models import MatchRef

    def is_fresh() -> bool:
        oldest = timezone.now() - timedelta(seconds=2 * interval)
        return not MatchRef.objects.filter(captured_at__lt=oldest).exists()

    wait_until(is_fresh, seconds=LONGEST_SECONDS, what="every match up to date")


def _kill(environment: BenchEnvironment, kind: str) -> Recovery:
    from django.utils import timezone

    from scraping.models import MatchRef

    refs = dict(MatchRef.objects.values_list("pk", "source__key"))
    wait_until(
        lambda: process_kills.kill(environment, kind) is not None,
        seconds=30,
        what=f"a {kind} to kill",
        every_seconds=0.02,
    )
    killed_at, began = timezone.now(), time.monotonic()
    seconds: dict[int, float] = {}
    while len(seconds) < len(refs) and time.monotonic() - began < LONGEST_SECONDS:
        updated = MatchRef.objects.filter(captured_at__gt=killed_at).values_list("pk", flat=True)
        passed = time.monotonic() - began
        seconds |= {pk: passed for pk in updated if pk not in seconds}
        time.sleep(POLL_SECONDS)
    environment.check()
    return Recovery(
        kind,
        direct=[value for pk, value in seconds.items() if refs[pk] != VISITED_SITE],
        visited=[value for pk, value in seconds.items() if refs[pk] == VISITED_SITE],
        missing=len(refs) - len(seconds),
    )


def _result(options: Namespace, recoveries: list[Recovery]) -> dict[str, Any]:
    kinds = {kind: _of_kind([one for one in recoveries if one.kind == kind]) for kind in options.kinds}
    of_browsers = [kinds[kind] for kind in process_kills.BROWSER_KINDS if kind in kinds]
    waits = [one[name]["p95"] for one in of_browsers for name in ("next_update_s", "next_visit_s")]
    return {
        "browser_p95_s": max(waits, default=0.0),
        "worker_p95_s": kinds["worker"]["next_update_s"]["p95"] if "worker" in kinds else 0.0,
        "kinds": kinds,
        "matches": options.matches,
        "visited": options.visited,
        "times": options.times,
        "interval_seconds": options.interval,
        "database": options.database,
        "workers": options.workers,
        "pace": options.pace,
        "problems": [*_unrecovered(recoveries), *dead_tasks()],
    }


def _of_kind(recoveries: list[Recovery]) -> dict[str, Any]:
    return {
        "times": len(recoveries),
        "next_update_s": _spread(value for one in recoveries for value in (*one.direct, *one.visited)),
        "next_visit_s": _spread(value for one in recoveries for value in one.visited),
        "all_matches_s": _spread(one.slowest for one in recoveries),
        "first_match_s": _spread(min([*one.direct, *one.visited], default=LONGEST_SECONDS) for one in recoveries),
    }


def _spread(values: Iterable[float]) -> dict[str, float]:
    seen = list(values)
    percents = {f"p{percent}": round(results.percentile(seen, percent), 2) for percent in (50, 95)}
    return percents | {"max": round(max(seen, default=0.0), 2)}


def _unrecovered(recoveries: list[Recovery]) -> list[str]:
    return [
        f"{one.missing} matches had no update within {LONGEST_SECONDS:g} s of a kill ({one.kind})"
        for one in recoveries
        if one.missing
    ]


def dead_tasks() -> list[str]:
    """Returns dead tasks: kills of our own processes must not cause any."""
    from scraping.models import ScrapeTask, TaskState

    dead = ScrapeTask.objects.filter(state=TaskState.DEAD)
    return [f"task {task.pk} died: {task.reason}" for task in dead[:10]]
