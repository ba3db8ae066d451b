"""Writes the figures of the saved results into docs/benchmarks.md, between the two comments of its bench.

Runs when a result is saved; `python -m benchmarks.report` runs it by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import results
from victoryline.configuration import PROJECT_ROOT

PAGE = PROJECT_ROOT / "docs" / "benchmarks.md"
MARKED = re.compile(r"(<!-- figures of ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A row of a table: label, path in the result, unit, and target."""

    what: str
    path: Sequence[str]
    unit: str
    target: str = ""


def _ages(target: str, memory: str) -> tuple[Figure, ...]:
    return (
        Figure("live matches", ("matches",), ""),
        Figure("age of the data, p50", ("age_p50_s",), "s"),
        Figure("age of the data, p95", ("age_p95_s",), "s"),
        Figure("age of the data, p99", ("age_p99_s",), "s", target),
        Figure("memory, highest", ("memory_mb",), "MB", memory),
        Figure("memory, mean", ("memory_mean_mb",), "MB"),
    )


FIGURES: dict[str, tuple[Figure, ...]] = {
    "polls": (
        Figure("VictoryLine, journaled polls", ("ours",), "a second"),
        Figure("scrapy-playwright, a page for every request", ("peers", "scrapy-playwright"), "a second"),
        Figure("scrapy-playwright, pages reused", ("peers", "scrapy-playwright, pages reused"), "a second"),
        Figure("crawlee", ("peers", "crawlee"), "a second"),
        Figure("against scrapy-playwright", ("ratio",), "x", "30 x"),
        Figure("against scrapy-playwright, pages reused", ("ratio_tuned",), "x"),
        Figure("CPU of a poll, scrapy-playwright against ours", ("cpu_ratio",), "x"),
    ),
    "live": (
        *_ages("< 5 s", "< 1536 MB"),
        Figure("from the reading to its commit, mean", ("commit_ms",), "ms", "< 50 ms"),
        Figure("from a ball at the source to its commit, p90", ("ball_p90_s",), "s", "< 3 s"),
        Figure("from a dismissal at the source to its commit, p90", ("dismissal_p90_s",), "s", "< 3 s"),
        Figure("polls", ("polls_a_second",), "a second"),
        Figure("CPU of workers, scheduler, browsers (100 is a core)", ("cpu_percent",), "%"),
        Figure("CPU of a poll against that with the fewest matches", ("cost_ratio",), "x", "at most 1.2 x"),
        Figure("the same without servers and stadium", ("cost_ratio_ours",), "x"),
    ),
    "live-in_page": (
        *_ages("< 5 s", "< 1536 MB"),
        Figure("from the reading to its commit, mean", ("commit_ms",), "ms", "< 50 ms"),
        Figure("polls", ("polls_a_second",), "a second"),
        Figure("CPU of workers, scheduler, browsers (100 is a core)", ("cpu_percent",), "%"),
    ),
    "health": (
        Figure("live matches", ("live", "matches"), ""),
        Figure("response, p50", ("p50_ms",), "ms"),
        Figure("response, p95", ("p95_ms",), "ms", "< 20 ms"),
        Figure("response, p99", ("p99_ms",), "ms"),
        Figure("response to a health check, p50", ("probe_p50_ms",), "ms"),
        Figure("response to a health check, slowest", ("probe_max_ms",), "ms"),
        Figure("the very first response, not prepared", ("first_ms",), "ms"),
        Figure("age of its figures, highest", ("max_age_s",), "s", "< 5 s"),
        Figure("age of the data meanwhile, p99", ("live", "age_p99_s"), "s"),
        Figure("polls meanwhile", ("live", "polls_a_second"), "a second"),
    ),
    "api": (
        Figure("VictoryLine, a match", ("ours",), "a second"),
        Figure("plain DRF, a match", ("baseline",), "a second"),
        Figure("against plain DRF", ("ratio",), "x", "3 x"),
        Figure("a match, p50", ("p50_ms",), "ms"),
        Figure("a match, p95", ("p95_ms",), "ms"),
        Figure("a match, p99", ("p99_ms",), "ms"),
        Figure("plain DRF, a match, p95", ("baseline_p95_ms",), "ms"),
        Figure("a match that has not changed (304)", ("not_modified",), "a second"),
        Figure("a list of 50", ("list",), "a second"),
        Figure("plain DRF, a list of 50", ("baseline_list",), "a second"),
        Figure("a list, against plain DRF", ("list_ratio",), "x"),
        Figure("an empty Django view", ("bare",), "a second"),
        Figure("CPU of a match read, plain DRF against ours", ("cpu_ratio",), "x"),
    ),
    "load": (
        Figure("live matches", ("matches",), ""),
        Figure("requests", ("requests",), ""),
        Figure("errors", ("errors",), "", "0"),
        Figure("response, p50", ("p50_ms",), "ms"),
        Figure("response, p95", ("p95_ms",), "ms", "< 50 ms"),
        Figure("response, p99", ("p99_ms",), "ms"),
        Figure("from a commit to the first response that has it, p50", ("lag_p50_ms",), "ms"),
        Figure("from a commit to the first response that has it, p95", ("lag_p95_ms",), "ms", "< 100 ms"),
        Figure("from a commit to the first response that has it, longest", ("lag_max_ms",), "ms"),
        Figure("/health meanwhile, p95", ("health_p95_ms",), "ms", "< 100 ms"),
        Figure("age in responses, p95", ("served_age_s", "p95"), "s"),
        Figure("polls meanwhile", ("live", "polls_a_second"), "a second"),
    ),
    "attached": (
        *_ages("< 5 s", "< 2500 MB"),
        Figure("from the reading to its commit, mean", ("commit_ms",), "ms"),
        Figure("CPU of workers, scheduler, browsers (100 is a core)", ("cpu_percent",), "%"),
    ),
    "recovery": (
        Figure("browser lost, next good update, p95", ("browser_p95_s",), "s", "< 5 s"),
        Figure("worker killed, next good update of its matches, p95", ("worker_p95_s",), "s", "< 20 s"),
        Figure("Chromium killed: p50", ("kinds", "browser", "next_update_s", "p50"), "s"),
        Figure("Chromium killed: next good visit, p95", ("kinds", "browser", "next_visit_s", "p95"), "s"),
        Figure("renderer killed: next good visit, p95", ("kinds", "renderer", "next_visit_s", "p95"), "s"),
        Figure("driver killed: next good visit, p95", ("kinds", "driver", "next_visit_s", "p95"), "s"),
        Figure("worker killed: p50", ("kinds", "worker", "next_update_s", "p50"), "s"),
        Figure("worker killed: until all matches were updated, p95", ("kinds", "worker", "all_matches_s", "p95"), "s"),
        Figure("kills of each kind", ("times",), ""),
    ),
    "night": (
        Figure("nights", ("seeds",), ""),
        Figure("violations", ("violations",), "", "0"),
        Figure("polls", ("polls",), ""),
        Figure("calm nights: time in play younger than 10 s", ("nights", "calm", "fresh_share"), "", "at least 0.99"),
        Figure("calm nights: the worst of them", ("nights", "calm", "fresh_share_worst"), "", "at least 0.99"),
        Figure("calm nights: uptime of scrapers", ("nights", "calm", "uptime_share"), "", "at least 0.995"),
        Figure("usual nights: time in play younger than 10 s", ("nights", "usual", "fresh_share"), ""),
        Figure("usual nights: uptime of scrapers", ("nights", "usual", "uptime_share"), ""),
        Figure("usual nights: end of a fault to the next reading, p95", ("nights", "usual", "recovery_p95_s"), "s"),
        Figure("nights with many faults: time in play younger than 10 s", ("nights", "hell", "fresh_share"), ""),
        Figure("nights with many faults: tasks rescued from killed workers", ("nights", "hell", "rescues"), ""),
    ),
    "accuracy": (
        Figure("recordings", ("recordings",), ""),
        Figure("balls and wickets expected, over all runs", ("expected",), ""),
        Figure("present", ("present",), "", "all"),
        Figure("missing", ("missing",), "", "0"),
        Figure("doubled", ("doubled",), "", "0"),
        Figure("wrong", ("wrong",), "", "0"),
        Figure("scores after an over, checked", ("overs",), ""),
        Figure("speed against real time", ("speed",), "x"),
        Figure("outage in the middle", ("outage_seconds",), "s"),
    ),
    "pairing": (
        Figure("pairs of fixtures", ("pairs",), ""),
        Figure("of them traps: two matches that look like one", ("traps",), ""),
        Figure("false joins", ("false_joins",), "", "0"),
        Figure("matches found, share", ("found",), "", "0.97"),
        Figure("left to a person, share", ("in_review",), ""),
        Figure("missed, share", ("apart",), ""),
        Figure("rapidfuzz alone: false joins", ("peers", "rapidfuzz", "false_joins"), ""),
        Figure("rapidfuzz alone: found, share", ("peers", "rapidfuzz", "found"), ""),
        Figure("exact alias tables: false joins", ("peers", "alias_tables", "false_joins"), ""),
        Figure("exact alias tables: found, share", ("peers", "alias_tables", "found"), ""),
        Figure("ours without any alias: false joins", ("without_aliases", "false_joins"), ""),
        Figure("ours without any alias: found, share", ("without_aliases", "found"), ""),
        Figure("ours without any alias: left to a person, share", ("without_aliases", "in_review"), ""),
    ),
    "soak": (
        *_ages("", ""),
        Figure("minutes", ("minutes",), ""),
        Figure("recycled browsers", ("recycles",), ""),
        Figure("memory, slope", ("memory_slope_mb_an_hour",), "MB an hour"),
        Figure("memory, slope against its mean", ("memory_slope_percent_an_hour",), "% an hour"),
        Figure("memory of the Python processes, slope", ("python_memory_slope_mb_an_hour",), "MB an hour"),
        Figure("processes, before", ("before", "processes"), ""),
        Figure("processes, after", ("after", "processes"), "", "as before"),
        Figure("open files, before", ("before", "files"), ""),
        Figure("open files, after", ("after", "files"), "", "as before"),
        Figure("temporary folders, before", ("before", "folders"), ""),
        Figure("temporary folders, after", ("after", "folders"), "", "as before"),
    ),
    "journal": (
        Figure("VictoryLine, tasks", ("ours",), "a second"),
        Figure("procrastinate, tasks", ("peer",), "a second"),
        Figure("against procrastinate", ("ratio",), "x"),
    ),
    "console": tuple(
        figure
        for engine in ("sqlite", "postgresql")
        for figure in (
            Figure(f"{engine}: slowest page of all, p95", ("p95_ms", engine), "ms", "< 300 ms"),
            Figure(f"{engine}: list of tasks, p95", ("tasks_ms", engine), "ms"),
            Figure(f"{engine}: list of django_dramatiq's admin, p95", ("peer_ms", engine), "ms"),
            Figure(f"{engine}: django_dramatiq's five pages against ours", ("ratio", engine), "x"),
        )
    ),
    "growth": (Figure("dispatch with a million rows against ten thousand", ("ratio",), "x", "at most 1.5 x"),),
}


