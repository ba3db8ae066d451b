"""The watches over live matches: sole writer of Scraper rows."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db.models import F

from scraping.models import MatchRef, Scraper
from scraping.signals import scraper_restarted


def active(ref: MatchRef) -> Scraper | None:
    return Scraper.objects.filter(ref=ref, stopped_at__isnull=True).first()


def ensure_active(ref: MatchRef, *, now: datetime) -> Scraper:
    """The scraper of a live match; started if there is none. The database allows only one."""
    scraper, _ = Scraper.objects.get_or_create(ref=ref, stopped_at=None, defaults={"start_time": now})
    return scraper


def record_update(scraper_id: uuid.UUID, *, worker_id: str, interval: float, latency_ms: int, now: datetime) -> None:
    Scraper.objects.filter(pk=scraper_id).update(
        last_update_time=now,
        error_count=0,
        total_updates=F("total_updates") + 1,
        latency_total_ms=F("latency_total_ms") + latency_ms,
        last_latency_ms=latency_ms,
        polling_interval=interval,
        worker_id=worker_id,
    )


def record_error(scraper_id: uuid.UUID, *, interval: float) -> None:
    Scraper.objects.filter(pk=scraper_id).update(
        error_count=F("error_count") + 1, total_errors=F("total_errors") + 1, polling_interval=interval
    )


def stop(ref: MatchRef, *, reason: str, now: datetime) -> int:
    return Scraper.objects.filter(ref=ref, stopped_at__isnull=True).update(stopped_at=now, stop_reason=reason[:200])


def restart(scraper: Scraper, *, reason: str, now: datetime) -> Scraper | None:
    """A fresh scraper in the place of a worn one: new id, counters from zero. None if somebody was faster."""
    if not Scraper.objects.filter(pk=scraper.pk, stopped_at__isnull=True).update(
        stopped_at=now, stop_reason=reason[:200]
    ):
        return None
    fresh = ensure_active(scraper.ref, now=now)
    MatchRef.objects.filter(pk=scraper.ref_id).update(next_poll_at=now)
    scraper_restarted.send_robust(sender=Scraper, match_id=scraper.ref.match_id, reason=reason)
    return fresh
