"""The sole writer of alert messages and of the notification columns (`told_*`) of alerts.

Guards against alerts that are lost between detection and delivery: a message is a row before it is sent. A sender
claims it by a conditional UPDATE for two minutes; if the sender dies, another one claims it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from monitoring.alerts.advice import advice, alert_kind
from monitoring.alerts.channels import OutgoingMessage, accepts
from monitoring.alerts.message_text import AlertNotice, document
from monitoring.alerts.notification_policy import (
    FOLLOW,
    HOUR,
    AlertState,
    NotificationPlan,
    NotificationRules,
    PlannedMessage,
    plan,
)
from monitoring.models import Alert, AlertMessage, Channel, Severity
from scraping.models import MatchRef

RECENT = timedelta(hours=3)
CLAIM_DURATION = timedelta(seconds=120)  # longer than any channel takes
DELAYS_SECONDS = (5, 15, 45, 120, 300, 600, 900, 1200)  # between attempts: given up after about an hour
NEEDS_END_NOTICE = Q(told_count__gt=0, told_over_at__isnull=True)
UNSENT = Q(sent_at__isnull=True, given_up_at__isnull=True)


@dataclass(frozen=True)
class ClaimedMessage:
    pk: int
    attempt: int
    message: OutgoingMessage


def queue_due(channels: Collection[Channel], rules: NotificationRules, *, base_url: str, now: datetime) -> int:
    """Writes the messages that are due and returns how many. Of two concurrent calls the second finds nothing to do."""
    if not channels or not _candidates(now).exists() or not _plan(channels, rules, now):
        return 0
    with transaction.atomic():
        rows = _rows(now, is_locked=True)
        sources = _sources(rows.values())
        made = _plan(channels, rules, now, rows, sources)
        _apply_continuations(made, rows, now)
        written = 0
        for message in made.messages:
            wanting = [
                channel for channel in channels if accepts(channel, {each.event for each in message.notifications})
            ]
            _write(message, rows, sources, channels=wanting, base_url=base_url, now=now)
            written += len(wanting)
        return written


def _candidates(now: datetime) -> QuerySet[Alert]:
    """Returns alerts that are open, need an end notice, or opened and closed unnoticed."""
    unnoticed = Q(told_count=0, severity=Severity.CRITICAL, closed_at__gt=now - RECENT)
    return Alert.objects.filter(Q(closed_at__isnull=True) | NEEDS_END_NOTICE | unnoticed)


def _plan(
    channels: Collection[Channel],
    rules: NotificationRules,
    now: datetime,
    rows: dict[int, Alert] | None = None,
    sources: Mapping[int, str] | None = None,
) -> NotificationPlan:
    rows = _rows(now) if rows is None else rows
    if not rows:
        return NotificationPlan()
    sources = _sources(rows.values()) if sources is None else sources
    critical = _notified_critical(rows.values())
    known = [_alert_state(row, sources.get(row.pk, ""), row.pk in critical, now) for row in rows.values()]
    return plan(known, rules, _recent(channels, now), now)


def _rows(now: datetime, *, is_locked: bool = False) -> dict[int, Alert]:
    wanted = Q(closed_at__isnull=True) | Q(closed_at__gt=now - RECENT)
    alerts = Alert.objects.filter(wanted | NEEDS_END_NOTICE).order_by("pk")
    return {alert.pk: alert for alert in (alerts.select_for_update() if is_locked else alerts)}


def _alert_state(alert: Alert, source: str, was_notified_critical: bool, now: datetime) -> AlertState:
    """Moves times after `now` back: they were written by a clock that was set back since."""
    opened_at, closed_at, told_at, told_over_at = (
        at if at is None or at <= now else now - FOLLOW
        for at in (alert.opened_at, alert.closed_at, alert.told_at, alert.told_over_at)
    )
    return AlertState(
        pk=alert.pk,
        key=alert.key,
        group=_group(alert, source),
        is_critical=alert.severity == Severity.CRITICAL,
        opened_at=opened_at or now,
        closed_at=closed_at,
        told_at=told_at,
        told_count=alert.told_count,
        told_over_at=told_over_at,
        muted_until=alert.muted_until,
        is_acknowledged=alert.acknowledged_at is not None,
        was_notified_critical=was_notified_critical,
    )


def _group(alert: Alert, source: str) -> str:
    """Returns one group for alerts of one kind about matches of one source."""
    is_of_match = bool(advice(alert.key).group_text and alert.detail.get("match_id"))
    return f"{alert_kind(alert.key)}@{source}" if is_of_match else alert.key


def _sources(alerts: Iterable[Alert]) -> dict[int, str]:
    """Returns the source name of each alert's match."""
    matches = {alert.pk: match_id for alert in alerts if (match_id := alert.detail.get("match_id"))}
    if not matches:
        return {}
    refs = MatchRef.objects.filter(match_id__in=set(matches.values()), is_watched=True).order_by("-source__name")
    names = dict(refs.values_list("match_id", "source__name"))
    return {pk: names[match_id] for pk, match_id in matches.items() if match_id in names}


def _notified_critical(alerts: Iterable[Alert]) -> set[int]:
    """Returns the alerts that a critical message was sent for; a message has alerts of its own severity only."""
    keys = [alert.pk for alert in alerts if alert.told_count and alert.severity == Severity.CRITICAL]
    if not keys:
        return set()
    links = AlertMessage.alerts.through.objects.filter(alert_id__in=keys)
    return set(links.filter(alertmessage__severity=Severity.CRITICAL).values_list("alert_id", flat=True))


