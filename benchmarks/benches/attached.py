"""Age of the data of matches without JSON endpoints: their pages stay open, update themselves and are polled.

In addition to ages, memory and CPU the result has the number of page loads during the measurement (none, if all is
well) and the memory of an open page.
"""

from __future__ import annotations

import contextlib
from argparse import ArgumentParser, Namespace
from typing import Any

import psutil

from benchmarks.benches.live import steady
from benchmarks.environment import DATABASES, BenchEnvironment, bench_environment
from benchmarks.progress import let_run, say

SUMMARY = "age of the data of matches without JSON endpoints, with memory and CPU"
SITE = "board"
WARM_UP_SECONDS_A_MATCH = 2.0
AGE_SECONDS, MEMORY_MB = 5, 2500  # the bounds


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (%(default)s)")
    parser.add_argument("--matches", type=int, default=50, help="live matches, one open page each (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="speed of the matches; 1 is real time (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    with bench_environment(
        database=options.database,
        programme=f"board:{options.matches}",
        pace=options.pace,
        settings=steady(options.interval),
    ) as environment:
        return _measure(environment, options)


def _measure(environment: BenchEnvironment, options: Namespace) -> dict[str, Any]:
    from benchmarks import measurement, polling
    from scraping.models import Source

    Source.objects.exclude(key=SITE).update(is_enabled=False)
    Source.objects.filter(key=SITE).update(is_enabled=True, max_concurrency=options.matches)
    polling.add_matches(environment, site=SITE, up_to=options.matches)
    say(f"{options.matches} matches: opening their pages")
    environment.start_engine(workers=options.workers)
    polling.wait_for_first_readings(
        environment, matches=options.matches, seconds=60 + WARM_UP_SECONDS_A_MATCH * options.matches
    )
    let_run(2 * options.interval, what="settling", progress=lambda: "", do=environment.check)
    loaded = _pages_loaded(environment)
    found = measurement.measure(environment, matches=options.matches, seconds=options.seconds)
    page_mb = round(_renderers_mb(environment) / options.matches, 1)
    return _result(options, found, loads=_pages_loaded(environment) - loaded, page_mb=page_mb)


def _pages_loaded(environment: BenchEnvironment) -> int:
    return int(environment.stadium.requests()["sites"][SITE]["targets"].get("page", 0))


def _renderers_mb(environment: BenchEnvironment) -> float:
    """Memory of the processes that hold pages; several pages share one."""
    held = 0
    for process in environment.trees().get("browser", []):
        with contextlib.suppress(psutil.Error):
            if "--type=renderer" in process.cmdline():
                held += process.memory_full_info().pss
    return held / 2**20


def _result(options: Namespace, found: Any, *, loads: int, page_mb: float) -> dict[str, Any]:
    from benchmarks.pictures import picture

    problems = found.problems()
    if loads > options.matches // 10:
        problems.append(f"pages were loaded {loads} times: they did not stay open")
    return {
        **found.figures(),
        "pages_loaded": loads,
        "memory_mb_a_page": page_mb,
        "database": options.database,
        "interval_seconds": options.interval,
        "pace": options.pace,
        "workers": options.workers,
        "picture": picture(
            f"{options.matches} open pages, polled every {options.interval:g} s",
            age_s=AGE_SECONDS,
            memory_mb=MEMORY_MB,
        ),
        "series": found.sampler.series(),
        "problems": problems,
    }
