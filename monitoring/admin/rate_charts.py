"""Charts of the overview: throughput, read latency, failures and age of live data by source, from SourceRate."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from scraping.models import Source
from scraping.models.traffic import MINUTE, QUARTER
from scraping.stats.rates import Point, series

SPANS = {"1h": ("1 h", MINUTE, 60), "24h": ("24 h", QUARTER, 96)}  # label, seconds and number of periods
COLOURS = ("#059669", "#3b82f6", "#f59e0b", "#a855f7", "#ef4444", "#14b8a6", "#ec4899", "#84cc16")
GREY = "#9ca3af"  # readable on light and dark pages
DASHES = (4, 3)
Read = Callable[[Point], float | None]


class Kind(NamedTuple):
    title: str
    unit: str
    read: Read
    dashed: Read | None = None
    names: tuple[str, str] = ("", "")  # of the line and the dashed line


KINDS = (
    Kind("Throughput", "reads/min", lambda point: point.calls_per_minute),
    Kind("Read latency", "ms", lambda point: point.p50_ms, lambda point: point.p95_ms, ("p50", "p95")),
    Kind("Failed reads", "%", lambda point: point.bad_percent),
    Kind(
        *("Age of live data", "s"),
        *(lambda point: point.median_age_seconds, lambda point: point.oldest_age_seconds),
        ("median", "oldest"),
    ),
)
TICKS = {"color": GREY, "maxRotation": 0, "autoSkipPadding": 24}
OPTIONS = json.dumps(
    {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "interaction": {"mode": "index", "intersect": False},
        "elements": {"point": {"radius": 0, "hitRadius": 8}, "line": {"borderWidth": 1.5}},
        "plugins": {"legend": {"display": False}},
        "scales": {
            "x": {"ticks": TICKS, "grid": {"display": False}},
            "y": {"ticks": {**TICKS, "maxTicksLimit": 5}, "grid": {"color": f"{GREY}33"}, "beginAtZero": True},
        },
    }
)


@dataclass(frozen=True)
class RateChart:
    title: str
    note: str  # unit, and the meaning of the lines
    latest: list[tuple[str, str, str]]  # of each source: name, colour, latest value
    data: str
    options: str = OPTIONS


def rate_charts(span: str, now: datetime) -> list[RateChart]:
    """Returns the charts of the last hour or day; none before the first figures."""
    _, seconds, periods = SPANS[span]
    starts, found = series(seconds, periods=periods, now=now)
    names = Source.objects.filter(pk__in=found).order_by("pk").values_list("pk", "name")
    sources = [(name, COLOURS[number % len(COLOURS)], found[pk]) for number, (pk, name) in enumerate(names)]
    labels = [f"{start:%H:%M}" for start in starts]
    return [_chart(kind, labels, sources) for kind in KINDS] if sources else []


def _chart(kind: Kind, labels: list[str], sources: list[tuple[str, str, list[Point]]]) -> RateChart:
    datasets, latest = [], []
    for name, colour, points in sources:
        datasets.append(_line(name, colour, points, kind.read))
        if kind.dashed:
            dashed = _line(f"{name}, {kind.names[1]}", colour, points, kind.dashed)
            datasets.append({**dashed, "borderDash": DASHES})
        known = [value for point in points[-3:] if (value := kind.read(point)) is not None]
        latest.append((name, colour, f"{known[-1]:,.{1 if known[-1] < 10 else 0}f}" if known else "-"))
    note = f"{kind.unit}: {kind.names[0]}, dashed {kind.names[1]}" if kind.dashed else kind.unit
    return RateChart(kind.title, note, latest, json.dumps({"labels": labels, "datasets": datasets}))


def _line(label: str, colour: str, points: Sequence[Point], read: Read) -> dict[str, object]:
    values = [None if (value := read(point)) is None else round(value, 2) for point in points]
    return {"label": label, "data": values, "borderColor": colour, "backgroundColor": colour}
