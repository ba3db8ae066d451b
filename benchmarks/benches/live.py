"""Age of the data of many live matches, each polled every 2.5 seconds, and the cost of it.

The age is sampled twice a second for every match: the time since the reading that is served. Memory is that of workers,
scheduler, browsers and drivers. The same system is first measured with fewer matches (--before): `cost_ratio` is the
CPU time of one poll with all matches divided by that with the fewest, including servers and stadium; `cost_ratio_ours`
without them.

With `--mode in_page` the site refuses every client but a browser, and the engine learns to make its requests in a page.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from benchmarks.environment import DATABASES, BenchEnvironment, bench_environment
from benchmarks.progress import let_run, say

if TYPE_CHECKING:
    from benchmarks.measurement import Measurement

SUMMARY = "age of the data of many live matches, with memory and CPU"
WARM_UP_SECONDS_A_MATCH = 2.0
SITE = "crex"
MATCHES = {"direct": 300, "in_page": 100}  # by mode


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=180.0, help="how long with all matches (%(default)s)")
    parser.add_argument("--matches", type=int, help="live matches, at most 400 (300; 100 in a page)")
    parser.add_argument("--mode", choices=MATCHES, default="direct", help="of the reads (%(default)s)")
    parser.add_argument("--before", type=int, nargs="*", default=[10, 100], help="fewer matches, first (%(default)s)")
    parser.add_argument("--before-seconds", type=float, default=40.0, help="how long with each of those (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="speed of the matches; 1 is real time (%(default)s)")


def run(options: Namespace) -> dict[str, Any]:
    options.matches = options.matches or MATCHES[options.mode]
    differing = (options.mode != "direct" and options.mode, options.database != DATABASES[0] and options.database)
    options.variant = "-".join(filter(None, differing))
    with bench_environment(
        database=options.database,
        programme=f"load:{options.matches}",
        pace=options.pace,
        settings=steady(options.interval),
        browser_only=() if options.mode == "direct" else (SITE,),
    ) as environment:
        measurements = _measurements(environment, options)
        return _result(options, measurements)


def steady(interval_seconds: float) -> dict[str, str]:
    """Returns settings with one interval for all matches, so that quiet matches do not change the figures.

    The match list of the source is not read: the bench adds the matches.
    """
    return {
        "POLLING_INTERVAL_SECONDS": f"{interval_seconds:g}",
        "ENABLE_ADAPTIVE_POLLING": "false",
        "DISCOVERY_INTERVAL_SECONDS": "86400",
    }


def _measurements(environment: BenchEnvironment, options: Namespace) -> list[Measurement]:
    from benchmarks import measurement, polling

    polling.set_up_source(max_open_tasks=options.matches)
    steps = [*sorted(number for number in options.before if number < options.matches), options.matches]
    found: list[Measurement] = []
    for number in steps:
        say(f"{number} matches: first visits")
        polling.add_matches(environment, up_to=number)
        if not found:
            environment.start_engine(workers=options.workers)
        polling.wait_for_first_readings(environment, matches=number, seconds=60 + WARM_UP_SECONDS_A_MATCH * number)
        let_run(2 * options.interval, what="settling", progress=lambda: "", do=environment.check)
        seconds = options.seconds if number == options.matches else options.before_seconds
        found.append(measurement.measure(environment, matches=number, seconds=seconds))
    return found


def _result(options: Namespace, measurements: list[Measurement]) -> dict[str, Any]:
    from benchmarks.pictures import picture

    first, last = measurements[0], measurements[-1]
    return {
        **last.figures(),
        "cost_ratio": _ratio(last.cost["all"], first.cost["all"]),
        "cost_ratio_ours": _ratio(last.cost["ours"], first.cost["ours"]),
        "fewer": [one.figures() for one in measurements[:-1]],
        "database": options.database,
        "interval_seconds": options.interval,
        "pace": options.pace,
        "workers": options.workers,
        "picture": picture(
            f"{last.matches} live matches, polled every {options.interval:g} s", age_s=5, memory_mb=1536
        ),
        "series": last.sampler.series(),
        "mode": options.mode,
        "problems": [*(problem for one in measurements for problem in one.problems()), *_other_modes(options.mode)],
    }


def _other_modes(mode: str) -> list[str]:
    """Returns a problem if matches were read in another mode at last."""
    from django.db.models import Count

    from scraping.models import MatchRef

    others = MatchRef.objects.filter(is_watched=True).exclude(read_mode=mode).order_by()
    counts = others.values_list("read_mode").annotate(Count("pk"))
    return [f"{number} matches were read by mode {other or 'none'!r} at last" for other, number in counts]


def _ratio(one: float, other: float) -> float:
    return round(one / other, 2) if other else 0.0
