"""Retention of the access log and of the hourly sums."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings

from apiauth.models import AccessLog, UsageHour
from victoryline.lib.retention import Rows, Rule
from victoryline.lib.retention import prune as apply_rules

# The log may grow by a thousand rows a second, so as many must be deletable. No row refers to these: one statement.
BATCH = 5_000
USAGE_DAYS = 400  # hourly sums: a year and a month to compare with


def rules() -> tuple[Rule, ...]:
    log_days = settings.CONFIG.keep_access_log_days
    log, sums = AccessLog.objects.order_by("timestamp"), UsageHour.objects.order_by("hour")
    return (
        Rows(
            "access-log",
            f"{log_days} day{'' if log_days == 1 else 's'}",
            lambda now: log.filter(timestamp__lt=now - timedelta(days=log_days)),
            batch=BATCH,
            is_bare=True,
        ),
        Rows("usage", f"{USAGE_DAYS} days", lambda now: sums.filter(hour__lt=now - timedelta(days=USAGE_DAYS))),
    )


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)
