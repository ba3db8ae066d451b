"""Opens the tasks that are not polls: lists of matches, gaps in the events, line-ups, submissions.

Each of these steps finds what is due, leaves out what has an open task or has just failed, and writes the rest to the
journal; `hint` passes it on to the workers.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from scraping import journal
from scraping.configuration import policies
from scraping.jobs import submissions
from scraping.models import (
    OPEN_STATES,
    POLLED_LIFECYCLES,
    BreakerState,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScrapeTask,
    Source,
    Submission,
    SubmissionState,
    TaskState,
)
from scraping.models.source import PUSHED
from scraping.payloads import Resource, Status
from scraping.policies.lineup_schedule import FINAL_READ_BEFORE_START, LINEUP_WINDOW
from scraping.scheduler.limits import has_open_breaker
from scraping.sources import ADAPTERS

AT_ONCE = 100
# A task that did not fill its gap is not followed by another one at once, and one that failed even later.
GAP_AGAIN, GAP_AFTER_FAILURE = timedelta(seconds=5), timedelta(seconds=60)
# A source may have numbered a ball that it never lists, or list half for a while: then one task a minute.
GAP_TASKS_AT_ONCE, GAP_WINDOW, GAP_LATER = 5, timedelta(minutes=10), timedelta(seconds=60)
GAP_SHARE = 3  # gaps get at most one in so many of a source's places
LINEUPS_AFTER_FAILURE = timedelta(minutes=5)
SUBMISSIONS_AT_ONCE = 200
# A submission that has killed its workers, or fails every time, must not take the next worker along at once.
SUBMISSION_AFTER_DEATH = timedelta(minutes=5)
NOT_CLOSED = (BreakerState.OPEN, BreakerState.HALF_OPEN)  # then polls are the source's probes


def open_discovery_tasks(now: datetime) -> int:
    """Opens a task for each source whose list of matches was not read for a while."""
    since = now - timedelta(seconds=policies.current().discovery_interval_seconds)
    recent = ScrapeTask.objects.filter(
        source=OuterRef("pk"), ref__isnull=True, resource=Resource.DISCOVERY, created_at__gt=since
    )
    due = Source.objects.filter(is_enabled=True).exclude(last_discovery_at__gt=since).exclude(Exists(recent))
    due = due.exclude(breaker__state=BreakerState.OPEN).exclude(key=PUSHED)
    return journal.open_tasks(
        [journal.NewTask(source.pk, None, Resource.DISCOVERY, Priority.IMMINENT, run_at=now) for source in due], now=now
    )


def open_gap_tasks(now: datetime) -> int:
    """Opens a task for each match whose list of events has a gap: a missed over, an outage."""
    tasks = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.COMMENTARY)
    open_or_recent = tasks.filter(
        Q(state__in=OPEN_STATES)
        | Q(finished_at__gt=now - GAP_AGAIN)
        | (~Q(state=TaskState.SUCCESS) & Q(finished_at__gt=now - GAP_AFTER_FAILURE))
    )
    many = tasks.filter(finished_at__gt=now - GAP_WINDOW).order_by("pk")[GAP_TASKS_AT_ONCE - 1 :]
    last_minute = tasks.filter(finished_at__gt=now - GAP_LATER)
    refs = (
        MatchRef.objects.filter(
            is_watched=True,
            events_through__lt=F("events_seen"),
            source__is_enabled=True,
            match__lifecycle__in=POLLED_LIFECYCLES,
        )
        .exclude(has_open_breaker(now))
        .exclude(source__breaker__state__in=NOT_CLOSED)
        .exclude(Exists(open_or_recent))
        .exclude(Exists(many) & Exists(last_minute))
        .select_related("match", "source")
        .order_by("match__priority", "match__importance", "pk")[:AT_ONCE]
    )
    # After an outage every match has a gap: polls must not wait until all of them are filled.
    open_tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES, resource=Resource.COMMENTARY).order_by()
    taken = Counter(dict(open_tasks.values_list("source_id").annotate(number=Count("pk"))))
    chosen = []
    for ref in refs:
        if taken[ref.source_id] < max(1, ref.source.max_concurrency // GAP_SHARE):
            taken[ref.source_id] += 1
            chosen.append(ref)
    return journal.open_tasks(
        [journal.NewTask(ref.source_id, ref.pk, Resource.COMMENTARY, ref.match.priority, run_at=now) for ref in chosen],
        now=now,
    )


def open_lineup_tasks(now: datetime) -> int:
    """Opens a task for matches that start soon, the more often the closer, and once after their end."""
    sources = [
        source.pk
        for source in Source.objects.filter(is_enabled=True)
        if (adapter := ADAPTERS.get(source.adapter_key)) is not None and adapter.lineup_schema
    ]
    start = F("match__start_time")
    is_soon = Q(match__status=Status.UPCOMING, match__start_time__gt=now, match__start_time__lte=now + LINEUP_WINDOW)
    # A final read longer than this before the start was made for an earlier start time.
    is_moved_away = Q(lineups_at=None, lineups_read_at__lt=start - FINAL_READ_BEFORE_START - timedelta(minutes=1))
    is_moved_closer = Q(lineups_at__gte=start)
    is_over = Q(match__status=Status.COMPLETED, match__completed_at__isnull=False)
    never_read = Q(lineups_read_at=None)
    tasks = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.LINEUPS)
    open_or_failed = tasks.filter(
        Q(state__in=OPEN_STATES) | (Q(finished_at__gt=now - LINEUPS_AFTER_FAILURE) & ~Q(state=TaskState.SUCCESS))
    )
    refs = (
        MatchRef.objects.filter(
            (is_soon & (never_read | Q(lineups_at__lte=now) | is_moved_away | is_moved_closer))
            | (is_over & (never_read | Q(lineups_read_at__lt=F("match__completed_at")))),
            source__in=sources,
            is_watched=True,
            gone_at=None,
            match__lifecycle__in=POLLED_LIFECYCLES,
        )
        .exclude(has_open_breaker(now))
        .exclude(source__breaker__state__in=NOT_CLOSED)
        .exclude(Exists(open_or_failed))
        .order_by("match__start_time")
    )
    return journal.open_tasks(
        [
            journal.NewTask(
                *(source_id, ref_id, Resource.LINEUPS),
                Priority.IMMINENT if status == Status.UPCOMING else Priority.COMPLETED,
                run_at=now,
            )
            for ref_id, source_id, status in refs.values_list("pk", "source_id", "match__status")[:AT_ONCE]
        ],
        now=now,
    )


def open_submission_tasks(now: datetime) -> int:
    """Opens a task for each match with accepted submissions: one a match, which writes them in their order."""
    waiting = Submission.objects.filter(state=SubmissionState.ACCEPTED).order_by()
    if not waiting.exists():
        return 0
    return _open_for_submissions(MatchRef.objects.filter(pk__in=waiting.values("ref")), now)


def open_final_submission_tasks(now: datetime) -> int:
    """Opens a task that ends each submitted match for which nothing has been sent for long."""
    return _open_for_submissions(submissions.forgotten(now), now)


def _open_for_submissions(wanted: QuerySet[MatchRef], now: datetime) -> int:
    tasks = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.SUBMISSION)
    is_just_dead = Q(state=TaskState.DEAD, finished_at__gt=now - SUBMISSION_AFTER_DEATH)
    refs = (
        wanted.filter(source__is_enabled=True)
        .exclude(match__lifecycle=MatchLifecycle.PAUSED)
        .exclude(Exists(tasks.filter(Q(state__in=OPEN_STATES) | is_just_dead)))
        .order_by("pk")
    )
    new = [
        journal.NewTask(source_id, ref_id, Resource.SUBMISSION, Priority.LIVE, run_at=now)
        for ref_id, source_id in refs.values_list("pk", "source_id")[:SUBMISSIONS_AT_ONCE]
    ]
    return journal.open_tasks(new, now=now)
