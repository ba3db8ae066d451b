"""Sentry: one event an alert, with the alert's key as its fingerprint, so that one cause is one issue.

Only alerts are sent. Sentry's own hooks are not installed: they would send variables and requests with private data.
The envelope is posted directly, so that failures are noticed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from sentry_sdk.envelope import Envelope, Item, PayloadRef
from sentry_sdk.utils import BadDsn, Dsn

from monitoring.alerts.advice import advice, alert_kind
from monitoring.alerts.channels.base import DeliveryRejected, OutgoingMessage
from monitoring.alerts.channels.http_post import post
from monitoring.alerts.notification_policy import Event

LEVELS = {"critical": "error", "warning": "warning"}
SILENT = frozenset({Event.OVER, Event.PASSED, Event.REPEATED})  # not sent: Sentry counts events
MAX_GROUP_EVENTS = 3


@dataclass(frozen=True)
class Sentry:
    dsn: str = field(repr=False)

    def send(self, message: OutgoingMessage) -> str:
        try:
            auth = Dsn(self.dsn).to_auth("victoryline/1")
        except BadDsn as error:
            raise DeliveryRejected("SENTRY_DSN is not valid: the format is https://key@host/number") from error
        made = list(events(message))
        for event in made:
            envelope = Envelope(headers={"event_id": event["event_id"]})
            envelope.add_item(Item(payload=PayloadRef(json=event), type="event"))
            headers = {"Content-Type": "application/x-sentry-envelope", "X-Sentry-Auth": auth.to_header()}
            post(auth.get_api_url(), envelope.serialize(), headers)
        return f"accepted {len(made)} events"


def events(message: OutgoingMessage) -> list[dict[str, Any]]:
    """Returns the events of a message; their ids are stable, so that a message sent twice counts once."""
    alerts = [alert for alert in message.document["alerts"] if alert["event"] not in SILENT]
    groups: dict[str, list[dict[str, Any]]] = {}
    for alert in alerts:
        groups.setdefault(alert["group"], []).append(alert)
    made = []
    for group, members in groups.items():
        if len(members) > MAX_GROUP_EVENTS:
            at = f" at {members[0]['source']}" if members[0]["source"] else ""
            made.append(
                _event(message, members[0], group, f"{len(members)} matches{at} {advice(members[0]['key']).group_text}")
            )
        else:
            made += [_event(message, alert, alert["key"], alert["summary"]) for alert in members]
    return made


def _event(message: OutgoingMessage, alert: dict[str, Any], fingerprint: str, text: str) -> dict[str, Any]:
    kind = alert_kind(alert["key"]).rstrip(":") or alert["key"]
    return {
        "event_id": uuid.uuid5(uuid.UUID(message.id), fingerprint).hex,
        "timestamp": message.document["at"],
        "platform": "python",
        "logger": "victoryline.alerts",
        "level": LEVELS.get(alert["severity"], "error"),
        "logentry": {"formatted": text},
        "fingerprint": [fingerprint],
        "tags": {"event": advice(alert["key"]).sentry_event or kind, "alert": kind, "source": alert["source"] or "-"},
        "extra": {"key": alert["key"], "detail": alert["detail"], "do": alert["do"], "safe": alert["safe"]},
    }
