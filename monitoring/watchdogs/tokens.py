"""Ends alerts about missing tokens that no worker tells of any more: the worker that did may be gone."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts
from monitoring.models import Alert

SILENCE = timedelta(minutes=2)  # a worker without a token says so every 20 s


def watch_tokens(now: datetime) -> int:
    """How many alerts were closed."""
    standing = Alert.objects.filter(key__startswith=causes.TOKEN, closed_at__isnull=True)
    return close_alerts(list(standing.filter(last_seen_at__lt=now - SILENCE).values_list("key", flat=True)), now)
