"""Delivers alert messages: scheduler steps that queue them and watch their delivery, and one thread a channel.

Guards against a webhook that hangs: it blocks neither the scheduler nor the other channels. Guards against the one
fault that cannot be stored, a database that is away: after a minute each channel gets one message about it directly,
and one more when it is back. Any number of processes may run the threads; a message is claimed by one of them.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from django.conf import settings
from django.db import close_old_connections, connection
from django.db.models import Count, Min, Q
from django.utils import timezone

from monitoring.alerts import alert_keys, message_queue
from monitoring.alerts.channels import DeliveryError, DeliveryRejected, Sender, configured
from monitoring.alerts.message_text import document
from monitoring.alerts.registry import Report, set_alerts
from monitoring.models import Alert, AlertMessage, Channel, Severity
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.redaction import clean
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
OUTAGE_NOTIFIED_AFTER = timedelta(seconds=60)
LATE_AFTER = timedelta(minutes=5)
GIVEN_UP_WINDOW = timedelta(hours=1)


def queue_messages(now: datetime) -> int:
    """Scheduler step: returns how many messages were queued; the delivery threads send them."""
    return message_queue.queue_due(tuple(configured(settings.CONFIG)), base_url=base_url(), now=now)


def base_url() -> str:
    """Returns the public address of the admin; empty if it is not configured."""
    config = settings.CONFIG
    if config.public_url:
        return config.public_url.rstrip("/")
    names = [name for name in config.allowed_hosts if "." in name.strip(".") and not name.startswith("127.")]
    return f"https://{names[0]}" if config.https and names else ""


def watch_deliveries(now: datetime) -> int:
    """Scheduler step: returns how many channels have late or lost messages."""
    is_lost = Q(given_up_at__gt=now - GIVEN_UP_WINDOW)
    is_late = message_queue.UNSENT & Q(created_at__lt=now - LATE_AFTER)
    rows = AlertMessage.objects.filter(is_lost | is_late, channel__in=list(configured(settings.CONFIG)))
    failing = rows.values_list("channel").annotate(number=Count("pk"), oldest=Min("created_at")).order_by()
    reports = {}
    for channel, number, oldest in failing:
        last = AlertMessage.objects.filter(channel=channel).exclude(error="").order_by("-pk").first()
        messages = "1 message is" if number == 1 else f"{number} messages are"
        summary = f"{messages} not delivered by {channel}" + (f": {last.error}" if last else "")
        detail = {"channel": channel, "messages": number, "oldest": as_utc_iso(oldest)}
        reports[alert_keys.DELIVERY.of(channel)] = Report(Severity.WARNING, summary, detail)
    set_alerts(alert_keys.DELIVERY, reports, now)
    return len(reports)


class DeliveryThread(threading.Thread):
    """`clock` is for tests."""

    def __init__(self, channel: Channel, sender: Sender, clock: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(name=f"delivery-{channel}", daemon=True)
        self._channel, self._sender, self._clock = channel, sender, clock
        self._away_since: datetime | None = None
        self._outage_notice_at: datetime | None = None  # None: it was sent
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            with suppress(*DATABASE_AWAY):  # handled by `deliver_next`
                close_old_connections()
            if not self.deliver_next():
                self._stopping.wait(POLL_SECONDS)
        connection.close()

    def deliver_next(self) -> bool:
        """Sends one message; returns False when none is due. Never raises."""
        now = self._clock()
        try:
            message = message_queue.claim_next(self._channel, now)
            self._database_returned(now)
            if message is None:
                return False
            self._deliver(message)
            return True
        except DATABASE_AWAY as error:
            self._database_failed(error, now)
        except Exception:
            logger.exception(
                "Delivery by %s failed with a bug; the message is tried again in two minutes",
                self._channel,
                extra={"action": "alert_delivery_failed", "channel": self._channel.value},
            )
        return False

    def _deliver(self, message: AlertMessage) -> None:
        about = {"channel": self._channel.value, "message_id": message.pk}
        try:
            done = self._sender.send(message.document)
        except DeliveryError as error:
            reason, is_final = clean(str(error)), isinstance(error, DeliveryRejected)
            is_over = message_queue.mark_failed(
                message, reason, now=self._clock(), retry_after=error.retry_after, is_final=is_final
            )
            logger.log(
                logging.ERROR if is_over else logging.WARNING,
                "An alert message was not delivered by %s: %s. %s",
                self._channel.value,
                reason,
                "It is given up; fix the cause, then Send again in the admin" if is_over else "It is tried again",
                extra={"action": "alert_not_sent", **about},
            )
            return
        message_queue.mark_sent(message, self._clock())
        logger.info(
            "Alert message sent by %s (%s): %s",
            self._channel.value,
            done,
            message.subject,
            extra={"action": "alert_sent", **about},
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
        body = document([alert], base_url="", now=now)
        # Two schedulers that see the same outage send the same id, so that a receiver can drop the second.
        body["id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"victoryline:{body['event']}:{alert.opened_at:%Y-%m-%dT%H}"))
        try:
            self._sender.send(body)
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

    def __init__(self, channels: Mapping[Channel, Sender]) -> None:
        self._threads = [DeliveryThread(channel, sender) for channel, sender in channels.items()]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
