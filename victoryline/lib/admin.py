"""Shared by all admin pages: read-only history, escaped outside text, dialogs of actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import Any

import orjson
from django import forms
from django.contrib import admin
from django.db.models import Field, JSONField, Model, Q, QuerySet, URLField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from unfold.admin import ModelAdmin, TabularInline
from unfold.dataclasses import UnfoldAction
from unfold.decorators import display
from unfold.forms import BaseDialogForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from victoryline.lib.shown import column_of
from victoryline.lib.units import MEGABYTE

# The colours of labels: unfold's names for them.
GOOD, BAD, CAREFUL, NEWS = "success", "danger", "warning", "info"


class ConsoleAdmin(ModelAdmin):  # type: ignore[misc]  # unfold publishes no types
    """A table of the console. It counts no rows, so that a million open as fast as ten."""

    list_per_page = 50
    show_full_result_count = False
    list_filter_submit = False
    list_fullwidth = True
    compressed_fields = True
    warn_unsaved_form = True
    none_yet = ""  # text of an empty table: why it is empty, and what it will show
    joined: tuple[
        str, ...
    ] = ()  # related rows that are loaded with each row, in addition to those of the list's columns

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Joins the related rows, without their JSON columns."""
        rows: QuerySet[Any] = super().get_queryset(request)
        related = {field.name for field in self.opts.fields if field.is_relation}
        paths = {*self.joined, *related.intersection(self.list_display)}
        for path in paths:
            model, steps = self.model, path.split("__")
            for number, step in enumerate(steps, 1):
                model = model._meta.get_field(step).related_model  # noqa: SLF001 - documented under this name
                documents = [field.name for field in model._meta.fields if isinstance(field, JSONField)]  # noqa: SLF001
                rows = rows.defer(*("__".join([*steps[:number], name]) for name in documents))
        return rows.select_related(*paths) if paths else rows

    def get_unfold_action(self, action: str) -> UnfoldAction:
        """Shows the page with the button, where the address of a dialog is opened by itself: it is a part of a page."""
        found = super().get_unfold_action(action)
        return replace(found, method=_inside_a_page(found.method)) if found.dialog else found

    def get_list_display(self, request: HttpRequest) -> Any:
        """Shows times relative to now and sizes with their unit."""
        fields = {field.name: field for field in self.opts.fields}
        names = super().get_list_display(request)
        own = {*self.list_editable, *(self.list_display_links or ())}
        return [name if name in own or name not in fields else column_of(fields[name]) or name for name in names]

    def page_context(self, row: Any) -> dict[str, Any]:
        """Returns what the templates of a row's page show in addition to its fields."""
        return {}

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        row = self.get_object(request, object_id) if object_id else None
        shown = {} if row is None else self.page_context(row)
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **shown})

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **options: Any) -> Any:
        if isinstance(db_field, URLField):
            options["assume_scheme"] = "https"  # the default of Django 6
        return super().formfield_for_dbfield(db_field, request, **options)


