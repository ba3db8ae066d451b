"""Audit entries, grade changes, health rows and log lines in the admin; the grades and the recoveries of a day."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Avg, Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from monitoring.audit import ACTIONS
from monitoring.models import AuditEntry, AuditOutcome, Grade, GradeChange, HealthLog, LogEntry
from scraping.models import Match
from scraping.policies.ladder import RUNGS
from victoryline.lib.admin import BAD, CAREFUL, GOOD, NEWS, HistoryAdmin, block, column

GRADE_COLOURS = {
    Grade.HEALTHY.value: GOOD,
    Grade.DEGRADED.value: CAREFUL,
    Grade.RECOVERING.value: NEWS,
    Grade.FAILING.value: BAD,
}
OUTCOME_COLOURS = {
    AuditOutcome.SUCCESS.value: GOOD,
    AuditOutcome.PARTIAL.value: CAREFUL,
    AuditOutcome.FAILED.value: BAD,
    AuditOutcome.PENDING.value: NEWS,
}
SPAN = timedelta(hours=24)
# Keys of `before` and `after`, and how each is shown.
VALUE_FORMATS = {
    "age_s": "age {} s",
    "rung": "rung {}",
    "scraper_status": "scraper {}",
    "lifecycle": "{}",
    "error_count": "{} failures",
    "interval_s": "every {} s",
    "grade": "{}",
    "median_s": "median {} s",
    "p95_s": "p95 {} s",
    "max_s": "oldest {} s",
    "workers": "{} workers",
    "open_breakers": "{} open breakers",
    "state": "task {}",
}
ACTION_LABELS = {
    **{rung.action: f"silent match: {rung.operator_text}" for rung in RUNGS},
    "silence_over": "silent match: read again",
    "soft_restart": "scraper replaced",
    "browser_recycle": "browser replaced",
    "manual_trigger": "browser replaced by an operator",
    "context_pool_reset": "contexts replaced, fresh session",
}
SHOWN_WHILE_OPEN = ("age_s", "grade")
QUARTER, CELLS = timedelta(minutes=15), 96
WORSE_LAST = (Grade.HEALTHY, Grade.RECOVERING, Grade.DEGRADED, Grade.FAILING)


def action_label(code: str) -> str:
    return ACTION_LABELS.get(code, code.replace("_", " "))


def change_text(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Returns the differences, as "age 310 → 3 s, rung 5 → 0"; of an open entry, the state before."""
    changes = []
    for name, form in VALUE_FORMATS.items():
        was, has_become = before.get(name), after.get(name)
        if not after and name in SHOWN_WHILE_OPEN and name in before:
            changes.append(form.format(_plain(was)))
        elif has_become is not None and name not in before:
            changes.append(form.format(_plain(has_become)))
        elif has_become is not None and was != has_become:
            changes.append(form.format(f"{_plain(was)} → {_plain(has_become)}"))
    return ", ".join(changes) or ("unchanged" if after else "")


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def recoveries_of_last_day(now: datetime) -> dict[str, Any]:
    """Returns each type of recovery action, the most frequent first, and the totals."""
    done = AuditEntry.objects.filter(timestamp__gt=now - SPAN, timestamp__lte=now, action_type__in=ACTIONS)
    by_outcome = {outcome.value: Count("pk", filter=Q(outcome=outcome)) for outcome in AuditOutcome}
    seconds = Avg("duration_seconds", filter=Q(outcome=AuditOutcome.SUCCESS))
    counted: Any = done.values("action_type").annotate(count=Count("pk"), seconds=seconds, **by_outcome)
    rows = list(counted.order_by("-count", "action_type"))
    url = reverse("admin:monitoring_auditentry_changelist")
    for row in rows:
        row["name"] = action_label(row["action_type"])
        row["rate"] = _rate(row["success"], row["count"] - row["pending"])
        row["took"] = f"{row['seconds']:.1f} s" if row["seconds"] else "-"
        row["url"] = f"{url}?action_type__exact={row['action_type']}"
    count = sum(row["count"] for row in rows)
    decided = count - sum(row["pending"] for row in rows)
    return {"rows": rows, "count": count, "rate": _rate(sum(row["success"] for row in rows), decided)}


def _rate(succeeded: int, decided: int) -> str:
    return f"{succeeded / decided:.0%}" if decided else "-"


