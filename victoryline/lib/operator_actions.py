"""Operator actions of the admin, one declaration each: for selected rows, on the page of a row, for all that match.

`run` calls the function that the API and the commands call too; it raises OperationRefused where the action cannot be
applied. An action on all rows that match the filter of the list, or with a form on several, goes through the page
BULK_PAGE: preview, reason, progress (scraping.admin.operations).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.decorators import action as dialog_action
from unfold.enums import ActionVariant
from unfold.forms import BaseDialogForm

from victoryline.lib.admin import DialogForm, after_dialog, username
from victoryline.lib.operators import OperationRefused

SHOWN_REFUSALS = 5
BULK_PAGE = "admin:scraping_bulkoperation_start"


@dataclass(frozen=True)
class OperatorCall:
    """One use of an action: the operator, the time and the values of the dialog's form."""

    actor: str
    now: datetime
    values: Mapping[str, Any]

    @property
    def until(self) -> datetime:
        return self.now + timedelta(minutes=self.values["minutes"])

    @property
    def reason(self) -> str:
        """The operator's reason; empty where the form has none."""
        return str(self.values.get("reason") or "")


@dataclass(frozen=True)
class OperationResult:
    applied: int
    refusals: Sequence[str] = ()
    note: str = ""  # shown after the number of applied rows
    noun: tuple[str, str] | None = None  # of what was applied, where it is not the table's
    ids: Sequence[Any] = ()  # of the rows that the action was applied to, for an undo


Run = Callable[[Sequence[int], OperatorCall], OperationResult]


@dataclass(frozen=True, kw_only=True)
class OperatorAction:
    """A row of `operator_actions`. Its methods are named `<name>_selected` and `<name>_one`."""

    name: str
    label: str  # on the button
    applied: str  # "Paused": followed by the number and the noun
    explanation: str  # in the dialog: what will happen, and what stays safe
    run: Run
    icon: str = "play_arrow"
    form: type[BaseDialogForm] | None = None
    undo: str = ""  # the name of the action that reverses it
    is_offered: Callable[[Any], bool] = lambda _: True  # on the page of this row
    is_for_selection: bool = True  # and for all that match
    is_on_page: bool = True


def for_each(apply: Callable[[int, OperatorCall], object]) -> Run:
    """Returns a `run` that applies a function row by row and collects the refusals."""

    def run(ids: Sequence[int], call: OperatorCall) -> OperationResult:
        refusals, applied = [], []
        for pk in ids:
            try:
                apply(pk, call)
                applied.append(pk)
            except (OperationRefused, ObjectDoesNotExist) as refusal:
                refusals.append(str(refusal))
        return OperationResult(len(applied), refusals, ids=applied)

    return run


def find_table(table: str) -> Any:
    """Returns the ModelAdmin of a table, such as scraping.scrapetask."""
    return admin.site.get_model_admin(apps.get_model(table))


def find_action(table: str, name: str) -> OperatorAction:
    """Returns a declared action of a table; raises LookupError if it has none of this name."""
    for one in getattr(find_table(table), "operator_actions", ()):
        if one.name == name:
            return one  # type: ignore[no-any-return]
    raise LookupError(f"{table} has no action {name}")


def bulk_url(table: str, action: str, query: str) -> str:
    """Returns the page that applies an action to all rows that a query string of the list selects."""
    return f"{reverse(BULK_PAGE, args=[table, action])}?{query}"