def _recent(channels: Collection[Channel], now: datetime) -> list[datetime]:
    """Returns the times of the last hour's messages to the channel that got most."""
    found: dict[str, list[datetime]] = {channel.value: [] for channel in channels}
    within = AlertMessage.objects.filter(created_at__gt=now - HOUR, created_at__lte=now)
    for channel, at in within.values_list("channel", "created_at"):
        found.setdefault(channel, []).append(at)
    return max(found.values(), key=len)


def _apply_continuations(made: NotificationPlan, rows: dict[int, Alert], now: datetime) -> None:
    for continuation in made.continuations:
        before, known = continuation.after(now)
        old, alert = rows[before.pk], rows[known.pk]
        old.told_over_at = before.told_over_at
        alert.told_at, alert.told_count = known.told_at, known.told_count
        if old.acknowledged_at and not alert.acknowledged_at:
            alert.acknowledged_at, alert.acknowledged_by = old.acknowledged_at, old.acknowledged_by
        old.save(update_fields=("told_over_at",))
        alert.save(update_fields=("told_at", "told_count", "acknowledged_at", "acknowledged_by"))
        for message in old.messages.order_by("-severity", "-pk")[:1]:
            message.alerts.add(alert)


def _write(
    message: PlannedMessage,
    rows: dict[int, Alert],
    sources: Mapping[int, str],
    *,
    channels: Collection[Channel],
    base_url: str,
    now: datetime,
) -> None:
    alerts = [rows[notification.alert.pk] for notification in message.notifications]
    times = _times([alert.key for alert in alerts], now)
    notices = [
        AlertNotice(
            alert, notification.event, notification.alert.group, sources.get(alert.pk, ""), times.get(alert.key, 1)
        )
        for alert, notification in zip(alerts, message.notifications, strict=True)
    ]
    severity = Severity.CRITICAL if message.is_critical else Severity.WARNING
    body = document(notices, severity=severity, is_digest=message.is_delayed, base_url=base_url, now=now)
    for channel in channels:
        _add(channel, severity, body, alerts, now)
    for alert, notification in zip(alerts, message.notifications, strict=True):
        after = notification.after(now)
        alert.told_at, alert.told_count, alert.told_over_at = after.told_at, after.told_count, after.told_over_at
    Alert.objects.bulk_update(alerts, ("told_at", "told_count", "told_over_at"), batch_size=200)


def _add(channel: Channel, severity: Severity, body: dict[str, Any], alerts: list[Alert], now: datetime) -> None:
    message = AlertMessage.objects.create(
        channel=channel,
        severity=severity,
        subject=body["subject"][:300],
        document=body,
        created_at=now,
        next_attempt_at=now,
    )
    message.alerts.set(alerts)


def _times(keys: Collection[str], now: datetime) -> dict[str, int]:
    """Returns how often each alert was opened within a day."""
    rows = Alert.objects.filter(key__in=keys, opened_at__gt=now - timedelta(days=1)).values_list("key")
    return dict(rows.annotate(number=Count("pk")).order_by())


def claim_next(channel: Channel, now: datetime) -> ClaimedMessage | None:
    """Claims the oldest due message of a channel; returns None if there is none or another sender claimed it."""
    is_due = Q(next_attempt_at__lte=now) | Q(attempts=0, created_at__gt=now)  # or the clock was set back since
    waiting = AlertMessage.objects.filter(UNSENT, is_due, channel=channel)
    row = waiting.order_by("pk").first()
    if row is None:
        return None
    mine = AlertMessage.objects.filter(UNSENT, pk=row.pk, attempts=row.attempts, next_attempt_at=row.next_attempt_at)
    if not mine.update(attempts=F("attempts") + 1, next_attempt_at=now + CLAIM_DURATION):
        return None
    thread = _thread(row) if channel == Channel.EMAIL else []
    return ClaimedMessage(row.pk, row.attempts + 1, OutgoingMessage(row.document, row.created_at, thread))


def _thread(row: AlertMessage) -> list[str]:
    earlier = AlertMessage.objects.filter(channel=row.channel, pk__lt=row.pk, alerts__in=row.alerts.all())
    documents = earlier.distinct().order_by("pk").values_list("document", flat=True)
    return [document["id"] for document in documents]


def mark_sent(claimed: ClaimedMessage, now: datetime) -> None:
    AlertMessage.objects.filter(UNSENT, pk=claimed.pk).update(sent_at=now, error="")


def mark_failed(
    claimed: ClaimedMessage, reason: str, *, now: datetime, again_after: float | None, is_final: bool
) -> bool:
    """Records a failed attempt; returns True when the message is given up."""
    mine: QuerySet[AlertMessage] = AlertMessage.objects.filter(UNSENT, pk=claimed.pk, attempts=claimed.attempt)
    if is_final or claimed.attempt > len(DELAYS_SECONDS):
        mine.update(given_up_at=now, error=reason[:300])
        return True
    pause = max(DELAYS_SECONDS[claimed.attempt - 1], again_after or 0.0)
    mine.update(next_attempt_at=now + timedelta(seconds=pause), error=reason[:300])
    return False


def send_again(keys: Collection[int], now: datetime) -> int:
    """Gives unsent messages all of their attempts again; returns how many."""
    unsent = AlertMessage.objects.filter(pk__in=keys, sent_at__isnull=True)
    return unsent.update(given_up_at=None, attempts=0, next_attempt_at=now, error="")
