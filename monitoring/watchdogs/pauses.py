"""Pauses that add up: a live match that nobody reads for a large part of an hour (SO-8)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from monitoring.alerts import causes
from monitoring.alerts.registry import close_alerts, open_keys, raise_alert
from monitoring.models import Alert, Severity
from scraping.models import Match, MatchLifecycle

WINDOW = timedelta(hours=1)
LIMIT_SECONDS = 900  # paused within the window


def watch_pauses(now: datetime) -> int:
    """How many live matches were paused for too long within the last hour. Their own alerts say when."""
    paused = _paused_seconds(now)
    names = dict(
        Match.objects.live()
        .filter(pk__in=[pk for pk, seconds in paused.items() if seconds > LIMIT_SECONDS])
        .values_list("pk", "title")
    )
    for pk, title in names.items():
        _report(pk, title or f"match {pk}", paused[pk], now)
    close_alerts(open_keys(causes.PAUSED_LONG) - {causes.paused_long(pk) for pk in names}, now)
    _close_ended(now)
    return len(names)


def _paused_seconds(now: datetime) -> dict[int, float]:
    begin, found = now - WINDOW, dict[int, float]()
    rows = Alert.objects.filter(Q(closed_at__isnull=True) | Q(closed_at__gt=begin), key__startswith=causes.PAUSED)
    for key, opened, closed in rows.values_list("key", "opened_at", "closed_at"):
        ending = key.removeprefix(causes.PAUSED)
        if ending.isdigit():
            pk = int(ending)
            found[pk] = found.get(pk, 0.0) + ((closed or now) - max(opened, begin)).total_seconds()
    return found


def _report(pk: int, title: str, seconds: float, now: datetime) -> None:
    summary = f"{title} is live and was paused for {seconds / 60:.0f} of the last 60 min"
    detail = {"match_id": pk, "paused_seconds": round(seconds), "limit_seconds": LIMIT_SECONDS}
    raise_alert(causes.paused_long(pk), Severity.CRITICAL, summary, detail, now)


def _close_ended(now: datetime) -> None:
    """A match that has ended while it was paused is not resumed: nobody says that its pause is over."""
    open_ = open_keys(causes.PAUSED)
    keys = {int(ending): key for key in open_ if (ending := key.removeprefix(causes.PAUSED)).isdigit()}
    if keys:
        paused = Match.objects.filter(pk__in=keys, lifecycle=MatchLifecycle.PAUSED).values_list("pk", flat=True)
        close_alerts([key for pk, key in keys.items() if pk not in set(paused)], now)
