"""Alerts, audit, grades and health rows."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from monitoring.models import Alert, AuditEntry, AuditOutcome, Grade, GradeChange, HealthLog, Severity
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, HistoryAdmin, json_block

GRADE_COLOURS = {
    Grade.HEALTHY.value: GOOD,
    Grade.DEGRADED.value: CAREFUL,
    Grade.RECOVERING.value: NEWS,
    Grade.FAILING.value: BAD,
}
OUTCOME_COLOURS = {
    AuditOutcome.SUCCESS.value: GOOD,
    AuditOutcome.PARTIAL.value: CAREFUL,
    AuditOutcome.FAILED.value: BAD,
    AuditOutcome.PENDING.value: NEWS,
}


class IsOpen(admin.SimpleListFilter):
    title = "open"
    parameter_name = "open"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Alert]) -> QuerySet[Alert]:
        if self.value() in {"yes", "no"}:
            return queryset.filter(closed_at__isnull=self.value() == "yes")
        return queryset


@admin.register(Alert)
class AlertAdmin(HistoryAdmin):
    list_display = ("shown_severity", "summary", "count", "opened_at", "last_seen_at", "closed_at")
    list_display_links = ("summary",)
    list_filter = (IsOpen, "severity")
    search_fields = ("key", "summary")
    ordering = ("-opened_at",)
    date_hierarchy = "opened_at"
    exclude = ("detail",)
    readonly_fields = ("shown_detail",)

    @display(  # type: ignore[untyped-decorator]
        description="severity", label={Severity.CRITICAL.value: BAD, Severity.WARNING.value: CAREFUL}
    )
    def shown_severity(self, alert: Alert) -> str:
        return alert.severity

    @admin.display(description="detail")
    def shown_detail(self, alert: Alert) -> str:
        return json_block(alert.detail)


@admin.register(AuditEntry)
class AuditEntryAdmin(HistoryAdmin):
    list_display = ("timestamp", "actor", "action_type", "target", "trigger_condition", "shown_outcome", "seconds")
    list_filter = ("action_type", "outcome")
    search_fields = ("actor", "action_type", "target", "trigger_condition")
    ordering = ("-timestamp",)
    date_hierarchy = "timestamp"
    exclude = ("metadata",)
    readonly_fields = ("shown_metadata",)

    @display(description="outcome", label=OUTCOME_COLOURS)  # type: ignore[untyped-decorator]
    def shown_outcome(self, entry: AuditEntry) -> str:
        return entry.outcome

    @admin.display(description="took", ordering="duration_seconds")
    def seconds(self, entry: AuditEntry) -> str:
        return f"{entry.duration_seconds:.1f} s" if entry.duration_seconds else "-"

    @admin.display(description="metadata")
    def shown_metadata(self, entry: AuditEntry) -> str:
        return json_block(entry.metadata)


@admin.register(GradeChange)
class GradeChangeAdmin(HistoryAdmin):
    list_display = ("at", "shown_from", "shown_to", "reason")
    list_filter = ("to_grade",)
    search_fields = ("reason",)
    ordering = ("-at",)
    date_hierarchy = "at"

    @display(description="from", label=GRADE_COLOURS)  # type: ignore[untyped-decorator]
    def shown_from(self, change: GradeChange) -> str:
        return change.from_grade

    @display(description="to", label=GRADE_COLOURS)  # type: ignore[untyped-decorator]
    def shown_to(self, change: GradeChange) -> str:
        return change.to_grade


@admin.register(HealthLog)
class HealthLogAdmin(HistoryAdmin):
    list_display = (
        "timestamp",
        "match",
        "health_status",
        "error_count",
        "memory_mb",
        "cpu_percent",
        "update_latency_ms",
        "polling_interval_seconds",
        "uptime_seconds",
        "last_update_age_seconds",
    )
    list_filter = ("health_status",)
    list_select_related = ("match",)
    search_fields = ("match__title", "scraper_id")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[HealthLog]:
        rows: QuerySet[HealthLog] = super().get_queryset(request)
        return rows.select_related("match").defer("match__payload", "match__provenance")
