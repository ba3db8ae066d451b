"""The progress of a job: expected, done and missing matches with the reasons, as objects and as JSON. Reads only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Count

from scraping.models import OPEN_STATES, JobItem, JobKind, MatchLifecycle, ScrapeJob, ScrapeTask, TaskState
from scraping.payloads import Resource
from victoryline.lib.times import as_utc_iso


class Standing(StrEnum):  # its name is part of the API schema
    """The state of one match of a job."""

    DONE = "done"  # read as a whole
    SKIPPED = "skipped"  # was complete before the job began
    PENDING = "pending"
    EXECUTING = "executing"
    FAILED = "failed"  # the last attempt failed, another one is planned
    DEAD = "dead"
    GIVEN_UP = "given_up"  # the source no longer has it, or it was cancelled


class JobState(StrEnum):
    DISCOVERING = "discovering"  # the list of its matches is being read
    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"  # ended, and something is missing
    FAILED = "failed"  # the list of its matches could not be read


HAS_ALL = (Standing.DONE, Standing.SKIPPED)
IS_OPEN = (Standing.PENDING, Standing.EXECUTING, Standing.FAILED)
STANDINGS = {
    TaskState.SUCCESS: Standing.DONE,
    TaskState.EXECUTING: Standing.EXECUTING,
    TaskState.FAILED: Standing.FAILED,
    TaskState.DEAD: Standing.DEAD,
    TaskState.SKIPPED: Standing.GIVEN_UP,
    TaskState.CANCELLED: Standing.GIVEN_UP,
}


@dataclass(frozen=True)
class ItemView:
    """One match of a job."""

    key: str
    title: str
    url: str
    match_id: int
    task_id: int | None
    standing: Standing
    task_state: str
    reason: str
    attempts: int
    next_attempt_at: datetime | None


@dataclass(frozen=True)
class JobView:
    job: ScrapeJob
    state: JobState
    counts: Counter[Standing]
    problem: str = ""  # why its expected matches are unknown
    items: Sequence[ItemView] = ()

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
    def missing(self) -> list[ItemView]:
        return [item for item in self.items if item.standing not in HAS_ALL]


def view(job: ScrapeJob) -> JobView:
    """A job with all its matches."""
    rows = JobItem.objects.filter(job=job).select_related("ref__source", "ref__match", "task")
    rows = rows.defer(
        "ref__payload", "ref__match__payload", "ref__match__provenance", "ref__source__metadata", "task__error"
    )
    seen = [_item(item) for item in rows.order_by("pk")]
    return _view(job, Counter(item.standing for item in seen), _list_tasks([job.pk]).get(job.pk), seen)


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
        standing = _standing(bool(skipped), state or outcome, has_failed=bool(attempt and error_class))
        counts[job_id][standing] += number
    tasks = _list_tasks(ids)
    return [_view(job, counts[job.pk], tasks.get(job.pk), ()) for job in found]


def _view(
    job: ScrapeJob, counts: Counter[Standing], list_task: ScrapeTask | None, items: Sequence[ItemView]
) -> JobView:
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


def _item(item: JobItem) -> ItemView:
    ref, task = item.ref, item.task
    state = task.state if task else item.outcome
    has_failed = task is not None and task.attempt > 0 and bool(task.error_class)
    standing = _standing(bool(item.skipped_because), state, has_failed=has_failed)
    is_waiting = task is not None and task.state == TaskState.PENDING
    return ItemView(
        key=ref.key,
        title=str(ref.match),
        url=ref.url,
        match_id=ref.match_id,
        task_id=item.task_id,
        standing=standing,
        task_state=state,
        reason=item.skipped_because or _reason(item, standing),
        attempts=task.attempt if task else 0,
        next_attempt_at=task.run_at if task is not None and is_waiting and task.attempt else None,
    )


def _standing(is_skipped: bool, state: str, *, has_failed: bool) -> Standing:
    if is_skipped:
        return Standing.SKIPPED
    if not state:  # neither a task nor an outcome: unknown whether it was read
        return Standing.GIVEN_UP
    if state == TaskState.PENDING:
        return Standing.FAILED if has_failed else Standing.PENDING
    return STANDINGS[TaskState(state)]


def _reason(item: JobItem, standing: Standing) -> str:
    """Returns why a match is not done yet; empty where there is no reason to give."""
    if standing in HAS_ALL:
        return ""
    if standing in IS_OPEN and item.ref.match.lifecycle == MatchLifecycle.PAUSED:
        return f"the match is paused until {item.ref.match.pause_until:%H:%M:%S} UTC: {item.ref.match.pause_reason}"
    if standing in IS_OPEN and not item.ref.source.is_enabled:
        return f"{item.ref.source.name} is switched off; the task waits until it is on again"
    if item.task is None:
        return "its task was removed by retention; start the match again by its address"
    return item.task.reason if standing != Standing.PENDING else ""


def summary(view: JobView) -> dict[str, Any]:
    job = view.job
    return {
        "id": job.pk,
        "kind": job.kind,
        "name": job.name,
        "source": job.source.key if job.source else None,
        "state": view.state.value,
        "parameters": job.parameters,
        "requested_by": job.requested_by,
        "started_at": as_utc_iso(job.created_at),
        "discovered_at": _time(job.discovered_at),
        "finished_at": _time(job.finished_at),
        "expected": view.expected,
        **{standing.value: view.counts[standing] for standing in Standing},
        "percent": view.percent,
        "problem": view.problem,
    }


def document(view: JobView) -> dict[str, Any]:
    missing = [
        {
            "key": item.key,
            "title": item.title,
            "url": item.url,
            "state": item.standing.value,
            "reason": item.reason,
            "attempts": item.attempts,
            "next_attempt_at": _time(item.next_attempt_at),
            "task_id": item.task_id,
        }
        for item in view.missing
    ]
    return {**summary(view), "missing": missing}


def _time(moment: datetime | None) -> str | None:
    return as_utc_iso(moment) if moment else None
