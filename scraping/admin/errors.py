"""Failed attempts and the groups that they fall into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.forms import BaseDialogForm

from scraping.admin import dead_letters
from scraping.admin.evidence import links, preview
from scraping.admin.jobs import retry_and_tell
from scraping.journal import TaskSelection, error_log
from scraping.models import ErrorGroup, ScrapeError
from victoryline.lib.admin import CAREFUL, GOOD, HistoryAdmin, after_dialog, asks_first, block
from victoryline.lib.operator_actions import OperationResult, OperatorAction, OperatorActionsMixin, OperatorCall

SUMMARY_LENGTH = 160


@admin.register(ErrorGroup)
class ErrorGroupAdmin(HistoryAdmin):
    list_display = (
        "error_type",
        "error_class",
        "source",
        "count",
        "open_dead",
        "sample_message",
        "first_seen_at",
        "last_seen_at",
    )
    list_filter = ("error_class", "error_type", "source")
    list_select_related = ("source",)
    search_fields = ("sample_message", "error_type", "fingerprint")
    ordering = ("-last_seen_at",)
    fields = (
        "source",
        "error_class",
        "error_type",
        "shown_sample",
        "count",
        "open_dead",
        "members",
        "first_seen_at",
        "last_seen_at",
        "shown_fingerprint",
    )
    readonly_fields = ("shown_sample", "open_dead", "members", "shown_fingerprint")
    actions = ("retry_groups",)
    actions_detail = ("retry_group",)

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm("scraping.change_scrapetask"))

    @admin.action(description="Retry all of these groups", permissions=["operate"])
    def retry_groups(self, request: HttpRequest, groups: QuerySet[ErrorGroup]) -> None:
        for fingerprint in groups.values_list("fingerprint", flat=True):
            retry_and_tell(request, TaskSelection(fingerprint=fingerprint))

    @asks_first(
        "Retry all of this group",
        icon="refresh",
        permission="operate",
        title="Retry all of this group",
        explanation=(
            "Every failed or dead task with this error is due at once, with all of its attempts, unless a later task "
            "has succeeded."
        ),
        button="Retry",
    )
    def retry_group(self, request: HttpRequest, form: BaseDialogForm, object_id: int) -> HttpResponse:
        fingerprint = ErrorGroup.objects.values_list("fingerprint", flat=True).get(pk=object_id)
        retry_and_tell(request, TaskSelection(fingerprint=fingerprint))
        return after_dialog(request, reverse("admin:scraping_errorgroup_change", args=[object_id]))

    def get_queryset(self, request: HttpRequest) -> QuerySet[ErrorGroup]:
        rows: QuerySet[ErrorGroup] = super().get_queryset(request)
        dead = ScrapeError.objects.filter(dead_letters.OPEN_DEAD, group=OuterRef("pk")).order_by().values("group")
        number = dead.annotate(number=Count("task", distinct=True)).values("number")
        return rows.annotate(open_dead_number=Coalesce(Subquery(number), 0))

    @admin.display(description="open dead letters", ordering="open_dead_number")
    def open_dead(self, group: ErrorGroup) -> int:
        return int(getattr(group, "open_dead_number", 0))

    @admin.display(description="a message of it")
    def shown_sample(self, group: ErrorGroup) -> SafeString:
        return block(group.sample_message)

    @admin.display(description="fingerprint")
    def shown_fingerprint(self, group: ErrorGroup) -> SafeString:
        return block(group.fingerprint)

    @admin.display(description="see")
    def members(self, group: ErrorGroup) -> SafeString:
        return dead_letters.members(group)


def _resolve(ids: Sequence[int], call: OperatorCall) -> OperationResult:
    resolved = error_log.resolve_by_hand(list(ids), actor=call.actor, now=call.now)
    left = len(ids) - resolved
    return OperationResult(resolved, [f"{left} resolved already"] if left else ())


@admin.register(ScrapeError)
class ScrapeErrorAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "timestamp",
        "shown_resolution",
        "error_type",
        "match",
        "summary",
        "http_status",
        "retry_attempt",
        "operation",
        "error_class",
    )
    list_filter = ("error_class", "error_type", "resolved", "resolution_method")
    list_select_related = ("match",)
    search_fields = ("error_message", "error_type", "match__title", "url")
    ordering = ("-id",)
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
    readonly_fields = (
        "shown_message",
        "shown_stack",
        "shown_evidence",
        "shown_files",
        "shown_group",
        "shown_resolution",
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "timestamp",
                    "match",
                    "task",
                    "error_class",
                    "error_type",
                    "shown_message",
                    "url",
                    "operation",
                    "http_status",
                    "retry_attempt",
                    "scraper_id",
                )
            },
        ),
        ("Resolution", {"fields": ("shown_resolution", "resolution_time", "resolution_method")}),
        ("Group", {"fields": ("shown_group",)}),
        ("What was seen", {"fields": ("shown_files", "shown_evidence", "shown_stack")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScrapeError]:
        rows: QuerySet[ScrapeError] = super().get_queryset(request)
        return rows.select_related("match").defer("match__payload", "match__provenance")

    @admin.display(description="message", ordering="error_message")
    def summary(self, error: ScrapeError) -> str:
        return error.error_message[:SUMMARY_LENGTH] or "-"

    @admin.display(description="message")
    def shown_message(self, error: ScrapeError) -> SafeString:
        return block(error.error_message)

    @admin.display(description="stack trace")
    def shown_stack(self, error: ScrapeError) -> SafeString:
        return block(error.stack_trace)

    @admin.display(description="its beginning")
    def shown_evidence(self, error: ScrapeError) -> SafeString:
        return block("" if error.files.exists() else error.evidence)  # the files say it all

    @admin.display(description="files")
    def shown_files(self, error: ScrapeError) -> SafeString:
        rows = list(error.files.order_by("pk"))
        shown = format_html_join(
            "", '<div class="console-piece">{}{}</div>', ((links([row]), preview(row)) for row in rows)
        )
        return shown or links([])

    @admin.display(description="group")
    def shown_group(self, error: ScrapeError) -> SafeString:
        return dead_letters.group_line(error.group)

    @display(description="resolved", label={"open": CAREFUL, "resolved": GOOD}, ordering="resolved")  # type: ignore[untyped-decorator]
    def shown_resolution(self, error: ScrapeError) -> tuple[str, str]:
        if not error.resolved:
            return "open", "open"
        return "resolved", error.resolution_method.replace("_", " ") or "resolved"
