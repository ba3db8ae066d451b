"""The sole writer of alerts. One open alert per key: a lasting cause updates its open alert."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F

from monitoring import audit
from monitoring.models import Alert, Severity
from scraping.models import match_key
from victoryline.lib.operators import OperationRefused

logger = logging.getLogger(__name__)
_LEVELS = {Severity.WARNING: logging.WARNING, Severity.CRITICAL: logging.ERROR}


def raise_alert(
    key: str,
    severity: Severity,
    summary: str,
    detail: Mapping[str, Any],
    now: datetime,
    *,
    muted_until: datetime | None = None,
) -> bool:
    """Opens an alert and returns True, or updates the open one of the same key and returns False.

    A new one is muted as long as the one before it, or until `muted_until`.
    """
    key = key[:200]
    columns = {"severity": severity, "summary": summary[:300], "detail": dict(detail), "last_seen_at": now}
    if _update_open(key, columns):
        return False
    earlier = Alert.objects.filter(key=key).order_by("-pk").values_list("muted_until", flat=True).first()
    try:
        with transaction.atomic():
            Alert.objects.create(key=key, opened_at=now, muted_until=muted_until or earlier, **columns)
    except IntegrityError:  # another process opened it meanwhile
        _update_open(key, columns)
        return False
    shown = logged(detail)
    extra = {"action": "alert_opened", "alert_key": key, "match_id": shown.get("match_id"), "detail": shown}
    logger.log(_LEVELS[severity], "Alert: %s", columns["summary"], extra=extra)
    return True


def logged(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the detail of an alert as log lines have it: a match by its public name."""
    number = detail.get("match_id")
    return {**detail, "match_id": match_key(number)} if isinstance(number, int) else dict(detail)


def _update_open(key: str, columns: dict[str, Any]) -> bool:
    return bool(Alert.objects.filter(key=key, closed_at__isnull=True).update(count=F("count") + 1, **columns))


class Report(NamedTuple):
    """An alert that a watchdog wants to be open."""

    severity: Severity
    summary: str
    detail: Mapping[str, Any]


def set_alerts(kind: str, reports: Mapping[str, Report], now: datetime) -> set[str]:
    """Raises an alert of the kind for each report, by its key, and closes the others; returns the keys of new ones."""
    new = {key for key, report in reports.items() if raise_alert(key, *report, now)}
    close_alerts(open_keys(kind) - reports.keys(), now)
    return new


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


def acknowledge(pk: int, *, actor: str, now: datetime) -> None:
    """Records the operator who deals with an alert until it is closed."""
    columns = {"acknowledged_at": now, "acknowledged_by": actor[:150]}
    _operate(pk, "alert_acknowledged", "acknowledged", columns, actor=actor, now=now)


def mute(pk: int, *, until: datetime, reason: str, actor: str, now: datetime) -> None:
    """Stops notifications of an alert until a time, also if it closes and opens again before it."""
    why = f"muted until {until:%Y-%m-%d %H:%M} UTC: {reason}"
    _operate(pk, "alert_muted", why, {"muted_until": until}, actor=actor, now=now)


def unmute(pk: int, *, actor: str, now: datetime) -> None:
    _operate(pk, "alert_unmuted", "no longer muted", {"muted_until": None}, actor=actor, now=now)


def _operate(pk: int, action: str, why: str, columns: Mapping[str, Any], *, actor: str, now: datetime) -> None:
    """Changes an open alert, with an audit entry; refuses for a closed one."""
    with transaction.atomic():
        alert = Alert.objects.get(pk=pk)
        if not Alert.objects.filter(pk=pk, closed_at__isnull=True).update(**columns):
            raise OperationRefused(f"{alert.key} is closed")
        audit.record(actor=actor, action_type=action, trigger_condition=why, target=alert.key, now=now)
