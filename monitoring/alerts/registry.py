"""The sole writer of alerts. One open alert per key: a cause that lasts is one alert that is seen again and again."""

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
    """True when the alert is new; an open one of the same key is only seen once more."""
    key, summary = key[:200], summary[:300]
    if _seen_again(key, severity, summary, detail, now):
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


def acknowledge(keys: Collection[int], *, actor: str, now: datetime) -> int:
    """Somebody looks after these: they are not told again until they are over."""
    return _operate(
        keys, "alert_acknowledged", "looked after", actor, now, acknowledged_at=now, acknowledged_by=actor[:150]
    )


def mute(keys: Collection[int], *, until: datetime, actor: str, now: datetime) -> int:
    """Nobody is told of these before then, also when they come again meanwhile."""
    why = f"muted until {until:%Y-%m-%d %H:%M} UTC"
    return _operate(keys, "alert_muted", why, actor, now, muted_until=until)


def unmute(keys: Collection[int], *, actor: str, now: datetime) -> int:
    with transaction.atomic():
        done = _operate(keys, "alert_unmuted", "no longer muted", actor, now, muted_until=None)
        causes = Alert.objects.filter(pk__in=keys).values("key")
        Alert.objects.filter(key__in=causes, muted_until__gt=now).update(muted_until=None)
    return done


def _operate(keys: Collection[int], action: str, why: str, actor: str, now: datetime, **columns: Any) -> int:
    """Open alerts only: what is over needs nobody."""
    with transaction.atomic():
        standing = Alert.objects.filter(pk__in=keys, closed_at__isnull=True)
        names = list(standing.values_list("key", flat=True))
        done = standing.update(**columns)
        for name in names:
            audit.record(actor=actor, action_type=action, trigger_condition=why, target=name, now=now)
    return done


def _muted_until(key: str, now: datetime) -> datetime | None:
    """A cause that is muted stays so when it comes again."""
    muted = Alert.objects.filter(key=key, muted_until__gt=now).order_by("-muted_until")
    return muted.values_list("muted_until", flat=True).first()


def open_keys(prefix: str) -> set[str]:
    return set(Alert.objects.filter(key__startswith=prefix, closed_at__isnull=True).values_list("key", flat=True))


def _seen_again(key: str, severity: Severity, summary: str, detail: Mapping[str, Any], now: datetime) -> bool:
    return bool(
        Alert.objects.filter(key=key, closed_at__isnull=True).update(
            count=F("count") + 1, last_seen_at=now, severity=severity, summary=summary, detail=dict(detail)
        )
    )
