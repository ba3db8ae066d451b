"""Watchdogs over matches: no update for too long, too many errors a minute, paused for too long (FR-001, FR-016, SO-8).

Guards against the failure that raises no error: everything runs, and no data arrives. The restart of a stale match is
the scheduler's own step; the watchdog marks it, and closes the alerts of matches that were read since.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Count, Q

from monitoring.alerts import alert_keys
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
    ScrapeError,
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

UNUSED_BREAKER_AFTER = timedelta(minutes=5)
ENDED = (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED)
MAX_ERRORS_A_MINUTE = 10
PAUSE_WINDOW = timedelta(hours=1)
MAX_PAUSE_SECONDS = 900  # within the window


def watch_staleness(now: datetime) -> int:
    """Scheduler step: returns how many matches are stale."""
    stale = {match.pk: match for match in _watched() if _silence(match, now) >= _threshold(match)}
    urls = _urls(stale)
    for match in stale.values():
        _report_stale(match, urls.get(match.pk, ""), now)
    over = open_keys(alert_keys.STALE) - {alert_keys.STALE.of(pk) for pk in stale}
    close_alerts(over, now)
    _close_dead_tasks(now)
    _close_breakers(now)
    return len(stale)


def _watched() -> list[Match]:
    return list(matches_to_watch().defer("payload", "provenance"))


def _threshold(match: Match) -> float:
    """Returns the staleness threshold; it is lower for important matches."""
    is_important = match.importance == Importance.HIGH
    return threshold_seconds(policies.current().staleness_threshold_seconds, is_important=is_important)


def _silence(match: Match, now: datetime) -> float:
    return (now - (match.last_scraper_update or match.created_at)).total_seconds()


def _urls(matches: Collection[int]) -> dict[int, str]:
    """Returns the URL of each match at its first source, in one query."""
    refs = MatchRef.objects.filter(match_id__in=matches, is_watched=True).order_by("-pk")
    return dict(refs.values_list("match_id", "url")) if matches else {}


def _report_stale(match: Match, url: str, now: datetime) -> None:
    last = as_utc_iso(match.last_scraper_update) if match.last_scraper_update else "never"
    silence = _silence(match, now)
    tried = Rung(match.silence_rung).name.lower().replace("_", " ")
    detail = {"match_id": match.pk, "url": url, "last_update": last, "silent_seconds": round(silence), "tried": tried}
    frozen = " and is frozen: every recovery step was tried" if match.frozen_at else ""
    summary = f"{match} has had no update for {silence / 60:.0f} min{frozen}"
    if raise_alert(alert_keys.STALE.of(match.pk), Severity.CRITICAL, summary, detail, now):
        logger.warning(
            "No update of %s since %s from %s: it will be restarted",
            match,
            last,
            url,
            extra={"action": "stale", **detail},
        )
    if match.scraper_status != ScraperStatus.STALE:
        lifecycle.mark_stale(match.pk)


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
    over = {pk: kinds for pk, kinds in _errors_by_match(now).items() if kinds.total() > MAX_ERRORS_A_MINUTE}
    titles = dict(Match.objects.filter(pk__in=over).values_list("pk", "title"))
    for pk, kinds in over.items():
        _report_error_rate(pk, titles.get(pk) or f"match {pk}", kinds, now)
    close_alerts(open_keys(alert_keys.ERROR_RATE) - {alert_keys.ERROR_RATE.of(pk) for pk in over}, now)
    return len(over)


def _errors_by_match(now: datetime) -> dict[int, Counter[str]]:
    rows = (
        ScrapeError.objects.filter(timestamp__gt=now - timedelta(minutes=1), match__isnull=False)
        .values_list("match_id", "error_type")
        .annotate(number=Count("pk"))
        .order_by()
    )
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for pk, kind, number in rows:
        if pk is not None:
            found[pk][kind] += number
    return found


def _report_error_rate(pk: int, title: str, kinds: Counter[str], now: datetime) -> None:
    spread = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    detail = {"match_id": pk, "errors_last_minute": kinds.total(), "error_types": dict(kinds)}
    summary = f"{title}: {kinds.total()} errors in the last minute ({spread})"
    if raise_alert(alert_keys.ERROR_RATE.of(pk), Severity.CRITICAL, summary, detail, now):
        logger.error(summary, extra={"action": "error_rate", **detail})


def watch_pauses(now: datetime) -> int:
    """Scheduler step: returns how many live matches were paused for too long, by the times of their pause alerts."""
    paused = _paused_seconds(now)
    names = dict(
        Match.objects.live()
        .filter(pk__in=[pk for pk, seconds in paused.items() if seconds > MAX_PAUSE_SECONDS])
        .values_list("pk", "title")
    )
    for pk, title in names.items():
        _report_long_pause(pk, title or f"match {pk}", paused[pk], now)
    close_alerts(open_keys(alert_keys.PAUSED_LONG) - {alert_keys.PAUSED_LONG.of(pk) for pk in names}, now)
    _close_ended_pauses(now)
    return len(names)


def _paused_seconds(now: datetime) -> dict[int, float]:
    begin, found = now - PAUSE_WINDOW, dict[int, float]()
    rows = Alert.objects.filter(Q(closed_at__isnull=True) | Q(closed_at__gt=begin), key__startswith=alert_keys.PAUSED)
    for key, opened, closed in rows.values_list("key", "opened_at", "closed_at"):
        ending = key.removeprefix(alert_keys.PAUSED)
        if ending.isdigit():
            pk = int(ending)
            found[pk] = found.get(pk, 0.0) + ((closed or now) - max(opened, begin)).total_seconds()
    return found


def _report_long_pause(pk: int, title: str, seconds: float, now: datetime) -> None:
    summary = f"{title} is live and was paused for {seconds / 60:.0f} of the last 60 min"
    detail = {"match_id": pk, "paused_seconds": round(seconds), "limit_seconds": MAX_PAUSE_SECONDS}
    raise_alert(alert_keys.PAUSED_LONG.of(pk), Severity.CRITICAL, summary, detail, now)


def _close_ended_pauses(now: datetime) -> None:
    """Closes the pause alerts of matches that ended while paused: they never send `match_resumed`."""
    open_ = open_keys(alert_keys.PAUSED)
    keys = {int(ending): key for key in open_ if (ending := key.removeprefix(alert_keys.PAUSED)).isdigit()}
    if keys:
        paused = Match.objects.filter(pk__in=keys, lifecycle=MatchLifecycle.PAUSED).values_list("pk", flat=True)
        close_alerts([key for pk, key in keys.items() if pk not in set(paused)], now)
