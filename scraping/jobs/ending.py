"""How jobs end: when the last task of theirs has, whatever became of it. A retry opens them again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from scraping.models import OPEN_STATES, JobItem, JobKind, ScrapeJob, ScrapeTask, TaskState
from scraping.payloads import Resource

OF_JOBS = (Resource.FULL, Resource.ROUND)


def keep_outcome(task_id: int, state: TaskState) -> int:
    """Write a task's end on the items that wait for it, in its transaction: retention takes the task some day."""
    return JobItem.objects.filter(task_id=task_id).update(outcome=state)


def close_finished(*, now: datetime) -> list[ScrapeJob]:
    """Reopen jobs that somebody retried, keep the outcome of what has ended, close jobs that have nothing open."""
    reopen(ScrapeTask.objects.filter(resource__in=OF_JOBS, state__in=OPEN_STATES).values_list("pk", flat=True))
    idle = list(_idle())
    _keep_outcomes()  # before they are closed: a closed job is not looked at again
    if idle:
        ScrapeJob.objects.filter(pk__in=[job.pk for job in idle]).update(finished_at=now)
    return idle


def reopen(task_ids: Iterable[int]) -> int:
    """These tasks are open again: so are their jobs."""
    ids = list(task_ids)
    jobs = Q(items__task_id__in=ids) | Q(tasks__in=ids, tasks__resource=Resource.ROUND)
    found = ScrapeJob.objects.filter(jobs, finished_at__isnull=False).values_list("pk", flat=True) if ids else ()
    return ScrapeJob.objects.filter(pk__in=list(found)).update(finished_at=None) if found else 0


def _idle() -> QuerySet[ScrapeJob]:
    """Open jobs without an open task: all they expect has ended, or the list of their round could not be read."""
    items = JobItem.objects.filter(job=OuterRef("pk"), task__state__in=OPEN_STATES)
    looking = ScrapeTask.objects.filter(job=OuterRef("pk"), resource=Resource.ROUND)
    jobs = ScrapeJob.objects.filter(finished_at__isnull=True).exclude(kind=JobKind.WATCH)
    busy = Exists(items) | Exists(looking.filter(state__in=OPEN_STATES))
    return jobs.exclude(busy).filter(Q(discovered_at__isnull=False) | Exists(looking))


def _keep_outcomes() -> int:
    ended = JobItem.objects.filter(job__finished_at__isnull=True, task__isnull=False)
    changed = ended.exclude(task__state__in=OPEN_STATES).exclude(outcome=F("task__state"))
    ids = list(changed.values_list("pk", flat=True))
    state = ScrapeTask.objects.filter(pk=OuterRef("task_id")).values("state")[:1]
    return JobItem.objects.filter(pk__in=ids).update(outcome=Subquery(state)) if ids else 0
