"""What a message says: the document that the webhook posts, its subject and its text. Others are made from it.

Summaries and details hold text from outside. Secrets are taken out of both, and the text can neither call a whole chat
room (`<!channel>`, `@all`) nor break a header.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitoring.alerts.advice import advice
from monitoring.alerts.telling import Event
from monitoring.models import Alert, Severity
from victoryline.lib.redaction import clean, redact
from victoryline.lib.times import as_utc_iso

VERSION = 1
MOST_LISTED = 50  # alerts in one document; `more` says how many others there are
MOST_IN_A_GROUP = 3  # more of one kind at one source are one line
ORDER = (Event.WORSE, Event.RAISED, Event.AGAIN, Event.REPEATED, Event.PASSED, Event.OVER)  # what matters most first
ENDS = (Event.OVER, Event.PASSED)
WORDS = {
    Event.RAISED: "",
    Event.AGAIN: "again: ",
    Event.WORSE: "worse: ",
    Event.REPEATED: "still: ",
    Event.OVER: "over: ",
    Event.PASSED: "came and went: ",
}


@dataclass(frozen=True)
class Told:
    """An alert and what is said of it. `times`: how often it came within a day. `source`: of a match, where known."""

    alert: Alert
    event: Event
    group: str = ""
    source: str = ""
    times: int = 1


def document(
    told: Sequence[Told], *, severity: Severity, is_digest: bool, base_url: str, now: datetime
) -> dict[str, Any]:
    told = sorted(told, key=lambda each: ORDER.index(each.event))
    lines = _lines(told)
    return {
        "version": VERSION,
        "id": str(uuid.uuid4()),
        "event": "digest" if is_digest else _main_event(told).value,
        "severity": severity.value,
        "at": as_utc_iso(now),
        "subject": subject(told, lines, severity),
        "text": chat_text(told, lines, severity),
        "alerts": [_entry(each, base_url) for each in told[:MOST_LISTED]],
        "more": max(0, len(told) - MOST_LISTED),
    }


def subject(told: Sequence[Told], lines: Sequence[str], severity: Severity) -> str:
    word = "OVER" if all(each.event in ENDS for each in told) else severity.value.upper()
    rest = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    first = lines[0].removeprefix(WORDS[Event.OVER] if word == "OVER" else "")
    return one_line(f"[VictoryLine] {word}: {first[: 250 - len(rest)]}{rest}")


def chat_text(told: Sequence[Told], lines: Sequence[str], severity: Severity) -> str:
    """For Slack, Mattermost and the like."""
    hints = {advice(each.alert.key).do for each in told if each.event not in ENDS}
    shown = [f"{severity.value.upper()}: {lines[0]}" if hints else lines[0], *lines[1:10]]
    if len(lines) > 10:
        shown.append(f"and {len(lines) - 10} more")
    if len(hints) == 1:
        shown.append(f"\N{RIGHTWARDS ARROW} {hints.pop()}")
    return harmless("\n".join(shown))


def _lines(told: Sequence[Told]) -> list[str]:
    """One for each alert; one for all of a kind at a source when there are many."""
    groups: dict[tuple[str, Event], list[Told]] = {}
    for each in told:
        groups.setdefault((each.group or each.alert.key, each.event), []).append(each)
    lines: list[str] = []
    for (_, event), members in groups.items():
        many = advice(members[0].alert.key).many
        if len(members) > MOST_IN_A_GROUP and many:
            at = f" at {members[0].source}" if members[0].source else ""
            lines.append(one_line(f"{WORDS[event]}{len(members)} matches{at} {many}"))
        else:
            lines += [_line(each) for each in members]
    return lines


def _line(told: Told) -> str:
    times = f" ({told.times} times in a day)" if told.times > 1 else ""
    return one_line(f"{WORDS[told.event]}{clean(told.alert.summary)}{times}")


def _entry(told: Told, base_url: str) -> dict[str, Any]:
    alert, hint = told.alert, advice(told.alert.key)
    entry: dict[str, Any] = {
        "key": alert.key,
        "event": told.event.value,
        "severity": alert.severity,
        "summary": one_line(clean(alert.summary)),
        "detail": shown_detail(alert.detail),
        "opened_at": as_utc_iso(alert.opened_at),
        "closed_at": as_utc_iso(alert.closed_at) if alert.closed_at else None,
        "count": alert.count,
        "times": told.times,
        "group": told.group or alert.key,
        "source": told.source,
        "safe": hint.safe,
        "do": hint.do,
    }
    if base_url and alert.pk:
        entry["url"] = f"{base_url}/admin/monitoring/alert/{alert.pk}/change/"
    return entry


def shown_detail(detail: Mapping[str, Any]) -> dict[str, Any]:
    return {key: redact(key, value) for key, value in detail.items()}


def _main_event(told: Sequence[Told]) -> Event:
    return min((each.event for each in told), key=ORDER.index)


def one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def harmless(text: str) -> str:
    """As chats want it: nothing in it is markup, and nobody is called by it."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("@", "@\u200b")
