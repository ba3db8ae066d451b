"""Finds live matches that have gone silent, says so, and marks them for a restart (FR-001, FR-016).

Guards against the failure that raises no error: everything runs, and nothing arrives. The restart itself belongs to the
scheduler's own step; this one also ends the alerts whose match has been heard of since.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import Alert, Severity
from monitoring.queries import matches_to_watch
from scraping.configuration import policies
from scraping.matches import lifecycle
from scraping.models import (
    Breaker,
    BreakerState,
    Importance,
    Match,
    MatchLifecycle,
    MatchRef,
    ScrapeJob,
    ScraperStatus,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import Resource
from scraping.policies.ladder import Rung, threshold_seconds
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)
BREAKER_IS_FORGOTTEN_AFTER = timedelta(minutes=5)
ENDED = (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED)


def watch_staleness(now: datetime) -> int:
    """How many matches are stale."""
    stale = {match.pk: match for match in _watched() if _silence(match, now) >= _threshold(match)}
    urls = _urls(stale)
    for match in stale.values():
        _report(match, urls.get(match.pk, ""), now)
    over = open_keys(causes.STALE) - {causes.stale(pk) for pk in stale}
    close_alerts(over, now)
    _close_deaths(now)
    _close_breakers(now)
    return len(stale)


def _watched() -> list[Match]:
    return list(matches_to_watch().defer("payload", "provenance"))


def _threshold(match: Match) -> float:
    """Of what matters most, more is asked."""
    is_important = match.importance == Importance.HIGH
    return threshold_seconds(policies.current().staleness_threshold_seconds, is_important=is_important)


def _silence(match: Match, now: datetime) -> float:
    return (now - (match.last_scraper_update or match.created_at)).total_seconds()


def _urls(matches: Collection[int]) -> dict[int, str]:
    """Where each of them is read: at the first of its sources. One query, for in an outage it is all of them."""
    refs = MatchRef.objects.filter(match_id__in=matches, is_watched=True).order_by("-pk")
    return dict(refs.values_list("match_id", "url")) if matches else {}


def _report(match: Match, url: str, now: datetime) -> None:
    last = as_utc_iso(match.last_scraper_update) if match.last_scraper_update else "never"
    silence = _silence(match, now)
    tried = Rung(match.silence_rung).name.lower().replace("_", " ")
    detail = {"match_id": match.pk, "url": url, "last_update": last, "silent_seconds": round(silence), "tried": tried}
    frozen = " and is frozen: everything was tried" if match.frozen_at else ""
    summary = f"{match} has had no update for {silence / 60:.0f} min{frozen}"
    if raise_alert(causes.stale(match.pk), Severity.CRITICAL, summary, detail, now):
        logger.warning(
            "No update of %s since %s from %s: it will be restarted",
            match,
            last,
            url,
            extra={"action": "stale", **detail},
        )
    if match.scraper_status != ScraperStatus.STALE:
        lifecycle.mark_stale(match_id=match.pk, now=now)


def _close_deaths(now: datetime) -> None:
    """A dead task's alert is over when what it should have read was read since, or nobody will read it any more."""
    waiting = {
        alert.key: alert.last_seen_at for alert in Alert.objects.filter(key__startswith="dead", closed_at__isnull=True)
    }
    if not waiting:
        return
    matches = _ids(waiting, causes.DEAD)
    found = Match.objects.filter(pk__in=matches).values_list("pk", "last_scraper_update", "lifecycle")
    still_wanted = set(  # a job wants the whole of a match, over or not
        ScrapeTask.objects.filter(state=TaskState.DEAD, resource=Resource.FULL, ref__match_id__in=matches).values_list(
            "ref__match_id", flat=True
        )
    )
    seen = {
        causes.dead(pk): now if lifecycle in ENDED and pk not in still_wanted else at for pk, at, lifecycle in found
    }
    seen |= {causes.dead(pk): now for pk in matches if causes.dead(pk) not in seen}  # deleted
    seen |= {causes.dead_discovery(key): at for key, at in Source.objects.values_list("key", "last_discovery_at")}
    jobs = dict(ScrapeJob.objects.filter(pk__in=_ids(waiting, causes.DEAD_ROUND)).values_list("pk", "discovered_at"))
    seen |= {causes.dead_round(pk): jobs.get(pk, now) for pk in _ids(waiting, causes.DEAD_ROUND)}
    close_alerts([key for key, at in waiting.items() if (read := seen.get(key)) and read > at], now)


def _ids(keys: Iterable[str], prefix: str) -> list[int]:
    endings = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
    return [int(ending) for ending in endings if ending.isdigit()]


def _close_breakers(now: datetime) -> None:
    """A breaker that nobody asks any more never says that it has closed: its match is over, or is not read now."""
    waiting = open_keys(causes.BREAKER)
    if not waiting:
        return
    untried = (
        Breaker.objects.filter(name__in=[key.removeprefix(causes.BREAKER) for key in waiting])
        .exclude(state=BreakerState.CLOSED)
        .exclude(ref__match__lifecycle__in=(MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED))
        .values_list("name", "open_until", "last_state_change")
    )
    standing = {
        causes.breaker(name)
        for name, until, changed in untried
        if now < (until or changed) + BREAKER_IS_FORGOTTEN_AFTER
    }
    close_alerts(waiting - standing, now)
