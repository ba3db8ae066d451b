"""Admin of the journal: read-only, except that failed and dead tasks can be retried."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from scraping import journal
from scraping.admin import dead_letters
from scraping.admin.evidence import links, preview
from scraping.models import EvidenceKind, ScrapeError, ScrapeTask, TaskState, TaskTransition
from victoryline.lib.admin import (
    BAD,
    CAREFUL,
    GOOD,
    NEWS,
    HistoryAdmin,
    HistoryInline,
    json_block,
)
from victoryline.lib.operator_actions import OperationResult, OperatorAction, OperatorActionsMixin, OperatorCall

STATE_COLOURS = {
    TaskState.SUCCESS.value: GOOD,
    TaskState.DEAD.value: BAD,
    TaskState.FAILED.value: CAREFUL,
    TaskState.EXECUTING.value: NEWS,
}


class TransitionInline(HistoryInline):
    model = TaskTransition
    fields = ("at", "from_state", "to_state", "attempt", "stage", "actor", "reason")
    readonly_fields = fields
    show_change_link = False


class ErrorInline(HistoryInline):
    model = ScrapeError
    fields = (
        "timestamp",
        "error_class",
        "error_type",
        "error_message",
        "operation",
        "http_status",
        "retry_attempt",
        "resolution_method",
    )
    readonly_fields = fields
    ordering = ("id",)


def _retry(ids: Sequence[int], call: OperatorCall) -> OperationResult:
    outcome = journal.retry(task_ids=list(ids), actor=call.actor, now=call.now)
    return OperationResult(len(outcome.retried), [f"task {pk}: {why}" for pk, why in outcome.refused.items()])


@admin.register(ScrapeTask)
class ScrapeTaskAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "id",
        "shown_state",
        "stage",
        "resource",
        "match",
        "attempt",
        "reason",
        "run_at",
        "finished_at",
        "worker_id",
    )
    list_display_links = ("id", "shown_state")
    list_filter = ("state", "resource", "priority", "source", "error_class", "stage")
    list_select_related = ("source", "ref__match")
    search_fields = ("=id", "request_id", "ref__source_event_id", "ref__match__title", "reason", "worker_id")
    ordering = ("-id",)
    operate_permission = "scraping.change_scrapetask"
    operated_noun = ("task", "tasks")
    operator_actions = (
        OperatorAction(
            name="retry",
            label="Retry",
            applied="Retried",
            explanation="The task is due at once, with all of its attempts. Only failed and dead tasks can be retried.",
            icon="refresh",
            run=_retry,
        ),
    )
    inlines = (TransitionInline, ErrorInline)
    readonly_fields = ("shown_error", "what_happened", "what_next", "shown_files", "shown_group")
    fieldsets = (
        (None, {"fields": ("what_happened", "what_next", "shown_group", "shown_files")}),
        ("Work", {"fields": ("source", "ref", "job", "resource", "priority", "request_id")}),
        ("State", {"fields": ("state", "stage", "attempt", "charged_attempts", "rescues", "error_class", "reason")}),
        ("Times", {"fields": ("created_at", "run_at", "hinted_at", "started_at", "finished_at")}),
        ("Lease", {"fields": ("worker_id", "fence", "lease_until")}),
        ("Error", {"fields": ("shown_error",)}),
    )

    @display(description="state", label=STATE_COLOURS, ordering="state")  # type: ignore[untyped-decorator]
    def shown_state(self, task: ScrapeTask) -> str:
        return task.state

    @admin.display(description="match")
    def match(self, task: ScrapeTask) -> str:
        return str(task.ref.match) if task.ref else "-"

    @admin.display(description="error")
    def shown_error(self, task: ScrapeTask) -> str:
        return json_block(task.error)

    @admin.display(description="what happened")
    def what_happened(self, task: ScrapeTask) -> str:
        return dead_letters.what_happened(task)

    @admin.display(description="what to do next")
    def what_next(self, task: ScrapeTask) -> str:
        return dead_letters.what_next(task)

    @admin.display(description="error group")
    def shown_group(self, task: ScrapeTask) -> SafeString:
        error = dead_letters.last_error(task)
        return dead_letters.group_line(error.group if error else None)

    @admin.display(description="evidence")
    def shown_files(self, task: ScrapeTask) -> SafeString:
        rows = dead_letters.evidence_of(task)
        pictures = [preview(row) for row in rows if row.kind == EvidenceKind.SCREENSHOT]
        return format_html("{}{}", links(rows), pictures[0] if pictures else "")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScrapeTask]:
        rows: QuerySet[ScrapeTask] = super().get_queryset(request)
        return rows.select_related("source", "ref__source", "ref__match").defer(
            "ref__payload", "ref__match__payload", "ref__match__provenance", "source__metadata"
        )

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """By match too, and by kind of error: the match's page, alerts and error groups lead here."""
        known = {"ref__match__id__exact", "errors__group__id__exact"}
        return lookup in known or bool(super().lookup_allowed(lookup, value, request))


@admin.register(TaskTransition)
class TaskTransitionAdmin(HistoryAdmin):
    list_display = ("at", "task_id", "from_state", "to_state", "attempt", "stage", "actor", "reason")
    list_filter = ("to_state", "stage")
    search_fields = ("=task__id", "actor", "reason")
    ordering = ("-id",)
