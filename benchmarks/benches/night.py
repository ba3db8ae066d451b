"""Simulated match nights: the system's own steps, journal, workers and ingest, faults by seed. Do the rules hold?

One night in five is calm, two in five have the usual faults, two in five have many of them.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.night.scratch import simulate
from benchmarks.progress import say
from benchmarks.results import percentile

SUMMARY = "simulated match nights: violations, ages, uptime, recovery"
CALM, USUAL, HELL = "calm", "usual", "hell"
LEVELS = (USUAL, HELL, CALM, HELL, USUAL)
SEEDS = 20  # about 10 minutes on 2 cores


@dataclass(frozen=True)
class NightPlan:
    seed: int
    matches: int
    hours: float
    faults: str


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=SEEDS, help="nights (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (%(default)s)")
    parser.add_argument("--matches", type=int, default=0, help="in every night; 0: 4 to 8")
    parser.add_argument("--hours", type=float, default=0.5, help="length of a night (%(default)s)")
    parser.add_argument("--processes", type=int, default=0, help="nights at a time; 0: one for each core")


def run(options: Namespace) -> dict[str, Any]:
    seeds = range(options.first, options.first + options.seeds)
    plans = [plan_of(seed, matches=options.matches, hours=options.hours) for seed in seeds]
    results: list[dict[str, Any]] = []
    with ThreadPoolExecutor(options.processes or os.cpu_count()) as pool:
        for found in pool.map(lambda plan: simulate(asdict(plan)), plans):
            results.append(found)
            violations = sum(len(one["violations"]) for one in results)
            say(f"{len(results)} of {len(plans)} nights, {violations} violations")
    return summary(results)


def plan_of(seed: int, *, matches: int = 0, hours: float = 0.5) -> NightPlan:
    """Returns the options of a seed's night, always the same."""
    return NightPlan(seed, matches or 4 + seed * 3 % 5, hours, LEVELS[seed % len(LEVELS)])


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    violations = [(one["seed"], violation) for one in results for violation in one["violations"]]
    by_level = {level: [one for one in results if one["faults"] == level] for level in (CALM, USUAL, HELL)}
    return {
        "seeds": len(results),
        "violations": len(violations),
        "matches": sum(one["matches"] for one in results),
        "hours": round(sum(one["hours"] for one in results), 1),
        "polls": sum(one["polls"] for one in results),
        "violated_rules": dict(Counter(violation["rule"] for _, violation in violations)),
        "nights": {level: _figures(some) for level, some in by_level.items() if some},
        "problems": [f"seed {seed}: {one['rule']}: {one['detail']}" for seed, one in violations[:20]],
    }


def _figures(some: list[dict[str, Any]]) -> dict[str, Any]:
    def of(key: str) -> list[float]:
        return [one[key] for one in some]

    summed = ("errors", "deaths", "rescues", "pauses", "breakers_opened", "source_breakers_opened", "alerts")
    return {
        "nights": len(some),
        "age_p99_s": round(percentile(of("age_p99_s"), 50), 2),
        "fresh_share": round(sum(of("fresh_share")) / len(some), 5),
        "fresh_share_worst": round(min(of("fresh_share")), 5),
        "uptime_share": round(sum(of("uptime_share")) / len(some), 5),
        "recovery_p95_s": round(percentile([one["recovery_p95_s"] for one in some if one["recoveries"]], 95), 1),
        "recoveries": int(sum(of("recoveries"))),
        **{key: int(sum(of(key))) for key in summed},
        "ended_healthy": sum(one["grade"] == "HEALTHY" for one in some),
    }
