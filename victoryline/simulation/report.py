"""The result of a night as text and as a JSON document."""

from __future__ import annotations

from collections import Counter
from typing import Any

from victoryline.simulation.night import NightResult

ROWS = {
    "age": "p50 {age_p50_s:.1f} s, p95 {age_p95_s:.1f} s, p99 {age_p99_s:.1f} s, max {age_max_s:.0f} s",
    "fresh": "{fresh_share:.2%} of the matches in play younger than 10 s",
    "uptime": "{uptime_share:.2%} of the live matches younger than 60 s",
    "polls": "{polls:,}; {errors} errors, {retries} retries",
    "work": "{deaths} dead, {rescues} rescued, {pauses} pauses, {restarts} scrapers replaced",
    "breakers": "opened {breakers_opened} times for a match, {source_breakers_opened} times for a source",
    "ladder": "{rungs}",
    "recovery": "{recoveries} silences ended, p95 {recovery_p95_s:.0f} s, max {recovery_max_s:.0f} s",
    "alerts": "{alerts} ({critical_alerts} critical)",
    "grade": "{grade} at the end after {grade_changes} changes",
    "faults": "{fault_kinds}",
}


def document(result: NightResult) -> dict[str, Any]:
    return {
        "seed": result.script.seed,
        "faults": result.script.faults,
        "fault_kinds": dict(sorted(Counter(fault.kind.value for fault in result.world.faults.all).items())),
        **result.figures,
        "violations": [{"t": round(one.t, 1), "rule": one.rule, "detail": one.detail} for one in result.violations],
    }


def text(result: NightResult) -> str:
    found = document(result)
    listed = {name: _listed(value) if isinstance(value, dict) else value for name, value in found.items()}
    size = f"{found['matches']} matches, {len(result.world.sources)} sources, {found['hours']:g} h"
    lines = [f"Night {found['seed']}: {size}, {found['faults']} faults ({len(result.world.faults.all)})", ""]
    lines += [f"  {name:<12}{row.format(**listed)}" for name, row in ROWS.items()]
    if not result.violations:
        return "\n".join([*lines, "", "  No rule was violated."]) + "\n"
    lines += ["", f"  {len(result.violations)} violations (repeat with --seed {found['seed']}):"]
    return "\n".join([*lines, *(f"  {violation}" for violation in result.violations)]) + "\n"


def _listed(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ').lower()} {number}" for name, number in numbers.items()) or "none"
