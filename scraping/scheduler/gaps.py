"""Holes in a match's list of events (a missed over, an outage) get a task that fills them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from scraping import journal
from scraping.models import OPEN_STATES, BreakerState, MatchRef, ScrapeTask, TaskState
from scraping.payloads import Resource
from scraping.scheduler.conditions import has_open_breaker
from scraping.scheduler.due import POLLED

# A task that did not fill the gap is not followed by another one at once, and one that failed even later.
AGAIN_SECONDS, AFTER_FAILURE_SECONDS = 5.0, 60.0
# A source may have numbered a ball that it never lists: what so many looks did not find is looked for less often.
MOST_LOOKS, LOOKS_WINDOW = 10, timedelta(minutes=10)
AT_ONCE = 100
PART_OF_PLACES = 3  # of a source's places no more than one in so many


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
        .select_related("match", "source")
        .order_by("match__priority", "match__importance", "pk")[:AT_ONCE]
    )
    return journal.open_tasks(
        [
            journal.NewTask(ref.source_id, ref.pk, Resource.COMMENTARY, ref.match.priority, run_at=now)
            for ref in _within_their_part(list(holed))
        ],
        now=now,
    )


def _within_their_part(holed: list[MatchRef]) -> list[MatchRef]:
    """After an outage every match has a gap: polls must not wait until all of them are filled."""
    if not holed:
        return []
    tasks = ScrapeTask.objects.filter(state__in=OPEN_STATES, resource=Resource.COMMENTARY).order_by()
    taken = Counter(dict(tasks.values_list("source_id").annotate(number=Count("pk"))))
    chosen = []
    for ref in holed:
        if taken[ref.source_id] < max(1, ref.source.max_concurrency // PART_OF_PLACES):
            taken[ref.source_id] += 1
            chosen.append(ref)
    return chosen
