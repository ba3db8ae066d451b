"""What reading the sources costs, day by day: a chart of the last days over the table that it is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from scraping.models import Source, SourceDay
from scraping.stats.traffic import ALERT_PERCENT, EARLIER, MEGABYTE, midnight_after
from victoryline.lib.admin import HistoryAdmin

DAYS_DRAWN = 30


@dataclass(frozen=True)
class Bar:
    day: date
    megabytes: float
    height: float  # percent of the chart's
    level: str  # good, careful, bad
    told: str


@dataclass(frozen=True)
class Chart:
    """One source's days; `limit_height` is where its budget's line is drawn, None without a budget."""

    name: str
    bars: list[Bar]
    top_mb: float
    limit_mb: int
    limit_height: float | None
    now: str


def charts(now: datetime) -> list[Chart]:
    today = now.astimezone(UTC).date()
    days = [today - timedelta(days=age) for age in reversed(range(DAYS_DRAWN))]
    rows: dict[int, dict[date, SourceDay]] = {}
    for row in SourceDay.objects.filter(day__gte=days[0]):
        rows.setdefault(row.source_id, {})[row.day] = row
    sources = Source.objects.filter(pk__in=rows).defer("metadata")
    return [_chart(source, rows[source.pk], days, now) for source in sources]


def _chart(source: Source, rows: dict[date, SourceDay], days: list[date], now: datetime) -> Chart:
    limit = source.daily_megabytes
    used = {day: rows[day].bytes_in / MEGABYTE if day in rows else 0.0 for day in days}
    top = max([*used.values(), float(limit), 0.001])
    bars = [
        Bar(day, used[day], 100 * used[day] / top, _level(used[day], limit), _told(day, rows.get(day))) for day in days
    ]
    return Chart(
        source.name, bars, top, limit, 100 * limit / top if limit else None, _standing(used[days[-1]], limit, now)
    )


def _level(used_mb: float, limit_mb: int) -> str:
    if not limit_mb or used_mb < limit_mb * ALERT_PERCENT / 100:
        return "good"
    return "careful" if used_mb < limit_mb else "bad"


def _told(day: date, row: SourceDay | None) -> str:
    if row is None:
        return f"{day:%d %b}: nothing was read"
    return (
        f"{day:%d %b}: {row.bytes_in / MEGABYTE:,.1f} MB, {row.requests:,} requests, {row.requests_blocked:,} blocked; "
        f"{row.visits:,} visits, {row.direct_reads:,} direct, {row.attached_reads:,} attached"
    )


def _standing(used_mb: float, limit_mb: int, now: datetime) -> str:
    if not limit_mb:
        return f"{used_mb:,.1f} MB today, without a limit"
    if used_mb < limit_mb:
        return f"{used_mb:,.1f} of {limit_mb:,} MB today ({100 * used_mb / limit_mb:.0f} %)"
    hours = (midnight_after(now) - now).total_seconds() / 3600
    return f"{limit_mb:,} MB are used up: only read directly for another {hours:.1f} h, until midnight UTC"


@admin.register(SourceDay)
class SourceDayAdmin(HistoryAdmin):
    list_display = (
        "shown_day",
        "source",
        "megabytes",
        "budget",
        "requests",
        "requests_blocked",
        "visits",
        "direct_reads",
        "attached_reads",
    )
    list_display_links = ("shown_day",)
    list_filter = ("source",)
    list_select_related = ("source",)
    search_fields = ("source__key", "source__name")
    ordering = ("-day", "source")
    list_before_template = "admin/scraping/traffic.html"
    fields = (
        "source",
        "shown_day",
        "megabytes",
        "budget",
        "requests",
        "requests_blocked",
        "visits",
        "direct_reads",
        "attached_reads",
    )
    readonly_fields = ("shown_day", "megabytes", "budget")

    def get_queryset(self, request: HttpRequest) -> QuerySet[SourceDay]:
        rows: QuerySet[SourceDay] = super().get_queryset(request)
        return rows.select_related("source").defer("source__metadata")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "charts": charts(timezone.now())}
        page: HttpResponse = super().changelist_view(request, context)
        return page

    @admin.display(description="day", ordering="day")
    def shown_day(self, row: SourceDay) -> str:
        return "all days before" if row.day == EARLIER else f"{row.day:%Y-%m-%d}"

    @admin.display(description="received", ordering="bytes_in")
    def megabytes(self, row: SourceDay) -> str:
        return f"{row.bytes_in / MEGABYTE:,.1f} MB"

    @admin.display(description="of its budget")
    def budget(self, row: SourceDay) -> str:
        limit = row.source.daily_megabytes
        return f"{100 * row.bytes_in / (limit * MEGABYTE):.0f} %" if limit and row.day != EARLIER else "-"
