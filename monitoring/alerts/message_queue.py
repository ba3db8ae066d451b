"""Queues the messages about alerts, and is the sole writer of alert messages.

Each call queues one message with all alerts that were raised, became worse or ended since the last one. An alert that
ends before its message is not notified. Grouping, repetitions and routing are the job of the receiver.

Guards against alerts that are lost between detection and delivery: a message is a row before it is sent. A sender
claims it by a conditional UPDATE for two minutes; if the sender dies, another one claims it again.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from monitoring.alerts.channels import NOT_IN_SENTRY
from monitoring.alerts.message_text import Event, document, event_of
from monitoring.models import Alert, AlertMessage, Channel

CLAIM_DURATION = timedelta(seconds=120)  # longer than any channel takes
DELAYS_SECONDS = (5, 15, 45, 120, 300, 600, 900, 1200)  # between attempts: given up after about an hour
UNSENT = Q(sent_at__isnull=True, given_up_at__isnull=True)


def queue_due(channels: Collection[Channel], *, base_url: str, now: datetime) -> int:
    """Writes the messages that are due and returns how many. Of two concurrent calls the second finds nothing to do."""
    if not channels or not _due(Alert.objects.all(), now).exists():
        return 0
    with transaction.atomic():
        alerts = list(_due(Alert.objects.select_for_update(), now))
        return _write(alerts, channels, base_url, now) if alerts else 0


def _due(rows: QuerySet[Alert], now: datetime) -> QuerySet[Alert]:
    is_new = Q(closed_at__isnull=True, notified_at__isnull=True)  # or has become critical
    is_over = Q(closed_at__isnull=False, notification_count__gt=0, end_notified_at__isnull=True)
    return rows.filter(is_new | is_over).exclude(muted_until__gt=now).order_by("pk")


def _write(alerts: list[Alert], channels: Collection[Channel], base_url: str, now: datetime) -> int:
    body = document(alerts, base_url=base_url, now=now)
    events = {alert.pk: event_of(alert) for alert in alerts}
    written = 0
    for channel in channels:
        if channel is Channel.SENTRY and NOT_IN_SENTRY.issuperset(events.values()):
            continue
        message = AlertMessage.objects.create(
            channel=channel,
            severity=body["severity"],
            subject=body["subject"][:300],
            document=body,
            created_at=now,
            next_attempt_at=now,
        )
        message.alerts.set(alerts)
        written += 1
    ended = [pk for pk, event in events.items() if event is Event.OVER]
    Alert.objects.filter(pk__in=ended).update(end_notified_at=now)
    Alert.objects.filter(pk__in=events.keys() - set(ended)).update(
        notified_at=now, notification_count=F("notification_count") + 1
    )
    return written


def claim_next(channel: Channel, now: datetime) -> AlertMessage | None:
    """Claims the oldest due message of a channel; returns None if there is none or another sender claimed it."""
    is_due = Q(next_attempt_at__lte=now) | Q(attempts=0, created_at__gt=now)  # or the clock was set back since
    message = AlertMessage.objects.filter(UNSENT, is_due, channel=channel).order_by("pk").first()
    if message is None:
        return None
    mine = AlertMessage.objects.filter(
        UNSENT, pk=message.pk, attempts=message.attempts, next_attempt_at=message.next_attempt_at
    )
    message.attempts += 1
    return message if mine.update(attempts=message.attempts, next_attempt_at=now + CLAIM_DURATION) else None


def mark_sent(message: AlertMessage, now: datetime) -> None:
    AlertMessage.objects.filter(UNSENT, pk=message.pk).update(sent_at=now, error="")


def mark_failed(
    message: AlertMessage, reason: str, *, now: datetime, retry_after: float | None = None, is_final: bool = False
) -> bool:
    """Records a failed attempt; returns True when the message is given up."""
    mine = AlertMessage.objects.filter(UNSENT, pk=message.pk, attempts=message.attempts)
    if is_final or message.attempts > len(DELAYS_SECONDS):
        mine.update(given_up_at=now, error=reason[:300])
        return True
    pause = max(DELAYS_SECONDS[message.attempts - 1], retry_after or 0.0)
    mine.update(next_attempt_at=now + timedelta(seconds=pause), error=reason[:300])
    return False


def send_again(pk: int, now: datetime) -> bool:
    """Gives an unsent message all of its attempts again; returns False for one that was sent."""
    unsent = AlertMessage.objects.filter(pk=pk, sent_at__isnull=True)
    return bool(unsent.update(given_up_at=None, attempts=0, next_attempt_at=now, error=""))
