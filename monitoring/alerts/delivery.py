"""Delivers alert messages: one thread a channel, beside the scheduler.

Guards against a webhook that hangs: it blocks neither the scheduler nor the other channels. Guards against the one
fault that cannot be stored, a database that is away: after a minute each channel gets one message about it directly,
and one more when it is back. Any number of processes may run these threads; a message is claimed by one of them.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import close_old_connections, connection
from django.utils import timezone

from monitoring.alerts import alert_keys, message_queue
from monitoring.alerts.channels import DeliveryDeferred, DeliveryError, DeliveryRejected, OutgoingMessage, Sender
from monitoring.alerts.message_text import AlertNotice, document
from monitoring.alerts.notification_policy import Event
from monitoring.models import Alert, Channel, Severity
from victoryline.lib.availability import DATABASE_AWAY
from victoryline.lib.redaction import clean

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
OUTAGE_NOTIFIED_AFTER = timedelta(seconds=60)
OUTAGE_NOTIFIED_EVERY = timedelta(minutes=10)  # for a database that comes and goes


class DeliveryThread(threading.Thread):
    """`clock` is for tests."""

    def __init__(self, channel: Channel, sender: Sender, clock: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(name=f"delivery-{channel}", daemon=True)
        self._channel, self._sender, self._clock = channel, sender, clock
        self._outage = OutageNotifier(channel, sender)
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
            claimed = message_queue.claim_next(self._channel, now)
            self._outage.database_returned(now)
            if claimed is None:
                return False
            self._deliver(claimed)
            return True
        except DATABASE_AWAY as error:
            self._outage.database_failed(error, now)
        except Exception:
            logger.exception(
                "Delivery by %s failed with a bug; the message is tried again in two minutes",
                self._channel,
                extra={"action": "courier_failed", "channel": self._channel.value},
            )
        return False

    def _deliver(self, claimed: message_queue.ClaimedMessage) -> None:
        try:
            done = self._sender.send(claimed.message)
        except DeliveryError as error:
            self._record_failure(claimed, error)
            return
        message_queue.mark_sent(claimed, self._clock())
        logger.info(
            "Alert message sent by %s (%s): %s",
            self._channel.value,
            done,
            claimed.message.document["subject"],
            extra={"action": "alert_sent", "channel": self._channel.value, "message_id": claimed.pk},
        )

    def _record_failure(self, claimed: message_queue.ClaimedMessage, error: DeliveryError) -> None:
        reason, again = clean(str(error)), error.seconds if isinstance(error, DeliveryDeferred) else None
        is_over = message_queue.mark_failed(
            claimed, reason, now=self._clock(), again_after=again, is_final=isinstance(error, DeliveryRejected)
        )
        logger.log(
            logging.ERROR if is_over else logging.WARNING,
            "An alert message was not delivered by %s: %s. %s",
            self._channel.value,
            reason,
            "It is given up; fix the cause, then Send again in the admin" if is_over else "It is tried again",
            extra={"action": "alert_not_sent", "channel": self._channel.value, "message_id": claimed.pk},
        )


class OutageNotifier:
    """Notifies a channel directly, without the database, that the database is away."""

    def __init__(self, channel: Channel, sender: Sender) -> None:
        self._channel, self._sender = channel, sender
        self._since: datetime | None = None
        self._notified_at: datetime | None = None
        self._is_notified = False

    def database_failed(self, error: BaseException, now: datetime) -> None:
        self._since = self._since or now
        is_news = self._notified_at is None or now - self._notified_at >= OUTAGE_NOTIFIED_EVERY
        if not self._is_notified and is_news and now - self._since >= OUTAGE_NOTIFIED_AFTER:
            self._notified_at = now
            reason = f"The database has been away for {(now - self._since).total_seconds():.0f} s"
            self._is_notified = self._send(Event.RAISED, f"{reason} ({type(error).__name__})", self._since, now)

    def database_returned(self, now: datetime) -> None:
        since, self._since = self._since, None
        if since and self._is_notified:
            self._is_notified = False
            self._send(Event.OVER, f"The database is back after {(now - since).total_seconds():.0f} s", since, now)

    def _send(self, event: Event, summary: str, since: datetime, now: datetime) -> bool:
        alert = Alert(
            key=alert_keys.DATABASE,
            severity=Severity.CRITICAL,
            summary=summary,
            opened_at=since,
            last_seen_at=now,
            closed_at=now if event is Event.OVER else None,
        )
        body = document([AlertNotice(alert, event)], severity=Severity.CRITICAL, is_digest=False, base_url="", now=now)
        # Two schedulers that see the same outage send the same id, so that a receiver can drop the second.
        body["id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"victoryline:{event}:{since:%Y-%m-%dT%H}"))
        try:
            self._sender.send(OutgoingMessage(body, now))
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
