"""Admin of conflicts between sources: the list, the inline of a match, and the provenance of its fields."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scraping.matches.reconcile.disagreement import as_text
from scraping.models import Conflict, Match
from victoryline.lib.admin import CAREFUL, GOOD, HistoryAdmin, HistoryInline, column, presence_filter

LONGEST_VALUE = 80
COLUMNS = ("field", "served", "not_served", "difference")


def _claim(value: object, source: str) -> str:
    return f"{as_text(value)[:LONGEST_VALUE]} ({source})"


def _difference(conflict: Conflict) -> str:
    percent = conflict.difference_percent
    return "-" if percent is None else f"{percent:g} %"


class ComparedValues:
    """The columns that compare the served value with the other one, each with its source."""

    served = column("served", lambda row: _claim(row.chosen_value, row.chosen_source), ordering="chosen_source")
    not_served = column("not served", lambda row: _claim(row.other_value, row.other_source), ordering="other_source")
    difference = column("difference", _difference, ordering="difference_percent")


@admin.register(Conflict)
class ConflictAdmin(ComparedValues, HistoryAdmin):
    none_yet = (
        "No conflicts so far. A row appears when two sources of a match differ by more than 5 % in a score, or "
        "contradict each other in status, toss, teams or start."
    )
    list_display = ("match", "shown_state", *COLUMNS, "times_seen", "first_seen_at", "last_seen_at")
    list_filter = (
        presence_filter("state", "resolved_at", absent="open", present="agreed"),
        "chosen_source",
        "other_source",
        "field",
    )
    joined = ("match",)
    search_fields = ("field", "match__title", "chosen_source", "other_source")
    ordering = ("-last_seen_at",)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "match__id__exact" or bool(super().lookup_allowed(lookup, value, request))

    shown_state = column(
        "state", lambda row: "open" if row.resolved_at is None else "agreed", label={"open": CAREFUL, "agreed": GOOD}
    )


class ConflictInline(ComparedValues, HistoryInline):
    """The open conflicts of a match."""

    model = Conflict
    verbose_name_plural = "open conflicts between its sources"
    fields = (*COLUMNS, "times_seen", "first_seen_at", "last_seen_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conflict]:
        rows: QuerySet[Conflict] = super().get_queryset(request)
        return rows.filter(resolved_at__isnull=True)


def provenance_table(match: Match) -> SafeString:
    """Returns a table of the served fields: value, source, age, and the values of other sources."""
    if not match.provenance:
        return format_html("{}", "Not read yet.")
    now = timezone.now()
    lines = [
        (
            field,
            as_text(match.payload.get(field))[:LONGEST_VALUE],
            _source_of(entry),
            _age(entry, now),
            "; ".join(f"{_source_of(one)}: {one.get('value')}, {_age(one, now)}" for one in entry.get("others", ())),
        )
        for field, entry in sorted(match.provenance.items())
    ]
    return format_html(
        '<div class="console-scroll"><table class="console-table text-xs"><tr>{}</tr>{}</table></div>',
        format_html_join("", "<th>{}</th>", ((name,) for name in ("field", "value", "source", "age", "other sources"))),
        format_html_join("", "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", lines),
    )


def _source_of(entry: dict[str, Any]) -> str:
    sure = entry.get("confidence", 1.0)
    return str(entry.get("source", "?")) if sure == 1.0 else f"{entry.get('source', '?')} (confidence {sure})"


def _age(entry: dict[str, Any], now: datetime) -> str:
    try:
        at = datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return "?"
    return f"{max(0.0, (now - at).total_seconds()):,.0f} s"
