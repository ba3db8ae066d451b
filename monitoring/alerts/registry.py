"""The sole writer of alerts. One open alert per key: a lasting cause updates its open alert."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from monitoring import audit
from monitoring.models import Alert, Severity

logger = logging.getLogger(__name__)
_LEVELS = {Severity.WARNING: logging.WARNING, Severity.CRITICAL: logging.ERROR}


def raise_alert(key: str, severity: Severity, summary: str, detail: Mapping[str, Any], now: datetime) -> bool:
    """Opens an alert and returns True, or updates the open one of the same key and returns False."""
    key, summary = key[:200], summary[:300]
    if _update_open(key, severity, summary, detail, now):
        return False
    try:
        with transaction.atomic():
            Alert.objects.create(
                key=key,
                severity=severity,
                summary=summary,
                detail=dict(detail),
                opened_at=now,
                last_seen_at=now,
                muted_until=_muted_until(key, now),
            )
    except IntegrityError:  # another process opened it meanwhile
        _update_open(key, severity, summary, detail, now)
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


def acknowledge(keys: Collection[int], *, actor: str, now: datetime) -> int:
    """Stops repeated notifications of these alerts until they are closed."""
    return _operate(
        keys, "alert_acknowledged", "acknowledged", actor, now, acknowledged_at=now, acknowledged_by=actor[:150]
    )


def mute(keys: Collection[int], *, until: datetime, actor: str, now: datetime) -> int:
    """Stops notifications of these alerts until a time, also if they close and open again before it."""
    why = f"muted until {until:%Y-%m-%d %H:%M} UTC"
    return _operate(keys, "alert_muted", why, actor, now, muted_until=until)


def unmute(keys: Collection[int], *, actor: str, now: datetime) -> int:
    with transaction.atomic():
        done = _operate(keys, "alert_unmuted", "no longer muted", actor, now, muted_until=None)
        muted_keys = Alert.objects.filter(pk__in=keys).values("key")
        Alert.objects.filter(key__in=muted_keys, muted_until__gt=now).update(muted_until=None)
    return done


def _operate(keys: Collection[int], action: str, why: str, actor: str, now: datetime, **columns: Any) -> int:
    """Changes open alerts only, and writes an audit entry for each."""
    with transaction.atomic():
        open_alerts = Alert.objects.filter(pk__in=keys, closed_at__isnull=True)
        names = list(open_alerts.values_list("key", flat=True))
        done = open_alerts.update(**columns)
        for name in names:
            audit.record(actor=actor, action_type=action, trigger_condition=why, target=name, now=now)
    return done


def _muted_until(key: str, now: datetime) -> datetime | None:
    """Returns the mute of an earlier alert of the same key, which a new alert inherits."""
    muted = Alert.objects.filter(key=key, muted_until__gt=now).order_by("-muted_until")
    return muted.values_list("muted_until", flat=True).first()


def open_keys(prefix: str) -> set[str]:
    return set(Alert.objects.filter(key__startswith=prefix, closed_at__isnull=True).values_list("key", flat=True))


def _update_open(key: str, severity: Severity, summary: str, detail: Mapping[str, Any], now: datetime) -> bool:
    return bool(
        Alert.objects.filter(key=key, closed_at__isnull=True).update(
            count=F("count") + 1, last_seen_at=now, severity=severity, summary=summary, detail=dict(detail)
        )
    )
