"""Turns standing alerts into messages, and notices when messages do not get through."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q

from monitoring.alerts import causes, outbox
from monitoring.alerts.channels import configured
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.alerts.telling import Rules
from monitoring.models import AlertMessage, Channel, Severity
from victoryline.lib.times import as_utc_iso

LATE = timedelta(minutes=5)
GIVEN_UP_IS_NEWS_FOR = timedelta(hours=1)


def queue_messages(now: datetime) -> int:
    """How many messages were written. The couriers send them."""
    return outbox.queue_due(tuple(configured(settings.CONFIG)), Rules(), base_url=base_url(), now=now)


def base_url() -> str:
    """Where people find the admin, when the configuration says so."""
    config = settings.CONFIG
    if config.public_url:
        return config.public_url.rstrip("/")
    names = [name for name in config.allowed_hosts if "." in name.strip(".") and not name.startswith("127.")]
    return f"https://{names[0]}" if config.https and names else ""


def watch_deliveries(now: datetime) -> int:
    """How many channels don't take what they should."""
    is_lost = Q(given_up_at__gt=now - GIVEN_UP_IS_NEWS_FOR)
    is_late = Q(sent_at__isnull=True, given_up_at__isnull=True, created_at__lt=now - LATE)
    rows = (
        AlertMessage.objects.filter(is_lost | is_late, channel__in=[each.value for each in configured(settings.CONFIG)])
        .values_list("channel")
        .annotate(number=Count("pk"), oldest=Min("created_at"))
        .order_by()
    )
    troubled = {channel: (number, oldest) for channel, number, oldest in rows}
    for channel, (number, oldest) in troubled.items():
        _report(Channel(channel), number, oldest, now)
    close_alerts(open_keys(causes.DELIVERY) - {causes.delivery(channel) for channel in troubled}, now)
    return len(troubled)


def _report(channel: Channel, number: int, oldest: datetime, now: datetime) -> None:
    last = AlertMessage.objects.filter(channel=channel).exclude(error="").order_by("-pk").first()
    why = f": {last.error}" if last else ""
    messages = "1 message does" if number == 1 else f"{number} messages do"
    summary = f"{messages} not reach people by {channel.value}{why}"
    detail = {"channel": channel.value, "messages": number, "oldest": as_utc_iso(oldest)}
    raise_alert(causes.delivery(channel.value), Severity.WARNING, summary, detail, now)
