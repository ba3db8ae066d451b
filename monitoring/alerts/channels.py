"""The channels of alert messages: webhook and Sentry. Each sends the document of a message.

Sentry gets one event an alert, with the alert's key as its fingerprint, so that one cause is one issue. Its own hooks
are not installed: they would send variables and requests with private data. The envelope is posted directly, so that
failures are noticed.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson
from sentry_sdk.envelope import Envelope, Item, PayloadRef
from sentry_sdk.utils import BadDsn, Dsn

from monitoring.alerts.alert_keys import kind_of
from monitoring.alerts.message_text import Event
from monitoring.models import Alert, Channel
from scraping.errors import ErrorClass
from scraping.readings import retry_after_seconds
from victoryline.configuration import Config

HTTP_SECONDS = 5.0
RETRIED_STATUSES = {408, 425, 429}
SIGNATURE = "X-VictoryLine-Signature"
TIMESTAMP = "X-VictoryLine-Timestamp"
# The events that Sentry gets, and their levels.
SENTRY_LEVELS = {
    "schema_break": "error",
    "anti_bot_challenge": "error",
    "circuit_opened": "warning",
    "data_integrity_degraded": "warning",
}
Document = Mapping[str, Any]


class DeliveryError(Exception):
    """A message was not delivered; the text is for operators and contains no secret.

    A retry may succeed; not before `retry_after` seconds have passed, if the server sent Retry-After.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class DeliveryRejected(DeliveryError):  # noqa: N818 - reads as a state at every `except`
    """A retry would be rejected again."""


class Sender(Protocol):
    def wants(self, alert: Alert) -> bool:
        """Returns whether the channel gets this alert."""

    def send(self, document: Document) -> str:
        """Blocks for seconds at most and returns a description. Raises DeliveryError."""


def configured(config: Config) -> dict[Channel, Sender]:
    found: dict[Channel, Sender] = {}
    if config.alert_webhook_url:
        found[Channel.WEBHOOK] = Webhook(config.alert_webhook_url, config.alert_webhook_secret)
    if config.sentry_dsn:
        found[Channel.SENTRY] = Sentry(config.sentry_dsn)
    return found


@dataclass(frozen=True)
class Webhook:
    """Posts the document as JSON. A signature over time and body lets the receiver verify the sender."""

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)

    def wants(self, alert: Alert) -> bool:
        return True

    def send(self, document: Document) -> str:
        body = orjson.dumps(document)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "VictoryLine",
            "Idempotency-Key": document["id"],
        }
        if self.secret:
            moment = str(int(time.time()))
            signature = hmac.new(self.secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
            headers |= {TIMESTAMP: moment, SIGNATURE: f"v1={signature}"}
        return f"answered {post(self.url, body, headers)}"


@dataclass(frozen=True)
class Sentry:
    dsn: str = field(repr=False)

    def wants(self, alert: Alert) -> bool:
        """Sentry counts events: it gets the beginning of the four kinds that it knows, and no end."""
        return alert.closed_at is None and sentry_event(alert.key, alert.detail) in SENTRY_LEVELS

    def send(self, document: Document) -> str:
        try:
            auth = Dsn(self.dsn).to_auth("victoryline/1")
        except BadDsn as error:
            raise DeliveryRejected("SENTRY_DSN is not valid: the format is https://key@host/number") from error
        events = [_sentry_event(document, each) for each in document["alerts"] if each["event"] != Event.OVER]
        for event in events:
            envelope = Envelope(headers={"event_id": event["event_id"]})
            envelope.add_item(Item(payload=PayloadRef(json=event), type="event"))
            headers = {"Content-Type": "application/x-sentry-envelope", "X-Sentry-Auth": auth.to_header()}
            post(auth.get_api_url(), envelope.serialize(), headers)
        return f"accepted {len(events)} events"


def sentry_event(key: str, detail: Mapping[str, Any]) -> str:
    """Returns the name of the event. A task that died of an unreadable response is the first sign of a change."""
    if detail.get("error_class") == ErrorClass.DRIFT:
        return "schema_break"
    return kind_of(key).sentry_event


def _sentry_event(document: Document, alert: Document) -> dict[str, Any]:
    name = kind_of(alert["key"]).rstrip(":") or alert["key"]
    event = sentry_event(alert["key"], alert["detail"]) or name
    return {
        "event_id": uuid.uuid5(uuid.UUID(document["id"]), alert["key"]).hex,  # a message sent twice counts once
        "timestamp": document["at"],
        "platform": "python",
        "logger": "victoryline.alerts",
        "level": SENTRY_LEVELS.get(event, "warning"),
        "logentry": {"formatted": alert["summary"]},
        "fingerprint": [alert["key"]],
        "tags": {"event": event, "alert": name, "source": alert["detail"].get("source") or "-"},
        "extra": {"key": alert["key"], "detail": alert["detail"], "do": alert["do"], "safe": alert["safe"]},
    }


def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout: float = HTTP_SECONDS) -> int:
    """Makes one request without redirects or proxies; returns a 2xx status, else raises DeliveryError.

    Errors name only the host of the address, which may contain secrets.
    """
    parts = urlsplit(url)
    where = parts.hostname or "?"
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(where, parts.port, timeout=timeout)
    try:
        connection.request("POST", parts._replace(scheme="", netloc="", fragment="").geturl() or "/", body, headers)
        with connection.getresponse() as answer:
            status, retry_after = answer.status, answer.headers.get("Retry-After", "")
    except TimeoutError as error:
        raise DeliveryError(f"{where} did not answer within {timeout:g} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(where, error) from error
    finally:
        connection.close()
    if 200 <= status < 300:
        return status
    if 300 <= status < 400:
        raise DeliveryRejected(f"{where} answered {status}: redirects are not followed. Correct the address")
    if status < 500 and status not in RETRIED_STATUSES:
        raise DeliveryRejected(f"{where} answered {status}: the request was rejected. Check the address and the secret")
    seconds = retry_after_seconds(retry_after, now=datetime.now(UTC))
    raise DeliveryError(f"{where} answered {status}", retry_after=seconds)


def _unreachable(host: str, error: Exception) -> DeliveryError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return DeliveryError(f"the certificate of {host} is not trusted: {error.verify_message}")
    return DeliveryError(f"{host} cannot be reached: {getattr(error, 'strerror', None) or type(error).__name__}")
