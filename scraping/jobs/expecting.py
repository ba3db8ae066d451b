"""What a job expects: written down once, in one transaction with the tasks, before the first of them runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from scraping import journal
from scraping.errors import PayloadRejected
from scraping.matches import discovery
from scraping.matches.endings import complete_refs
from scraping.models import JobItem, MatchRef, Priority, ScrapeJob, Source
from scraping.payloads import DiscoveredMatch, Resource
from victoryline.lib.crash import crash_point


def expect(job_id: int, found: Mapping[Source, Sequence[DiscoveredMatch]], *, now: datetime) -> int:
    """Register the matches, one item each, and a PENDING task for each that is not complete; how many tasks.

    Runs inside the caller's transaction. A job that knows what it expects already stays as it is.
    """
    job = ScrapeJob.objects.select_for_update().get(pk=job_id)
    if job.discovered_at is not None:
        return 0
    _refuse_a_short_list(job, sum(map(len, found.values())))
    refs = [ref for source, listed in found.items() for ref in discovery.refs_of(source, listed, now=now)]
    complete = complete_refs(refs)
    tasks = journal.open_or_share([_task(ref, job, now) for ref in refs if ref.pk not in complete], now=now)
    crash_point("job.tasks")
    JobItem.objects.bulk_create(
        JobItem(job=job, ref=ref, task_id=tasks.get(ref.pk), skipped_because=complete.get(ref.pk, "")) for ref in refs
    )
    crash_point("job.items")
    job.discovered_at = now
    job.finished_at = None if tasks else now
    job.save(update_fields=("discovered_at", "finished_at"))
    return len(tasks)


def _task(ref: MatchRef, job: ScrapeJob, now: datetime) -> journal.NewTask:
    # Behind every live poll, however many there are: a round can wait, a ball cannot.
    return journal.NewTask(ref.source_id, ref.pk, Resource.FULL, Priority.COMPLETED, run_at=now, job_id=job.pk)


def _refuse_a_short_list(job: ScrapeJob, number: int) -> None:
    """A list that came half, or empty, must not become what is expected."""
    wanted = job.parameters.get("matches")
    if not number:
        raise PayloadRejected(f"the source lists no match for {job.name}: nothing was started")
    if wanted is not None and number != wanted:
        raise PayloadRejected(f"{job.name} must have {wanted} matches and the source lists {number}: not believed")
