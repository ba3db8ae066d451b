"""The sole writer of alerts. One open alert per key: a cause that lasts is one alert that is seen again and again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from monitoring.models import Alert, Severity

logger = logging.getLogger(__name__)
_LEVELS = {Severity.WARNING: logging.WARNING, Severity.CRITICAL: logging.ERROR}


def raise_alert(key: str, severity: Severity, summary: str, detail: Mapping[str, Any], now: datetime) -> bool:
    """True when the alert is new; an open one of the same key is only seen once more."""
    key, summary = key[:200], summary[:300]
    if _seen_again(key, severity, summary, detail, now):
        return False
    try:
        with transaction.atomic():
            Alert.objects.create(
                key=key, severity=severity, summary=summary, detail=dict(detail), opened_at=now, last_seen_at=now
            )
    except IntegrityError:  # another process was faster
        _seen_again(key, severity, summary, detail, now)
        return False
    logger.log(
        _LEVELS[severity], "Alert: %s", summary, extra={"action": "alert_opened", "alert_key": key, "detail": detail}
    )
    return True


def close_alert(key: str, now: datetime) -> bool:
    return close_alerts([key], now) > 0


def close_alerts(keys: Collection[str], now: datetime) -> int:
    if not keys:
        return 0
    closed = Alert.objects.filter(key__in=keys, closed_at__isnull=True).update(closed_at=now)
    if closed:
        logger.info("Alert over: %s", ", ".join(sorted(keys)), extra={"action": "alert_closed"})
    return closed


def open_keys(prefix: str) -> set[str]:
    return set(Alert.objects.filter(key__startswith=prefix, closed_at__isnull=True).values_list("key", flat=True))


def _seen_again(key: str, severity: Severity, summary: str, detail: Mapping[str, Any], now: datetime) -> bool:
    return bool(
        Alert.objects.filter(key=key, closed_at__isnull=True).update(
            count=F("count") + 1, last_seen_at=now, severity=severity, summary=summary, detail=dict(detail)
        )
    )