def grade_chart(now: datetime) -> dict[str, Any]:
    """Returns the worst grade of each quarter of an hour, as cells of unfold's tracker, and their counts as text."""
    past_quarter = timedelta(minutes=now.minute % 15, seconds=now.second, microseconds=now.microsecond)
    first = now - past_quarter - (CELLS - 1) * QUARTER
    rows = GradeChange.objects.values_list("at", "from_grade", "to_grade", "reason")
    last = rows.filter(at__lt=first).order_by("-at", "-pk").first()
    changes = list(rows.filter(at__gte=first, at__lte=now).order_by("at", "pk"))
    # There was no grade before the first match or grade change.
    known = Match.objects.order_by("pk").values_list("created_at", flat=True).first() or now
    known = min([known, *(change[0] for change in (last, *changes[:1]) if change)])
    grade, reason = (last[2], last[3]) if last else (changes[0][1] if changes else Grade.HEALTHY, "")
    by_cell: dict[int, list[tuple[str, str]]] = {}
    for at, _, to, why in changes:
        by_cell.setdefault((at - first) // QUARTER, []).append((to, why))
    cells, counted = [], Counter[str]()
    for place in range(CELLS):
        since, seen = first + place * QUARTER, [(grade, reason), *by_cell.get(place, ())]
        worst, why = max(seen, key=lambda one: WORSE_LAST.index(Grade(one[0])))
        grade, reason = seen[-1]
        text = f"{since:%H:%M} to {since + QUARTER:%H:%M} UTC: "
        if since + QUARTER <= known or known == now:
            cells.append({"color": "grade-none", "tooltip": f"{text}no grade yet"})
            continue
        counted[worst] += 1
        cells.append({"color": f"grade-{worst.lower()}", "tooltip": f"{text}{worst}{why and f': {why}'}"})
    shares = ", ".join(f"{each.value} {counted[each.value]}" for each in Grade if counted[each.value])
    changed = f"{len(changes) or 'no'} {'change' if len(changes) == 1 else 'changes'}"
    summary = f"{shares} of {CELLS} quarter hours; {changed}" if shares else "no grade yet"
    return {"since": first, "cells": cells, "summary": summary}


def _target(entry: AuditEntry) -> str:
    """Returns the target with links to its match and to all entries of that match."""
    if entry.match_id is None:
        return entry.target or "-"
    return format_html(
        '<a class="underline" href="{}">{}</a> <a class="underline" href="{}?match__id__exact={}">(all)</a>',
        reverse("admin:scraping_match_change", args=[entry.match_id]),
        entry.target or entry.match,
        reverse("admin:monitoring_auditentry_changelist"),
        entry.match_id,
    )


@admin.register(AuditEntry)
class AuditEntryAdmin(HistoryAdmin):
    list_display = (
        *("timestamp", "shown_action", "shown_target", "shown_outcome", "change", "seconds"),
        *("trigger_condition", "actor"),
    )
    list_filter = ("outcome", "action_type")
    joined = ("match",)
    search_fields = ("actor", "action_type", "target", "trigger_condition")
    searched_rows = 50_000
    ordering = ("-timestamp",)
    sortable_by = ("timestamp",)
    fields = (
        *("timestamp", "actor", "action_type", "trigger_condition", "duration_seconds", "judged_at", "shown_target"),
        *("shown_outcome", "change", "before", "after", "metadata"),
    )
    none_yet = "Every action of operators and of the system is recorded here, with its outcome."

    shown_action = column("action", lambda entry: action_label(entry.action_type), ordering="action_type")
    shown_target = column("target", _target, ordering="target")
    shown_outcome = column("outcome", lambda entry: entry.outcome, label=OUTCOME_COLOURS)
    change = column("before → after", lambda entry: change_text(entry.before, entry.after) or "-")
    seconds = column(
        "took",
        lambda entry: f"{entry.duration_seconds:.1f} s" if entry.duration_seconds else "-",
        ordering="duration_seconds",
    )


@admin.register(GradeChange)
class GradeChangeAdmin(HistoryAdmin):
    list_display = ("at", "shown_from", "shown_to", "reason", "match")
    list_filter = ("to_grade",)
    list_select_related = ("match",)
    search_fields = ("reason",)
    ordering = ("-at",)
    date_hierarchy = "at"
    list_before_template = "admin/monitoring/grades.html"

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {**(extra_context or {}), "chart": grade_chart(timezone.now())}
        page: HttpResponse = super().changelist_view(request, context)
        return page

    shown_from = column("from", lambda change: change.from_grade, label=GRADE_COLOURS)
    shown_to = column("to", lambda change: change.to_grade, label=GRADE_COLOURS)


@admin.register(HealthLog)
class HealthLogAdmin(HistoryAdmin):
    list_display = (
        *("timestamp", "match_id", "health_status", "error_count", "memory_mb", "cpu_percent", "update_latency_ms"),
        *("polling_interval_seconds", "uptime_seconds", "last_update_age_seconds"),
    )
    list_filter = ("health_status",)
    search_fields = ("match_id", "scraper_id")
    searched_rows = 50_000
    sortable_by = ()


class TaskFilter(admin.SimpleListFilter):
    """The lines of one task, which its page links to."""

    title, parameter_name = "task", "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(self.value() or "", f"task {self.value()}")] if self.value() else []

    def has_output(self) -> bool:
        return True  # also when it is not used: else its parameter is unknown

    def queryset(self, request: HttpRequest, queryset: QuerySet[LogEntry]) -> QuerySet[LogEntry]:
        value = self.value() or ""
        return queryset.filter(line__task_id=int(value)) if value.isdecimal() else queryset


@admin.register(LogEntry)
class LogEntryAdmin(HistoryAdmin):
    list_display = ("timestamp", "level", "service", "action", "match_id", "shown_event")
    list_filter = ("level", TaskFilter)
    search_fields = ("event", "match_id", "action", "service")
    searched_rows = 50_000
    sortable_by = ("timestamp",)
    ordering = ("-timestamp",)
    fields = ("timestamp", "level", "service", "action", "match_id", "event", "shown_line")
    shown_event = column("event", lambda entry: entry.event[:160])
    shown_line = column("line", lambda entry: block(json.dumps(entry.line, indent=2, ensure_ascii=False)))
