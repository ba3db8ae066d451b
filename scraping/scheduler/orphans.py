"""Every half hour: browsers that nobody uses any more."""

from __future__ import annotations

from datetime import datetime

from scraping.recovery import orphans


def end_orphans(now: datetime) -> int:
    return len(orphans.end_orphans(now=now))
