"""The progress of a job: expected, done and missing matches with the reasons. Reads only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Count

from scraping.models import OPEN_STATES, JobItem, JobKind, ScrapeJob, ScrapeTask, Standing
from scraping.models.job import HAS_ALL, IS_OPEN, standing_of
from scraping.payloads import Resource


class JobState(StrEnum):
    DISCOVERING = "discovering"  # the list of its matches is being read
    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"  # ended, and something is missing
    FAILED = "failed"  # the list of its matches could not be read


@dataclass(frozen=True)
class JobView:
    job: ScrapeJob
    state: JobState
    counts: Counter[Standing]
    problem: str = ""  # why its expected matches are unknown
    items: Sequence[JobItem] = ()

    @property
    def expected(self) -> int:
        return self.counts.total()

    @property
    def has_all(self) -> int:
        return sum(self.counts[one] for one in HAS_ALL)

    @property
    def percent(self) -> float:
        return round(100 * self.has_all / self.expected, 1) if self.expected else 0.0

    @property
    def missing(self) -> list[JobItem]:
        return [item for item in self.items if item.standing not in HAS_ALL]


def view(job: ScrapeJob) -> JobView:
    """A job with all its matches."""
    rows = JobItem.objects.filter(job=job).select_related("ref__source", "ref__match", "task")
    rows = rows.defer(
        "ref__payload", "ref__match__payload", "ref__match__provenance", "ref__source__metadata", "task__error"
    )
    items = list(rows.order_by("pk"))
    return _view(job, Counter(item.standing for item in items), _list_tasks([job.pk]).get(job.pk), items)


def views(jobs: Iterable[ScrapeJob]) -> list[JobView]:
    """Many jobs without their matches, in two queries."""
    found = list(jobs)
    ids = [job.pk for job in found]
    counts: defaultdict[int, Counter[Standing]] = defaultdict(Counter)
    rows = JobItem.objects.filter(job_id__in=ids).order_by()
    grouped = rows.values_list(
        "job_id", "skipped_because", "outcome", "task__state", "task__attempt", "task__error_class"
    ).annotate(number=Count("pk"))
    for job_id, skipped, outcome, state, attempt, error_class, number in grouped:
        standing = standing_of(bool(skipped), state or outcome, has_failed=bool(attempt and error_class))
        counts[job_id][standing] += number
    tasks = _list_tasks(ids)
    return [_view(job, counts[job.pk], tasks.get(job.pk), ()) for job in found]


def _view(job: ScrapeJob, counts: Counter[Standing], list_task: ScrapeTask | None, items: Sequence[JobItem]) -> JobView:
    if job.discovered_at is None and job.kind != JobKind.WATCH:
        is_open = list_task is None or list_task.state in OPEN_STATES
        state = JobState.DISCOVERING if is_open else JobState.FAILED
        return JobView(job, state, counts, problem=list_task.reason if list_task else "")
    if job.kind == JobKind.WATCH or any(counts[one] for one in IS_OPEN):
        return JobView(job, JobState.RUNNING, counts, items=items)
    is_complete = sum(counts[one] for one in HAS_ALL) == counts.total()
    return JobView(job, JobState.COMPLETE if is_complete else JobState.INCOMPLETE, counts, items=items)


def _list_tasks(job_ids: Sequence[int]) -> dict[int, ScrapeTask]:
    """Returns the task that reads the list of a round's matches, by job."""
    tasks = ScrapeTask.objects.filter(job_id__in=job_ids, resource=Resource.ROUND).order_by("pk").defer("error")
    return {task.job_id: task for task in tasks if task.job_id is not None}
