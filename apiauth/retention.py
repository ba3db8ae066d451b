"""Retention of the access log and of the hourly sums."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from apiauth.models import AccessLog, UsageHour
from victoryline.lib.retention import Rule, aged
from victoryline.lib.retention import prune as apply_rules

# The log may grow by a thousand rows a second, so as many must be deletable. No row refers to these: one statement.
BATCH = 5_000
USAGE_DAYS = 400  # hourly sums: a year and a month to compare with


def rules() -> tuple[Rule, ...]:
    days = settings.CONFIG.keep_access_log_days
    return (
        aged("access-log", AccessLog, "timestamp", days=days, batch=BATCH, is_bare=True),
        aged("usage", UsageHour, "hour", days=USAGE_DAYS),
    )


def prune(now: datetime) -> int:
    return apply_rules(rules(), now)
