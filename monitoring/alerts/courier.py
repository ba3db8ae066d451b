"""Takes messages to people, beside the scheduler and never in its way: one thread a channel.

Guards against a webhook that hangs: it holds up neither the scheduler nor the other channels. Guards against the one
trouble that cannot be written down, a database that is away: after a minute each channel is told of it directly, once,
and once more when it is back. Any number of processes may run couriers; a message is claimed by one of them.
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

from monitoring.alerts import causes, outbox
from monitoring.alerts.channels import DeliveryError, Outgoing, PutOff, Refused, Sender
from monitoring.alerts.telling import Event
from monitoring.alerts.wording import Told, document
from monitoring.models import Alert, Channel, Severity
from victoryline.lib.database_errors import DATABASE_AWAY
from victoryline.lib.redaction import clean

logger = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0
AWAY_IS_TOLD_AFTER = timedelta(seconds=60)
AWAY_IS_TOLD_EVERY = timedelta(minutes=10)  # a database that comes and goes is not told each time


class Courier(threading.Thread):
    """`clock` is for tests."""

    def __init__(self, channel: Channel, sender: Sender, clock: Callable[[], datetime] = timezone.now) -> None:
        super().__init__(name=f"courier-{channel}", daemon=True)
        self._channel, self._sender, self._clock = channel, sender, clock
        self._outage = Outage(channel, sender)
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            with suppress(*DATABASE_AWAY):  # told by the turn that follows
                close_old_connections()
            if not self.turn():
                self._stopping.wait(LOOK_EVERY_SECONDS)
        connection.close()

    def turn(self) -> bool:
        """Send one message; False when there is nothing to do just now. Never raises."""
        now = self._clock()
        try:
            claimed = outbox.claim_next(self._channel, now)
            self._outage.found_here(now)
            if claimed is None:
                return False
            self._deliver(claimed)
            return True
        except DATABASE_AWAY as error:
            self._outage.found_away(error, now)
        except Exception:
            logger.exception(
                "The courier of %s failed; the message is tried again in two minutes",
                self._channel,
                extra={"action": "courier_failed", "channel": self._channel.value},
            )
        return False

    def _deliver(self, claimed: outbox.Claimed) -> None:
        try:
            done = self._sender.send(claimed.message)
        except DeliveryError as error:
            self._note(claimed, error)
            return
        outbox.note_sent(claimed, self._clock())
        logger.info(
            "People were told by %s (%s): %s",
            self._channel.value,
            done,
            claimed.message.document["subject"],
            extra={"action": "alert_sent", "channel": self._channel.value, "message_id": claimed.pk},
        )

    def _note(self, claimed: outbox.Claimed, error: DeliveryError) -> None:
        reason, again = clean(str(error)), error.seconds if isinstance(error, PutOff) else None
        is_over = outbox.note_failed(
            claimed, reason, now=self._clock(), again_after=again, is_final=isinstance(error, Refused)
        )
        logger.log(
            logging.ERROR if is_over else logging.WARNING,
            "An alert did not get through by %s: %s. %s",
            self._channel.value,
            reason,
            "It is given up; mend the cause, then Send again in the admin" if is_over else "It is tried again",
            extra={"action": "alert_not_sent", "channel": self._channel.value, "message_id": claimed.pk},
        )


class Outage:
    """Tells a channel directly, without the database, that the database is away. Sole owner of its own memory."""

    def __init__(self, channel: Channel, sender: Sender) -> None:
        self._channel, self._sender = channel, sender
        self._since: datetime | None = None
        self._told_at: datetime | None = None
        self._is_told = False

    def found_away(self, error: BaseException, now: datetime) -> None:
        self._since = self._since or now
        is_news = self._told_at is None or now - self._told_at >= AWAY_IS_TOLD_EVERY
        if not self._is_told and is_news and now - self._since >= AWAY_IS_TOLD_AFTER:
            self._told_at = now
            reason = f"The database has been away for {(now - self._since).total_seconds():.0f} s"
            self._is_told = self._tell(Event.RAISED, f"{reason} ({type(error).__name__})", self._since, now)

    def found_here(self, now: datetime) -> None:
        since, self._since = self._since, None
        if since and self._is_told:
            self._is_told = False
            self._tell(Event.OVER, f"The database is back after {(now - since).total_seconds():.0f} s", since, now)

    def _tell(self, event: Event, summary: str, since: datetime, now: datetime) -> bool:
        alert = Alert(
            key=causes.DATABASE,
            severity=Severity.CRITICAL,
            summary=summary,
            opened_at=since,
            last_seen_at=now,
            closed_at=now if event is Event.OVER else None,
        )
        body = document([Told(alert, event)], severity=Severity.CRITICAL, is_digest=False, base_url="", now=now)
        # Two schedulers that see the same outage say the same: whoever gets both can tell.
        body["id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, f"victoryline:{event}:{since:%Y-%m-%dT%H}"))
        try:
            self._sender.send(Outgoing(body, now))
        except DeliveryError as error:
            logger.warning(
                "Nobody could be told by %s that the database is away: %s",
                self._channel.value,
                clean(str(error)),
                extra={"action": "alert_not_sent", "channel": self._channel.value},
            )
            return False
        return True


class Couriers:
    """One for each channel that is configured. `stop` returns within two seconds; what is in hand is sent again."""

    def __init__(self, channels: Mapping[Channel, Sender]) -> None:
        self._threads = [Courier(channel, sender) for channel, sender in channels.items()]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float = 2.0) -> None:
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
