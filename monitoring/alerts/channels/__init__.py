"""The channels of alert messages. A new one is a module here and a line in `configured`."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Protocol

from monitoring.alerts.channels.base import DeliveryDeferred, DeliveryError, DeliveryRejected, OutgoingMessage, Sender
from monitoring.alerts.channels.mail import Mail
from monitoring.alerts.channels.sentry import SILENT, Sentry
from monitoring.alerts.channels.webhook import Webhook
from monitoring.alerts.notification_policy import Event
from monitoring.models import Channel

__all__ = [
    "ChannelSettings",
    "DeliveryDeferred",
    "DeliveryError",
    "DeliveryRejected",
    "OutgoingMessage",
    "Sender",
    "accepts",
    "configured",
]


class ChannelSettings(Protocol):
    """The settings of all channels."""

    @property
    def alert_webhook_url(self) -> str: ...
    @property
    def alert_webhook_secret(self) -> str: ...
    @property
    def alert_email_to(self) -> tuple[str, ...]: ...
    @property
    def alert_email_from(self) -> str: ...
    @property
    def smtp_url(self) -> str: ...
    @property
    def sentry_dsn(self) -> str: ...


def configured(config: ChannelSettings) -> dict[Channel, Sender]:
    found: dict[Channel, Sender] = {}
    if config.alert_webhook_url:
        found[Channel.WEBHOOK] = Webhook(config.alert_webhook_url, config.alert_webhook_secret)
    if config.smtp_url and config.alert_email_to:
        found[Channel.EMAIL] = Mail(config.smtp_url, config.alert_email_from, config.alert_email_to)
    if config.sentry_dsn:
        found[Channel.SENTRY] = Sentry(config.sentry_dsn)
    return found


def accepts(channel: Channel, events: AbstractSet[Event]) -> bool:
    """Returns whether a channel sends messages about these events."""
    return channel is not Channel.SENTRY or not events <= SILENT
