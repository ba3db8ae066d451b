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
TICKS = {"color": "#9ca3af", "maxRotation": 0, "autoSkipPadding": 16}  # grey: readable on light and dark pages
CHART_OPTIONS = json.dumps(
    {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "interaction": {"mode": "index", "intersect": False},
        "plugins": {"legend": {"position": "bottom", "labels": {"color": "#9ca3af", "boxWidth": 10}}},
        "scales": {
            "x": {"stacked": True, "ticks": TICKS, "grid": {"display": False}},
            "y": {"stacked": True, "ticks": {**TICKS, "precision": 0}, "grid": {"display": True}},
        },
    }
)
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
    mean_ms = column("mean time", lambda row: _figure(row.mean_ms, "ms"))
    slowest = column("slowest", lambda row: f"{row.duration_ms_most:,} ms", ordering="duration_ms_most")
    mean_age = column("mean age", lambda row: _figure(row.mean_age_seconds, "s"))
    oldest = column("oldest", lambda row: _figure(row.most_age_seconds, "s"), ordering="age_seconds_most")

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


def charts(now: datetime, consumer: int | None) -> list[dict[str, str]]:
    """Returns bar charts for unfold's component: `data` and `options` are Chart.js objects in JSON."""
    first = usage.hour_of(now) - usage.HOUR * (HOURS_SHOWN - 1)
    by_hour = usage.hours(first, now, consumer=consumer)
    times = [first + usage.HOUR * number for number in range(HOURS_SHOWN)]
    hours = [(f"{at:%H:%M}", by_hour.get(at, UsageHour())) for at in times]
    days = [(f"{day:%-d %b}", sums) for day, sums in usage.last_days(now, consumer=consumer).items()]
    return [
        requests_chart("Requests by the hour, last 24 hours (UTC)", hours),
        requests_chart("Requests by the day, last 30 days", days),
    ]


def requests_chart(title: str, slots: Sequence[tuple[str, UsageHour]]) -> dict[str, str]:
    """`slots`: labels on the time axis, and their sums."""
    datasets: list[dict[str, Any]] = [
        {"label": label, "backgroundColor": colour, "data": [getattr(sums, outcome) for _, sums in slots]}
        for outcome, (label, colour) in OUTCOMES.items()
    ]
    whole = sum(sums.requests for _, sums in slots)
    counts = [f"{sum(each['data']):,} {each['label']}" for each in datasets if any(each["data"])]
    summary = f"{whole:,} {'request' if whole == 1 else 'requests'}: {', '.join(counts)}" if whole else "no requests"
    data = json.dumps({"labels": [label for label, _ in slots], "datasets": datasets})
    return {"title": title, "summary": summary, "data": data, "options": CHART_OPTIONS}


def routes_table(now: datetime, consumer: int | None) -> list[dict[str, Any]]:
    found = usage.routes(usage.first_day(now), now, consumer=consumer)
    return [_row(route or "(no such address)", sums) for route, sums in list(found.items())[:MAX_ROWS]]


def consumers_table(now: datetime) -> list[dict[str, Any]]:
    found = dict(list(usage.consumers(usage.first_day(now), now).items())[:MAX_ROWS])
    ids = dict(Consumer.objects.filter(name__in=found).values_list("name", "pk"))
    return [_row(name, sums, ids.get(name)) for name, sums in found.items()]


def _row(name: str, sums: UsageHour, consumer: int | None = None) -> dict[str, Any]:
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
