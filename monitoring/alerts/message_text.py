"""Builds a message: the document that the webhook posts, its subject and its text. Other channels use the document.

Summaries and details contain text from outside. Secrets are removed from both, and the text can neither mention a whole
chat room (`<!channel>`, `@all`) nor break a header.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from monitoring.alerts.alert_keys import kind_of
from monitoring.models import Alert
from victoryline.lib.redaction import clean, redact
from victoryline.lib.times import as_utc_iso

VERSION = 1
MAX_LISTED = 50  # alerts in one document; `more` says how many others there are
MAX_GROUP_LINES = 3  # more alerts of one kind at one source are one line
MAX_LINES = 10


class Event(StrEnum):
    """The events of an alert, the most important first."""

    WORSE = "worse"  # a warning has become critical
    RAISED = "raised"
    REPEATED = "repeated"
    OVER = "over"


EVENT_PREFIXES = {Event.WORSE: "worse: ", Event.RAISED: "", Event.REPEATED: "still: ", Event.OVER: "over: "}


def event_of(alert: Alert) -> Event:
    """Returns the event that the next message reports."""
    if alert.closed_at is not None:
        return Event.OVER
    if alert.notification_count == 0:
        return Event.RAISED
    return Event.REPEATED if alert.notified_at else Event.WORSE


def document(
    alerts: Sequence[Alert],
    *,
    base_url: str,
    now: datetime,
    sources: Mapping[int, str] | None = None,
    times: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Returns the message about alerts of one severity.

    `sources`: the source of each alert's match by the alert's id. `times`: how often each key was opened within a day.
    """
    entries = [
        _entry(alert, (sources or {}).get(alert.pk, ""), (times or {}).get(alert.key, 1), base_url) for alert in alerts
    ]
    entries.sort(key=lambda entry: list(Event).index(entry["event"]))
    is_over = entries[0]["event"] == Event.OVER
    lines = [f"{'' if is_over else EVENT_PREFIXES[entry['event']]}{text}" for _, text, entry in grouped(entries)]
    label = "OVER" if is_over else alerts[0].severity.upper()
    rest = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return {
        "version": VERSION,
        "id": str(uuid.uuid4()),
        "event": entries[0]["event"].value,
        "severity": alerts[0].severity,
        "at": as_utc_iso(now),
        "subject": f"[VictoryLine] {label}: {lines[0][: 250 - len(rest)]}{rest}",
        "text": _chat_text(label, lines, {entry["do"] for entry in entries if entry["event"] != Event.OVER}),
        "alerts": entries[:MAX_LISTED],
        "more": max(0, len(entries) - MAX_LISTED),
    }


def _entry(alert: Alert, source: str, times: int, base_url: str) -> dict[str, Any]:
    kind = kind_of(alert.key)
    is_of_match = bool(kind.group_text and alert.detail.get("match_id"))
    entry: dict[str, Any] = {
        "key": alert.key,
        "event": event_of(alert),
        "severity": alert.severity,
        "summary": one_line(clean(alert.summary)),
        "detail": {key: redact(key, value) for key, value in alert.detail.items()},
        "opened_at": as_utc_iso(alert.opened_at),
        "closed_at": as_utc_iso(alert.closed_at) if alert.closed_at else None,
        "count": alert.count,
        "times": times,
        "group": f"{kind}@{source}" if is_of_match else alert.key,
        "source": source,
        "safe": kind.safe,
        "do": kind.action,
    }
    if base_url and alert.pk:
        entry["url"] = f"{base_url}/admin/monitoring/alert/{alert.pk}/change/"
    return entry


def grouped(entries: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields key, text and entry of each alert, and of a large group of one kind and source only once."""
    groups: dict[tuple[str, Event], list[dict[str, Any]]] = {}
    for entry in entries:
        groups.setdefault((entry["group"], entry["event"]), []).append(entry)
    for (group, _), members in groups.items():
        first = members[0]
        if len(members) > MAX_GROUP_LINES:
            at = f" at {first['source']}" if first["source"] else ""
            yield group, one_line(f"{len(members)} matches{at} {kind_of(first['key']).group_text}"), first
            continue
        for entry in members:
            times = f" ({entry['times']} times in a day)" if entry["times"] > 1 else ""
            yield entry["key"], f"{entry['summary']}{times}", entry


def _chat_text(label: str, lines: Sequence[str], actions: set[str]) -> str:
    """Returns the text for Slack, Mattermost and similar chats."""
    shown = [f"{label}: {lines[0]}", *lines[1:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append(f"and {len(lines) - MAX_LINES} more")
    if len(actions) == 1:
        shown.append(f"\N{RIGHTWARDS ARROW} {actions.pop()}")
    escaped = "\n".join(shown).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("@", "@\u200b")


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
