"""Data of the admin's usage page: charts for unfold's chart component, and tables by route and consumer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apiauth import usage
from apiauth.models import Consumer
from apiauth.usage import Sums

HOURS_SHOWN, DAYS_SHOWN, MAX_ROWS = 24, 30, 12
# By outcome: label and colour, from the foot of a bar to its top.
OUTCOMES = {
    "answered": ("answered", "#059669"),
    "not_modified": ("unchanged (304)", "#6ee7b7"),
    "refused": ("refused (4xx)", "#f59e0b"),
    "throttled": ("throttled (429)", "#8b5cf6"),
    "failed": ("failed (5xx)", "#dc2626"),
}
HEADINGS = ("requests", "unchanged", "refused", "throttled", "failed", "mean", "slowest", "mean age", "oldest")


@dataclass(frozen=True)
class Chart:
    """`data` and `options` are Chart.js objects in JSON; `summary` is the same as text."""

    kind: str  # of unfold's component: bar or line
    title: str
    summary: str
    data: str
    options: str


@dataclass(frozen=True)
class TableRow:
    """A name and its figures in the order of HEADINGS."""

    name: str
    cells: Sequence[str]
    consumer: int | None = None


Slot = tuple[str, Sums]  # label on the time axis, and its sums
Measure = Callable[[Sums], float | None]


def charts(now: datetime, consumer: int | None) -> list[Chart]:
    hours, days = _hours(now, consumer), _days(now, consumer)
    return [
        requests_chart("Requests by the hour, last 24 hours (UTC)", hours),
        requests_chart("Requests by the day, last 30 days", days),
        measure_chart(
            "Time to answer, last 24 hours", "ms", hours, lambda sums: sums.mean_ms, lambda sums: sums.duration_ms_most
        ),
        measure_chart(
            "Age of the data served, last 24 hours",
            "s",
            hours,
            lambda sums: sums.mean_age_seconds,
            lambda sums: sums.most_age_seconds,
        ),
    ]


def requests_chart(title: str, slots: Sequence[Slot]) -> Chart:
    datasets = [
        {"label": label, "backgroundColor": colour, "data": [getattr(sums, outcome) for _, sums in slots]}
        for outcome, (label, colour) in OUTCOMES.items()
    ]
    summary = _summary(usage.added([sums for _, sums in slots]))
    return Chart("bar", title, summary, _data(slots, datasets), _options(is_stacked=True))


def measure_chart(title: str, unit: str, slots: Sequence[Slot], mean: Measure, most: Measure) -> Chart:
    """Mean and worst of each slot, on a logarithmic scale: one slow answer does not hide the mean."""
    lines = (("on average", OUTCOMES["answered"][1], mean), ("at worst", OUTCOMES["refused"][1], most))
    datasets = [
        {
            "label": f"{label} ({unit})",
            "borderColor": colour,
            "backgroundColor": colour,
            "data": [_rounded(measure(sums)) for _, sums in slots],
        }
        for label, colour, measure in lines
    ]
    whole = usage.added([sums for _, sums in slots])
    average, worst = _figure(mean(whole), unit), _figure(most(whole), unit)
    summary = f"{average} on average, {worst} at worst" if mean(whole) is not None else "no figures"
    return Chart("line", title, summary, _data(slots, datasets), _options(is_logarithmic=True))


def routes_table(now: datetime, consumer: int | None) -> list[TableRow]:
    found = usage.routes(_first_day(now), now, consumer=consumer)
    return [_row(route or "(no such address)", sums) for route, sums in list(found.items())[:MAX_ROWS]]


def consumers_table(now: datetime) -> list[TableRow]:
    found = dict(list(usage.consumers(_first_day(now), now).items())[:MAX_ROWS])
    ids = dict(Consumer.objects.filter(name__in=found).values_list("name", "pk"))
    return [_row(name, sums, ids.get(name)) for name, sums in found.items()]


def _row(name: str, sums: Sums, consumer: int | None = None) -> TableRow:
    counts = (sums.requests, sums.not_modified, sums.refused, sums.throttled, sums.failed)
    cells = (
        *(f"{count:,}" for count in counts),
        _figure(sums.mean_ms, "ms"),
        _figure(sums.duration_ms_most, "ms"),
        _figure(sums.mean_age_seconds, "s"),
        _figure(sums.most_age_seconds, "s"),
    )
    return TableRow(name, cells, consumer)


def _data(slots: Sequence[Slot], datasets: list[dict[str, Any]]) -> str:
    return json.dumps({"labels": [label for label, _ in slots], "datasets": datasets})


def _options(*, is_stacked: bool = False, is_logarithmic: bool = False) -> str:
    """Options of Chart.js. Grey texts are readable on light and dark pages."""
    ticks = {"color": "#9ca3af", "maxRotation": 0, "autoSkipPadding": 16}
    return json.dumps(
        {
            "animation": False,
            "responsive": True,
            "maintainAspectRatio": False,
            "interaction": {"mode": "index", "intersect": False},
            "plugins": {"legend": {"position": "bottom", "labels": {"color": "#9ca3af", "boxWidth": 10}}},
            "scales": {
                "x": {"stacked": is_stacked, "ticks": ticks, "grid": {"display": False}},
                "y": {
                    "type": "logarithmic" if is_logarithmic else "linear",
                    "stacked": is_stacked,
                    "ticks": ticks | ({} if is_logarithmic else {"precision": 0}),
                    "grid": {"display": True},
                },
            },
        }
    )


def _summary(sums: Sums) -> str:
    if not sums.requests:
        return "no requests"
    counts = [f"{getattr(sums, name):,} {label}" for name, (label, _) in OUTCOMES.items() if getattr(sums, name)]
    return f"{sums.requests:,} {'request' if sums.requests == 1 else 'requests'}: {', '.join(counts)}"


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.{1 if value < 10 else 0}f} {unit}"


def _rounded(value: float | None) -> float | None:
    """A logarithmic scale has no zero: it becomes a gap."""
    return round(value, 1) if value else None


def _hours(now: datetime, consumer: int | None) -> list[Slot]:
    first = usage.hour_of(now) - usage.HOUR * (HOURS_SHOWN - 1)
    found = usage.hours(first, now, consumer=consumer)
    times = [first + usage.HOUR * number for number in range(HOURS_SHOWN)]
    return [(f"{at:%H:%M}", found.get(at, usage.NOTHING)) for at in times]


def _days(now: datetime, consumer: int | None) -> list[Slot]:
    first = _first_day(now)
    found = usage.days(first, now, consumer=consumer)
    days = [first.date() + timedelta(days=number) for number in range(DAYS_SHOWN)]
    return [(f"{day:%-d %b}", found.get(day, usage.NOTHING)) for day in days]


def _first_day(now: datetime) -> datetime:
    return usage.day_of(now) - timedelta(days=DAYS_SHOWN - 1)
