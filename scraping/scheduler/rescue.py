"""Tasks of workers that fell silent go back into the journal."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from scraping import journal
from scraping.configuration import policies
from scraping.matches import lifecycle, poll_times
from scraping.models import MatchRef, ScrapeTask
from scraping.payloads import Resource
from victoryline.lib import identity

logger = logging.getLogger(__name__)

QUIET_SECONDS = 30.0  # after a task that cost several workers, before the next one of its match


def rescue_expired(now: datetime) -> int:
    limits = policies.current()

    def bury(task: ScrapeTask) -> None:
        """A match whose tasks kill workers is paused like any other that fails."""
        if task.ref is None:
            return
        if task.resource == Resource.SCORECARD:
            lifecycle.after_failed_task(
                task.ref.match_id, pause_after=limits.pause_after_failures, pause_seconds=limits.pause_seconds, now=now
            )
        poll_times.postpone(MatchRef.objects.filter(pk=task.ref.pk), until=now + timedelta(seconds=QUIET_SECONDS))

    journal.end_leases([name for name in journal.holders() if identity.is_gone(name)], now=now)
    rescued = journal.rescue(max_rescues=limits.max_rescues, now=now, on_death=bury)
    if rescued:
        logger.warning("%d tasks taken back from silent workers", rescued, extra={"action": "tasks_rescued"})
    return rescued
