"""Decides when alerts are notified, and is the sole writer of alert messages.

Guards against both failures of alerting: no message during an outage, and so many messages that they are not read.
- Critical alerts are notified at once; those of the following 30 seconds share the next message.
- Warnings are collected for five minutes. A warning that closes before its notification is not notified.
- Open alerts are repeated every hour until they are acknowledged.
- The end of a notified alert is notified five minutes after it, unless the alert has opened again (`registry`).

Guards against alerts that are lost between detection and delivery: a message is a row before it is sent. A sender
claims it by a conditional UPDATE for two minutes; if the sender dies, another one claims it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from monitoring.alerts.channels import NOT_IN_SENTRY
from monitoring.alerts.message_text import Event, document, event_of
from monitoring.models import Alert, AlertMessage, Channel, Severity
from scraping.models import MatchRef

CRITICAL_INTERVAL = timedelta(seconds=30)
BATCH = timedelta(minutes=5)
REPEAT = timedelta(hours=1)
DAY = timedelta(days=1)
CLAIM_DURATION = timedelta(seconds=120)  # longer than any channel takes
DELAYS_SECONDS = (5, 15, 45, 120, 300, 600, 900, 1200)  # between attempts: given up after about an hour
UNSENT = Q(sent_at__isnull=True, given_up_at__isnull=True)


def queue_due(channels: Collection[Channel], *, base_url: str, now: datetime) -> int:
    """Writes the messages that are due and returns how many. Of two concurrent calls the second finds nothing to do."""
    if not channels or not _due(Alert.objects.all(), now):
        return 0
    with transaction.atomic():
        messages = _due(Alert.objects.select_for_update(), now)
        return sum(_write(alerts, channels, base_url, now) for alerts in messages)


def _due(rows: QuerySet[Alert], now: datetime) -> list[list[Alert]]:
    """Returns the alerts of each message that is due: the critical ones, and the warnings."""
    is_new = Q(closed_at__isnull=True, notified_at__isnull=True)  # or has become critical
    is_repeated = Q(closed_at__isnull=True, notified_at__lte=now - REPEAT, acknowledged_at__isnull=True)
    is_over = Q(closed_at__lte=now - BATCH, notification_count__gt=0, end_notified_at__isnull=True)
    found = list(rows.filter(is_new | is_repeated | is_over).exclude(muted_until__gt=now).order_by("pk"))
    critical = [alert for alert in found if alert.severity == Severity.CRITICAL]
    warnings = [alert for alert in found if alert.severity == Severity.WARNING]
    messages = []
    sent = AlertMessage.objects.filter(severity=Severity.CRITICAL, created_at__lte=now)
    if critical and not sent.filter(created_at__gt=now - CRITICAL_INTERVAL).exists():
        messages.append(critical)
    if any(alert.notification_count or alert.opened_at <= now - BATCH for alert in warnings):
        messages.append(warnings)
    return messages


def _write(alerts: list[Alert], channels: Collection[Channel], base_url: str, now: datetime) -> int:
    recent = Alert.objects.filter(key__in=[alert.key for alert in alerts], opened_at__gt=now - DAY)
    times = dict(recent.values_list("key").annotate(number=Count("pk")).order_by())
    body = document(alerts, base_url=base_url, now=now, sources=_sources(alerts), times=times)
    events = {alert.pk: event_of(alert) for alert in alerts}
    written = 0
    for channel in channels:
        if channel is Channel.SENTRY and NOT_IN_SENTRY.issuperset(events.values()):
            continue
        message = AlertMessage.objects.create(
            channel=channel,
            severity=alerts[0].severity,
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


def _sources(alerts: Iterable[Alert]) -> dict[int, str]:
    """Returns the source name of each alert's match."""
    matches = {alert.pk: match_id for alert in alerts if (match_id := alert.detail.get("match_id"))}
    refs = MatchRef.objects.filter(match_id__in=set(matches.values()), is_watched=True).order_by("-source__name")
    names = dict(refs.values_list("match_id", "source__name")) if matches else {}
    return {pk: names[match_id] for pk, match_id in matches.items() if match_id in names}


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
