"""Audit entries, grade changes and health log rows in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from monitoring.admin.grades import grade_chart
from monitoring.admin.recoveries import action_label, change_text
from monitoring.models import AuditEntry, AuditOutcome, Grade, GradeChange, HealthLog
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, HistoryAdmin, column, json_column

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


def _target(entry: AuditEntry) -> str:
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


@admin.register(AuditEntry)
class AuditEntryAdmin(HistoryAdmin):
    list_display = (
        *("timestamp", "shown_action", "shown_target", "shown_outcome", "change", "seconds"),
        *("trigger_condition", "actor"),
    )
    list_filter = ("outcome", "action_type")
    joined = ("match",)
    search_fields = ("actor", "action_type", "target", "trigger_condition")
    ordering = ("-timestamp",)
    date_hierarchy = "timestamp"
    exclude = ("metadata", "before", "after", "match", "target", "outcome")
    readonly_fields = ("shown_target", "shown_outcome", "change", "shown_before", "shown_after", "shown_metadata")
    none_yet = "Every action of operators and of the system is recorded here, with its outcome."

    shown_action = column("action", lambda entry: action_label(entry.action_type), ordering="action_type")
    shown_target = column("target", _target, ordering="target")
    shown_outcome = column("outcome", lambda entry: entry.outcome, label=OUTCOME_COLOURS)
    change = column("before → after", lambda entry: change_text(entry.before, entry.after) or "-")
    seconds = column(
        "took",
        lambda entry: f"{entry.duration_seconds:.1f} s" if entry.duration_seconds else "-",
        ordering="duration_seconds",
    )
    shown_before = json_column("before")
    shown_after = json_column("after")
    shown_metadata = json_column("metadata")


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

    shown_from = column("from", lambda change: change.from_grade, label=GRADE_COLOURS)
    shown_to = column("to", lambda change: change.to_grade, label=GRADE_COLOURS)


@admin.register(HealthLog)
class HealthLogAdmin(HistoryAdmin):
    list_display = (
        *("timestamp", "match", "health_status", "error_count", "memory_mb", "cpu_percent", "update_latency_ms"),
        *("polling_interval_seconds", "uptime_seconds", "last_update_age_seconds"),
    )
    list_filter = ("health_status",)
    joined = ("match",)
    search_fields = ("match__title", "scraper_id")
    ordering = ("-id",)
