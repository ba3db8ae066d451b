"""Admin of failed attempts and the groups that they fall into."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson
from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, TruncHour
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget

from scraping.admin import search
from scraping.admin.evidence import links, preview
from scraping.admin.tasks import OPEN_DEAD, group_line, members, retry_selections
from scraping.journal import TaskSelection, error_log
from scraping.models import ErrorGroup, ScrapeError
from victoryline.lib.admin import (
    CAREFUL,
    GOOD,
    NEWS,
    DialogForm,
    HistoryAdmin,
    LimitedForm,
    block,
    column,
    presence_filter,
)
from victoryline.lib.operator_actions import (
    OperationResult,
    OperatorAction,
    OperatorActionsMixin,
    OperatorCall,
    Run,
    for_each,
)

AFFECTED = 10  # shown matches of a group
RED = "var(--color-red-500)"
SUMMARY_LENGTH = 160


class AssignForm(DialogForm):
    user = forms.ModelChoiceField(
        User.objects.filter(is_staff=True, is_active=True),
        to_field_name="username",
        required=False,
        empty_label="nobody",
        widget=UnfoldAdminSelectWidget,
    )

    def clean_user(self) -> str:
        """Returns the name: an operation on many groups keeps it as JSON."""
        return str(self.cleaned_data["user"] or "")


def _assign(pk: int, call: OperatorCall) -> None:
    name = call.values["user"]
    user = User.objects.filter(username=name).first()
    error_log.change_group(
        pk, "group_assigned", reason=f"to {name or 'nobody'}", actor=call.actor, now=call.now, assigned_to=user
    )


def _mute(pk: int, call: OperatorCall) -> None:
    why = f"until {call.until:%Y-%m-%d %H:%M} UTC: {call.reason}"
    error_log.change_group(pk, "group_muted", reason=why, actor=call.actor, now=call.now, muted_until=call.until)


def _unmute(pk: int, call: OperatorCall) -> None:
    error_log.change_group(
        pk, "group_unmuted", reason="no longer muted", actor=call.actor, now=call.now, muted_until=None
    )


def _resolve_group(in_version: str = "") -> Run:
    return for_each(lambda pk, call: error_log.resolve_group(pk, in_version=in_version, actor=call.actor, now=call.now))


def _handling(group: ErrorGroup) -> tuple[str, str]:
    if group.resolved_at:
        return "resolved", f"resolved in the release after {group.resolved_in}" if group.resolved_in else "resolved"
    if group.muted_until and group.muted_until > timezone.now():
        return "muted", f"muted until {group.muted_until:%d %b %H:%M} UTC"
    return "open", "open"


def _affected(group: ErrorGroup) -> SafeString:
    """Returns links to the matches with the most errors of the group."""
    found = group.errors.filter(match__isnull=False).values_list("match_id", "match__title").order_by()
    rows = found.annotate(number=Count("pk")).order_by("-number", "match_id")[:AFFECTED]
    return format_html_join(
        ", ",
        '<a class="underline" href="{}">{}</a> ({})',
        [(reverse("admin:scraping_match_change", args=[pk]), title or pk, number) for pk, title, number in rows],
    ) or format_html("{}", "-")


def _trend(group: ErrorGroup, now: datetime) -> dict[str, str]:
    """Returns the errors of each hour of the last day, as data of unfold's bar chart."""
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=23)
    errors = group.errors.filter(timestamp__gte=first).annotate(hour=TruncHour("timestamp")).order_by()
    counted = dict(errors.values_list("hour").annotate(number=Count("pk")))
    hours = [first + timedelta(hours=number) for number in range(24)]
    bars = {"label": "errors", "data": [counted.get(hour, 0) for hour in hours], "backgroundColor": RED}
    data = {"labels": [f"{hour:%H:%M}" for hour in hours], "datasets": [bars]}
    return {
        "name": "Errors per hour",
        "summary": f"{sum(counted.values()):,} in the last day, UTC",
        "data": orjson.dumps(data).decode(),
    }


