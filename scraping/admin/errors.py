"""Admin of failed attempts and the groups that they fall into."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from scraping.admin.evidence import links, preview
from scraping.admin.tasks import OPEN_DEAD, group_line, members, retry_selections
from scraping.journal import TaskSelection, error_log
from scraping.models import ErrorGroup, ScrapeError
from victoryline.lib.admin import CAREFUL, GOOD, HistoryAdmin, block, column
from victoryline.lib.operator_actions import OperationResult, OperatorAction, OperatorActionsMixin, OperatorCall

SUMMARY_LENGTH = 160


@admin.register(ErrorGroup)
class ErrorGroupAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "error_code", "error_class", "source", "count", "open_dead", "sample_message", "first_seen_at", "last_seen_at",
    )  # fmt: skip
    list_filter = ("error_class", "error_code", "source")
    search_fields = ("sample_message", "error_code", "fingerprint")
    ordering = ("-last_seen_at",)
    fields = (
        "source", "error_class", "error_code", "shown_sample", "count", "open_dead", "members", "first_seen_at",
        "last_seen_at", "shown_fingerprint",
    )  # fmt: skip
    operate_permission = "scraping.change_scrapetask"
    operated_noun = ("task", "tasks")
    operator_actions = (
        OperatorAction(
            name="retry",
            label="Retry all",
            applied="Retried",
            explanation="Every failed or dead task with this error is due at once, with all of its attempts, unless a "
            "later task has succeeded.",
            icon="refresh",
            run=retry_selections(lambda pk: TaskSelection(fingerprint=ErrorGroup.objects.get(pk=pk).fingerprint)),
        ),
    )
    open_dead = column("open dead letters", lambda group: group.open_dead_number, ordering="open_dead_number")
    shown_sample = column("a message of it", lambda group: block(group.sample_message))
    shown_fingerprint = column("fingerprint", lambda group: block(group.fingerprint))
    members = column("see", members)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ErrorGroup]:
        dead = ScrapeError.objects.filter(OPEN_DEAD, group=OuterRef("pk")).order_by().values("group")
        number = dead.annotate(number=Count("task", distinct=True)).values("number")
        rows: QuerySet[ErrorGroup] = super().get_queryset(request)
        return rows.annotate(open_dead_number=Coalesce(Subquery(number), 0))


def _resolve(ids: Sequence[int], call: OperatorCall) -> OperationResult:
    resolved = error_log.resolve_by_hand(list(ids), actor=call.actor, now=call.now)
    left = len(ids) - resolved
    return OperationResult(resolved, [f"{left} resolved already"] if left else ())


def _files(error: ScrapeError) -> SafeString:
    shown = ((links([row]), preview(row)) for row in error.files.order_by("pk"))
    return format_html_join("", '<div class="console-piece">{}{}</div>', shown) or links([])


def _resolution(error: ScrapeError) -> tuple[str, str]:
    if not error.resolved:
        return "open", "open"
    return "resolved", error.resolution_method.replace("_", " ") or "resolved"


@admin.register(ScrapeError)
class ScrapeErrorAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "timestamp", "shown_resolution", "error_type", "error_code", "match", "summary", "http_status", "retry_attempt",
        "operation", "error_class",
    )  # fmt: skip
    list_filter = ("error_class", "error_type", "resolved", "resolution_method")
    search_fields = ("error_message", "error_code", "match__title", "match_key", "url")
    operate_permission = "scraping.change_scrapeerror"
    operated_noun = ("error", "errors")
    operator_actions = (
        OperatorAction(
            name="resolve",
            label="Mark as resolved",
            applied="Resolved",
            explanation="For an error that no later success will resolve. Nothing is retried, nothing is deleted.",
            icon="done",
            run=_resolve,
        ),
    )
    facts = (
        "timestamp", "match", "match_key", "task", "error_type", "error_class", "error_code", "shown_message", "url",
        "operation", "http_status", "retry_attempt", "scraper_id",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": facts}),
        ("Resolution", {"fields": ("shown_resolution", "resolution_time", "resolution_method")}),
        ("Group", {"fields": ("shown_group",)}),
        ("Evidence", {"fields": ("shown_files", "shown_evidence", "shown_stack")}),
    )
    summary = column("message", lambda error: error.error_message[:SUMMARY_LENGTH] or "-", ordering="error_message")
    shown_message = column("message", lambda error: block(error.error_message))
    shown_stack = column("stack trace", lambda error: block(error.stack_trace))
    shown_evidence = column("its beginning", lambda error: block("" if error.files.exists() else error.evidence))
    shown_files = column("files", _files)
    shown_group = column("group", group_line)
    shown_resolution = column("resolved", _resolution, label={"open": CAREFUL, "resolved": GOOD}, ordering="resolved")
