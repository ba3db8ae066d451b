"""How old the data is: many live matches, each polled every 2.5 seconds, for a time; and what that costs.

The age is what a consumer would see: asked twice a second, for every match, the time since the reading that is served.
"""

from __future__ import annotations

import contextlib
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field
from typing import Any

import psutil
from django.db.models import Sum
from django.utils import timezone

from benchmarks import results
from benchmarks.arena import DATABASES, Arena, arena
from benchmarks.cpu import CpuMark
from benchmarks.progress import let_run, say

SUMMARY = "age of the data of many live matches, with memory and CPU"
WARM_UP_SECONDS_A_MATCH = 2.0
OURS = ("worker", "scheduler", "engine", "browser", "driver")  # what memory and CPU are counted of


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (%(default)s)")
    parser.add_argument("--matches", type=int, default=300, help="live matches, at most 400 (%(default)s)")
    parser.add_argument("--interval", type=float, default=2.5, help="seconds between two polls (%(default)s)")
    parser.add_argument("--database", choices=DATABASES, default=DATABASES[0], help="(%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes (%(default)s)")
    parser.add_argument("--pace", type=float, default=1.0, help="how fast the matches move; 1 is life (%(default)s)")


@dataclass
class Ages:
    """What was seen while it ran."""

    place: Arena
    seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0

    def look(self) -> None:
        from scraping.models import Match

        self.place.check()
        moment = timezone.now()
        seen = Match.objects.live().exclude(last_scraper_update=None).values_list("last_scraper_update", flat=True)
        self.seconds += [(moment - at).total_seconds() for at in seen if at is not None]
        self.peak_bytes = max(self.peak_bytes, memory_bytes(self.place))


def memory_bytes(place: Arena) -> int:
    """Of workers, schedulers and browsers; pages that processes share are divided among them (PSS)."""
    total = 0
    for part, processes in place.trees().items():
        if part.partition("-")[0] in OURS:
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    total += process.memory_full_info().pss
    return total


def run(options: Namespace) -> dict[str, Any]:
    options.variant = "" if options.database == DATABASES[0] else options.database
    # Not adaptive: every match at the same interval, or the figure would say how quiet the matches were.
    settings = {"POLLING_INTERVAL_SECONDS": f"{options.interval:g}", "ENABLE_ADAPTIVE_POLLING": "false"}
    with arena(
        database=options.database, programme=f"load:{options.matches}", pace=options.pace, settings=settings
    ) as place:
        return _measure(place, options)


def _measure(place: Arena, options: Namespace) -> dict[str, Any]:
    from benchmarks import watch

    watch.set_up_source(max_open_tasks=options.matches)
    place.start_engine(workers=options.workers)
    watch.wait_for_first_readings(
        place, matches=options.matches, seconds=60 + WARM_UP_SECONDS_A_MATCH * options.matches
    )
    let_run(2 * options.interval, what="settling", how_far=lambda: "", do=place.check)
    say(f"measuring for {options.seconds:g} s")
    ages, updates, start, cpu = Ages(place), _updates(), timezone.now(), CpuMark.of(place.trees())
    let_run(options.seconds, what="measuring", how_far=lambda: _how_old(ages), do=ages.look)
    used, end = cpu.until(CpuMark.of(place.trees())).percent(), timezone.now()
    watch.pause(place)
    return _result(options, ages, watch.between(start, end), _commit_ms(updates), used)


def _updates() -> tuple[int, int]:
    from scraping.models import Scraper

    sums = Scraper.objects.aggregate(updates=Sum("total_updates"), milliseconds=Sum("latency_total_ms"))
    return sums["updates"] or 0, sums["milliseconds"] or 0


def _commit_ms(before: tuple[int, int]) -> float:
    """From the reading to the end of its transaction, on average."""
    updates, milliseconds = (after - earlier for after, earlier in zip(_updates(), before, strict=True))
    return round(milliseconds / updates, 1) if updates else 0.0


def _how_old(ages: Ages) -> str:
    return f"age p99 {results.percentile(ages.seconds, 99):.2f} s, {ages.peak_bytes / 2**20:.0f} MB"


def _result(options: Namespace, ages: Ages, window: Any, commit_ms: float, used: dict[str, float]) -> dict[str, Any]:
    problems = [f"{len(window.errors)} errors, the first: {window.errors[0]}"] if window.errors else []
    if window.matches < options.matches:
        problems.append(f"only {window.matches} of {options.matches} matches were polled")
    return {
        "matches": options.matches,
        **{f"age_p{percent}_s": round(results.percentile(ages.seconds, percent), 2) for percent in (50, 95, 99)},
        "age_max_s": round(max(ages.seconds, default=0.0), 2),
        "memory_mb": round(ages.peak_bytes / 2**20),
        "commit_ms": commit_ms,
        "cpu_percent": round(sum(value for part, value in used.items() if part.partition("-")[0] in OURS), 1),
        "cpu_percent_by_part": used,
        "polls_a_second": round(window.polls / options.seconds, 1),
        "poll_p50_ms": round(results.percentile(window.milliseconds, 50), 1),
        "poll_p95_ms": round(results.percentile(window.milliseconds, 95), 1),
        "database": options.database,
        "seconds": options.seconds,
        "interval_seconds": options.interval,
        "pace": options.pace,
        "workers": options.workers,
        "problems": problems,
    }