class OperatorActionsMixin:
    """Adds the methods of `operator_actions` to a ModelAdmin. All of them need `operate_permission`."""

    operator_actions: Sequence[OperatorAction] = ()
    operate_permission = ""
    operated_noun = ("row", "rows")
    actions: Any = ()
    actions_detail: Any = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for one in cls.__dict__.get("operator_actions", ()):
            if one.is_for_selection:
                setattr(cls, f"{one.name}_selected", _for_selection(one))
                cls.actions = (*cls.actions, f"{one.name}_selected")
            if one.is_on_page:
                setattr(cls, f"{one.name}_one", _on_page(one))
                cls.actions_detail = (*cls.actions_detail, f"{one.name}_one")

    def has_operate_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return bool(request.user.has_perm(self.operate_permission))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Adds the menu of actions on all rows that match the search and the filters."""
        response: HttpResponse = super().changelist_view(request, extra_context)  # type: ignore[misc]  # of unfold
        context = getattr(response, "context_data", None) or {}
        items = [self._menu_item(one, request) for one in self.operator_actions if one.is_for_selection]
        if "actions_list" in context and items and self.has_operate_permission(request):
            menu = {"title": "All that match", "icon": "done_all", "variant": ActionVariant.DEFAULT, "items": items}
            context["actions_list"] = [*context["actions_list"], menu]
        return response

    def _menu_item(self, action: OperatorAction, request: HttpRequest) -> dict[str, Any]:
        path = bulk_url(self.opts.label_lower, action.name, request.GET.urlencode())  # type: ignore[attr-defined]
        return {"title": action.label, "icon": action.icon, "variant": ActionVariant.DEFAULT, "path": path}

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves out the actions that the row refuses anyway."""
        found: list[Any] = super().get_actions_detail(request, object_id)  # type: ignore[misc]  # of unfold
        row = self.get_object(request, object_id)  # type: ignore[attr-defined]
        hidden = {f"{one.name}_one" for one in self.operator_actions if row is not None and not one.is_offered(row)}
        return [one for one in found if one.path not in hidden]

    def buttons(self, request: HttpRequest, object_id: str) -> list[Any]:
        """Returns the actions on the page of a row, for the header of another page about it."""
        offered = self.get_actions_detail(request, object_id)
        return list(self._get_actions_navigation(self.actions_detail, offered, object_id))  # type: ignore[attr-defined]

    def apply(
        self, request: HttpRequest, action: OperatorAction, ids: Sequence[Any], values: Mapping[str, Any]
    ) -> OperationResult:
        """Runs an action for the operator of a request, who needs the permission whatever page has sent it."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        result = action.run(ids, OperatorCall(username(request), timezone.now(), values))
        noun = (result.noun or self.operated_noun)[result.applied != 1]
        if result.applied or not result.refusals:
            text = f"{action.applied} {result.applied} {noun}. {result.note}".strip()
            messages.success(request, format_html("{}{}", text, self._undo_link(action, result.ids)))
        return result

    def _undo_link(self, action: OperatorAction, ids: Sequence[Any]) -> str:
        if not (action.undo and ids):
            return ""
        query = f"{self.opts.pk.name}__in={','.join(map(str, ids))}"  # type: ignore[attr-defined]
        url = bulk_url(self.opts.label_lower, action.undo, query)  # type: ignore[attr-defined]
        return format_html(' <a class="underline" href="{}">Undo</a>', url)


def refusal_text(refusals: Sequence[str]) -> str:
    more = f"; and {len(refusals) - SHOWN_REFUSALS} more" if len(refusals) > SHOWN_REFUSALS else ""
    return f"{len(refusals)} refused: {'; '.join(refusals[:SHOWN_REFUSALS])}{more}."


def _for_selection(action: OperatorAction) -> Any:
    @admin.action(description=action.label, permissions=["operate"])
    def method(self: Any, request: HttpRequest, rows: QuerySet[Model]) -> HttpResponse | None:
        ids = list(rows.values_list("pk", flat=True))
        if action.form:
            query = f"{self.opts.pk.name}__in={','.join(map(str, ids))}"
            return redirect(bulk_url(self.opts.label_lower, action.name, query))
        if refusals := self.apply(request, action, ids, {}).refusals:
            messages.warning(request, refusal_text(refusals))
        return None

    method.__name__ = f"{action.name}_selected"
    return method


def _on_page(action: OperatorAction) -> Any:
    def method(self: Any, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        result = self.apply(request, action, [row.pk], form.cleaned_data if action.form else {})
        if result.refusals and not result.applied:  # the dialog stays open and says why
            form.add_error(None, refusal_text(result.refusals))
            context = {"dialog": dialog, "form": form, "form_submit_text": action.label}
            return render(request, "unfold/helpers/dialog.html", context)
        if result.refusals:
            messages.warning(request, refusal_text(result.refusals))
        table = f"admin:{self.opts.app_label}_{self.opts.model_name}"
        is_there = self.get_object(request, object_id) is not None  # the action may have deleted it
        page = reverse(f"{table}_change", args=[row.pk]) if is_there else reverse(f"{table}_changelist")
        return after_dialog(request, page)

    method.__name__ = f"{action.name}_one"
    dialog = {
        "title": action.label,
        "description": action.explanation,
        "form_class": action.form or DialogForm,
        "form_submit_text": action.label,
    }
    return dialog_action(description=action.label, icon=action.icon, permissions=["operate"], dialog=dialog)(method)
