"""Admin pages of the access log and of usage, with charts and tables of all consumers or of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apiauth import usage
from apiauth.models import AccessLog, Consumer, UsageHour
from apiauth.usage import Sums
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, HistoryAdmin, choice_filter, column

CONSUMER = "consumer__id__exact"
NO_ROUTE = "-"
HOURS_SHOWN, MAX_ROWS = 24, 12
HEADINGS = ("requests", "unchanged", "refused", "throttled", "failed", "mean", "slowest", "mean age", "oldest")
# By column of UsageHour: label and colour, from the foot of a bar to its top.
OUTCOMES = {
    "answered": ("answered", "#059669"),
    "not_modified": ("unchanged (304)", "#6ee7b7"),
    "refused": ("refused (4xx)", "#f59e0b"),
    "throttled": ("throttled (429)", "#8b5cf6"),
    "failed": ("failed (5xx)", "#dc2626"),
}
STATUS_COLOURS = {"good": GOOD, "unchanged": NEWS, "refused": CAREFUL, "failed": BAD}

OutcomeFilter = choice_filter(
    "outcome",
    {
        "answered": ("answered (2xx)", lambda: Q(response_status__lt=300)),
        "unchanged": ("unchanged (304)", lambda: Q(response_status=304)),
        "refused": ("refused (4xx)", lambda: Q(response_status__range=(400, 499)) & ~Q(response_status=429)),
        "throttled": ("throttled (429)", lambda: Q(response_status=429)),
        "failed": ("failed (5xx)", lambda: Q(response_status__gte=500)),
    },
)


def _since(**span: int) -> Callable[[], Q]:
    return lambda: Q(timestamp__gte=timezone.now() - timedelta(**span))


TimeFilter = choice_filter(
    "when",
    {
        "15m": ("last 15 minutes", _since(minutes=15)),
        "1h": ("last hour", _since(hours=1)),
        "24h": ("last 24 hours", _since(hours=24)),
        "7d": ("last 7 days", _since(days=7)),
    },
    title="time",
)


class RouteFilter(admin.SimpleListFilter):
    """Offers the routes of the hourly sums: finding them in the log itself would read all of it."""

    title = "address"
    parameter_name = "route"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        known = UsageHour.objects.order_by("route").values_list("route", flat=True).distinct()
        return [*((route, route) for route in known if route), (NO_ROUTE, "no such address")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AccessLog]) -> QuerySet[AccessLog]:
        value = self.value()
        return queryset if value is None else queryset.filter(route="" if value == NO_ROUTE else value)


def _shown_status(row: AccessLog) -> tuple[str, str]:
    status = row.response_status
    kind = "good" if status < 300 else "unchanged" if status < 400 else "refused" if status < 500 else "failed"
    return kind, str(status)


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.{1 if value < 10 else 0}f} {unit}"


@admin.register(AccessLog)
class AccessLogAdmin(HistoryAdmin):
    list_display = (
        *("timestamp", "consumer", "key_prefix", "method", "endpoint", "shown_status"),
        *("shown_age", "data_state", "shown_duration", "request_id"),
    )
    list_filter = (TimeFilter, OutcomeFilter, RouteFilter, "consumer")
    list_select_related = ("consumer",)
    search_fields = ("request_id__exact", "endpoint__startswith", "key_prefix__exact")
    search_help_text = "A request id, the beginning of an address, or a key's prefix."
    ordering = ("-timestamp",)
    none_yet = "No requests yet. Every request to the API and for a token is a row here."
    shown_status = column("status", _shown_status, ordering="response_status", label=STATUS_COLOURS)
    shown_age = column("age", lambda row: _figure(row.data_age_seconds, "s"), ordering="data_age_seconds")
    shown_duration = column("took", lambda row: f"{row.duration_ms:,} ms", ordering="duration_ms")


@admin.register(UsageHour)
class UsageHourAdmin(HistoryAdmin):
    list_display = (
        *("hour", "consumer", "shown_route", "requests", "not_modified", "refused", "throttled", "failed"),
        *("mean_ms", "slowest", "mean_age", "oldest"),
    )
    list_filter = ("consumer",)
    list_select_related = ("consumer",)
    search_fields = ("consumer__name", "route")
    ordering = ("-hour", "consumer", "-requests")
    list_before_template = "admin/apiauth/usage.html"
    none_yet = "No requests with a key yet. There is a row for each consumer, hour and address."
    shown_route = column("address", lambda row: row.route or "(no such address)", ordering="route")
    mean_ms = column("mean time", lambda row: _figure(Sums.of_row(row).mean_ms, "ms"))
    slowest = column("slowest", lambda row: f"{row.duration_ms_most:,} ms", ordering="duration_ms_most")
    mean_age = column("mean age", lambda row: _figure(Sums.of_row(row).mean_age_seconds, "s"))
    oldest = column("oldest", lambda row: _figure(Sums.of_row(row).most_age_seconds, "s"), ordering="age_seconds_most")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        now, chosen = timezone.now(), request.GET.get(CONSUMER, "")
        is_number = chosen.isascii() and chosen.isdigit() and len(chosen) < 20  # a longer one can't be converted
        consumer = Consumer.objects.filter(pk=chosen).first() if is_number else None
        pk = consumer.pk if consumer else None
        shown = {
            "consumer": consumer,
            "charts": charts(now, pk),
            "headings": HEADINGS,
            "routes": routes_table(now, pk),
            "consumers": [] if consumer else consumers_table(now),
        }
        page: HttpResponse = super().changelist_view(request, {**(extra_context or {}), "usage": shown})
        return page


Slot = tuple[str, Sums]  # label on the time axis, and its sums
Measure = Callable[[Sums], float | None]


def charts(now: datetime, consumer: int | None) -> list[dict[str, str]]:
    """Returns charts for unfold's components: `data` and `options` are Chart.js objects in JSON."""
    first = usage.hour_of(now) - usage.HOUR * (HOURS_SHOWN - 1)
    by_hour = usage.hours(first, now, consumer=consumer)
    times = [first + usage.HOUR * number for number in range(HOURS_SHOWN)]
    hours = [(f"{at:%H:%M}", by_hour.get(at, usage.NOTHING)) for at in times]
    days = [(f"{day:%-d %b}", sums) for day, sums in usage.last_days(now, consumer=consumer).items()]
    ages: tuple[Measure, Measure] = (lambda sums: sums.mean_age_seconds, lambda sums: sums.most_age_seconds)
    return [
        requests_chart("Requests by the hour, last 24 hours (UTC)", hours),
        requests_chart("Requests by the day, last 30 days", days),
        measure_chart(
            "Time to answer, last 24 hours", "ms", hours, lambda sums: sums.mean_ms, lambda sums: sums.duration_ms_most
        ),
        measure_chart("Age of the data served, last 24 hours", "s", hours, *ages),
    ]


