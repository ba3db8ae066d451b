"""What consumers asked, as pictures: bars by the hour and the day, drawn from the sums. Numbers in, percentages out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apiauth import usage
from apiauth.models import Consumer
from apiauth.usage import Sums

HOURS_DRAWN, DAYS_DRAWN = 24, 30
KINDS = ("failed", "throttled", "refused", "not_modified", "answered")  # from the top of a bar to its foot
WORDS = {
    "answered": "answered",
    "not_modified": "unchanged (304)",
    "refused": "refused (4xx)",
    "throttled": "throttled (429)",
    "failed": "failed (5xx)",
}
MOST_ROUTES, MOST_CONSUMERS = 12, 12


@dataclass(frozen=True)
class Part:
    kind: str
    share: float  # of the bar's height


@dataclass(frozen=True)
class Bar:
    height: float  # percent of the chart's
    told: str
    parts: Sequence[Part] = ()
    mark: float | None = None  # where the worst single one lies, in percent of the chart's height


@dataclass(frozen=True)
class Chart:
    title: str
    told: str
    top: str
    first: str
    bars: Sequence[Bar]
    key: Sequence[tuple[str, str]] = ()


Slot = tuple[str, Sums]  # how the time is called, and what was asked in it
Measure = Callable[[Sums], float | None]


def charts(now: datetime, consumer: int | None) -> list[Chart]:
    last_hours, last_days = _hours(now, consumer), _days(now, consumer)
    return [
        requests_chart("Requests by the hour, last 24 hours", last_hours),
        requests_chart("Requests by the day, last 30 days", last_days),
        measure_chart(
            "Time to answer, last 24 hours", "ms", last_hours, lambda sums: sums.mean_ms, lambda s: s.duration_ms_most
        ),
        measure_chart(
            "Age of the data served, last 24 hours",
            "s",
            last_hours,
            lambda sums: sums.mean_age_seconds,
            lambda sums: sums.most_age_seconds,
        ),
    ]


def requests_chart(title: str, slots: Sequence[Slot]) -> Chart:
    top = max([sums.requests for _, sums in slots] + [1])
    whole = usage.added([sums for _, sums in slots])
    key = [(kind, WORDS[kind]) for kind in reversed(KINDS)]
    return Chart(title, _said(whole), f"{top:,}", slots[0][0], [_stack(slot, top) for slot in slots], key)


def measure_chart(title: str, unit: str, slots: Sequence[Slot], mean: Measure, most: Measure) -> Chart:
    """A bar is the mean, a line above it the worst. The scale is a square root: one slow answer hides no mean."""
    top = max([most(sums) or 0.0 for _, sums in slots] + [0.1])
    whole = usage.added([sums for _, sums in slots])
    bars = [
        Bar(
            _height(mean(sums), top) or 0.0,
            f"{name}: {_averaged(mean(sums), most(sums), unit)}",
            mark=_height(most(sums), top),
        )
        for name, sums in slots
    ]
    key = [("mean", "on average"), ("worst", "at worst"), ("scale", "(scale: square root)")]
    told = _averaged(mean(whole), most(whole), unit)
    return Chart(title, told, _figure(top, unit), slots[0][0], bars, key)


def _height(value: float | None, top: float) -> float | None:
    return 100 * math.sqrt(value / top) if value else None


def _averaged(mean: float | None, most: float | None, unit: str) -> str:
    return (
        f"{_figure(mean, unit)} on average, {_figure(most, unit)} at worst" if mean is not None else "nothing to tell"
    )


def _stack(slot: Slot, top: int) -> Bar:
    name, sums = slot
    parts = [Part(kind, 100 * getattr(sums, kind) / sums.requests) for kind in KINDS if getattr(sums, kind)]
    return Bar(100 * sums.requests / top, f"{name}: {_said(sums)}", parts)


def _said(sums: Sums) -> str:
    if not sums.requests:
        return "nothing was asked"
    others = [f"{getattr(sums, kind):,} {WORDS[kind]}" for kind in reversed(KINDS) if getattr(sums, kind)]
    return f"{sums.requests:,} {'request' if sums.requests == 1 else 'requests'}: {', '.join(others)}"


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.{1 if value < 10 else 0}f} {unit}"


def _hours(now: datetime, consumer: int | None) -> list[Slot]:
    last = usage.hour_of(now)
    first = last - usage.HOUR * (HOURS_DRAWN - 1)
    found = usage.hours(first, now, consumer=consumer)
    times = [first + usage.HOUR * number for number in range(HOURS_DRAWN)]
    return [(f"{at:%-d %b %H:%M} UTC", found.get(at, usage.NOTHING)) for at in times]


def _days(now: datetime, consumer: int | None) -> list[Slot]:
    first = usage.day_of(now) - timedelta(days=DAYS_DRAWN - 1)
    found = usage.days(first, now, consumer=consumer)
    times = [first.date() + timedelta(days=number) for number in range(DAYS_DRAWN)]
    return [(f"{day:%-d %b}", found.get(day, usage.NOTHING)) for day in times]


@dataclass(frozen=True)
class Line:
    """Of a table: who or what, and the figures in the order of HEADINGS."""

    name: str
    cells: Sequence[str]
    consumer: int | None = None


HEADINGS = ("requests", "unchanged", "refused", "throttled", "failed", "mean", "slowest", "mean age", "oldest")


def routes_table(now: datetime, consumer: int | None) -> list[Line]:
    since = usage.day_of(now) - timedelta(days=DAYS_DRAWN - 1)
    found = usage.routes(since, now, consumer=consumer)
    return [_line(route or "(no such address)", sums) for route, sums in list(found.items())[:MOST_ROUTES]]


def consumers_table(now: datetime) -> list[Line]:
    since = usage.day_of(now) - timedelta(days=DAYS_DRAWN - 1)
    found = dict(list(usage.consumers(since, now).items())[:MOST_CONSUMERS])
    numbers = dict(Consumer.objects.filter(name__in=found).values_list("name", "pk"))
    return [_line(name, sums, numbers.get(name)) for name, sums in found.items()]


def _line(name: str, sums: Sums, consumer: int | None = None) -> Line:
    counts = (sums.requests, sums.not_modified, sums.refused, sums.throttled, sums.failed)
    return Line(
        name,
        (
            *(f"{count:,}" for count in counts),
            _figure(sums.mean_ms, "ms"),
            _figure(sums.duration_ms_most, "ms"),
            _figure(sums.mean_age_seconds, "s"),
            _figure(sums.most_age_seconds, "s"),
        ),
        consumer,
    )
