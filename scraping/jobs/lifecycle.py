"""The life of a job: its expected matches are written, its tasks end, it is closed, a retry opens it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery

from scraping import journal
from scraping.errors import PayloadRejected, Transient
from scraping.journal import RetryOutcome, TaskSelection
from scraping.matches import discovery
from scraping.matches.endings import complete_refs
from scraping.models import (
    OPEN_STATES,
    ErrorGroup,
    JobItem,
    JobKind,
    MatchRef,
    Priority,
    ScrapeJob,
    ScrapeTask,
    Source,
    TaskState,
)
from scraping.payloads import DiscoveredMatch, Payload, Resource
from victoryline.lib.crash import crash_point

OF_JOBS = (Resource.FULL, Resource.ROUND)


class Refused(Exception):  # noqa: N818 - named by what it says
    """The request is invalid and nothing was written: `field` is the invalid part, `reasons` say what is wrong."""

    def __init__(self, field: str, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.field = field
        self.reasons: Sequence[str] = reasons


class KeyReused(Exception):  # noqa: N818
    """The idempotency key was used for another request. Nothing was written."""

    def __init__(self, job_id: int) -> None:
        super().__init__(
            f"This idempotency key was used before, for job {job_id}, which asks for something else. "
            "Nothing was started: send the same request again, or this one with a new key."
        )
        self.job_id = job_id


def expect(job_id: int, found: Mapping[Source, Sequence[DiscoveredMatch]], *, now: datetime) -> int:
    """Writes the expected matches, one item each, and a task for each that is not complete; returns how many tasks.

    Runs inside the caller's transaction, before the first task runs. A job that has its items already is left alone.
    """
    job = ScrapeJob.objects.select_for_update().get(pk=job_id)
    if job.discovered_at is not None:
        return 0
    number, wanted = sum(map(len, found.values())), job.parameters.get("matches")
    if not number:  # a list that is empty or too short must not become the expected matches
        raise PayloadRejected(f"the source lists no match for {job.name}: nothing was started")
    if wanted is not None and number != wanted:
        raise PayloadRejected(f"{job.name} must have {wanted} matches and the source lists {number}: refused")
    refs = [ref for source, listed in found.items() for ref in discovery.refs_of(source, listed, now=now)]
    complete = complete_refs(refs)
    new = [  # with the lowest priority: live polls come first
        journal.NewTask(ref.source_id, ref.pk, Resource.FULL, Priority.COMPLETED, run_at=now, job_id=job.pk)
        for ref in refs
        if ref.pk not in complete
    ]
    tasks = journal.open_or_share(new, now=now)
    crash_point("job.tasks")
    JobItem.objects.bulk_create(
        JobItem(job=job, ref=ref, task_id=tasks.get(ref.pk), skipped_because=complete.get(ref.pk, "")) for ref in refs
    )
    crash_point("job.items")
    job.discovered_at = now
    job.finished_at = None if tasks else now
    job.save(update_fields=("discovered_at", "finished_at"))
    return len(tasks)


def refuse_half(ref_id: int, payload: Payload) -> None:
    """Raises where a score that went back is not confirmed or events have gaps, in the transaction that writes it.

    A payload that a newer reading has overtaken is no failure: the state that is stored is newer.
    """
    ref = MatchRef.objects.only("captured_at", "events_through", "events_seen").get(pk=ref_id)
    if ref.captured_at is None or ref.captured_at < payload.captured_at:
        raise Transient("the score went back and was not confirmed: nothing was written", url=ref.url)
    if ref.has_gap:
        raise PayloadRejected(
            f"the source's list of events has a gap after number {ref.events_through} of {ref.events_seen}: "
            "nothing was written",
            url=ref.url,
        )


def close_finished(*, now: datetime) -> list[ScrapeJob]:
    """Reopens jobs with retried tasks, keeps the outcomes of ended ones, closes jobs without an open task."""
    reopen(ScrapeTask.objects.filter(resource__in=OF_JOBS, state__in=OPEN_STATES).values_list("pk", flat=True))
    # Open jobs without an open task: all their items have ended, or the list of the round failed.
    items = JobItem.objects.filter(job=OuterRef("pk"), task__state__in=OPEN_STATES)
    lists = ScrapeTask.objects.filter(job=OuterRef("pk"), resource=Resource.ROUND)
    jobs = ScrapeJob.objects.filter(finished_at__isnull=True).exclude(kind=JobKind.WATCH)
    busy = Exists(items) | Exists(lists.filter(state__in=OPEN_STATES))
    idle = list(jobs.exclude(busy).filter(Q(discovered_at__isnull=False) | Exists(lists)))
    # Outcomes are kept before the jobs are closed: a closed job is not checked again.
    ended = JobItem.objects.filter(job__finished_at__isnull=True, task__isnull=False)
    changed = ended.exclude(task__state__in=OPEN_STATES).exclude(outcome=F("task__state"))
    ids = list(changed.values_list("pk", flat=True))
    if ids:
        state = ScrapeTask.objects.filter(pk=OuterRef("task_id")).values("state")[:1]
        JobItem.objects.filter(pk__in=ids).update(outcome=Subquery(state))
    if idle:
        ScrapeJob.objects.filter(pk__in=[job.pk for job in idle]).update(finished_at=now)
    return idle


def reopen(task_ids: Iterable[int]) -> int:
    ids = list(task_ids)
    jobs = Q(items__task_id__in=ids) | Q(tasks__in=ids, tasks__resource=Resource.ROUND)
    found = ScrapeJob.objects.filter(jobs, finished_at__isnull=False).values_list("pk", flat=True) if ids else ()
    return ScrapeJob.objects.filter(pk__in=list(found)).update(finished_at=None) if found else 0


def discard_superseded(now: datetime) -> int:
    """Scheduler step: ends dead letters whose work was done since; the match of a job is there then."""
    with transaction.atomic():
        ids = journal.discard_superseded(now=now)
        JobItem.objects.filter(task__in=ids).update(task=None, outcome=TaskState.SUCCESS)
    return len(ids)


def retry_failed(
    which: TaskSelection, *, actor: str, now: datetime, reason: str = "", is_dry_run: bool = False
) -> RetryOutcome:
    """Retries failed and dead tasks by job, source, error class or fingerprint, and reopens their jobs.

    Raises Refused where the selection names something that does not exist.
    """
    _refuse_unknown(which)
    with transaction.atomic():
        outcome = journal.retry_matching(which, actor=actor, now=now, reason=reason, is_dry_run=is_dry_run)
        if not is_dry_run:
            reopen(outcome.retried)
    return outcome


def _refuse_unknown(which: TaskSelection) -> None:
    """A misspelled name must not seem to be a job without failures."""
    if not which:
        raise Refused("body", "no filter: give at least one of job, source, error_class, fingerprint")
    if which.job_id is not None and not ScrapeJob.objects.filter(pk=which.job_id).exists():
        raise Refused("job", f"there is no job {which.job_id}")
    if which.source_key and not Source.objects.filter(key=which.source_key).exists():
        known = ", ".join(Source.objects.values_list("key", flat=True))
        raise Refused("source", f"there is no source {which.source_key!r}; there are: {known or 'none'}")
    if which.fingerprint and not ErrorGroup.objects.filter(fingerprint=which.fingerprint).exists():
        raise Refused("fingerprint", "no group of errors has this fingerprint; the admin lists them")
