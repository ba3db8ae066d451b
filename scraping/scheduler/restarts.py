"""Scrapers that are too old, silent, or failing are replaced by fresh ones."""

from __future__ import annotations

import logging
from datetime import datetime

from scraping import policies, scrapers
from scraping.models import MatchLifecycle, Scraper

logger = logging.getLogger(__name__)


def replace_worn_scrapers(now: datetime) -> int:
    limits = policies.current()
    active = Scraper.objects.filter(stopped_at__isnull=True, ref__match__lifecycle=MatchLifecycle.ACTIVE)
    replaced = 0
    for scraper in active.select_related("ref__match", "ref__source"):
        reason = scraper.restart_reason(
            now,
            max_lifetime_seconds=limits.max_lifetime_seconds,
            staleness_threshold=limits.staleness_threshold_seconds,
        )
        if reason and scrapers.restart(scraper, reason=reason, now=now):
            replaced += 1
            logger.warning(
                "The scraper of %s (%s) was replaced: %s; last update %s",
                scraper.ref.key,
                scraper.ref.url,
                reason,
                scraper.last_update_time,
                extra={"action": "scraper_restarted", "match_id": scraper.ref.key, "scraper_id": str(scraper.pk)},
            )
    return replaced
