"""Scrapers that are too old, silent, or failing are replaced by fresh ones. The old ones in a quiet moment (EC-7)."""

from __future__ import annotations

import logging
from datetime import datetime

from scraping import policies, scrapers
from scraping.models import MatchLifecycle, Scraper
from scraping.payloads import BREAKS
from scraping.policies import Policies

logger = logging.getLogger(__name__)

QUIET_POLLS = 12
# So long before the end of its life a scraper is replaced as soon as nothing happens in its match: at stumps rather
# than in the middle of an over. If something happens all the time, it is replaced when its time is up.
QUIET_WINDOW_SECONDS = 1800.0
WINDOW_SHARE = 12  # of a short life, no more than this part


def replace_worn_scrapers(now: datetime) -> int:
    limits = policies.current()
    active = Scraper.objects.filter(stopped_at__isnull=True, ref__match__lifecycle=MatchLifecycle.ACTIVE)
    replaced = 0
    for scraper in active.select_related("ref__match", "ref__source").defer("ref__payload", "ref__match__provenance"):
        reason = _reason(scraper, limits, now)
        if reason and scrapers.restart(scraper, reason=reason, now=now):
            replaced += 1
            position = scrapers.position_of(scraper.ref)
            logger.warning(
                "The scraper of %s (%s) was replaced: %s; last update %s. The next one goes on from %s",
                scraper.ref.key,
                scraper.ref.url,
                reason,
                scraper.last_update_time,
                ", ".join(f"{name} {value}" for name, value in position.items()),
                extra={"action": "scraper_restarted", "match_id": scraper.ref.key, "scraper_id": str(scraper.pk)},
            )
    return replaced


def _reason(scraper: Scraper, limits: Policies, now: datetime) -> str:
    """Why it is replaced now; empty if it is not."""
    reason = scraper.restart_reason(
        now,
        max_lifetime_seconds=limits.max_lifetime_seconds,
        staleness_threshold=limits.staleness_threshold_seconds,
    )
    if reason:
        return reason
    quiet = _quiet(scraper)
    window = min(QUIET_WINDOW_SECONDS, limits.max_lifetime_seconds / WINDOW_SHARE)
    left = limits.max_lifetime_seconds - (now - scraper.start_time).total_seconds()
    return (
        f"lifetime of {limits.max_lifetime_seconds / 3600:g} h ends soon, and {quiet}"
        if quiet and left < window
        else ""
    )


def _quiet(scraper: Scraper) -> str:
    """Why this is a good moment; empty if it is not."""
    if scraper.ref.match.phase in BREAKS:
        return f"the match is in a break ({scraper.ref.match.phase})"
    if scraper.ref.unchanged_polls >= QUIET_POLLS:
        return f"nothing has changed in {scraper.ref.unchanged_polls} polls"
    return ""
