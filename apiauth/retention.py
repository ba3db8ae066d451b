"""Retention of the access log and of the hourly sums."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from apiauth.models import AccessLog, UsageHour
from victoryline.lib.retention import Rows, Rule
from victoryline.lib.retention import prune as apply_rules

# The log may grow by a thousand rows a second, so as many must be deletable. No row refers to these: one statement.
BATCH = 5_000
USAGE_DAYS = 400  # hourly sums: a year and a month to compare with


def rules() -> tuple[Rule, ...]:
    config = settings.CONFIG
    return (
        Rows("access-log", _days(config.keep_access_log_days), _old_access, batch=BATCH, is_bare=True),
        Rows("usage", _days(USAGE_DAYS), _old_usage),
    )


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)


def _days(number: int) -> str:
    return f"{number} day{'' if number == 1 else 's'}"


def _old_usage(now: datetime) -> QuerySet[UsageHour]:
    return UsageHour.objects.filter(hour__lt=now - timedelta(days=USAGE_DAYS)).order_by("hour")


def _old_access(now: datetime) -> QuerySet[AccessLog]:
    limit = now - timedelta(days=settings.CONFIG.keep_access_log_days)
    return AccessLog.objects.filter(timestamp__lt=limit).order_by("timestamp")
