"""The scrapers of live matches: counts their updates and errors, restarts them, checks the first reading after that.

Guards against a scraper that leaks or hangs: after six hours, a silence or too many errors a new one begins with a
fresh context and counters from zero; its position is in the database. Its first reading is compared with the stored
state, so that a restart that loses or doubles events is reported. The only writer of Scraper rows and of read modes.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Count, F

from scraping.matches import poll_times
from scraping.matches.reconcile.states import goes_backwards
from scraping.models import EventAction, MatchEvent, MatchLifecycle, MatchRef, Scraper, Snapshot, Worker
from scraping.payloads import Status
from scraping.signals import read_mode_changed, scraper_restarted, scraper_took_over
from victoryline.lib import bulk_sql

logger = logging.getLogger(__name__)
NOTHING = (0.0, 0.0)  # memory, CPU


def active(ref: MatchRef) -> Scraper | None:
    return Scraper.objects.filter(ref=ref, stopped_at__isnull=True).first()


def ensure_active(ref: MatchRef, *, now: datetime) -> Scraper:
    """Returns the scraper of a live match; starts one if there is none. The database allows only one."""
    scraper, _ = Scraper.objects.get_or_create(ref=ref, stopped_at=None, defaults={"start_time": now})
    return scraper


def count_updates(
    updates: Mapping[int, tuple[int, float]], *, worker_id: str, now: datetime | None, resets_errors: bool = False
) -> dict[int, uuid.UUID]:
    """Counts readings (latency in ms and interval, by ref) by one statement; returns the ids of their scrapers.

    New scrapers and those with errors are left out, unless `resets_errors`. `now`: None for readings without events.
    """
    counted = bulk_sql.fetch_rows(
        """UPDATE scraping_scraper SET last_update_time = COALESCE(%s, last_update_time),
             total_updates = total_updates + 1,
             latency_total_ms = latency_total_ms + v.column2, last_latency_ms = v.column2,
             polling_interval = v.column3, worker_id = %s, error_count = 0
           FROM (VALUES {rows}) AS v
           WHERE scraping_scraper.ref_id = v.column1 AND stopped_at IS NULL
             AND (%s OR (error_count = 0 AND total_updates > 0))
           RETURNING ref_id, scraper_id""",
        [(ref_id, latency_ms, interval) for ref_id, (latency_ms, interval) in updates.items()],
        before=(now, worker_id),
        after=(resets_errors,),
    )
    return {ref_id: uuid.UUID(str(scraper_id)) for ref_id, scraper_id in counted}


def count_update(ref: MatchRef, *, worker_id: str, latency_ms: int, now: datetime) -> tuple[uuid.UUID | None, bool]:
    """Counts a reading for the scraper of a live match; stops the scraper of any other. A pushed source has none.

    Returns the scraper's id, and whether it had neither errors before nor was new.
    """
    if ref.source.is_pushed:
        return None, True
    match = ref.match
    if match.lifecycle != MatchLifecycle.ACTIVE or match.status != Status.LIVE:
        stop(ref, reason=f"the match is {match.status}", now=now)
        return None, False
    update = {ref.pk: (latency_ms, ref.polling_interval_seconds)}
    updated_at = None if ref.lacks_events else now
    if counted := count_updates(update, worker_id=worker_id, now=updated_at):
        return counted[ref.pk], True
    scraper = ensure_active(ref, now=now)
    if not scraper.total_updates:
        check_first_reading(ref, scraper)
    count_updates(update, worker_id=worker_id, now=updated_at, resets_errors=True)
    return scraper.pk, False


def record_error(scraper_id: uuid.UUID, *, interval: float) -> None:
    Scraper.objects.filter(pk=scraper_id).update(
        error_count=F("error_count") + 1, total_errors=F("total_errors") + 1, polling_interval=interval
    )


def stop(ref: MatchRef, *, reason: str, now: datetime) -> int:
    return Scraper.objects.filter(ref=ref, stopped_at__isnull=True).update(stopped_at=now, stop_reason=reason[:200])


def resources(workers: Iterable[Worker], worker_ids: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Returns memory in bytes and CPU in percent of each active scraper, by the key of its match.

    A scraper has the renderer of its own page, if it has one, and an equal share of the rest of its worker: one browser
    serves all scrapers of a worker. `worker_ids`: the worker of each scraper, by the same key.
    """
    served = Counter(worker_ids.values())
    own: dict[str, tuple[float, float]] = {}
    shares: dict[str, tuple[float, float]] = {}
    for worker in workers:
        pages = {key: (memory, cpu) for key, (memory, cpu) in worker.renderers.items() if key in worker_ids}
        number = served[worker.pk] or 1
        memory = worker.memory_bytes - sum(page[0] for page in pages.values())
        cpu = worker.cpu_percent - sum(page[1] for page in pages.values())
        shares[worker.pk] = max(0.0, memory / number), max(0.0, cpu / number)
        own |= pages
    found = {}
    for key, worker_id in worker_ids.items():
        (share, cpu_share), (page, page_cpu) = shares.get(worker_id, NOTHING), own.get(key, NOTHING)
        found[key] = share + page, cpu_share + page_cpu
    return found


def stop_unread(*, now: datetime) -> int:
    """Stops the scrapers of matches that are not read any more: a reading under way may have started one again."""
    read = MatchRef.objects.filter(is_watched=True, source__is_enabled=True)
    unread = Scraper.objects.filter(stopped_at__isnull=True).exclude(ref__in=read).select_related("ref")
    # One by one: workers count the updates of many scrapers in one statement, and two of those could deadlock.
    return sum(stop(one.ref, reason="it is not read at this source any more", now=now) for one in unread)


