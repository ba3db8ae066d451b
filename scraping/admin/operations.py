"""Actions on all rows that match: the page that previews and starts one, and the table with progress and abort."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import display_for_value, label_for_field, lookup_field
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminTextInputWidget

from scraping.jobs import operations
from scraping.models import OPEN_OPERATIONS, BulkOperation, OperationState
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, DialogForm, HistoryAdmin, column, username
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.operator_actions import (
    OperatorAction,
    OperatorActionsMixin,
    bulk_url,
    find_action,
    find_table,
    for_each,
)
from victoryline.lib.operators import OperationRefused

SAMPLES, SAMPLE_COLUMNS = 5, 5
INLINE_SECONDS = 1.0  # small operations end before the answer; the scheduler goes on with the others
NO_FILTER = ("p", "o", "all", "e")  # parameters of the list that select no rows
STATE_COLOURS = {
    OperationState.RUNNING.value: NEWS,
    OperationState.DONE.value: GOOD,
    OperationState.ABORTED.value: CAREFUL,
    OperationState.FAILED.value: BAD,
}


class OptionalReasonForm(DialogForm):
    reason = forms.CharField(
        max_length=150,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Optional. Stored with the operation and in the audit.",
    )


def start_view(request: HttpRequest, table: str, action: str, **_: Any) -> HttpResponse:
    """GET previews an action on all rows that the query string selects, POST starts it."""
    try:
        chosen, target = find_action(table, action), find_table(table)
    except (LookupError, ValueError, NotRegistered) as error:
        raise Http404 from error
    if not (target.has_view_permission(request) and target.has_operate_permission(request)):
        raise PermissionDenied
    rows, filter_text = _selected(request, target)
    form = (chosen.form or OptionalReasonForm)(request=request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        fields = {name: value for name, value in form.cleaned_data.items() if not name.startswith("_")}
        try:
            ids = list(rows.order_by().values_list("pk", flat=True)[: operations.MOST_ROWS + 1])
            operation = operations.begin(
                table, action, ids, filter_text=filter_text, values=fields, actor=username(request), now=timezone.now()
            )
        except OperationRefused as refusal:
            form.add_error(None, str(refusal))
        else:
            with suppress(*DATABASE_AWAY):  # another writer was in the way: the scheduler goes on
                operations.work(operation.pk, seconds=INLINE_SECONDS)
            return redirect("admin:scraping_bulkoperation_change", operation.pk)
    return render(
        request,
        "admin/operations/start.html",
        {
            **admin.site.each_context(request),
            "title": chosen.label,
            "opts": target.opts,
            "action": chosen,
            "count": rows.order_by().values("pk")[: operations.MOST_ROWS + 1].count(),
            "most": operations.MOST_ROWS,
            "noun": target.opts.verbose_name_plural,
            "filter": filter_text,
            "samples": _samples(target, rows[:SAMPLES]),
            "form": form,
            "back": f"{reverse(f'admin:{target.opts.app_label}_{target.opts.model_name}_changelist')}"
            f"?{'' if 'of' in request.GET else request.GET.urlencode()}",
        },
    )


def _selected(request: HttpRequest, target: Any) -> tuple[QuerySet[Any], str]:
    """Returns the rows that the list shows for this query string; `of`: those that an operation was applied to."""
    if of := request.GET.get("of", ""):
        ids = operations.applied_ids(int(of)) if of.isdigit() else []
        return target.get_queryset(request).filter(pk__in=ids).order_by("pk"), f"the rows of operation {of}"
    asked = request.GET
    request.GET = asked.copy()  # type: ignore[assignment]  # the list reads its parameters there
    for name in NO_FILTER:
        request.GET.pop(name, None)  # type: ignore[misc]
    try:
        rows: QuerySet[Any] = target.get_changelist_instance(request).queryset
    except IncorrectLookupParameters as error:
        raise Http404 from error
    finally:
        shown, request.GET = request.GET, asked
    text = ", ".join(f"{name.removesuffix('__exact').replace('__', ' ')}: {value}" for name, value in shown.items())
    return rows, text.replace("q: ", "search: ", 1) if "q" in shown else text


def _samples(target: Any, rows: Iterable[Any]) -> dict[str, Any]:
    names = [name for name in target.list_display if name != "action_checkbox"][:SAMPLE_COLUMNS]
    return {
        "headers": [label_for_field(name, target.model, target) for name in names],
        "rows": [[display_for_value(lookup_field(name, row, target)[2], "-") for name in names] for row in rows],
    }


def _undo_link(operation: BulkOperation) -> str:
    """Returns a link to the action that reverses an ended operation; a dash where there is none."""
    try:
        undo = find_action(operation.table, operation.action).undo
    except (LookupError, NotRegistered):
        return "-"
    if not undo or not operation.applied or operation.state in OPEN_OPERATIONS:
        return "-"
    url = bulk_url(operation.table, undo, f"of={operation.pk}")
    return format_html('<a class="underline" href="{}">{}</a>', url, find_action(operation.table, undo).label)


def _progress(operation: BulkOperation) -> str:
    return f"{operation.position:,} of {operation.total:,}"


@admin.register(BulkOperation)
class BulkOperationAdmin(OperatorActionsMixin, HistoryAdmin):
    none_yet = "An action on all rows that match a filter, or with a form on several rows, is listed here."
    list_display = (
        *("id", "label", "table", "shown_state", "progress", "applied", "refused", "actor", "reason"),
        *("created_at", "finished_at"),
    )
    list_display_links = ("id", "label")
    list_filter = ("state", "table", "action")
    search_fields = ("=id", "actor", "reason", "filter", "label")
    fields = (
        *("label", "table", "filter", "actor", "reason", "applied", "refused", "undo"),
        *("created_at", "started_at", "finished_at"),
    )
    change_form_before_template = "admin/operations/progress.html"
    operate_permission = "scraping.change_bulkoperation"
    operated_noun = ("operation", "operations")
    operator_actions = (
        OperatorAction(
            name="abort",
            label="Abort",
            applied="Aborted",
            explanation="It stops after the batch that is running. What was applied stays applied; the rest is not "
            "touched.",
            icon="stop_circle",
            is_offered=lambda operation: operation.state in OPEN_OPERATIONS,
            is_for_selection=False,
            run=for_each(lambda pk, call: operations.abort(pk, actor=call.actor, now=call.now)),
        ),
    )
    shown_state = column("state", lambda operation: operation.state, label=STATE_COLOURS, ordering="state")
    progress = column("progress", _progress)
    undo = column("undo", _undo_link)

    def get_custom_urls(self) -> tuple[tuple[str, str, Any], ...]:
        return (("start/<str:table>/<str:action>/", "scraping_bulkoperation_start", start_view),)

    def page_context(self, row: BulkOperation) -> dict[str, Any]:
        return {"operation": row, "state_colour": STATE_COLOURS.get(row.state, "")}
