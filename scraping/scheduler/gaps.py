"""Holes in a match's list of events (a missed over, an outage) get a task that fills them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scraping import journal
from scraping.models import OPEN_STATES, BreakerState, MatchRef, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.scheduler.conditions import has_open_breaker
from scraping.scheduler.due import POLLED

# A task that did not fill the gap is not followed by another one at once, and one that failed even later.
AGAIN_SECONDS, AFTER_FAILURE_SECONDS = 5.0, 60.0
# A source may have numbered a ball that it never lists: what so many looks did not find is looked for less often.
MOST_LOOKS, LOOKS_WINDOW = 10, timedelta(minutes=10)


def _tenth_look(now: datetime) -> QuerySet[ScrapeTask]:
    """There is one where the ref's gap was looked at often enough for now."""
    looks = ScrapeTask.objects.filter(
        ref=OuterRef("pk"), resource=Resource.COMMENTARY, finished_at__gt=now - LOOKS_WINDOW
    )
    return looks.order_by("pk")[MOST_LOOKS - 1 :]


def open_gap_tasks(now: datetime) -> int:
    open_task = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.COMMENTARY).filter(
        Q(state__in=OPEN_STATES)
        | Q(finished_at__gt=now - timedelta(seconds=AGAIN_SECONDS))
        | (~Q(state=TaskState.SUCCESS) & Q(finished_at__gt=now - timedelta(seconds=AFTER_FAILURE_SECONDS)))
    )
    holed = (
        MatchRef.objects.filter(
            is_watched=True, events_through__lt=F("events_seen"), source__is_enabled=True, match__lifecycle__in=POLLED
        )
        .exclude(has_open_breaker(now))
        .exclude(source__breaker__state__in=(BreakerState.OPEN, BreakerState.HALF_OPEN))  # polls are its probes
        .exclude(Exists(open_task))
        .exclude(Exists(_tenth_look(now)))
        .select_related("match")[:100]
    )
    return journal.open_tasks(
        [journal.NewTask(ref.source_id, ref.pk, Resource.COMMENTARY, ref.match.priority, run_at=now) for ref in holed],
        now=now,
    )
