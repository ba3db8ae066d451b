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
