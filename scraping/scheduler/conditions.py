"""Conditions on rows that several steps of the scheduler share."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from scraping.models import BreakerState


def has_open_breaker(now: datetime, *, of: str = "") -> Q:
    """The condition on refs; `of` is the way to them from another table ("ref__")."""
    return Q(**{f"{of}breaker__state": BreakerState.OPEN, f"{of}breaker__open_until__gt": now})
