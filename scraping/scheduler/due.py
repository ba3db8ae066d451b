"""Opens a task for each match that is due: watched, not paused, breaker closed, source enabled and with room.

Guards a source against us: never more open polls than its concurrency, never more at once than its burst, on average
one in its shortest interval, and never one match twice within it; also where two schedulers run at the same moment.
`policies.fairness` decides which matches go first where a source has too few places.
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
    POLLED_LIFECYCLES,
    JobKind,
    MatchRef,
    ScrapeJob,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import Resource
from scraping.policies.fairness import DueMatch, choose
from scraping.scheduler.limits import (
    BACKGROUND,
    breaker_limits,
    canary_refs,
    has_open_breaker,
    sources_with_background_work,
    spacing,
)
from victoryline.lib.crash import crash_point

BATCH = 500
LOCK = 6_022_140  # the number of the advisory lock in PostgreSQL
BACKGROUND_SHARE = 8  # where a source has too few places, one in so many is left to background work

_given: Counter[int] = Counter()  # places given at each source while it had too few; see fairness


@dataclass(frozen=True)
class SourceLimits:
    """Number of tasks that may be opened for a source now, and its shortest time between two polls of a match."""

    room: int
    min_interval: timedelta


def open_due(now: datetime, *, is_hinted: bool = False) -> list[journal.Opened]:
    """Opens a task for each ref that is due, at most one a ref. `is_hinted`: the caller sends the hints at once."""
    found = _waiting(due_refs(now)[: BATCH + 1])
    if not found:
        return []
    with _exclusive() as is_ours:  # otherwise another scheduler is opening them
        opened = _open(found, now, is_hinted) if is_ours else []
    crash_point("due.committed")
    return opened


def _open(found: list[DueMatch], now: datetime, is_hinted: bool) -> list[journal.Opened]:
    of_breakers = breaker_limits(now)
    canaries = canary_refs(of_breakers, now) if of_breakers else {}
    limits = source_limits(of_breakers, canaries, now=now)
    if len(found) > BATCH:
        found = _candidates_of_each_source(now, limits, canaries)
    found = [one for one in found if one.ref_id in canaries.get(one.source_id, {one.ref_id})]
    chosen = _chosen(found, limits, now)
    if not chosen:
        return []
    # Checked again under the lock: meanwhile another scheduler may have opened one, and a worker read it.
    due = MatchRef.objects.filter(pk__in=[one.ref_id for one in chosen], next_poll_at__lte=now)
    still_due = set(due.values_list("pk", flat=True))
    jobs = dict(ScrapeJob.objects.filter(kind=JobKind.WATCH).values_list("source_id", "pk"))
    new = [
        journal.NewTask(
            *(one.source_id, one.ref_id, Resource.SCORECARD, one.priority), run_at=now, job_id=jobs.get(one.source_id)
        )
        for one in chosen
        if one.ref_id in still_due
    ]
    opened = journal.open_new(new, now=now, is_hinted=is_hinted)
    for source_id, number in Counter(task.source_id for task in opened if is_hinted).items():
        spacing.begin(source_id, number)
    return opened


def due_refs(now: datetime) -> QuerySet[MatchRef]:
    open_task = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SCORECARD, state__in=OPEN_STATES)
    return (
        MatchRef.objects.filter(
            is_watched=True, next_poll_at__lte=now, source__is_enabled=True, match__lifecycle__in=POLLED_LIFECYCLES
        )
        .exclude(has_open_breaker(now))
        .exclude(Exists(open_task))
        .order_by("match__priority", "match__importance", F("captured_at").asc(nulls_first=True))
    )


def _waiting(refs: QuerySet[MatchRef]) -> list[DueMatch]:
    columns = ("pk", "source_id", "match__priority", "match__importance", "next_poll_at", "polling_interval_seconds")
    return [DueMatch(*row) for row in refs.values_list(*columns, "captured_at")]


def _candidates_of_each_source(
    now: datetime, limits: Mapping[int, SourceLimits], canaries: Mapping[int, set[int]]
) -> list[DueMatch]:
    """Returns, if more refs are due than one batch, the most urgent and the longest waiting ones of each source with
    room.

    So neither the refs of one source hide those of another, nor the urgent ones those that wait for long.
    """
    most = max((one.room for one in limits.values()), default=0)
    due = due_refs(now).filter(source_id__in=[pk for pk, one in limits.items() if one.room > 0])
    for source_id, refs in canaries.items():
        due = due.exclude(~Q(pk__in=refs), source_id=source_id)
    urgent = ("match__priority", "match__importance", F("captured_at").asc(nulls_first=True), "pk")
    ranked = due.annotate(
        by_urgency=Window(RowNumber(), partition_by="source_id", order_by=urgent),
        by_wait=Window(RowNumber(), partition_by="source_id", order_by=("next_poll_at", "pk")),
    )
    return _waiting(ranked.filter(Q(by_urgency__lte=most) | Q(by_wait__lte=most)))


def _chosen(found: Iterable[DueMatch], limits: Mapping[int, SourceLimits], now: datetime) -> list[DueMatch]:
    by_source: defaultdict[int, list[DueMatch]] = defaultdict(list)
    for one in found:
        of_source = limits.get(one.source_id)
        if of_source is None or of_source.room <= 0:
            continue
        # A resumed or restarted match is due at once, but never within the shortest interval of its source.
        if one.last_read_at is None or one.last_read_at + of_source.min_interval <= now:
            by_source[one.source_id].append(one)
    crowded = {source_id for source_id, waiting in by_source.items() if len(waiting) > limits[source_id].room}
    with_background = sources_with_background_work(now) & crowded if crowded else set()
    chosen: list[DueMatch] = []
    for source_id, waiting in by_source.items():
        room = limits[source_id].room
        if source_id in crowded:
            if source_id in with_background and _given[source_id] % BACKGROUND_SHARE + room >= BACKGROUND_SHARE:
                room -= 1
                _given[source_id] += 1
            chosen += choose(waiting, room, now=now, given=_given[source_id])
            _given[source_id] += room
        else:
            chosen += choose(waiting, room, now=now)
    return chosen


def source_limits(
    breaker_limits: Mapping[int, int], canaries: Mapping[int, set[int]] | None = None, *, now: datetime
) -> dict[int, SourceLimits]:
    """Returns the limits of each enabled source, from its open tasks only, however long the journal is.

    `breaker_limits`: how many tasks a source may have open where its breaker is not closed. After a pause everything is
    due at once: no more than the source's burst is opened at a time, and the next ones in its shortest interval each.
    Where only `canaries` are read, waiting tasks of other matches take no place.
    """
    open_tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES).order_by()
    # Background tasks wait in the journal by the hundred: only those that are hinted or executing take a place.
    open_tasks = open_tasks.exclude(state=TaskState.PENDING, hinted_at=None, resource__in=BACKGROUND)
    for source_id, refs in (canaries or {}).items():
        open_tasks = open_tasks.exclude(~Q(ref__in=refs), source_id=source_id)
    busy = dict(open_tasks.values_list("source_id").annotate(number=Count("pk")))
    rows = Source.objects.filter(is_enabled=True)
    return {
        source_id: SourceLimits(
            min(
                spacing.room(source_id, seconds, burst, now=now),
                min(limit, breaker_limits.get(source_id, limit)) - busy.get(source_id, 0),
            ),
            timedelta(seconds=seconds),
        )
        for source_id, limit, burst, seconds in rows.values_list(
            *("pk", "max_concurrency", "burst_allowance", "min_interval_seconds")
        )
    }


@contextmanager
def _exclusive() -> Iterator[bool]:
    """Keeps another scheduler from opening tasks between our count and our insert. On SQLite a transaction does."""
    with transaction.atomic():
        if connection.vendor != "postgresql":
            yield True
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (LOCK,))
            yield bool(cursor.fetchone()[0])
