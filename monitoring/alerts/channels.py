"""The channels of alert messages: webhook, e-mail, Sentry. Each sends the document of a message.

Sentry gets one event an alert, with the alert's key as its fingerprint, so that one cause is one issue. Its own hooks
are not installed: they would send variables and requests with private data. The envelope is posted directly, so that
failures are noticed.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import smtplib
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import orjson
from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend
from sentry_sdk.envelope import Envelope, Item, PayloadRef
from sentry_sdk.utils import BadDsn, Dsn

from monitoring.alerts.alert_keys import kind_of
from monitoring.alerts.message_text import Event, grouped, one_line
from monitoring.models import Channel
from scraping.readings import retry_after_seconds
from victoryline.configuration import Config

HTTP_SECONDS = 5.0
SMTP_SECONDS = 10.0
RETRIED_STATUSES = {408, 425, 429}
SIGNATURE = "X-VictoryLine-Signature"
TIMESTAMP = "X-VictoryLine-Timestamp"
SMTP_PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}
MAIL_TIME = "%d %b %Y, %H:%M:%S UTC"
MAX_DETAIL = 300
HIDDEN_DETAILS = {"match_id", "task_id"}  # for programs only
SENTRY_LEVELS = {"critical": "error", "warning": "warning"}
NOT_IN_SENTRY = frozenset({Event.OVER, Event.REPEATED})  # Sentry counts events
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
    def send(self, document: Document) -> str:
        """Blocks for seconds at most and returns a description. Raises DeliveryError."""


def configured(config: Config) -> dict[Channel, Sender]:
    found: dict[Channel, Sender] = {}
    if config.alert_webhook_url:
        found[Channel.WEBHOOK] = Webhook(config.alert_webhook_url, config.alert_webhook_secret)
    if config.smtp_url and config.alert_email_to:
        found[Channel.EMAIL] = Mail(config.smtp_url, config.alert_email_from, config.alert_email_to)
    if config.sentry_dsn:
        found[Channel.SENTRY] = Sentry(config.sentry_dsn)
    return found


@dataclass(frozen=True)
class Webhook:
    """Posts the document as JSON. A signature over time and body lets the receiver verify the sender."""

    url: str = field(repr=False)
    secret: str = field(default="", repr=False)

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

    def send(self, document: Document) -> str:
        try:
            auth = Dsn(self.dsn).to_auth("victoryline/1")
        except BadDsn as error:
            raise DeliveryRejected("SENTRY_DSN is not valid: the format is https://key@host/number") from error
        alerts = [alert for alert in document["alerts"] if alert["event"] not in NOT_IN_SENTRY]
        events = [_sentry_event(document, alert, key, text) for key, text, alert in grouped(alerts)]
        for event in events:
            envelope = Envelope(headers={"event_id": event["event_id"]})
            envelope.add_item(Item(payload=PayloadRef(json=event), type="event"))
            headers = {"Content-Type": "application/x-sentry-envelope", "X-Sentry-Auth": auth.to_header()}
            post(auth.get_api_url(), envelope.serialize(), headers)
        return f"accepted {len(events)} events"


def _sentry_event(document: Document, alert: Document, fingerprint: str, text: str) -> dict[str, Any]:
    kind = kind_of(alert["key"])
    name = kind.rstrip(":") or alert["key"]
    return {
        "event_id": uuid.uuid5(uuid.UUID(document["id"]), fingerprint).hex,  # a message sent twice counts once
        "timestamp": document["at"],
        "platform": "python",
        "logger": "victoryline.alerts",
        "level": SENTRY_LEVELS[alert["severity"]],
        "logentry": {"formatted": text},
        "fingerprint": [fingerprint],
        "tags": {"event": kind.sentry_event or name, "alert": name, "source": alert["source"] or "-"},
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


@dataclass(frozen=True)
class Mail:
    """Plain text; TLS only with a verified certificate."""

    url: str = field(repr=False)
    sender: str
    to: tuple[str, ...]
    timeout: float = SMTP_SECONDS

    def send(self, document: Document) -> str:
        parts = urlsplit(self.url)
        host = parts.hostname or "localhost"
        connection = EmailBackend(
            host=host,
            port=parts.port or SMTP_PORTS[parts.scheme],
            username=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            use_tls=parts.scheme == "smtp+starttls",
            use_ssl=parts.scheme == "smtps",
            timeout=self.timeout,
        )
        headers = {"Message-ID": f"<{document['id']}@victoryline.invalid>", "Auto-Submitted": "auto-generated"}
        if document["severity"] == "critical" and document["event"] != Event.OVER:
            headers["Importance"] = "high"
        text = "\n".join(mail_text(document))
        mail = EmailMessage(one_line(document["subject"]), text, self.sender, self.to, headers=headers)
        try:
            connection.send_messages([mail])
        except OSError as error:
            raise _mail_error(host, error) from error
        finally:
            with suppress(OSError):  # after a failed login or STARTTLS it is still open
                connection.close()
        return f"{host} accepted it"


def _mail_error(host: str, error: OSError) -> DeliveryError:
    match error:
        case smtplib.SMTPRecipientsRefused():
            refused = ", ".join(error.recipients)
            return DeliveryRejected(f"{host} rejects the recipients {refused}. Check ALERT_EMAIL_TO")
        case smtplib.SMTPAuthenticationError():
            return DeliveryRejected(f"{host} rejects the user name and password ({error.smtp_code}). Check SMTP_URL")
        case smtplib.SMTPNotSupportedError():
            return DeliveryRejected(f"{host} does not support it: {one_line(str(error))}. Check the scheme of SMTP_URL")
        case smtplib.SMTPResponseException():
            kind = DeliveryRejected if error.smtp_code >= 500 else DeliveryError
            return kind(f"{host} answered {error.smtp_code}")
    return _unreachable(host, error)


def mail_text(document: Document) -> Iterator[str]:
    """Yields the lines of the text; advice that several alerts share appears once."""
    shared: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for alert in document["alerts"]:
        shared.setdefault((alert["safe"], alert["do"]), []).append(alert)
    for (safe, do), alerts in shared.items():
        for alert in alerts:
            yield from _mail_lines(alert)
        if any(alert["closed_at"] is None for alert in alerts):
            yield f"  What is safe: {safe}"
            yield f"  What to do:   {do}"
        yield ""
    if document["more"]:
        yield f"And {document['more']} more: see the list of alerts in the admin."


def _mail_lines(alert: dict[str, Any]) -> Iterator[str]:
    times = f", {alert['times']} times in a day" if alert["times"] > 1 else ""
    yield f"{alert['severity'].upper()}, {alert['event']}{times}: {alert['summary']}"
    since = f"  Since {datetime.fromisoformat(alert['opened_at']):{MAIL_TIME}}"
    if alert["closed_at"]:
        yield f"{since}, over at {datetime.fromisoformat(alert['closed_at']):{MAIL_TIME}}"
    else:
        yield since
        if alert["source"]:
            yield f"  Source: {alert['source']}"
        for name, value in alert["detail"].items():
            if name not in HIDDEN_DETAILS and isinstance(value, str | int | float) and value != "":
                yield f"  {name.replace('_', ' ').capitalize()}: {one_line(str(value))[:MAX_DETAIL]}"
    if "url" in alert:
        yield f"  {alert['url']}"
