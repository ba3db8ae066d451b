"""Delivers alerts: one thread a channel beside each scheduler, at work while that scheduler leads.

Guards against alerts that are lost between detection and delivery: each alert has, for each channel, the state that was
sent last, written after the channel has accepted it; anything else is due, and is tried again until it is accepted.
Guards against a webhook that hangs: it blocks neither the scheduler nor the other channel. Guards against the one fault
that cannot be stored, a database that is away: after a minute each channel gets one message about it directly, and one
more when it is back. Routing, grouping over time and repetitions are the job of the receiver.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import close_old_connections, connection
from django.db.models import Q
from django.utils import timezone

from monitoring.alerts import alert_keys
from monitoring.alerts.channels import DeliveryError, DeliveryRejected, Sender
from monitoring.alerts.message_text import document
from monitoring.alerts.registry import close_alert, raise_alert
from monitoring.models import Alert, Channel, Severity
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.redaction import clean

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
OUTAGE_NOTIFIED_AFTER = timedelta(seconds=60)
DELAYS_SECONDS = (5, 15, 45, 120, 300, 600)  # after each failure in a row; the last one from then on
LATE_AFTER = timedelta(minutes=5)
OVER = "over"


def base_url() -> str:
    """Returns the public address of the admin; empty if it is not configured."""
    config = settings.CONFIG
    if config.public_url:
        return config.public_url.rstrip("/")
    names = [name for name in config.allowed_hosts if "." in name.strip(".") and not name.startswith("127.")]
    return f"https://{names[0]}" if config.https and names else ""


def due(channel: Channel, now: datetime) -> list[Alert]:
    """Returns the alerts that were raised, became critical or ended since the channel got them."""
    sent = channel.sent_column
    is_news = Q(**{sent: ""}) | Q(**{sent: Severity.WARNING, "severity": Severity.CRITICAL})
    is_over = Q(closed_at__isnull=False) & ~Q(**{f"{sent}__in": ("", OVER)})
    rows = Alert.objects.filter(Q(closed_at__isnull=True) & is_news | is_over)
    return list(rows.exclude(muted_until__gt=now).order_by("pk"))


class DeliveryThread(threading.Thread):
    """`clock` is for tests."""

    def __init__(
        self,
        channel: Channel,
        sender: Sender,
        is_leading: Callable[[], bool] = lambda: True,
        clock: Callable[[], datetime] = timezone.now,
    ) -> None:
        super().__init__(name=f"delivery-{channel}", daemon=True)
        self._channel, self._sender, self._is_leading, self._clock = channel, sender, is_leading, clock
        self._away_since: datetime | None = None
        self._outage_notice_at: datetime | None = None  # None: it was sent
        self._failures = 0
        self._failing_since: datetime | None = None
        self._next_at: datetime | None = None
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            with suppress(*DATABASE_AWAY):  # handled by `deliver`
                close_old_connections()
            if self._is_leading():
                self.deliver()
            self._stopping.wait(POLL_SECONDS)
        connection.close()

    def deliver(self) -> bool:
        """Sends what is due in one message; returns whether a message was accepted. Never raises."""
        now = self._clock()
        try:
            alerts = due(self._channel, now)
            self._database_returned(now)
            own = alert_keys.DELIVERY.of(self._channel)
            wanted = [alert for alert in alerts if self._sender.wants(alert) and alert.key != own]
            self._mark_sent([alert for alert in alerts if alert not in wanted], None)
            is_waiting = self._next_at is not None and self._next_at - timedelta(minutes=15) < now < self._next_at
            return bool(wanted) and not is_waiting and self._send(wanted, now)
        except DATABASE_AWAY as error:
            self._database_failed(error, now)
        except Exception:
            logger.exception(
                "Delivery by %s failed with a bug; it is tried again",
                self._channel,
                extra={"action": "alert_delivery_failed", "channel": self._channel.value},
            )
        return False

    def _send(self, alerts: list[Alert], now: datetime) -> bool:
        about = {"channel": self._channel.value}
        message = document(alerts, self._channel.sent_column, base_url=base_url(), now=now)
        try:
            done = self._sender.send(message)
        except DeliveryError as error:
            self._failed(error, now)
            return False
        self._mark_sent(alerts, now)
        if self._failing_since is not None:
            self._failures, self._failing_since, self._next_at = 0, None, None
            close_alert(alert_keys.DELIVERY.of(self._channel), now)
        logger.info(
            "Alert message sent by %s (%s): %s",
            self._channel.value,
            done,
            message["subject"],
            extra={"action": "alert_sent", **about},
        )
        return True

    def _mark_sent(self, alerts: list[Alert], now: datetime | None) -> None:
        """Writes the state that was sent. One that has changed meanwhile is due again."""
        column = self._channel.sent_column
        notified = {} if now is None else {"notified_at": now}
        over = [alert.pk for alert in alerts if alert.closed_at is not None]
        Alert.objects.filter(pk__in=over).update(**{column: OVER}, **notified)
        for severity in Severity:
            opened = [alert.pk for alert in alerts if alert.closed_at is None and alert.severity == severity]
            if opened:
                Alert.objects.filter(pk__in=opened).update(**{column: severity}, **notified)

    def _failed(self, error: DeliveryError, now: datetime) -> None:
        reason = clean(str(error))
        pause = max(DELAYS_SECONDS[min(self._failures, len(DELAYS_SECONDS) - 1)], error.retry_after or 0.0)
        if isinstance(error, DeliveryRejected):
            pause = DELAYS_SECONDS[-1]
        self._failures += 1
        self._failing_since = self._failing_since or now
        self._next_at = now + timedelta(seconds=pause)
        logger.log(
            logging.ERROR if isinstance(error, DeliveryRejected) else logging.WARNING,
            "An alert message was not delivered by %s: %s. It is tried again after %.0f s",
            self._channel.value,
            reason,
            pause,
            extra={"action": "alert_not_sent", "channel": self._channel.value},
        )
        if isinstance(error, DeliveryRejected) or now - self._failing_since >= LATE_AFTER:
            summary = f"Alerts are not delivered by {self._channel.value}: {reason}"
            raise_alert(
                alert_keys.DELIVERY.of(self._channel), Severity.WARNING, summary, {"channel": self._channel.value}, now
            )

    def _database_failed(self, error: BaseException, now: datetime) -> None:
        if self._away_since is None:
            self._away_since, self._outage_notice_at = now, now + OUTAGE_NOTIFIED_AFTER
        if self._outage_notice_at is not None and now >= self._outage_notice_at:
            seconds = (now - self._away_since).total_seconds()
            summary = f"The database has been away for {seconds:.0f} s ({type(error).__name__})"
            is_sent = self._notify_outage(Alert(summary=summary, opened_at=self._away_since), now)
            self._outage_notice_at = None if is_sent else now + OUTAGE_NOTIFIED_AFTER

    def _database_returned(self, now: datetime) -> None:
        since, self._away_since = self._away_since, None
        if since is not None and self._outage_notice_at is None:
            summary = f"The database is back after {(now - since).total_seconds():.0f} s"
            self._notify_outage(Alert(summary=summary, opened_at=since, closed_at=now), now)

    def _notify_outage(self, alert: Alert, now: datetime) -> bool:
        """Sends a message directly, without the database; returns whether it was delivered."""
        alert.key, alert.severity, alert.last_seen_at = alert_keys.DATABASE, Severity.CRITICAL, now
        try:
            self._sender.send(document([alert], self._channel.sent_column, base_url="", now=now))
        except DeliveryError as error:
            logger.warning(
                "No message could be sent by %s that the database is away: %s",
                self._channel.value,
                clean(str(error)),
                extra={"action": "alert_not_sent", "channel": self._channel.value},
            )
            return False
        return True


class DeliveryThreads:
    """One thread for each configured channel. `stop` returns within two seconds; an unfinished one is sent again."""

    def __init__(self, channels: Mapping[Channel, Sender], is_leading: Callable[[], bool] = lambda: True) -> None:
        self._threads = [DeliveryThread(channel, sender, is_leading) for channel, sender in channels.items()]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
