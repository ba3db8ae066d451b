"""Watchdogs over matches: no update for too long, too many errors a minute, paused for too long (FR-001, FR-016, SO-8).

Guards against the failure that raises no error: everything runs, and no data arrives. The restart of a stale match is
the scheduler's own step; the watchdog marks it, and closes the alerts of matches that were read since.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Count, Q

from monitoring.alerts import alert_keys
from monitoring.alerts.registry import Report, close_alerts, logged, open_keys, set_alerts
from monitoring.models import Alert, Severity
from monitoring.queries import matches_to_watch, scraper_errors
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
    match_key,
)
from scraping.payloads import Resource
from scraping.policies.ladder import Rung, threshold_seconds
from victoryline.lib.times import as_utc_iso

logger = logging.getLogger(__name__)

UNUSED_BREAKER_AFTER = timedelta(minutes=5)
ENDED = (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED)
MAX_ERRORS_A_MINUTE = 10
PAUSE_WINDOW = timedelta(hours=1)
MAX_PAUSE_SECONDS = 900  # within the window


def watch_staleness(now: datetime) -> int:
    """Scheduler step: returns how many matches are stale. The threshold is lower for important matches."""
    threshold = policies.current().staleness_threshold_seconds
    stale = {}
    for match in matches_to_watch().defer("payload", "provenance"):
        silence = (now - (match.last_scraper_update or match.created_at)).total_seconds()
        if silence >= threshold_seconds(threshold, is_important=match.importance == Importance.HIGH):
            stale[match.pk] = (match, silence)
    refs = MatchRef.objects.filter(match_id__in=stale, is_watched=True).order_by("-pk")
    urls = dict(refs.values_list("match_id", "url")) if stale else {}
    reports = {}
    for match, silence in stale.values():
        reports[alert_keys.STALE.of(match.pk)] = _stale(match, urls.get(match.pk, ""), silence)
        if match.scraper_status != ScraperStatus.STALE:
            lifecycle.mark_stale(match.pk)
    new = set_alerts(alert_keys.STALE, reports, now)
    for pk, (match, _) in stale.items():
        if (key := alert_keys.STALE.of(pk)) in new:
            detail = reports[key].detail
            text = "No update of %s since %s from %s: it will be restarted"
            logger.warning(
                text, match, detail["last_update"], detail["url"], extra={"action": "stale", **logged(detail)}
            )
    _close_dead_tasks(now)
    _close_breakers(now)
    return len(stale)


def _stale(match: Match, url: str, silence: float) -> Report:
    detail = {
        "match_id": match.pk,
        "url": url,
        "last_update": as_utc_iso(match.last_scraper_update) if match.last_scraper_update else "never",
        "silent_seconds": round(silence),
        "tried": Rung(match.silence_rung).name.lower().replace("_", " "),
    }
    frozen = " and is frozen: every recovery step was tried" if match.frozen_at else ""
    return Report(Severity.CRITICAL, f"{match} has had no update for {silence / 60:.0f} min{frozen}", detail)


def _close_dead_tasks(now: datetime) -> None:
    """Closes the alerts of dead tasks whose data was read since, or is not needed any more."""
    waiting = {
        alert.key: alert.last_seen_at for alert in Alert.objects.filter(key__startswith="dead", closed_at__isnull=True)
    }
    if not waiting:
        return
    matches = _ids(waiting, alert_keys.DEAD)
    found = Match.objects.filter(pk__in=matches).values_list("pk", "last_scraper_update", "lifecycle")
    still_wanted = set(  # a job needs the whole match, also after its end
        ScrapeTask.objects.filter(state=TaskState.DEAD, resource=Resource.FULL, ref__match_id__in=matches).values_list(
            "ref__match_id", flat=True
        )
    )
    seen = {
        alert_keys.DEAD.of(pk): now if lifecycle in ENDED and pk not in still_wanted else at
        for pk, at, lifecycle in found
    }
    seen |= {alert_keys.DEAD.of(pk): now for pk in matches if alert_keys.DEAD.of(pk) not in seen}  # deleted
    seen |= {
        alert_keys.DEAD_DISCOVERY.of(key): at for key, at in Source.objects.values_list("key", "last_discovery_at")
    }
    jobs = dict(
        ScrapeJob.objects.filter(pk__in=_ids(waiting, alert_keys.DEAD_ROUND)).values_list("pk", "discovered_at")
    )
    seen |= {alert_keys.DEAD_ROUND.of(pk): jobs.get(pk, now) for pk in _ids(waiting, alert_keys.DEAD_ROUND)}
    close_alerts([key for key, at in waiting.items() if (read := seen.get(key)) and read > at], now)


def _ids(keys: Iterable[str], prefix: str) -> list[int]:
    endings = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
    return [int(ending) for ending in endings if ending.isdigit()]


def _close_breakers(now: datetime) -> None:
    """Closes the alerts of breakers that are not used any more: they never send `breaker_closed`."""
    waiting = open_keys(alert_keys.BREAKER)
    if not waiting:
        return
    untried = (
        Breaker.objects.filter(name__in=[key.removeprefix(alert_keys.BREAKER) for key in waiting])
        .exclude(state=BreakerState.CLOSED)
        .exclude(ref__match__lifecycle__in=(MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED))
        .values_list("name", "open_until", "last_state_change")
    )
    still_open = {
        alert_keys.BREAKER.of(name)
        for name, until, changed in untried
        if now < (until or changed) + UNUSED_BREAKER_AFTER
    }
    close_alerts(waiting - still_open, now)


def watch_error_rate(now: datetime) -> int:
    """Scheduler step: returns how many matches are over the limit."""
    rows = (
        scraper_errors()
        .filter(timestamp__gt=now - timedelta(minutes=1), match__isnull=False)
        .values_list("match_id", "match__title", "error_type")
        .annotate(number=Count("pk"))
        .order_by()
    )
    found: dict[tuple[int | None, str], Counter[str]] = defaultdict(Counter)
    for pk, title, kind, number in rows:
        found[pk, title or match_key(pk)][kind] += number
    reports = {}
    for (pk, title), kinds in found.items():
        if kinds.total() > MAX_ERRORS_A_MINUTE:
            spread = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
            detail = {"match_id": pk, "errors_last_minute": kinds.total(), "error_types": dict(kinds)}
            summary = f"{title}: {kinds.total()} errors in the last minute ({spread})"
            reports[alert_keys.ERROR_RATE.of(pk)] = Report(Severity.CRITICAL, summary, detail)
    for key in set_alerts(alert_keys.ERROR_RATE, reports, now):
        logger.error(reports[key].summary, extra={"action": "error_rate", **logged(reports[key].detail)})
    return len(reports)


def watch_pauses(now: datetime) -> int:
    """Scheduler step: returns how many live matches were paused for too long, by the times of their pause alerts."""
    paused = {pk: seconds for pk, seconds in _paused_seconds(now).items() if seconds > MAX_PAUSE_SECONDS}
    reports = {}
    for pk, title in Match.objects.live().filter(pk__in=paused).values_list("pk", "title"):
        summary = f"{title or match_key(pk)} is live and was paused for {paused[pk] / 60:.0f} of the last 60 min"
        detail = {"match_id": pk, "paused_seconds": round(paused[pk]), "limit_seconds": MAX_PAUSE_SECONDS}
        reports[alert_keys.PAUSED_LONG.of(pk)] = Report(Severity.CRITICAL, summary, detail)
    set_alerts(alert_keys.PAUSED_LONG, reports, now)
    _close_ended_pauses(now)
    return len(reports)


def _paused_seconds(now: datetime) -> dict[int, float]:
    begin, found = now - PAUSE_WINDOW, dict[int, float]()
    rows = Alert.objects.filter(Q(closed_at__isnull=True) | Q(closed_at__gt=begin), key__startswith=alert_keys.PAUSED)
    for key, opened, closed in rows.values_list("key", "opened_at", "closed_at"):
        for pk in _ids([key], alert_keys.PAUSED):
            found[pk] = found.get(pk, 0.0) + ((closed or now) - max(opened, begin)).total_seconds()
    return found


def _close_ended_pauses(now: datetime) -> None:
    """Closes the pause alerts of matches that ended while paused: they never send `match_resumed`."""
    waiting = set(_ids(open_keys(alert_keys.PAUSED), alert_keys.PAUSED))
    if waiting:
        paused = Match.objects.filter(pk__in=waiting, lifecycle=MatchLifecycle.PAUSED).values_list("pk", flat=True)
        close_alerts([alert_keys.PAUSED.of(pk) for pk in waiting - set(paused)], now)
