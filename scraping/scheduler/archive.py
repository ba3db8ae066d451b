"""Matches that ended long ago are no longer polled."""

from __future__ import annotations

from datetime import datetime, timedelta

from scraping.configuration import policies
from scraping.matches import lifecycle


def archive_old_matches(now: datetime) -> int:
    return lifecycle.archive(before=now - timedelta(hours=policies.current().archive_after_hours))