def _inside_a_page(dialog: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(dialog)
    def method(request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        response = dialog(request, *args, **options)
        if request.method != "GET" or request.headers.get("HX-Request"):
            return response
        return redirect(request.path.rstrip("/").rpartition("/")[0] + "/")

    return method


class ReadOnly:
    """For rows that the system alone writes."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class HistoryAdmin(ReadOnly, ConsoleAdmin):
    """A table of history. All columns of its pages are read-only, and JSON is shown indented."""

    paginator = InfinitePaginator
    ordering: Any = ("-id",)
    actions: Any = ()
    searched_rows = 0  # a search without an index reads the newest rows only; 0: all, for tables that stay small

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        shown = {field.name: _shown(field) for field in self.opts.fields}
        fieldsets = [(title, dict(group)) for title, group in super().get_fieldsets(request, obj)]
        for _, group in fieldsets:
            group["fields"] = [shown.get(name, name) if isinstance(name, str) else name for name in group["fields"]]
        return fieldsets

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if search_term and self.searched_rows:
            newest = self.model._default_manager.order_by("-pk").values_list("pk", flat=True).first()  # noqa: SLF001
            queryset = queryset.filter(pk__gt=(newest or 0) - self.searched_rows)
        found: tuple[QuerySet[Any], bool] = super().get_search_results(request, queryset, search_term)
        return found

    @property
    def search_help_text(self) -> str:
        return f"Searches the newest {self.searched_rows:,} rows." if self.searched_rows else ""


class HistoryInline(ReadOnly, TabularInline):  # type: ignore[misc]  # unfold publishes no types
    extra = 0
    can_delete = False
    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.fields


class _Labelled(tuple[str, str]):
    """The key of a label's colour and its text. A table shows the label, the page of a row only the text."""

    __slots__ = ()

    def __str__(self) -> str:
        return self[1]


def column(
    description: str,
    read: Callable[[Any], object],
    *,
    ordering: str | None = None,
    label: Mapping[str, str] | None = None,
    boolean: bool = False,
) -> Any:
    """Declares a computed column of a ModelAdmin: `age = column("age", lambda match: ...)`.

    `label`: the colours of its values, which are shown as labels. A value may be a pair: the key of the colour, and the
    text.
    """

    def show(row: Any) -> object:
        value = read(row)
        return _Labelled(value) if isinstance(value, tuple) else value

    return staticmethod(display(description=description, ordering=ordering, label=label, boolean=boolean or None)(show))


def _shown(field: Field[Any, Any]) -> Any:
    """Returns how the page of a row shows a column: a callable, or its name."""
    name = field.name
    if not isinstance(field, JSONField):
        return column_of(field, is_exact=True) or name

    @display(description=name.replace("_", " "))  # type: ignore[untyped-decorator]  # unfold publishes no types
    def show(row: Any) -> SafeString:
        return json_block(getattr(row, name))

    return show


def presence_filter(name: str, field: str, *, absent: str, present: str) -> type[admin.SimpleListFilter]:
    """Returns a list filter by whether a column is empty; `absent` and `present` are its two values."""
    is_absent = Q(**{f"{field}__isnull": True})
    return choice_filter(name, {absent: (absent, lambda: is_absent), present: (present, lambda: ~is_absent)})


def choice_filter(
    name: str, choices: Mapping[str, tuple[str, Callable[[], Q]]], *, title: str = ""
) -> type[admin.SimpleListFilter]:
    """Returns a list filter by conditions. `choices`: by value of the parameter, the label and the condition."""

    class ChoiceFilter(admin.SimpleListFilter):
        parameter_name = name

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(value, label) for value, (label, _) in choices.items()]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            chosen = choices.get(self.value() or "")
            return queryset.filter(chosen[1]()) if chosen else queryset

    ChoiceFilter.title = title or name
    return ChoiceFilter


def block(text: str) -> SafeString:
    """Returns text unchanged and escaped, in a box."""
    if not text:
        return format_html("{}", "-")
    return format_html('<pre class="console-text text-xs">{}</pre>', text)


def json_block(value: object) -> SafeString:
    """Returns indented JSON, escaped."""
    if value in (None, {}, []):
        return format_html("{}", "-")
    return block(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode())


def megabytes(count: int) -> str:
    return f"{count / MEGABYTE:,.0f} MB"


USUAL_MINUTES = 30


class DialogForm(BaseDialogForm):  # type: ignore[misc]  # unfold publishes no types
    """A form of a dialog, with the errors that belong to no field above it."""

    form_before_template = "admin/dialog_errors.html"

    def get_before_template_context(self, request: HttpRequest, object_id: Any = None) -> dict[str, Any]:
        return {"errors": self.non_field_errors()}


class ReasonForm(DialogForm):
    """For sensitive actions: the reason is stored in the audit."""

    reason = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget, help_text="Stored in the audit.")


class LimitedForm(ReasonForm):
    """For operator decisions that override the system: with an end and a reason."""

    minutes = forms.IntegerField(
        min_value=1, max_value=1440, initial=USUAL_MINUTES, widget=UnfoldAdminIntegerFieldWidget
    )
    field_order: tuple[str, ...] = ("minutes", "reason")


def after_dialog(request: HttpRequest, url: str) -> HttpResponse:
    """Redirects after a dialog; htmx needs its own header for that."""
    if request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Redirect": url})
    return redirect(url)


COUNTED_AT_MOST = 10_000


def bounded_count(rows: QuerySet[Any]) -> str:
    """Returns the number of rows, counted up to a limit: "812", or "10,000+"."""
    number = rows.order_by().values("pk")[: COUNTED_AT_MOST + 1].count()
    return f"{COUNTED_AT_MOST:,}+" if number > COUNTED_AT_MOST else f"{number:,}"


def span(since: datetime, until: datetime) -> str:
    """Returns the duration in its largest unit."""
    seconds = (until - since).total_seconds()
    return f"{max(0.0, seconds):.0f} s" if seconds < 60 else timesince(since, until, depth=1)


def username(request: HttpRequest) -> str:
    return request.user.get_username() or "unknown"