@admin.register(ErrorGroup)
class ErrorGroupAdmin(OperatorActionsMixin, HistoryAdmin):
    list_display = (
        "error_code", "handling", "source", "count", "open_dead", "sample_message", "assigned_to", "first_seen_at",
        "last_seen_at", "error_class",
    )  # fmt: skip
    list_filter = (
        presence_filter("resolved", "resolved_at", absent="no", present="yes"), "error_class", "error_code", "source",
        "assigned_to",
    )  # fmt: skip
    change_form_before_template = "admin/scraping/traffic.html"
    search_fields = ("sample_message", "error_code", "fingerprint")
    ordering = ("-last_seen_at",)
    fields = (
        "source", "error_class", "error_code", "shown_sample", "count", "open_dead", "members", "affected",
        "first_seen_at", "last_seen_at", "handling", "assigned_to", "shown_fingerprint",
    )  # fmt: skip
    operate_permission = "scraping.change_scrapetask"
    operated_noun = ("group", "groups")
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
        OperatorAction(
            name="resolve",
            label="Resolve",
            applied="Resolved",
            explanation="The group and its open errors are resolved. The next error of the group reopens it.",
            icon="done",
            is_offered=lambda group: group.resolved_at is None,
            run=_resolve_group(),
        ),
        OperatorAction(
            name="resolve_next",
            label="Resolve in the next release",
            applied="Resolved in the next release:",
            explanation=f"As Resolve, but errors of this version ({settings.VERSION}) do not reopen the group: only "
            "those of a newer one.",
            icon="upgrade",
            is_offered=lambda group: group.resolved_at is None,
            run=_resolve_group(settings.VERSION),
        ),
        OperatorAction(
            name="assign",
            label="Assign",
            applied="Assigned",
            explanation="The name is shown with the group.",
            icon="person",
            form=AssignForm,
            run=for_each(_assign),
        ),
        OperatorAction(
            name="mute",
            label="Mute",
            applied="Muted",
            explanation="New alerts about dead tasks with this error send no message until the end you give. They are "
            "listed as usual.",
            icon="notifications_off",
            form=LimitedForm,
            undo="unmute",
            run=for_each(_mute),
        ),
        OperatorAction(
            name="unmute",
            label="Unmute",
            applied="Unmuted",
            explanation="New alerts send messages again.",
            icon="notifications_active",
            is_offered=lambda group: group.muted_until is not None,
            run=for_each(_unmute),
        ),
    )
    open_dead = column("open dead letters", lambda group: group.open_dead_number, ordering="open_dead_number")
    shown_sample = column("a message of it", lambda group: block(group.sample_message))
    shown_fingerprint = column("fingerprint", lambda group: block(group.fingerprint))
    members = column("see", members)
    handling = column(
        "handling", _handling, label={"open": CAREFUL, "muted": NEWS, "resolved": GOOD}, ordering="resolved_at"
    )
    affected = column("affected matches", _affected)

    def page_context(self, row: ErrorGroup) -> dict[str, Any]:
        return {"charts": [_trend(row, timezone.now())], "charts_label": "Trend"}

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
    list_filter = ("error_class", "error_type", "resolved")
    ordering = ("-timestamp",)  # as the indexes of the filters
    sortable_by = ("timestamp",)
    search_fields = ("id",)  # by `scraping.admin.search`
    search_help_text = "The key, URL or teams of a match, the text, code or fingerprint of an error, or an id."
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
        "operation", "stage", "duration_ms", "http_status", "retry_attempt", "scraper_id",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": facts}),
        ("Resolution", {"fields": ("shown_resolution", "resolution_time", "resolution_method")}),
        ("Group", {"fields": ("shown_group",)}),
        ("Requests", {"fields": ("shown_requests",)}),
        ("Evidence", {"fields": ("shown_files", "shown_evidence", "shown_stack")}),
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ScrapeError], search_term: str
    ) -> tuple[QuerySet[ScrapeError], bool]:
        return queryset.filter(search.errors_by(search_term)) if search_term.strip() else queryset, False

    summary = column("message", lambda error: error.error_message[:SUMMARY_LENGTH] or "-", ordering="error_message")
    shown_message = column("message", lambda error: block(error.error_message))
    shown_stack = column("stack trace", lambda error: block(error.stack_trace))
    shown_evidence = column("its beginning", lambda error: block("" if error.files.exists() else error.evidence))
    shown_files = column("files", _files)
    shown_requests = column(
        "requests", lambda error: render_to_string("admin/scraping/requests.html", {"requests": error.requests})
    )
    shown_group = column("group", group_line)
    shown_resolution = column("resolved", _resolution, label={"open": CAREFUL, "resolved": GOOD}, ordering="resolved")
