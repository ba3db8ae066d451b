"""Every half hour: browsers whose worker is gone."""

from __future__ import annotations

from datetime import datetime

from scraping import orphans


def end_orphans(now: datetime) -> int:
    return len(orphans.end_orphans())
