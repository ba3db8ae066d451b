"""What was done to mend something: how things changed, in words, and how often it helped in the last day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, Q
from django.urls import reverse

from monitoring.audit import ACTIONS
from monitoring.models import AuditEntry, AuditOutcome

SPAN = timedelta(hours=24)
# What an entry says of before and after: its name in the row, and how it is told.
TOLD = {
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
ACTION_WORDS = {
    "silence_hint": "silent match: asked again",
    "silence_session": "silent match: fresh session",
    "silence_browser": "silent match: fresh browser",
    "silence_other_source": "silent match: other source",
    "frozen": "silent match: frozen",
    "silence_over": "silent match: heard again",
    "soft_restart": "scraper replaced",
    "browser_recycle": "browser replaced",
}
SAID_ALWAYS = ("age_s", "grade")


def action_in_words(code: str) -> str:
    return ACTION_WORDS.get(code, code.replace("_", " "))


def change_in_words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What is different: "age 310 → 3 s, rung 5 → 0". Of an open one, how it stood."""
    if not after:
        return ", ".join(_said(name, before[name]) for name in SAID_ALWAYS if name in before)
    told = []
    for name, form in TOLD.items():
        was, has_become = before.get(name), after.get(name)
        if has_become is None:
            continue
        if name not in before:
            told.append(_said(name, has_become))
        elif was != has_become:
            told.append(form.format(f"{_plain(was)} → {_plain(has_become)}"))
    return ", ".join(told) or "as before"


def _said(name: str, value: object) -> str:
    return TOLD[name].format(_plain(value))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def of_the_last_day(now: datetime) -> dict[str, Any]:
    """Every kind of action that is judged, the most frequent first, and all of them together."""
    rows = [_row(row) for row in _counted(now)]
    judged = sum(row["judged"] for row in rows)
    succeeded = sum(row["success"] for row in rows)
    return {
        "rows": rows,
        "count": sum(row["count"] for row in rows),
        "rate": f"{succeeded / judged:.0%}" if judged else "-",
        "failed": sum(row["failed"] for row in rows),
    }


def _counted(now: datetime) -> list[dict[str, Any]]:
    done = AuditEntry.objects.filter(timestamp__gt=now - SPAN, timestamp__lte=now, action_type__in=ACTIONS)
    by_outcome = {outcome.value: Count("pk", filter=Q(outcome=outcome)) for outcome in AuditOutcome}
    seconds = Avg("duration_seconds", filter=Q(outcome=AuditOutcome.SUCCESS))
    counted: Any = done.values("action_type").annotate(count=Count("pk"), seconds=seconds, **by_outcome)
    return list(counted.order_by("-count", "action_type"))


def _row(row: dict[str, Any]) -> dict[str, Any]:
    judged = row["count"] - row["pending"]
    seconds = row.pop("seconds")
    return {
        **row,
        "name": action_in_words(row["action_type"]),
        "judged": judged,
        "rate": f"{row['success'] / judged:.0%}" if judged else "-",
        "took": f"{seconds:.1f} s" if seconds else "-",
        "url": f"{reverse('admin:monitoring_auditentry_changelist')}?action_type__exact={row['action_type']}",
    }
