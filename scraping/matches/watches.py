"""Starts and ends the watches over matches: at the request of a person, and by the memory that is left.

Guards against a watch too many: a machine without memory kills a process, and seldom the newest. A new watch is
refused first, idle watches are ended to make room, and a refused watch starts by itself later. The same admission
applies to discovered matches and to the tasks of jobs (scheduler/hint.py).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from scraping import journal
from scraping.journal import NewTask
from scraping.matches import poll_times, scrapers
from scraping.matches.lifecycle import NotAllowed
from scraping.models import Match, MatchLifecycle, MatchRef, Scraper, Worker
from scraping.models.source import PUSHED
from scraping.payloads import Resource
from scraping.signals import read_requested, watch_began, watch_ended, watch_put_off
from victoryline.lib.operators import OperationRefused
from victoryline.lib.units import MEGABYTE

BATCH = 5  # started at a time: the memory that a watch takes shows only with the next heartbeats
HEARTBEAT_MAX_AGE = timedelta(seconds=30)
MIN_FREE_MEMORY_MB = 500  # of a machine, for another watch
ADMISSION_RETRY_SECONDS = 60.0  # until a watch that was refused for lack of memory is tried again
IDLE_MINUTES = 30  # without a change: such a watch is ended first when memory is short


class WatchDeferred(OperationRefused):
    """There is too little memory for another watch now; it starts by itself later. The message is for operators."""

    retry_seconds = ADMISSION_RETRY_SECONDS


def memory_shortage(now: datetime) -> str:
    """Returns why no machine has memory for another watch; empty if one has, or without any report."""
    best = max((worker.free_memory_bytes for worker in _reporting_workers(now)), default=None)
    if best is None or best >= MIN_FREE_MEMORY_MB * MEGABYTE:
        return ""
    return f"{best // MEGABYTE} MB are free, {MIN_FREE_MEMORY_MB} MB are needed"


def memory_by_worker(now: datetime) -> list[str]:
    return [
        f"{worker.worker_id}: {worker.memory_bytes // MEGABYTE} MB in {worker.process_count} processes, "
        f"{worker.page_count} pages, {worker.free_memory_bytes // MEGABYTE} MB free on its machine"
        for worker in _reporting_workers(now)
    ]


def memory_by_scraper(now: datetime) -> dict[str, int]:
    """Returns the megabytes of each scraper by its match's key, the largest first."""
    workers = _reporting_workers(now)
    running = Scraper.objects.filter(stopped_at__isnull=True, worker_id__in=[worker.pk for worker in workers])
    rows = running.values_list("ref__source__key", "ref__source_event_id", "worker_id")
    found = scrapers.resources(workers, {f"{source}_{event}": worker_id for source, event, worker_id in rows})
    megabytes = {key: int(memory) // MEGABYTE for key, (memory, _) in found.items()}
    return dict(sorted(megabytes.items(), key=lambda pair: (-pair[1], pair[0])))


def _reporting_workers(now: datetime) -> list[Worker]:
    since = now - HEARTBEAT_MAX_AGE
    reporting = Worker.objects.filter(heartbeat_at__gt=since, stopped_at__isnull=True, free_memory_bytes__gt=0)
    return list(reporting.order_by("worker_id"))


def begin(*, match_id: int, actor: str, now: datetime) -> Match:
    """Starts the watch over a match. Raises WatchDeferred where there is too little memory: it starts later."""
    shortage = memory_shortage(now)
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        waiting = [ref.pk for ref in _readable_refs(match) if not ref.is_watched]
        poll_times.make_substitute_permanent(match.refs.all())
        if not waiting:
            return match
        if shortage:
            MatchRef.objects.filter(pk__in=waiting, watch_at__isnull=True).update(watch_at=now)
        else:
            poll_times.start_watching(MatchRef.objects.filter(pk__in=waiting), now)
    if shortage:
        watch_put_off.send_robust(sender=Match, match_id=match.pk, reason=shortage, actor=actor)
        raise WatchDeferred(
            f"Insufficient memory resources: {shortage}. Nothing is lost: the watch over {match} is noted and "
            f"begins by itself when there is room"
        )
    watch_began.send_robust(sender=Match, match_id=match.pk, reason="requested", actor=actor)
    return match


def end(*, match_id: int, reason: str, actor: str, now: datetime) -> Match:
    """Ends the watch over a match until it is started again. Its last state stays served, with its age."""
    with transaction.atomic():
        match = Match.objects.select_for_update().get(pk=match_id)
        refs = list(match.refs.filter(Q(is_watched=True) | Q(watch_at__isnull=False)))
        if not refs:
            raise NotAllowed(f"{match} is not watched")
        _end(refs, reason=reason, begin_again_at=None, now=now)
    watch_ended.send_robust(sender=Match, match_id=match.pk, reason=reason, actor=actor)
    return match


def begin_waiting(*, now: datetime) -> int:
    """Starts the watches that wait for memory, the oldest first; returns how many."""
    waiting = MatchRef.objects.filter(watch_at__lte=now, is_watched=False).order_by("watch_at", "pk")
    begun = 0
    for ref in waiting.select_related("match")[:BATCH]:
        waits = MatchRef.objects.filter(pk=ref.pk, is_watched=False, watch_at__isnull=False)
        if ref.match.lifecycle in (MatchLifecycle.COMPLETED, MatchLifecycle.ARCHIVED):
            waits.update(watch_at=None)
        elif poll_times.start_watching(waits, now):
            watch_began.send_robust(
                sender=Match, match_id=ref.match_id, reason="there is room again", actor="scheduler"
            )
            begun += 1
    return begun


def put_off_waiting(*, until: datetime) -> int:
    """Puts off the waiting watches that are due: there is still too little memory."""
    return MatchRef.objects.filter(watch_at__lt=until, is_watched=False).update(watch_at=until)


def end_idle(*, now: datetime) -> int:
    """Ends the watches over matches without a change for long, to free memory. They start again later."""
    idle_since = now - timedelta(minutes=IDLE_MINUTES)
    idle = MatchRef.objects.filter(
        Q(match__last_changed_at__lt=idle_since) | Q(match__last_changed_at__isnull=True, created_at__lt=idle_since),
        is_watched=True,
        scrapers__stopped_at__isnull=True,
        scrapers__start_time__lt=idle_since,
    )
    reason = f"no change for {IDLE_MINUTES} minutes, and memory is needed"
    refs = list(idle.select_related("match"))
    # A match delayed by rain is idle too: it is watched again when there is memory, after those that waited longer.
    with transaction.atomic():
        _end(refs, reason=reason, begin_again_at=now + timedelta(minutes=IDLE_MINUTES), now=now)
    for ref in refs:
        watch_ended.send_robust(sender=Match, match_id=ref.match_id, reason=reason, actor="scheduler")
    return len(refs)


def read_now(*, match_id: int, actor: str, now: datetime) -> Match:
    """Has a match read at once at each of its sources; it need not be watched."""
    match = Match.objects.get(pk=match_id)
    if match.lifecycle == MatchLifecycle.PAUSED:
        raise NotAllowed(f"{match} is paused: resume it")
    readable = _readable_refs(match)
    refs = [ref for ref in readable if ref.is_watched] or readable
    due = journal.make_tasks_due([ref.pk for ref in refs], now=now, resource=Resource.SCORECARD)
    new = [NewTask(ref.source_id, ref.pk, Resource.SCORECARD, match.priority, now) for ref in refs if ref.pk not in due]
    journal.open_tasks(new, now=now)
    read_requested.send_robust(sender=Match, match_id=match.pk, reason="requested", actor=actor)
    return match


def _readable_refs(match: Match) -> list[MatchRef]:
    """Returns the refs that can be read. Raises NotAllowed where there is none."""
    if match.lifecycle == MatchLifecycle.ARCHIVED:
        raise NotAllowed(f"{match} is archived: it does not change any more")
    refs = list(match.refs.filter(source__is_enabled=True).exclude(source__key=PUSHED))
    if not refs and match.refs.filter(source__key=PUSHED).exists():
        raise NotAllowed(f"{match} is sent in and at no source that is enabled: there is nothing to be read")
    if not refs:
        raise NotAllowed(f"{match} is known at no source that is enabled")
    return refs


def _end(refs: list[MatchRef], *, reason: str, begin_again_at: datetime | None, now: datetime) -> None:
    poll_times.stop_watching(MatchRef.objects.filter(pk__in=[ref.pk for ref in refs]), watch_again_at=begin_again_at)
    for ref in refs:
        scrapers.stop(ref, reason=reason, now=now)
