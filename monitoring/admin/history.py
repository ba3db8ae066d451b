"""Audit entries, grade changes and health log rows in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.decorators import display

from monitoring.admin.grades import grade_chart
from monitoring.admin.recoveries import action_label, change_text
from monitoring.models import AuditEntry, AuditOutcome, Grade, GradeChange, HealthLog
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


@admin.register(AuditEntry)
class AuditEntryAdmin(HistoryAdmin):
    list_display = (
        "timestamp",
        "shown_action",
        "shown_target",
        "shown_outcome",
        "change",
        "seconds",
        "trigger_condition",
        "actor",
    )
    list_filter = ("outcome", "action_type")
    list_select_related = ("match",)
    search_fields = ("actor", "action_type", "target", "trigger_condition")
    ordering = ("-timestamp",)
    date_hierarchy = "timestamp"
    exclude = ("metadata", "before", "after", "match", "target", "outcome")
    readonly_fields = ("shown_target", "shown_outcome", "change", "shown_before", "shown_after", "shown_metadata")
    none_yet = "Every action of operators and of the system is recorded here, with its outcome."

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        rows: QuerySet[AuditEntry] = super().get_queryset(request)
        return rows.select_related("match").defer("match__payload", "match__provenance")

    @admin.display(description="action", ordering="action_type")
    def shown_action(self, entry: AuditEntry) -> str:
        return action_label(entry.action_type)

    @admin.display(description="target", ordering="target")
    def shown_target(self, entry: AuditEntry) -> str:
        """Returns the target with links to its match and to all entries of that match."""
        if entry.match_id is None:
            return entry.target or "-"
        return format_html(
            '<a class="underline" href="{}">{}</a> <a class="underline" href="{}?match__id__exact={}">(all)</a>',
            reverse("admin:scraping_match_change", args=[entry.match_id]),
            entry.target or entry.match,
            reverse("admin:monitoring_auditentry_changelist"),
            entry.match_id,
        )

    @display(description="outcome", label=OUTCOME_COLOURS)  # type: ignore[untyped-decorator]
    def shown_outcome(self, entry: AuditEntry) -> str:
        return entry.outcome

    @admin.display(description="before → after")
    def change(self, entry: AuditEntry) -> str:
        return change_text(entry.before, entry.after) or "-"

    @admin.display(description="took", ordering="duration_seconds")
    def seconds(self, entry: AuditEntry) -> str:
        return f"{entry.duration_seconds:.1f} s" if entry.duration_seconds else "-"

    @admin.display(description="before")
    def shown_before(self, entry: AuditEntry) -> str:
        return json_block(entry.before)

    @admin.display(description="after")
    def shown_after(self, entry: AuditEntry) -> str:
        return json_block(entry.after)

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
    list_before_template = "admin/monitoring/grades.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "chart": grade_chart(timezone.now())}
        page: HttpResponse = super().changelist_view(request, context)
        return page

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