def write() -> None:
    """Writes the figures of every saved result into the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled(text), encoding="utf-8")


def filled(text: str) -> str:
    return MARKED.sub(lambda found: f"{found[1]}{figures_of(found[2])}{found[3]}", text)


def figures_of(bench: str) -> str:
    """Returns a table of the figures, time and machine of the measurement, and the picture if there is one."""
    file = results.FOLDER / f"{bench}.json"
    if not file.exists():
        return f"\nNot measured yet: `make bench BENCH={bench.partition('-')[0]}`.\n\n"
    result = json.loads(file.read_text(encoding="utf-8"))
    rows = [(one, _value(result, one.path)) for one in FIGURES[bench]]
    table = [f"| {one.what} | {_number(value)} {one.unit} | {one.target} |" for one, value in rows if value is not None]
    picture = f"\n![{bench}](../benchmarks/results/{bench}.png)\n" if file.with_suffix(".png").exists() else ""
    return "\n| what | measured | to reach |\n|---|---|---|\n" + "\n".join(table) + f"\n\n{_where(result)}\n{picture}\n"


def _value(result: Any, path: Sequence[str]) -> Any:
    for name in path:
        result = result.get(name) if isinstance(result, dict) else None
    return result


def _number(value: float | str) -> str:
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _where(result: dict[str, Any]) -> str:
    machine = result["machine"]
    return (
        f"{result['measured_at'][:16].replace('T', ' ')} UTC, {machine['cores']} cores, {result['took_seconds']} s, "
        f"load before it {machine['load_before']:g}."
    )


if __name__ == "__main__":
    write()
