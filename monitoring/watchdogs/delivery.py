"""Queues messages for open alerts, and raises an alert when messages are not delivered."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q

from monitoring.alerts import alert_keys, message_queue
from monitoring.alerts.channels import configured
from monitoring.alerts.notification_policy import NotificationRules
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import AlertMessage, Channel, Severity
from victoryline.lib.times import as_utc_iso

LATE_AFTER = timedelta(minutes=5)
GIVEN_UP_WINDOW = timedelta(hours=1)


def queue_messages(now: datetime) -> int:
    """Scheduler step: returns how many messages were queued; the delivery threads send them."""
    channels = tuple(configured(settings.CONFIG))
    return message_queue.queue_due(channels, NotificationRules(), base_url=base_url(), now=now)


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
    is_late = Q(sent_at__isnull=True, given_up_at__isnull=True, created_at__lt=now - LATE_AFTER)
    rows = (
        AlertMessage.objects.filter(is_lost | is_late, channel__in=[each.value for each in configured(settings.CONFIG)])
        .values_list("channel")
        .annotate(number=Count("pk"), oldest=Min("created_at"))
        .order_by()
    )
    failing = {channel: (number, oldest) for channel, number, oldest in rows}
    for channel, (number, oldest) in failing.items():
        _report(Channel(channel), number, oldest, now)
    close_alerts(open_keys(alert_keys.DELIVERY) - {alert_keys.DELIVERY.of(channel) for channel in failing}, now)
    return len(failing)


def _report(channel: Channel, number: int, oldest: datetime, now: datetime) -> None:
    last = AlertMessage.objects.filter(channel=channel).exclude(error="").order_by("-pk").first()
    why = f": {last.error}" if last else ""
    messages = "1 message is" if number == 1 else f"{number} messages are"
    summary = f"{messages} not delivered by {channel.value}{why}"
    detail = {"channel": channel.value, "messages": number, "oldest": as_utc_iso(oldest)}
    raise_alert(alert_keys.DELIVERY.of(channel.value), Severity.WARNING, summary, detail, now)
