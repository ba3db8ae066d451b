"""Hundreds of simulated tournament nights: the real policies, made-up worlds, faults by seed. Do the rules always hold?

Every fifth night is calm and every fifth one hell; every twentieth has hundreds of matches for an hour, with the usual
trouble and hell in turn; and about one in seven has a source that can be asked less than it has matches.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.progress import say
from benchmarks.results import percentile

SUMMARY = "500 simulated tournament nights: violations, ages, uptime, alerts"
CALM, USUAL, HELL = "calm", "usual", "hell"


@dataclass(frozen=True)
class Plan:
    seed: int
    matches: int
    hours: float
    faults: str
    is_crowded: bool | None


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=500, help="nights (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (%(default)s)")
    parser.add_argument("--matches", type=int, default=0, help="in every night; 0: 8 to 20, and hundreds in some")
    parser.add_argument("--compared", type=int, default=2, help="nights through the database as well (%(default)s)")
    parser.add_argument("--processes", type=int, default=0, help="side by side; 0: one a core")


def run(options: Namespace) -> dict[str, Any]:
    plans = [plan_of(options.first + number, options.matches) for number in range(options.seeds)]
    told: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.processes or os.cpu_count()) as pool:
        for one in pool.map(_simulated, plans, chunksize=2):
            told.append(one)
            if len(told) % 25 == 0:
                say(f"{len(told)} of {len(plans)} nights, {sum(len(each['violations']) for each in told)} violations")
    return summary(plans, told, [_compared(options.first + number) for number in range(options.compared)])


def _compared(seed: int) -> dict[str, Any]:
    """A short night through the real steps as well: what keeps the simulator honest."""
    from victoryline.night import scratch

    say(f"seed {seed} through the database")
    return {"seed": seed, **scratch.compared(seed=seed, matches=6, hours=0.15, faults=HELL)}


def plan_of(seed: int, matches: int = 0) -> Plan:
    """A seed always means the same night, in the bench and in `simulate_night`'s options."""
    faults = {0: CALM, 1: HELL}.get(seed % 5, USUAL)
    if matches:
        return Plan(seed, matches, 2.5, faults, None)
    if seed % 20 == 9:
        return Plan(seed, 100 * (1 + seed // 20 % 3), 1.0, HELL if seed // 20 % 2 else USUAL, False)
    return Plan(seed, 8 + seed * 7 % 13, 2.5, faults, False if faults == CALM else None)


def _simulated(plan: Plan) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")
    import django

    django.setup()
    from victoryline.night import report
    from victoryline.night.engine import simulate
    from victoryline.night.world import Script

    script = Script(
        seed=plan.seed, matches=plan.matches, hours=plan.hours, faults=plan.faults, is_crowded=plan.is_crowded
    )
    return report.document(simulate(script))


def summary(plans: list[Plan], told: list[dict[str, Any]], compared: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    broken = [(one["seed"], violation) for one in told for violation in one["violations"]]
    by_level = {level: [one for one in told if one["faults"] == level] for level in (CALM, USUAL, HELL)}
    differences = [f"seed {one['seed']}: {each}" for one in compared for each in one["differences"]]
    return {
        "seeds": len(told),
        "violations": len(broken),
        "matches": sum(one["matches"] for one in told),
        "hours": round(sum(one["hours"] for one in told), 1),
        "polls": sum(one["polls"] for one in told),
        "broken_rules": dict(Counter(violation["rule"] for _, violation in broken)),
        "nights": {level: _figures(some) for level, some in by_level.items() if some},
        "compared": len(compared),
        "differences": len(differences),
        "problems": [*(f"seed {seed}: {one['rule']}: {one['what']}" for seed, one in broken[:20]), *differences],
    }


def _figures(some: list[dict[str, Any]]) -> dict[str, Any]:
    def of(key: str) -> list[float]:
        return [one[key] for one in some]

    return {
        "nights": len(some),
        "age_p99_s": round(percentile(of("age_p99_s"), 50), 2),
        "fresh_share": round(sum(of("fresh_share")) / len(some), 5),
        "fresh_share_worst": round(min(of("fresh_share")), 5),
        "uptime_share": round(sum(of("uptime_share")) / len(some), 5),
        "recovery_p95_s": round(percentile([one["recovery_p95_s"] for one in some if one["recoveries"]], 95), 1),
        "recoveries": int(sum(of("recoveries"))),
        "breakers_opened": int(sum(of("breakers_opened"))),
        "source_breakers_opened": int(sum(of("source_breakers_opened"))),
        "pauses": int(sum(of("pauses"))),
        "alerts": int(sum(of("alerts"))),
        "messages_an_hour_peak": int(max(of("messages_an_hour_peak"))),
        "ended_healthy": sum(one["grade"] == "HEALTHY" for one in some),
    }
