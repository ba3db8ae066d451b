"""Operator actions of the admin, one declaration each: a button for selected rows and one on the page of a row.

`run` calls the function that the API and the commands call too. That function raises OperationRefused, with a message
for the operator, where the action cannot be applied. The page shows both numbers: applied and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from unfold.decorators import action as dialog_action
from unfold.forms import BaseDialogForm

from victoryline.lib.admin import after_dialog, username
from victoryline.lib.operators import OperationRefused

SHOWN_REFUSALS = 5


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
        return str(self.values["reason"])


@dataclass(frozen=True)
class OperationResult:
    applied: int
    refusals: Sequence[str] = ()
    note: str = ""  # shown after the number of applied rows


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
    selection_label: str = ""  # in the list of actions, where it differs from `label`
    selection_values: Mapping[str, Any] = field(default_factory=dict)  # for a selection, in place of the form
    is_for_selection: bool = True
    is_on_page: bool = True


def for_each(apply: Callable[[int, OperatorCall], object]) -> Run:
    """Returns a `run` that applies a function row by row and collects the refusals."""

    def run(ids: Sequence[int], call: OperatorCall) -> OperationResult:
        refusals = []
        for pk in ids:
            try:
                apply(pk, call)
            except (OperationRefused, ObjectDoesNotExist) as refusal:
                refusals.append(str(refusal))
        return OperationResult(len(ids) - len(refusals), refusals)

    return run


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

    def apply(
        self, request: HttpRequest, action: OperatorAction, ids: Sequence[int], values: Mapping[str, Any]
    ) -> None:
        """Runs an action for the operator of a request, who needs the permission whatever page has sent it."""
        if not self.has_operate_permission(request):
            raise PermissionDenied
        result = action.run(ids, OperatorCall(username(request), timezone.now(), values))
        noun = self.operated_noun[result.applied != 1]
        more = f"; and {len(result.refusals) - SHOWN_REFUSALS} more" if len(result.refusals) > SHOWN_REFUSALS else ""
        if result.applied or not result.refusals:
            messages.success(request, f"{action.applied} {result.applied} {noun}. {result.note}".strip())
        if result.refusals:
            shown = "; ".join(result.refusals[:SHOWN_REFUSALS])
            messages.warning(request, f"{len(result.refusals)} refused: {shown}{more}.")


def _for_selection(action: OperatorAction) -> Any:
    @admin.action(description=action.selection_label or action.label, permissions=["operate"])
    def method(self: OperatorActionsMixin, request: HttpRequest, rows: QuerySet[Model]) -> None:
        self.apply(request, action, list(rows.values_list("pk", flat=True)), action.selection_values)

    method.__name__ = f"{action.name}_selected"
    return method


def _on_page(action: OperatorAction) -> Any:
    def method(self: Any, request: HttpRequest, form: BaseDialogForm, object_id: str) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        self.apply(request, action, [row.pk], form.cleaned_data if action.form else {})
        table = f"admin:{self.opts.app_label}_{self.opts.model_name}"
        is_there = self.get_object(request, object_id) is not None  # the action may have deleted it
        page = reverse(f"{table}_change", args=[row.pk]) if is_there else reverse(f"{table}_changelist")
        return after_dialog(request, page)

    method.__name__ = f"{action.name}_one"
    dialog = {
        "title": action.label,
        "description": action.explanation,
        "form_class": action.form,
        "form_submit_text": action.label,
    }
    return dialog_action(description=action.label, icon=action.icon, permissions=["operate"], dialog=dialog)(method)
