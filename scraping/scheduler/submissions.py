"""Matches that something was sent in for get a task that writes it: one a match, in the order in which it came."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from scraping import journal
from scraping.jobs import submissions
from scraping.models import (
    OPEN_STATES,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScrapeTask,
    Submission,
    SubmissionState,
    TaskState,
)
from scraping.payloads import Resource

AT_ONCE = 200
# One that has killed its workers, or fails whatever is done, must not take the next worker along at once.
AFTER_DEATH = timedelta(minutes=5)


def open_submission_tasks(now: datetime) -> int:
    waiting = Submission.objects.filter(state=SubmissionState.ACCEPTED).order_by()
    if not waiting.exists():
        return 0
    return _open(MatchRef.objects.filter(pk__in=waiting.values("ref")), now)


def open_ending_tasks(now: datetime) -> int:
    """The last word on matches that their senders have forgotten; journaled like any other."""
    return _open(submissions.forgotten(now), now)


def _open(wanted: QuerySet[MatchRef], now: datetime) -> int:
    tasks = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SUBMISSION)
    busy = tasks.filter(Q(state__in=OPEN_STATES) | Q(state=TaskState.DEAD, finished_at__gt=now - AFTER_DEATH))
    refs = (
        wanted.filter(source__is_enabled=True)
        .exclude(match__lifecycle=MatchLifecycle.PAUSED)  # it waits until the pause ends, as everything about it does
        .exclude(Exists(busy))
        .order_by("pk")
    )
    new = [
        journal.NewTask(source_id, ref_id, Resource.SUBMISSION, Priority.LIVE, run_at=now)
        for ref_id, source_id in refs.values_list("pk", "source_id")[:AT_ONCE]
    ]
    return journal.open_tasks(new, now=now)
