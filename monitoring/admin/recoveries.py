"""Recovery actions as text, with the change from before to after, and their success in the last day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, Q
from django.urls import reverse

from monitoring.audit import ACTIONS
from monitoring.models import AuditEntry, AuditOutcome

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
    "silence_hint": "silent match: polled again",
    "silence_session": "silent match: fresh session",
    "silence_browser": "silent match: fresh browser",
    "silence_other_source": "silent match: other source",
    "frozen": "silent match: frozen",
    "silence_over": "silent match: read again",
    "soft_restart": "scraper replaced",
    "browser_recycle": "browser replaced",
}
SHOWN_WHILE_OPEN = ("age_s", "grade")


def action_label(code: str) -> str:
    return ACTION_LABELS.get(code, code.replace("_", " "))


def change_text(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Returns the differences, as "age 310 → 3 s, rung 5 → 0"; of an open entry, the state before."""
    if not after:
        return ", ".join(_value_text(name, before[name]) for name in SHOWN_WHILE_OPEN if name in before)
    changes = []
    for name, form in VALUE_FORMATS.items():
        was, has_become = before.get(name), after.get(name)
        if has_become is None:
            continue
        if name not in before:
            changes.append(_value_text(name, has_become))
        elif was != has_become:
            changes.append(form.format(f"{_plain(was)} → {_plain(has_become)}"))
    return ", ".join(changes) or "unchanged"


def _value_text(name: str, value: object) -> str:
    return VALUE_FORMATS[name].format(_plain(value))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def recoveries_of_last_day(now: datetime) -> dict[str, Any]:
    """Returns each type of recovery action, the most frequent first, and the totals."""
    rows = [_row(row) for row in _counted(now)]
    decided = sum(row["decided"] for row in rows)
    succeeded = sum(row["success"] for row in rows)
    return {
        "rows": rows,
        "count": sum(row["count"] for row in rows),
        "rate": f"{succeeded / decided:.0%}" if decided else "-",
        "failed": sum(row["failed"] for row in rows),
    }


def _counted(now: datetime) -> list[dict[str, Any]]:
    done = AuditEntry.objects.filter(timestamp__gt=now - SPAN, timestamp__lte=now, action_type__in=ACTIONS)
    by_outcome = {outcome.value: Count("pk", filter=Q(outcome=outcome)) for outcome in AuditOutcome}
    seconds = Avg("duration_seconds", filter=Q(outcome=AuditOutcome.SUCCESS))
    counted: Any = done.values("action_type").annotate(count=Count("pk"), seconds=seconds, **by_outcome)
    return list(counted.order_by("-count", "action_type"))


def _row(row: dict[str, Any]) -> dict[str, Any]:
    decided = row["count"] - row["pending"]
    seconds = row.pop("seconds")
    return {
        **row,
        "name": action_label(row["action_type"]),
        "decided": decided,
        "rate": f"{row['success'] / decided:.0%}" if decided else "-",
        "took": f"{seconds:.1f} s" if seconds else "-",
        "url": f"{reverse('admin:monitoring_auditentry_changelist')}?action_type__exact={row['action_type']}",
    }
