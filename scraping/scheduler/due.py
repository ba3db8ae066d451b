"""Which matches are to be read now: due, not paused, breaker closed, source enabled and with room.

Guards a source against us: never more open polls than it bears, never more at once than its burst, never one match
twice within its shortest interval; also where two schedulers look at the same moment. Who goes first: fairness.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from scraping import journal
from scraping.models import (
    OPEN_STATES,
    JobKind,
    MatchLifecycle,
    MatchRef,
    ScrapeJob,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import Resource
from scraping.policies.fairness import DueMatch, choose
from scraping.scheduler import turns
from scraping.scheduler.conditions import has_open_breaker
from scraping.scheduler.source_breakers import task_limits
from scraping.scheduler.turns import PATIENT
from victoryline.lib.crash import crash_point

POLLED = (MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE, MatchLifecycle.COMPLETED)
BATCH = 500
LOCK = 6_022_140  # PostgreSQL knows it by this number only
PLACES_A_TURN = 8  # under overload, one of so many is left to those that take turns

_given: Counter[int] = Counter()  # places that each source gave while it had too few; see fairness


@dataclass(frozen=True)
class _Limits:
    """What one source bears at this moment."""

    room: int
    min_interval: timedelta


def open_due_tasks(now: datetime) -> int:
    return len(open_due(now))


def open_due(now: datetime, *, is_hinted: bool = False) -> list[journal.Opened]:
    """Write a task for each ref that is due; one open task a ref at most. `is_hinted`: the caller tells the workers."""
    found = _waiting(due_refs(now)[: BATCH + 1])
    if not found:
        return []
    with _alone() as is_alone:  # else the other one opens what is due
        opened = _open(found, now, is_hinted) if is_alone else []
    crash_point("due.committed")
    return opened


def _open(found: list[DueMatch], now: datetime, is_hinted: bool) -> list[journal.Opened]:
    limits = _limits_by_source(task_limits(now))
    if len(found) > BATCH:
        found = _of_a_crowd(now, limits)
    chosen = _still_due(_chosen(found, limits, now), now)
    if not chosen:
        return []
    jobs = dict(ScrapeJob.objects.filter(kind=JobKind.WATCH).values_list("source_id", "pk"))
    new = [
        journal.NewTask(
            *(one.source_id, one.ref_id, Resource.SCORECARD, one.priority), run_at=now, job_id=jobs.get(one.source_id)
        )
        for one in chosen
    ]
    return journal.open_new(new, now=now, is_hinted=is_hinted)


def due_refs(now: datetime) -> QuerySet[MatchRef]:
    open_task = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SCORECARD, state__in=OPEN_STATES)
    return (
        MatchRef.objects.filter(
            is_watched=True, next_poll_at__lte=now, source__is_enabled=True, match__lifecycle__in=POLLED
        )
        .exclude(has_open_breaker(now))
        .exclude(Exists(open_task))
        .order_by("match__priority", "match__importance", F("captured_at").asc(nulls_first=True))
    )


def _waiting(refs: QuerySet[MatchRef]) -> list[DueMatch]:
    columns = ("pk", "source_id", "match__priority", "match__importance", "next_poll_at", "polling_interval_seconds")
    return [DueMatch(*row) for row in refs.values_list(*columns, "captured_at")]


def _of_a_crowd(now: datetime, limits: Mapping[int, _Limits]) -> list[DueMatch]:
    """More are due than are looked at: of each source with room the most urgent, and those that wait the longest.

    So that neither the refs of one source hide those of another, nor the urgent ones those that are starved.
    """
    most = max((one.room for one in limits.values()), default=0)
    due = due_refs(now).filter(source_id__in=[pk for pk, one in limits.items() if one.room > 0])
    urgent = ("match__priority", "match__importance", F("captured_at").asc(nulls_first=True), "pk")
    ranked = due.annotate(
        by_urgency=Window(RowNumber(), partition_by="source_id", order_by=urgent),
        by_wait=Window(RowNumber(), partition_by="source_id", order_by=("next_poll_at", "pk")),
    )
    return _waiting(ranked.filter(Q(by_urgency__lte=most) | Q(by_wait__lte=most)))


def _chosen(found: Iterable[DueMatch], limits: Mapping[int, _Limits], now: datetime) -> list[DueMatch]:
    by_source: defaultdict[int, list[DueMatch]] = defaultdict(list)
    for one in found:
        of_source = limits.get(one.source_id)
        if of_source and of_source.room > 0 and _is_rested(one, of_source.min_interval, now):
            by_source[one.source_id].append(one)
    crowded = {source_id for source_id, waiting in by_source.items() if len(waiting) > limits[source_id].room}
    taking_turns = turns.waiting_sources(now) & crowded if crowded else set()
    chosen: list[DueMatch] = []
    for source_id, waiting in by_source.items():
        room = limits[source_id].room
        if source_id in crowded:
            if source_id in taking_turns and _given[source_id] % PLACES_A_TURN + room >= PLACES_A_TURN:
                room -= 1
                _given[source_id] += 1
            chosen += choose(waiting, room, now=now, given=_given[source_id])
            _given[source_id] += room
        else:
            chosen += choose(waiting, room, now=now)
    return chosen


def _still_due(chosen: list[DueMatch], now: datetime) -> list[DueMatch]:
    """They were found before we were alone: another scheduler may have had one opened, and a worker read it, since."""
    due = MatchRef.objects.filter(pk__in=[one.ref_id for one in chosen], next_poll_at__lte=now)
    ids = set(due.values_list("pk", flat=True)) if chosen else set()
    return [one for one in chosen if one.ref_id in ids]


def _is_rested(one: DueMatch, min_interval: timedelta, now: datetime) -> bool:
    """A resumed or restarted match is due at once, which may be too soon after its last reading."""
    return one.last_read_at is None or one.last_read_at + min_interval <= now


def room_by_source(at_most: Mapping[int, int] | None = None) -> dict[int, int]:
    """How many more tasks may be opened for each source now. Looks at open tasks only, however many there were before.

    After a pause everything is due at once: no more than its burst at a time. `at_most`: what the breakers of sources
    say, where they are not closed.
    """
    return {source_id: one.room for source_id, one in _limits_by_source(at_most).items()}


def _limits_by_source(at_most: Mapping[int, int] | None) -> dict[int, _Limits]:
    open_tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES).order_by()
    # Some wait in the journal by the hundred (see turns): only those on their way or in work take somebody's place.
    open_tasks = open_tasks.exclude(state=TaskState.PENDING, hinted_at=None, resource__in=PATIENT)
    busy = dict(open_tasks.values_list("source_id").annotate(number=Count("pk")))
    rows = Source.objects.filter(is_enabled=True)
    return {
        source_id: _Limits(
            min(burst, min(limit, (at_most or {}).get(source_id, limit)) - busy.get(source_id, 0)),
            timedelta(seconds=seconds),
        )
        for source_id, limit, burst, seconds in rows.values_list(
            *("pk", "max_concurrency", "burst_allowance", "min_interval_seconds")
        )
    }


@contextmanager
def _alone() -> Iterator[bool]:
    """Between counting what is open and opening more, nobody else does the same. On SQLite a transaction is enough."""
    with transaction.atomic():
        if connection.vendor != "postgresql":
            yield True
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (LOCK,))
            yield bool(cursor.fetchone()[0])
