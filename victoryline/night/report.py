"""A night told to people: a table, a line of how old the data was, and what was broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from victoryline.night.engine import Story
from victoryline.night.measures import Sample

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 72
LOG_STEPS = (2.5, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0)  # seconds: one bar higher from each on


def text(story: Story) -> str:
    figures, script = story.figures, story.script
    size = f"{figures.matches} matches, {len(story.sources)} sources, {script.hours:g} h"
    lines = [f"Night {script.seed}: {size}, {script.faults} faults ({len(story.faults)})", ""]
    lines += [f"  {name:<12}{value}" for name, value in _rows(story)]
    lines += ["", *_sources(story), "", *_curves(story.measures.samples), "", *_verdict(story)]
    return "\n".join(lines) + "\n"


def _rows(story: Story) -> list[tuple[str, str]]:
    f = story.figures
    kinds = Counter(fault.kind.value for fault in story.faults)
    rungs = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in f.rungs.items()) or "none"
    return [
        ("age", f"p50 {f.age_p50_s:.1f} s, p95 {f.age_p95_s:.1f} s, p99 {f.age_p99_s:.1f} s, max {f.age_max_s:.0f} s"),
        ("fresh", f"{f.fresh_share:.2%} of the time in play younger than 10 s"),
        ("uptime", f"{f.uptime_share:.2%} of all scrapers, {f.worst_uptime_share:.2%} of the one that fared worst"),
        (
            "polls",
            f"{f.polls:,}, {f.polls_per_second_peak:.1f} a second at most; {f.errors} errors, {f.retries} retries",
        ),
        ("work", f"{f.deaths} dead, {f.rescues} rescued, {f.pauses} pauses, {f.restarts} scrapers replaced"),
        ("breakers", f"opened {f.breakers_opened} times for a match, {f.source_breakers_opened} times for a source"),
        ("ladder", rungs),
        ("recovery", f"{f.recoveries} silences ended, p95 {f.recovery_p95_s:.0f} s, max {f.recovery_max_s:.0f} s"),
        (
            "alerts",
            f"{f.alerts} ({f.critical_alerts} critical), {f.messages} messages, {f.messages_an_hour_peak} an hour",
        ),
        ("grade", f"{f.grade} at the end after {f.grade_changes} changes"),
        ("faults", ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items())) or "none"),
    ]


def _sources(story: Story) -> list[str]:
    lines = [f"  {'source':<12}{'matches':>8}{'at once':>9}{'used':>6}{'polls':>10}{'retries':>9}{'opened':>8}"]
    lines += [
        f"  {site.row.key:<12}{len(site.watches):>8}{site.row.max_concurrency:>9}{site.peak:>6}{site.polls:>10,}"
        f"{site.retries:>9}{site.openings:>8}"
        for site in story.sources
    ]
    return lines


def _curves(samples: Sequence[Sample]) -> list[str]:
    """Each column the worst of its stretch; the height of ages goes up with 2.5, 5, 10, 20, 60, 120 and 300 s."""
    loads = [sum(one.polls) for one in samples]
    top = max(loads, default=0) or 1
    return [
        f"  {'p50':<12}{_line([_age_bar(one.p50) for one in samples])}",
        f"  {'p95':<12}{_line([_age_bar(one.p95) for one in samples])}",
        f"  {'oldest':<12}{_line([_age_bar(one.max) for one in samples])}",
        f"  {'load':<12}{_line([load * (len(BARS) - 1) // top for load in loads])}",
        f"  {'grade':<12}{_line([GRADE_BARS.get(one.grade, 0) for one in samples])}",
    ]


GRADE_BARS = {"HEALTHY": 0, "RECOVERING": 2, "DEGRADED": 4, "FAILING": 7}


def _age_bar(age: float) -> int:
    return sum(age >= step for step in LOG_STEPS)


def _line(heights: Sequence[int]) -> str:
    if not heights:
        return ""
    width = min(WIDTH, len(heights))
    cuts = [len(heights) * column // width for column in range(width + 1)]
    return "".join(BARS[max(heights[begin:end])] for begin, end in pairwise(cuts))


def _verdict(story: Story) -> list[str]:
    if not story.violations:
        return ["  Nothing was broken."]
    return [
        f"  {len(story.violations)} violations (replay with --seed {story.script.seed}):",
        *(f"  {violation}" for violation in story.violations),
    ]


def comparison(found: dict[str, Any]) -> str:
    """Both ways of living through a night side by side."""
    real, pure = found["database"], found["simulator"]
    lines = [f"  {'':<24}{'database':>10}{'simulator':>11}"]
    lines += [
        f"  {name.replace('_', ' '):<24}{real[name]:>10,}{pure[name]:>11,}" for name in real if name != "polls_by_match"
    ]
    return "\n".join([*lines, "", *(f"  {one}" for one in found["differences"] or ["They agree."])]) + "\n"


def document(story: Story) -> dict[str, Any]:
    return {
        "seed": story.script.seed,
        "faults": story.script.faults,
        **story.figures.as_document(),
        "violations": [
            {"t": round(one.t, 1), "rule": one.rule, "what": one.what, "log": list(one.log)} for one in story.violations
        ],
    }
