"""Admin pages of the access log and of usage, with charts of all consumers or of one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.decorators import display

from apiauth.admin import usage_charts
from apiauth.models import AccessLog, Consumer, UsageHour
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, HistoryAdmin

CONSUMER = "consumer__id__exact"
OUTCOMES: dict[str, tuple[str, Q]] = {
    "answered": ("answered (2xx)", Q(response_status__lt=300)),
    "unchanged": ("unchanged (304)", Q(response_status=304)),
    "refused": ("refused (4xx)", Q(response_status__gte=400, response_status__lt=500) & ~Q(response_status=429)),
    "throttled": ("throttled (429)", Q(response_status=429)),
    "failed": ("failed (5xx)", Q(response_status__gte=500)),
}
SPANS = {
    "15m": ("last 15 minutes", timedelta(minutes=15)),
    "1h": ("last hour", timedelta(hours=1)),
    "24h": ("last 24 hours", timedelta(hours=24)),
    "7d": ("last 7 days", timedelta(days=7)),
}
NO_ROUTE = "-"


class When(admin.SimpleListFilter):
    title = "time"
    parameter_name = "when"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(key, label) for key, (label, _) in SPANS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AccessLog]) -> QuerySet[AccessLog]:
        chosen = SPANS.get(self.value() or "")
        return queryset.filter(timestamp__gte=timezone.now() - chosen[1]) if chosen else queryset


class Outcome(admin.SimpleListFilter):
    title = "outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(key, label) for key, (label, _) in OUTCOMES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AccessLog]) -> QuerySet[AccessLog]:
        chosen = OUTCOMES.get(self.value() or "")
        return queryset.filter(chosen[1]) if chosen else queryset


class Route(admin.SimpleListFilter):
    """Offers the routes of the hourly sums: finding them in the log itself would read all of it."""

    title = "address"
    parameter_name = "route"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        known = UsageHour.objects.order_by("route").values_list("route", flat=True).distinct()
        return [*((route, route) for route in known if route), (NO_ROUTE, "no such address")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AccessLog]) -> QuerySet[AccessLog]:
        value = self.value()
        return queryset if value is None else queryset.filter(route="" if value == NO_ROUTE else value)


def outcome_of(status: int) -> str:
    if status == 429:
        return "throttled"
    return "good" if status < 300 else "unchanged" if status < 400 else "refused" if status < 500 else "failed"


STATUS_COLOURS = {"good": GOOD, "unchanged": NEWS, "refused": CAREFUL, "throttled": CAREFUL, "failed": BAD}


@admin.register(AccessLog)
class AccessLogAdmin(HistoryAdmin):
    list_display = (
        *("timestamp", "consumer", "key_prefix", "method", "endpoint", "shown_status"),
        *("shown_age", "data_state", "shown_duration", "request_id"),
    )
    list_filter = (When, Outcome, Route, "consumer")
    list_select_related = ("consumer",)
    search_fields = ("request_id__exact", "endpoint__startswith", "key_prefix__exact")
    search_help_text = "A request id, the beginning of an address, or a key's prefix."
    ordering = ("-timestamp",)
    none_yet = "No requests yet. Every request to the API and for a token is a row here."

    @display(description="status", ordering="response_status", label=STATUS_COLOURS)  # type: ignore[untyped-decorator]
    def shown_status(self, row: AccessLog) -> tuple[str, str]:
        return outcome_of(row.response_status), str(row.response_status)

    @admin.display(description="age", ordering="data_age_seconds")
    def shown_age(self, row: AccessLog) -> str:
        return "-" if row.data_age_seconds is None else f"{row.data_age_seconds:,.0f} s"

    @admin.display(description="took", ordering="duration_ms")
    def shown_duration(self, row: AccessLog) -> str:
        return f"{row.duration_ms:,} ms"


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

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "usage": _usage(request)}
        page: HttpResponse = super().changelist_view(request, context)
        return page

    @admin.display(description="address", ordering="route")
    def shown_route(self, row: UsageHour) -> str:
        return row.route or "(no such address)"

    @admin.display(description="mean time")
    def mean_ms(self, row: UsageHour) -> str:
        return f"{row.duration_ms_total / row.requests:,.1f} ms" if row.requests else "-"

    @admin.display(description="slowest", ordering="duration_ms_most")
    def slowest(self, row: UsageHour) -> str:
        return f"{row.duration_ms_most:,} ms"

    @admin.display(description="mean age")
    def mean_age(self, row: UsageHour) -> str:
        return f"{row.age_seconds_total / row.aged:,.1f} s" if row.aged else "-"

    @admin.display(description="oldest", ordering="age_seconds_most")
    def oldest(self, row: UsageHour) -> str:
        return f"{row.age_seconds_most:,.0f} s" if row.aged else "-"


def _usage(request: HttpRequest) -> dict[str, Any]:
    now, chosen = timezone.now(), request.GET.get(CONSUMER, "")
    is_number = chosen.isascii() and chosen.isdigit() and len(chosen) < 20  # a longer one can't be converted
    consumer = Consumer.objects.filter(pk=chosen).first() if is_number else None
    pk = consumer.pk if consumer else None
    return {
        "consumer": consumer,
        "charts": usage_charts.charts(now, pk),
        "headings": usage_charts.HEADINGS,
        "routes": usage_charts.routes_table(now, pk),
        "consumers": [] if consumer else usage_charts.consumers_table(now),
    }
