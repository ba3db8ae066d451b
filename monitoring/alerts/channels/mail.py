"""E-mail: plain text, one thread for an alert from start to end, TLS with a verified certificate."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from monitoring.alerts.channels.base import DeliveryDeferred, DeliveryRejected, OutgoingMessage
from monitoring.alerts.message_text import one_line

TIMEOUT_SECONDS = 10.0
MAX_THREAD = 10
MAX_DETAIL = 300
HIDDEN_DETAILS = {"match_id", "task_id"}  # for programs only
DOMAIN = "victoryline.invalid"  # of message ids, which only have to be unique
PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}


@dataclass(frozen=True)
class Mail:
    url: str = field(repr=False)
    sender: str
    to: tuple[str, ...]
    timeout: float = TIMEOUT_SECONDS

    def send(self, message: OutgoingMessage) -> str:
        host = urlsplit(self.url).hostname or "?"
        try:
            with self._connect() as server:
                refused = server.send_message(self.compose(message), self.sender, list(self.to))
        except ssl.SSLCertVerificationError as error:
            raise DeliveryDeferred(f"the certificate of {host} is not trusted: {error.verify_message}") from error
        except smtplib.SMTPRecipientsRefused as error:
            raise DeliveryRejected(
                f"{host} rejects the recipients {', '.join(error.recipients)}. Check ALERT_EMAIL_TO"
            ) from error
        except smtplib.SMTPAuthenticationError as error:
            raise DeliveryRejected(
                f"{host} rejects the user name and password ({error.smtp_code}). Check SMTP_URL"
            ) from error
        except smtplib.SMTPNotSupportedError as error:
            raise DeliveryRejected(
                f"{host} does not support it: {one_line(str(error))}. Check the scheme of SMTP_URL"
            ) from error
        except smtplib.SMTPResponseException as error:
            text = f"{host} answered {error.smtp_code}"
            raise (DeliveryRejected(text) if error.smtp_code >= 500 else DeliveryDeferred(text)) from error
        except (OSError, smtplib.SMTPException) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise DeliveryDeferred(f"{host} cannot be reached: {reason}") from error
        return f"{host} accepted it for {len(self.to) - len(refused)} of {len(self.to)}"

    def compose(self, message: OutgoingMessage) -> EmailMessage:
        document, mail = message.document, EmailMessage()
        mail["Subject"] = one_line(str(document["subject"]))
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Date"] = format_datetime(message.created_at)
        mail["Message-ID"] = _message_id(message.id)
        mail["Auto-Submitted"] = "auto-generated"
        if document["severity"] == "critical" and document["event"] != "over":
            mail["Importance"] = "high"
        if message.thread:
            earlier = [_message_id(each) for each in message.thread[:MAX_THREAD]]
            mail["In-Reply-To"], mail["References"] = earlier[-1], " ".join(earlier)
        mail.set_content("\n".join(body(document)))
        return mail

    def _connect(self) -> smtplib.SMTP:
        parts = urlsplit(self.url)
        host, port = parts.hostname or "localhost", parts.port or PORTS[parts.scheme]
        server: smtplib.SMTP
        if parts.scheme == "smtps":
            server = smtplib.SMTP_SSL(host, port, timeout=self.timeout, context=ssl.create_default_context())
        else:
            server = smtplib.SMTP(host, port, timeout=self.timeout)
        try:
            if parts.scheme == "smtp+starttls":
                server.starttls(context=ssl.create_default_context())
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
        except BaseException:
            server.close()
            raise
        return server


def body(document: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of the text; advice that several alerts share appears once."""
    if document["event"] == "digest":
        yield "The hourly limit of messages was reached. This message has the delayed notifications."
        yield ""
    shared: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for alert in document["alerts"]:
        shared.setdefault((alert["safe"], alert["do"]), []).append(alert)
    for (safe, do), alerts in shared.items():
        for alert in alerts:
            yield from _alert_lines(alert)
        if any(alert["closed_at"] is None for alert in alerts):
            yield f"  What is safe: {safe}"
            yield f"  What to do:   {do}"
        yield ""
    if document["more"]:
        yield f"And {document['more']} more: see the list of alerts in the admin."


def _alert_lines(alert: dict[str, Any]) -> Iterator[str]:
    times = f", {alert['times']} times in a day" if alert["times"] > 1 else ""
    yield f"{alert['severity'].upper()}, {alert['event']}{times}: {alert['summary']}"
    yield f"  Since {_moment(alert['opened_at'])}" + (
        f", over at {_moment(alert['closed_at'])}" if alert["closed_at"] else ""
    )
    if alert["closed_at"] is None:
        yield from _details(alert)
    if "url" in alert:
        yield f"  {alert['url']}"


def _details(alert: dict[str, Any]) -> Iterator[str]:
    """Yields the source and the simple values of the detail."""
    if alert["source"]:
        yield f"  Source: {alert['source']}"
    for name, value in alert["detail"].items():
        if name not in HIDDEN_DETAILS and isinstance(value, str | int | float) and value != "":
            yield f"  {name.replace('_', ' ').capitalize()}: {one_line(str(value))[:MAX_DETAIL]}"


def _moment(iso: str) -> str:
    return f"{datetime.fromisoformat(iso):%d %b %Y, %H:%M:%S} UTC"


def _message_id(document_id: str) -> str:
    return f"<{document_id}@{DOMAIN}>"
