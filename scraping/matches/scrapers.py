"""The watches over live matches: sole writer of Scraper rows."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from scraping.matches import poll_times
from scraping.models import MatchEvent, MatchRef, Scraper
from scraping.signals import scraper_restarted
from victoryline.lib import bulk_sql


def active(ref: MatchRef) -> Scraper | None:
    return Scraper.objects.filter(ref=ref, stopped_at__isnull=True).first()


def ensure_active(ref: MatchRef, *, now: datetime) -> Scraper:
    """The scraper of a live match; started if there is none. The database allows only one."""
    scraper, _ = Scraper.objects.get_or_create(ref=ref, stopped_at=None, defaults={"start_time": now})
    return scraper


@dataclass(frozen=True, kw_only=True)
class Update:
    """A reading that was good, as its scraper counts it."""

    worker_id: str
    interval: float
    latency_ms: int
    now: datetime


def count_updates(updates: Mapping[int, Update]) -> dict[int, uuid.UUID]:
    """Count them for the scrapers of these refs that have nothing to be forgiven; their ids, by ref.

    One statement for as many as there are, of one worker at one moment: most polls need no more than this.
    """
    first = next(iter(updates.values()))
    counted = bulk_sql.fetch_rows(
        """UPDATE scraping_scraper SET last_update_time = %s, total_updates = total_updates + 1,
             latency_total_ms = latency_total_ms + v.column2, last_latency_ms = v.column2,
             polling_interval = v.column3, worker_id = %s
           FROM (VALUES {rows}) AS v
           WHERE scraping_scraper.ref_id = v.column1 AND stopped_at IS NULL AND error_count = 0
             AND total_updates > 0
           RETURNING ref_id, scraper_id""",
        [(ref_id, one.latency_ms, one.interval) for ref_id, one in updates.items()],
        before=(first.now, first.worker_id),
    )
    return {ref_id: uuid.UUID(str(scraper_id)) for ref_id, scraper_id in counted}


def record_update(scraper_id: uuid.UUID, update: Update) -> None:
    Scraper.objects.filter(pk=scraper_id).update(
        last_update_time=update.now,
        error_count=0,
        total_updates=F("total_updates") + 1,
        latency_total_ms=F("latency_total_ms") + update.latency_ms,
        last_latency_ms=update.latency_ms,
        polling_interval=update.interval,
        worker_id=update.worker_id,
    )


def record_error(scraper_id: uuid.UUID, *, interval: float) -> None:
    Scraper.objects.filter(pk=scraper_id).update(
        error_count=F("error_count") + 1, total_errors=F("total_errors") + 1, polling_interval=interval
    )


def stop(ref: MatchRef, *, reason: str, now: datetime) -> int:
    return Scraper.objects.filter(ref=ref, stopped_at__isnull=True).update(stopped_at=now, stop_reason=reason[:200])


def stop_unread(*, now: datetime) -> int:
    """Of matches that nobody reads there any more: a reading that was under way may have started one again."""
    read = MatchRef.objects.filter(is_watched=True, source__is_enabled=True)
    unread = Scraper.objects.filter(stopped_at__isnull=True).exclude(ref__in=read).select_related("ref")
    # One by one: workers count their readings for many at once.
    return sum(stop(one.ref, reason="it is not read at this source any more", now=now) for one in unread)


def restart(scraper: Scraper, *, reason: str, now: datetime) -> Scraper | None:
    """A fresh scraper in the place of a worn one: new id, counters from zero. None if somebody was faster."""
    if not Scraper.objects.filter(pk=scraper.pk, stopped_at__isnull=True).update(
        stopped_at=now, stop_reason=reason[:200]
    ):
        return None
    fresh = ensure_active(scraper.ref, now=now)
    # No read mode: whoever reads it next begins anew, with a visit, and not with what the worn one had learnt.
    ref = MatchRef.objects.filter(pk=scraper.ref_id)
    ref.update(read_mode="", read_mode_reason=f"a fresh start: {reason}"[:200], read_mode_since=now)
    poll_times.make_due(ref, now)
    position = position_of(scraper.ref)
    scraper_restarted.send_robust(
        sender=Scraper,
        match_id=scraper.ref.match_id,
        reason=reason,
        source_key=scraper.ref.source.key,
        scraper_id=str(scraper.pk),
        fresh_id=str(fresh.pk),
        **position,
        now=now,
    )
    return fresh


def position_of(ref: MatchRef) -> dict[str, str | int]:
    """Where the reading of a match stands: all of it is in the database, and whoever reads next goes on from there."""
    match = ref.match
    last = MatchEvent.objects.filter(match=match, source_id=ref.source_id, is_current=True, ordinal__isnull=False)
    ball = last.order_by("-ordinal").values_list("event_id", "over", "minute", "description").first()
    sides = (match.payload.get("score") or {}).items()
    score = [f"{side} {told}" for side, one in sides if (told := _told(one or {}))]
    return {
        "sequence": match.sequence,
        "score": "; ".join(score) or "none yet",
        "innings": match.payload.get("current_innings") or 0,
        "events_through": ref.events_through,
        "last_event": " ".join(str(part) for part in ball if part)[:200] if ball else "none yet",
    }


def _told(side: dict[str, Any]) -> str:
    if side.get("runs") is not None:
        return f"{side['runs']}/{side.get('wickets') or 0} ({side.get('overs') or '0.0'})"
    return str(side["goals"]) if side.get("goals") is not None else ""