def requests_chart(title: str, slots: Sequence[Slot]) -> dict[str, str]:
    datasets = [
        {"label": label, "backgroundColor": colour, "data": [getattr(sums, outcome) for _, sums in slots]}
        for outcome, (label, colour) in OUTCOMES.items()
    ]
    whole = usage.added([sums for _, sums in slots])
    counts = [f"{getattr(whole, name):,} {label}" for name, (label, _) in OUTCOMES.items() if getattr(whole, name)]
    noun = "request" if whole.requests == 1 else "requests"
    summary = f"{whole.requests:,} {noun}: {', '.join(counts)}" if whole.requests else "no requests"
    return _chart("bar", title, summary, slots, datasets)


def measure_chart(title: str, unit: str, slots: Sequence[Slot], mean: Measure, most: Measure) -> dict[str, str]:
    """Mean and worst of each slot, on a logarithmic scale: one slow answer does not hide the mean."""
    lines = (("on average", OUTCOMES["answered"][1], mean), ("at worst", OUTCOMES["refused"][1], most))
    datasets = [
        {
            "label": f"{label} ({unit})",
            "borderColor": colour,
            "backgroundColor": colour,
            "data": [round(found, 1) if (found := measure(sums)) else None for _, sums in slots],  # no zero: a gap
        }
        for label, colour, measure in lines
    ]
    whole = usage.added([sums for _, sums in slots])
    average, worst = _figure(mean(whole), unit), _figure(most(whole), unit)
    summary = f"{average} on average, {worst} at worst" if mean(whole) is not None else "no figures"
    return _chart("line", title, summary, slots, datasets)


def _chart(
    kind: str, title: str, summary: str, slots: Sequence[Slot], datasets: list[dict[str, Any]]
) -> dict[str, str]:
    """`kind`: bar (stacked) or line (logarithmic). Grey texts are readable on light and dark pages."""
    is_bar = kind == "bar"
    ticks = {"color": "#9ca3af", "maxRotation": 0, "autoSkipPadding": 16}
    y_axis = (
        {"type": "linear", "ticks": {**ticks, "precision": 0}} if is_bar else {"type": "logarithmic", "ticks": ticks}
    )
    options = {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "interaction": {"mode": "index", "intersect": False},
        "plugins": {"legend": {"position": "bottom", "labels": {"color": "#9ca3af", "boxWidth": 10}}},
        "scales": {
            "x": {"stacked": is_bar, "ticks": ticks, "grid": {"display": False}},
            "y": {**y_axis, "stacked": is_bar, "grid": {"display": True}},
        },
    }
    data = {"labels": [label for label, _ in slots], "datasets": datasets}
    shown = {"kind": kind, "title": title, "summary": summary}
    return {**shown, "data": json.dumps(data), "options": json.dumps(options)}


def routes_table(now: datetime, consumer: int | None) -> list[dict[str, Any]]:
    found = usage.routes(usage.first_day(now), now, consumer=consumer)
    return [_row(route or "(no such address)", sums) for route, sums in list(found.items())[:MAX_ROWS]]


def consumers_table(now: datetime) -> list[dict[str, Any]]:
    found = dict(list(usage.consumers(usage.first_day(now), now).items())[:MAX_ROWS])
    ids = dict(Consumer.objects.filter(name__in=found).values_list("name", "pk"))
    return [_row(name, sums, ids.get(name)) for name, sums in found.items()]


def _row(name: str, sums: Sums, consumer: int | None = None) -> dict[str, Any]:
    """A name and its figures in the order of HEADINGS."""
    counts = (sums.requests, sums.not_modified, sums.refused, sums.throttled, sums.failed)
    cells = (
        *(f"{count:,}" for count in counts),
        _figure(sums.mean_ms, "ms"),
        _figure(sums.duration_ms_most, "ms"),
        _figure(sums.mean_age_seconds, "s"),
        _figure(sums.most_age_seconds, "s"),
    )
    return {"name": name, "cells": cells, "consumer": consumer}
