"""Builds a message: the document that the webhook posts, its subject and its text. Other channels use the document.

Summaries and details contain text from outside. Secrets are removed from both, and the text can neither mention a whole
chat room (`<!channel>`, `@all`) nor break a header.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitoring.alerts.advice import advice
from monitoring.alerts.notification_policy import Event
from monitoring.models import Alert, Severity
from victoryline.lib.redaction import clean, redact
from victoryline.lib.times import as_utc_iso

VERSION = 1
MAX_LISTED = 50  # alerts in one document; `more` says how many others there are
MAX_GROUP_LINES = 3  # more alerts of one kind at one source are one line
ORDER = (Event.WORSE, Event.RAISED, Event.AGAIN, Event.REPEATED, Event.PASSED, Event.OVER)  # most important first
ENDS = (Event.OVER, Event.PASSED)
EVENT_PREFIXES = {
    Event.RAISED: "",
    Event.AGAIN: "again: ",
    Event.WORSE: "worse: ",
    Event.REPEATED: "still: ",
    Event.OVER: "over: ",
    Event.PASSED: "came and went: ",
}


@dataclass(frozen=True)
class AlertNotice:
    """An alert in a message. `times`: how often it was opened within a day. `source`: that of its match, if known."""

    alert: Alert
    event: Event
    group: str = ""
    source: str = ""
    times: int = 1


def document(
    notices: Sequence[AlertNotice], *, severity: Severity, is_digest: bool, base_url: str, now: datetime
) -> dict[str, Any]:
    notices = sorted(notices, key=lambda each: ORDER.index(each.event))
    lines = _lines(notices)
    return {
        "version": VERSION,
        "id": str(uuid.uuid4()),
        "event": "digest" if is_digest else _main_event(notices).value,
        "severity": severity.value,
        "at": as_utc_iso(now),
        "subject": subject(notices, lines, severity),
        "text": chat_text(notices, lines, severity),
        "alerts": [_entry(each, base_url) for each in notices[:MAX_LISTED]],
        "more": max(0, len(notices) - MAX_LISTED),
    }


def subject(notices: Sequence[AlertNotice], lines: Sequence[str], severity: Severity) -> str:
    label = "OVER" if all(each.event in ENDS for each in notices) else severity.value.upper()
    rest = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    first = lines[0].removeprefix(EVENT_PREFIXES[Event.OVER] if label == "OVER" else "")
    return one_line(f"[VictoryLine] {label}: {first[: 250 - len(rest)]}{rest}")


def chat_text(notices: Sequence[AlertNotice], lines: Sequence[str], severity: Severity) -> str:
    """Returns the text for Slack, Mattermost and similar chats."""
    hints = {advice(each.alert.key).action for each in notices if each.event not in ENDS}
    shown = [f"{severity.value.upper()}: {lines[0]}" if hints else lines[0], *lines[1:10]]
    if len(lines) > 10:
        shown.append(f"and {len(lines) - 10} more")
    if len(hints) == 1:
        shown.append(f"\N{RIGHTWARDS ARROW} {hints.pop()}")
    return escape_chat("\n".join(shown))


def _lines(notices: Sequence[AlertNotice]) -> list[str]:
    """Returns one line for each alert, or one for a large group of one kind and source."""
    groups: dict[tuple[str, Event], list[AlertNotice]] = {}
    for each in notices:
        groups.setdefault((each.group or each.alert.key, each.event), []).append(each)
    lines: list[str] = []
    for (_, event), members in groups.items():
        group_text = advice(members[0].alert.key).group_text
        if len(members) > MAX_GROUP_LINES and group_text:
            at = f" at {members[0].source}" if members[0].source else ""
            lines.append(one_line(f"{EVENT_PREFIXES[event]}{len(members)} matches{at} {group_text}"))
        else:
            lines += [_line(each) for each in members]
    return lines


def _line(notice: AlertNotice) -> str:
    times = f" ({notice.times} times in a day)" if notice.times > 1 else ""
    return one_line(f"{EVENT_PREFIXES[notice.event]}{clean(notice.alert.summary)}{times}")


def _entry(notice: AlertNotice, base_url: str) -> dict[str, Any]:
    alert, hint = notice.alert, advice(notice.alert.key)
    entry: dict[str, Any] = {
        "key": alert.key,
        "event": notice.event.value,
        "severity": alert.severity,
        "summary": one_line(clean(alert.summary)),
        "detail": shown_detail(alert.detail),
        "opened_at": as_utc_iso(alert.opened_at),
        "closed_at": as_utc_iso(alert.closed_at) if alert.closed_at else None,
        "count": alert.count,
        "times": notice.times,
        "group": notice.group or alert.key,
        "source": notice.source,
        "safe": hint.safe,
        "do": hint.action,
    }
    if base_url and alert.pk:
        entry["url"] = f"{base_url}/admin/monitoring/alert/{alert.pk}/change/"
    return entry


def shown_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {key: redact(key, value) for key, value in detail.items()}


def _main_event(notices: Sequence[AlertNotice]) -> Event:
    return min((each.event for each in notices), key=ORDER.index)


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def escape_chat(text: str) -> str:
    """Escapes chat markup and mentions."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("@", "@\u200b")
