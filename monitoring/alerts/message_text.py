"""Builds a message: the document that the webhook posts, its subject and its text. Other channels use the document.

Summaries and details contain text from outside. Secrets are removed from both, and the text can neither mention a whole
chat room (`<!channel>`, `@all`) nor break a header.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from monitoring.alerts.alert_keys import incident_path, kind_of
from monitoring.models import Alert, Severity
from victoryline.lib.redaction import clean, redact
from victoryline.lib.times import as_utc_iso

VERSION = 2
MAX_LISTED = 50  # alerts in one document; `more` says how many others there are
MAX_LINES = 10


class Event(StrEnum):
    """The events of an alert, the most important first."""

    WORSE = "worse"  # a warning has become critical
    RAISED = "raised"
    OVER = "over"


def document(alerts: Sequence[Alert], sent_column: str, *, base_url: str, now: datetime) -> dict[str, Any]:
    """Returns the message about the alerts; event and severity are those of the most important one.

    `sent_column`: that of the channel. The same events have the same id, so that a receiver can drop a second copy.
    """
    entries = [_entry(alert, getattr(alert, sent_column), base_url) for alert in alerts]
    identity = ",".join(f"{each['key']} {each['opened_at']} {each['event'].value}" for each in entries)
    entries.sort(key=lambda each: (list(Event).index(each["event"]), each["severity"] != Severity.CRITICAL))
    first, lines = entries[0], [_line(entry) for entry in entries]
    rest = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return {
        "version": VERSION,
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"victoryline:{identity}")),
        "event": first["event"].value,
        "severity": first["severity"],
        "at": as_utc_iso(now),
        "subject": f"[VictoryLine] {lines[0][: 250 - len(rest)]}{rest}",
        "text": _chat_text(lines, {entry["do"] for entry in entries if entry["event"] != Event.OVER}),
        "alerts": entries[:MAX_LISTED],
        "more": max(0, len(entries) - MAX_LISTED),
    }


def _entry(alert: Alert, sent: str, base_url: str) -> dict[str, Any]:
    kind = kind_of(alert.key)
    event = Event.OVER if alert.closed_at is not None else Event.WORSE if sent else Event.RAISED
    entry: dict[str, Any] = {
        "key": alert.key,
        "event": event,
        "severity": alert.severity,
        "summary": one_line(clean(alert.summary)),
        "detail": {key: redact(key, value) for key, value in alert.detail.items()},
        "opened_at": as_utc_iso(alert.opened_at),
        "closed_at": as_utc_iso(alert.closed_at) if alert.closed_at else None,
        "count": alert.count,
        "safe": kind.safe,
        "do": kind.action,
    }
    if base_url and alert.pk:
        entry["url"] = f"{base_url}/admin/monitoring/alert/{alert.pk}/change/"
    if base_url and (path := incident_path(alert)):
        entry["incident_url"] = base_url + path
    return entry


def _line(entry: dict[str, Any]) -> str:
    label = "OVER" if entry["event"] == Event.OVER else entry["severity"].upper()
    return f"{label}: {entry['summary']}"


def _chat_text(lines: Sequence[str], actions: set[str]) -> str:
    """Returns the text for Slack, Mattermost and similar chats."""
    shown = list(lines[:MAX_LINES])
    if len(lines) > MAX_LINES:
        shown.append(f"and {len(lines) - MAX_LINES} more")
    if len(actions) == 1:
        shown.append(f"\N{RIGHTWARDS ARROW} {actions.pop()}")
    escaped = "\n".join(shown).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("@", "@\u200b")


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
