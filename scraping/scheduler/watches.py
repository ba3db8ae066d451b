"""Watches that wait for memory: begun when there is room; until then, room is made."""

from __future__ import annotations

import gc
import logging
from datetime import datetime, timedelta

from scraping.matches import admission, watches
from scraping.models import MatchRef
from scraping.recovery import orphans

logger = logging.getLogger(__name__)


def begin_waiting_watches(now: datetime) -> int:
    if not MatchRef.objects.filter(watch_at__lte=now, is_watched=False).exists():
        return 0
    if admission.may_start(now):
        return watches.begin_waiting(now=now)
    _make_room(now)
    return 0


def _make_room(now: datetime) -> None:
    """Once for each time a watch is put off: idle watches first, then what this process and dead ones hold."""
    ended = watches.end_idle(now=now)
    gc.collect()
    found = orphans.end_orphans(now=now)
    again_at = now + timedelta(seconds=admission.retry_seconds())
    waiting = watches.put_off_waiting(until=again_at)
    logger.warning(
        "Too little memory for another watch: %d wait and are tried again at %s UTC; %d idle watches and %d orphaned "
        "browsers were ended. Held: %s",
        waiting,
        f"{again_at:%H:%M:%S}",
        ended,
        len(found),
        "; ".join(admission.breakdown(now)),
        extra={"action": "watches_put_off", "waiting": waiting, "idle_ended": ended, "orphans": len(found)},
    )
