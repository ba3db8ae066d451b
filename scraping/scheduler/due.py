"""Which matches are to be read now: due, not paused, breaker closed, source enabled and with room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet

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
from scraping.scheduler.conditions import has_open_breaker
from scraping.scheduler.source_breakers import task_limits
from scraping.scheduler.turns import PATIENT

POLLED = (MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE, MatchLifecycle.COMPLETED)
BATCH = 500


def open_due_tasks(now: datetime) -> int:
    return len(open_due(now))


def open_due(now: datetime, *, is_hinted: bool = False) -> list[journal.Opened]:
    """Write a task for each ref that is due; one open task a ref at most. `is_hinted`: the caller tells the workers."""
    room = room_by_source(task_limits(now))
    # Sources without room are left out first: their refs would fill the batch and keep the others waiting.
    with_room = due_refs(now).filter(source_id__in=[pk for pk, free in room.items() if free > 0])
    refs = list(with_room.values_list("pk", "source_id", "match__priority")[:BATCH])
    if not refs:
        return []
    jobs = dict(ScrapeJob.objects.filter(kind=JobKind.WATCH).values_list("source_id", "pk"))
    taken: Counter[int] = Counter()
    new = []
    for ref_id, source_id, priority in refs:
        if taken[source_id] < room.get(source_id, 0):
            taken[source_id] += 1
            job_id = jobs.get(source_id)
            new.append(journal.NewTask(source_id, ref_id, Resource.SCORECARD, priority, run_at=now, job_id=job_id))
    return journal.open_new(new, now=now, is_hinted=is_hinted)


def due_refs(now: datetime) -> QuerySet[MatchRef]:
    open_task = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SCORECARD, state__in=OPEN_STATES)
    return (
        MatchRef.objects.filter(
            is_watched=True, next_poll_at__lte=now, source__is_enabled=True, match__lifecycle__in=POLLED
        )
        .exclude(has_open_breaker(now))
        .exclude(Exists(open_task))
        .order_by("match__priority", "next_poll_at")
    )


def room_by_source(at_most: Mapping[int, int] | None = None) -> dict[int, int]:
    """How many more tasks may be opened for each source now. Looks at open tasks only, however many there were before.

    After a pause everything is due at once: no more than its burst at a time. `at_most`: what the breakers of sources
    say, where they are not closed.
    """
    open_tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES).order_by()
    # Some wait in the journal by the hundred (see turns): only those in work take somebody's place.
    open_tasks = open_tasks.exclude(state=TaskState.PENDING, resource__in=PATIENT)
    busy = dict(open_tasks.values_list("source_id").annotate(number=Count("pk")))
    limits = Source.objects.filter(is_enabled=True).values_list("pk", "max_concurrency", "burst_allowance")
    return {
        source_id: min(burst, min(limit, (at_most or {}).get(source_id, limit)) - busy.get(source_id, 0))
        for source_id, limit, burst in limits
    }