def restart(scraper: Scraper, *, reason: str, now: datetime) -> Scraper | None:
    """Replaces a scraper by a new one: new id, counters from zero. Returns None if it was stopped meanwhile."""
    if not Scraper.objects.filter(pk=scraper.pk, stopped_at__isnull=True).update(
        stopped_at=now, stop_reason=reason[:200]
    ):
        return None
    fresh = ensure_active(scraper.ref, now=now)
    # No read mode: the next reading is a visit, and does not use anything that the old scraper has learnt.
    ref = MatchRef.objects.filter(pk=scraper.ref_id)
    ref.update(read_mode="", read_mode_reason=f"a fresh start: {reason}"[:200], read_mode_since=now)
    poll_times.make_due(ref, now)
    scraper_restarted.send_robust(
        sender=Scraper,
        match_id=scraper.ref.match_id,
        reason=reason,
        source_key=scraper.ref.source.key,
        scraper_id=str(scraper.pk),
        fresh_id=str(fresh.pk),
        **position_of(scraper.ref),
        now=now,
    )
    return fresh


def position_of(ref: MatchRef) -> dict[str, str | int]:
    """Returns how far a match has been read: all of it is in the database, and the next reading continues there."""
    match = ref.match
    last = MatchEvent.objects.filter(match=match, source_id=ref.source_id, is_current=True, ordinal__isnull=False)
    ball = last.order_by("-ordinal").values_list("event_id", "over", "minute", "description").first()
    sides = (match.payload.get("score") or {}).items()
    score = [f"{side} {text}" for side, one in sides if (text := _score_text(one or {}))]
    return {
        "sequence": match.sequence,
        "score": "; ".join(score) or "none yet",
        "innings": match.payload.get("current_innings") or 0,
        "events_through": ref.events_through,
        "last_event": " ".join(str(part) for part in ball if part)[:200] if ball else "none yet",
    }


def _score_text(side: dict[str, Any]) -> str:
    if side.get("runs") is not None:
        return f"{side['runs']}/{side.get('wickets') or 0} ({side.get('overs') or '0.0'})"
    return str(side["goals"]) if side.get("goals") is not None else ""


def check_first_reading(ref: MatchRef, fresh: Scraper) -> tuple[str, ...]:
    """Checks that a restarted scraper loses and doubles nothing that is in the database (EC-7); returns the problems.

    The result is logged and sent after the commit. Nothing is checked for a first scraper.
    """
    stopped = Scraper.objects.filter(ref=ref, stopped_at=fresh.start_time).exclude(pk=fresh.pk).first()
    if stopped is None:
        return ()
    match = ref.match
    before = Snapshot.objects.filter(match=match, created_at__lte=fresh.start_time).order_by("-sequence").first()
    found = []
    if before is not None and match.sequence < before.sequence:
        found.append(f"the sequence went from {before.sequence} back to {match.sequence}")
    if before is not None and goes_backwards(before.payload, match.payload):
        found.append("the score is lower than it was")
    events = MatchEvent.objects.filter(match=match, source_id=ref.source_id, is_current=True)
    listed = events.exclude(action=EventAction.RETRACT).exclude(ordinal=None)
    twice = listed.order_by().values("ordinal").annotate(rows=Count("pk")).filter(rows__gt=1)
    if number := twice.count():
        found.append(f"{number} events are there twice")
    if lost := events.filter(action=EventAction.RETRACT, created_at__gt=fresh.start_time).count():
        found.append(f"{lost} events that were there before are not any more")
    if ref.has_gap:
        found.append(f"events after number {ref.events_through} of {ref.events_seen} are still to be read")
    problems = tuple(found)
    transaction.on_commit(partial(_report_restart, ref, stopped, problems))
    return problems


def _report_restart(ref: MatchRef, stopped: Scraper, problems: tuple[str, ...]) -> None:
    match = ref.match
    logger.log(
        logging.WARNING if problems else logging.INFO,
        "The new scraper of %s continues at sequence %d, %s",
        ref.key,
        match.sequence,
        f"but {'; '.join(problems)}" if problems else "with nothing lost and nothing twice",
        extra={"action": "scraper_took_over", "match_id": ref.key, "problems": list(problems)},
    )
    scraper_took_over.send_robust(
        sender=Scraper,
        match_id=match.pk,
        reason=stopped.stop_reason,
        problems="; ".join(problems),
        sequence=match.sequence,
        events_through=ref.events_through,
    )


def note_read_mode(ref: MatchRef, mode: str, reason: str, *, now: datetime) -> None:
    """Sets the read mode on the ref (the caller saves); a change is logged and sent after the commit."""
    if not mode or mode == ref.read_mode:
        return
    before, ref.read_mode = ref.read_mode, mode
    ref.read_mode_reason, ref.read_mode_since = reason[:200], now
    changed = {"from": before, "to": mode, "reason": reason, "source": ref.source.key}
    transaction.on_commit(
        partial(
            logger.info if before else logger.debug,
            "%s is read by %s now instead of %s%s",
            ref.key,
            mode,
            before or "not at all",
            f": {reason}" if reason else "",
            extra={"action": "read_mode_changed", "match_id": ref.key, **changed},
        )
    )
    if before:
        transaction.on_commit(partial(read_mode_changed.send_robust, sender=MatchRef, ref_id=ref.pk, **changed))
