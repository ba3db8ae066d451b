"""How long the access log is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from apiauth.models import AccessLog
from victoryline.lib.retention import Rows, Rule
from victoryline.lib.retention import prune as carry_out


def rules() -> tuple[Rule, ...]:
    days = settings.CONFIG.keep_access_log_days
    return (Rows("access-log", f"{days} day{'' if days == 1 else 's'}", _old_access),)


def prune(now: datetime) -> int:
    return carry_out(rules(), now)


def _old_access(now: datetime) -> QuerySet[AccessLog]:
    limit = now - timedelta(days=settings.CONFIG.keep_access_log_days)
    return AccessLog.objects.filter(timestamp__lt=limit).order_by("timestamp")
