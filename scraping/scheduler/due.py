"""Which matches are to be read now: due, not paused, breaker closed, source enabled and with room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from scraping import journal
from scraping.models import (
    OPEN_STATES,
    BreakerState,
    JobKind,
    MatchLifecycle,
    MatchRef,
    ScrapeJob,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import Resource
from scraping.scheduler.source_breakers import task_limits

POLLED = (MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE, MatchLifecycle.COMPLETED)
BATCH = 500


def open_due_tasks(now: datetime) -> int:
    """Write a task for each ref that is due; one open task a ref at most."""
    room = room_by_source(task_limits(now))
    # Sources without room are left out first: their refs would fill the batch and keep the others waiting.
    refs = list(due_refs(now).filter(source_id__in=[pk for pk, free in room.items() if free > 0])[:BATCH])
    if not refs:
        return 0
    jobs = dict(ScrapeJob.objects.filter(kind=JobKind.WATCH).values_list("source_id", "pk"))
    taken: Counter[int] = Counter()
    new = []
    for ref in refs:
        if taken[ref.source_id] < room.get(ref.source_id, 0):
            taken[ref.source_id] += 1
            new.append(_task(ref, jobs.get(ref.source_id), now))
    return journal.open_tasks(new, now=now)


def due_refs(now: datetime) -> QuerySet[MatchRef]:
    open_task = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SCORECARD, state__in=OPEN_STATES)
    return (
        MatchRef.objects.filter(
            is_watched=True, next_poll_at__lte=now, source__is_enabled=True, match__lifecycle__in=POLLED
        )
        .exclude(has_open_breaker(now))
        .exclude(Exists(open_task))
        .select_related("match")
        .order_by("match__priority", "next_poll_at")
    )


def has_open_breaker(now: datetime, *, of: str = "") -> Q:
    """The condition on refs; `of` is the way to them from another table ("ref__")."""
    return Q(**{f"{of}breaker__state": BreakerState.OPEN, f"{of}breaker__open_until__gt": now})


def room_by_source(at_most: Mapping[int, int] | None = None) -> dict[int, int]:
    """How many more tasks each source may have open. Looks at open tasks only, however many there were before.

    `at_most`: what the breakers of sources say, where they are not closed.
    """
    open_tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES).order_by()
    # A job's matches wait in the journal by the hundred (see turns): only those in work take somebody's place.
    open_tasks = open_tasks.exclude(state=TaskState.PENDING, resource=Resource.FULL)
    busy = dict(open_tasks.values_list("source_id").annotate(number=Count("pk")))
    limits = Source.objects.filter(is_enabled=True).values_list("pk", "max_concurrency")
    return {
        source_id: min(limit, (at_most or {}).get(source_id, limit)) - busy.get(source_id, 0)
        for source_id, limit in limits
    }


def _task(ref: MatchRef, job_id: int | None, now: datetime) -> journal.NewTask:
    return journal.NewTask(ref.source_id, ref.pk, Resource.SCORECARD, ref.match.priority, run_at=now, job_id=job_id)
