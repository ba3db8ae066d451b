"""Admin of statistics: traffic per source and day below a chart, fill rates of fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import orjson
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from scraping.models import FieldFill, Source, SourceDay
from scraping.policies.drift import Fill
from scraping.stats.traffic import ALERT_PERCENT, EARLIER, MEGABYTE, midnight_after
from victoryline.lib.admin import HistoryAdmin, column

DAYS_DRAWN = 30
LIMIT_COLOUR = "var(--color-red-500)"


@dataclass(frozen=True)
class TrafficChart:
    """One source's traffic per day, as data of unfold's bar chart."""

    name: str
    summary: str
    data: str


def charts(now: datetime) -> list[TrafficChart]:
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=age) for age in reversed(range(DAYS_DRAWN))]
    used: dict[int, dict[date, float]] = {}
    for row in SourceDay.objects.filter(day__gte=days[0]):
        used.setdefault(row.source_id, {})[row.day] = row.bytes_in / MEGABYTE
    sources = Source.objects.filter(pk__in=used).defer("metadata")
    return [_chart(source, [used[source.pk].get(day, 0.0) for day in days], days, now) for source in sources]


def _chart(source: Source, used: list[float], days: list[date], now: datetime) -> TrafficChart:
    limit = source.daily_megabytes
    bars = {
        "label": "MB",
        "data": [round(mb, 2) for mb in used],
        "backgroundColor": [_colour(mb, limit) for mb in used],
    }
    budget = {"type": "line", "label": "budget", "data": [limit] * len(days), "borderColor": LIMIT_COLOUR}
    data = {"labels": [f"{day:%d %b}" for day in days], "datasets": [bars, budget] if limit else [bars]}
    return TrafficChart(source.name, _summary(used[-1], limit, now), orjson.dumps(data).decode())


def _colour(used_mb: float, limit_mb: int) -> str:
    if not limit_mb or used_mb < limit_mb * ALERT_PERCENT / 100:
        return "var(--color-green-500)"
    return "var(--color-amber-500)" if used_mb < limit_mb else LIMIT_COLOUR


def _summary(used_mb: float, limit_mb: int, now: datetime) -> str:
    if not limit_mb:
        return f"{used_mb:,.1f} MB today, without a limit"
    if used_mb < limit_mb:
        return f"{used_mb:,.1f} of {limit_mb:,} MB today ({100 * used_mb / limit_mb:.0f} %)"
    hours = (midnight_after(now) - now).total_seconds() / 3600
    return f"{limit_mb:,} MB are used: direct reads only for another {hours:.1f} h, until midnight UTC"


def _budget(row: SourceDay) -> str:
    limit = row.source.daily_megabytes
    return f"{100 * row.bytes_in / (limit * MEGABYTE):.0f} %" if limit and row.day != EARLIER else "-"


@admin.register(SourceDay)
class SourceDayAdmin(HistoryAdmin):
    counters = (
        "megabytes", "budget", "requests", "requests_blocked", "visits", "direct_reads", "in_page_reads",
        "attached_reads",
    )  # fmt: skip
    list_display = ("shown_day", "source", *counters)
    list_display_links = ("shown_day",)
    list_filter = ("source",)
    search_fields = ("source__key", "source__name")
    ordering = ("-day", "source")
    list_before_template = "admin/scraping/traffic.html"
    fields = ("source", "shown_day", *counters)
    shown_day = column("day", lambda row: "earlier days" if row.day == EARLIER else f"{row.day}", ordering="day")
    megabytes = column("received", lambda row: f"{row.bytes_in / MEGABYTE:,.1f} MB", ordering="bytes_in")
    budget = column("budget", _budget)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        page: HttpResponse = super().changelist_view(request, {"charts": charts(timezone.now())})
        return page


@admin.register(FieldFill)
class FieldFillAdmin(HistoryAdmin):
    list_display = ("starts_at", "source", "payload_schema", "field", "rate", "seen", "filled")
    list_filter = ("source", "payload_schema", "field")
    search_fields = ("source__key", "source__name", "field", "payload_schema")
    ordering = ("-starts_at", "source", "payload_schema", "field")
    readonly_fields = ("rate",)
    rate = column("fill rate", lambda row: f"{Fill(row.seen, row.filled).percent:.0f} %")
