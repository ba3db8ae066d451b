"""Scrapers that are too old, silent, failing or large are replaced by fresh ones; the old in a quiet moment (EC-7).

Guards against a scraper that has lost its way and would never find it again. At most one restart of a scraper in the
time after which silence counts as one: a fresh start that did not help is not repeated every few seconds.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from scraping.configuration import policies
from scraping.configuration.policies import Policies
from scraping.matches import scrapers
from scraping.models import MatchLifecycle, Scraper, Worker
from scraping.payloads import BREAKS

logger = logging.getLogger(__name__)

AT_ONCE = 20  # after an outage all are worn, and polls wait for the scheduler: the rest in 5 seconds
QUIET_POLLS = 12
# So long before the end of its life a scraper is replaced as soon as nothing happens in its match: at stumps rather
# than in the middle of an over. If something happens all the time, it is replaced when its time is up.
QUIET_WINDOW_SECONDS = 1800.0
WINDOW_SHARE = 12  # of a short life, no more than this part


def replace_worn_scrapers(now: datetime) -> int:
    scrapers.stop_unread(now=now)
    limits = policies.current()
    active = list(_active())
    memory = _memory_by_worker(active)
    worn = [
        (scraper, reason)
        for scraper in active
        if (reason := _reason(scraper, limits, memory.get(scraper.worker_id, 0.0), now))
    ]
    if not worn:
        return 0
    policies.reload()  # a fresh start is one with the configuration as it is now
    spared = _replaced_lately([scraper.ref_id for scraper, _ in worn], limits, now)
    replaced = 0
    for scraper, reason in [one for one in worn if one[0].ref_id not in spared][:AT_ONCE]:
        if scrapers.restart(scraper, reason=reason, now=now):
            replaced += 1
            _tell(scraper, reason)
    return replaced


def _active() -> QuerySet[Scraper]:
    """Without the states of their matches: those are read of the few that are replaced."""
    return (
        Scraper.objects.filter(stopped_at__isnull=True, ref__match__lifecycle=MatchLifecycle.ACTIVE)
        .select_related("ref__match", "ref__source")
        .defer("ref__payload", "ref__match__payload", "ref__match__provenance", "ref__source__metadata")
        .order_by("start_time")
    )


def _memory_by_worker(active: Sequence[Scraper]) -> dict[str, float]:
    """What each scraper of a worker takes of its memory: nothing finer can be measured from outside."""
    served = Counter(scraper.worker_id for scraper in active)
    workers = Worker.objects.filter(worker_id__in=served, stopped_at__isnull=True)
    return {name: size / served[name] for name, size in workers.values_list("worker_id", "memory_bytes")}


def _replaced_lately(ref_ids: Sequence[int], limits: Policies, now: datetime) -> set[int]:
    since = now - timedelta(seconds=limits.staleness_threshold_seconds)
    stopped = Scraper.objects.filter(ref_id__in=ref_ids, stopped_at__gt=since)
    return set(stopped.values_list("ref_id", flat=True))


def _tell(scraper: Scraper, reason: str) -> None:
    position = scrapers.position_of(scraper.ref)
    logger.warning(
        "The scraper of %s (%s) was replaced: %s; last update %s. The next one goes on from %s",
        scraper.ref.key,
        scraper.ref.url,
        reason,
        scraper.last_update_time or "none of its own",
        ", ".join(f"{name} {value}" for name, value in position.items()),
        extra={"action": "scraper_restarted", "match_id": scraper.ref.key, "scraper_id": str(scraper.pk)},
    )


def _reason(scraper: Scraper, limits: Policies, memory_bytes: float, now: datetime) -> str:
    """Why it is replaced now; empty if it is not."""
    reason = scraper.restart_reason(
        now,
        max_lifetime_seconds=limits.max_lifetime_seconds,
        staleness_threshold=limits.staleness_threshold_seconds,
        memory_bytes=memory_bytes,
        soft_memory_limit=limits.memory_soft_limit_bytes,
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
