"""Admin of conflicts between sources: the list, the inline of a match, and the provenance of its fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display

from scraping.matches.reconcile.disagreement import as_text
from scraping.models import Conflict, Match
from victoryline.lib.admin import CAREFUL, GOOD, HistoryAdmin, HistoryInline

LONGEST_VALUE = 80
COLUMNS = ("field", "served", "not_served", "difference")
STATE_COLOURS = {"open": CAREFUL, "agreed": GOOD}


class ComparedValues:
    """The columns that compare the served value with the other one, each with its source."""

    @admin.display(description="served", ordering="chosen_source")
    def served(self, conflict: Conflict) -> str:
        return _claim(conflict.chosen_value, conflict.chosen_source)

    @admin.display(description="not served", ordering="other_source")
    def not_served(self, conflict: Conflict) -> str:
        return _claim(conflict.other_value, conflict.other_source)

    @admin.display(description="difference", ordering="difference_percent")
    def difference(self, conflict: Conflict) -> str:
        percent = conflict.difference_percent
        return "-" if percent is None else f"{percent:g} %"


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("open", "open"), ("agreed", "agreed again")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Conflict]) -> QuerySet[Conflict]:
        if self.value() is None:
            return queryset
        return queryset.filter(resolved_at__isnull=self.value() == "open")


@admin.register(Conflict)
class ConflictAdmin(ComparedValues, HistoryAdmin):
    none_yet = (
        "No conflicts so far. A row appears when two sources of a match differ by more than 5 % in a score, or "
        "contradict each other in status, toss, teams or start."
    )
    list_display = ("match", "shown_state", *COLUMNS, "times_seen", "first_seen_at", "last_seen_at")
    list_filter = (StateFilter, "chosen_source", "other_source", "field")
    list_select_related = ("match",)
    search_fields = ("field", "match__title", "chosen_source", "other_source")
    ordering = ("-last_seen_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conflict]:
        rows: QuerySet[Conflict] = super().get_queryset(request)
        return rows.defer("match__payload", "match__provenance")

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "match__id__exact" or bool(super().lookup_allowed(lookup, value, request))

    @display(description="state", label=STATE_COLOURS)  # type: ignore[untyped-decorator]
    def shown_state(self, conflict: Conflict) -> str:
        return "open" if conflict.resolved_at is None else "agreed"


class ConflictInline(ComparedValues, HistoryInline):
    """The open conflicts of a match."""

    model = Conflict
    verbose_name_plural = "open conflicts between its sources"
    fields = (*COLUMNS, "times_seen", "first_seen_at", "last_seen_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conflict]:
        rows: QuerySet[Conflict] = super().get_queryset(request)
        return rows.filter(resolved_at__isnull=True)


def _claim(value: object, source: str) -> str:
    return f"{as_text(value)[:LONGEST_VALUE]} ({source})"


def provenance_table(match: Match) -> SafeString:
    """Returns a table of the served fields: value, source, age, and the values of other sources."""
    if not match.provenance:
        return format_html("{}", "Not read yet.")
    lines = format_html_join(
        "",
        "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        _lines(match, timezone.now()),
    )
    heads = format_html_join(
        "", "<th>{}</th>", ((name,) for name in ("field", "value", "source", "age", "other sources"))
    )
    table = format_html('<table class="console-table text-xs"><tr>{}</tr>{}</table>', heads, lines)
    return format_html('<div class="console-scroll">{}</div>', table)


def _lines(match: Match, now: datetime) -> Iterator[tuple[str, str, str, str, str]]:
    for field, entry in sorted(match.provenance.items()):
        value = as_text(match.payload.get(field))[:LONGEST_VALUE]
        yield (
            field,
            value,
            _source_of(entry),
            _age(entry, now),
            "; ".join(_other(one, now) for one in entry.get("others", ())),
        )


def _source_of(entry: dict[str, Any]) -> str:
    sure = entry.get("confidence", 1.0)
    return str(entry.get("source", "?")) if sure == 1.0 else f"{entry.get('source', '?')} (confidence {sure})"


def _other(entry: dict[str, Any], now: datetime) -> str:
    return f"{_source_of(entry)}: {entry.get('value')}, {_age(entry, now)}"


def _age(entry: dict[str, Any], now: datetime) -> str:
    try:
        at = datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return "?"
    return f"{max(0.0, (now - at).total_seconds()):,.0f} s"
