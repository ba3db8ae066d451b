"""Who plays: matches that start soon are looked at by themselves, the closer the oftener, and once after their end."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from scraping import journal
from scraping.models import OPEN_STATES, BreakerState, MatchRef, Priority, ScrapeTask, Source, TaskState
from scraping.payloads import Resource, Status
from scraping.policies.lineup_schedule import FINAL_READ_BEFORE_START
from scraping.scheduler.conditions import has_open_breaker
from scraping.scheduler.due import POLLED
from scraping.sources import ADAPTERS
from scraping.sources.base import HasLineups

AT_ONCE = 100
AFTER_FAILURE = timedelta(minutes=5)
# A final read longer than this before the start was made for an earlier start time.
MOVED = FINAL_READ_BEFORE_START + timedelta(minutes=1)


def open_lineup_tasks(now: datetime) -> int:
    refs = _due(now).select_related("match")[:AT_ONCE]
    return journal.open_tasks(
        [
            journal.NewTask(
                ref.source_id,
                ref.pk,
                Resource.LINEUPS,
                Priority.IMMINENT if ref.match.status == Status.UPCOMING else Priority.COMPLETED,
                run_at=now,
            )
            for ref in refs
        ],
        now=now,
    )


def _due(now: datetime) -> QuerySet[MatchRef]:
    tasks = ScrapeTask.objects.filter(ref=OuterRef("pk"), resource=Resource.LINEUPS)
    busy = tasks.filter(
        Q(state__in=OPEN_STATES) | (Q(finished_at__gt=now - AFTER_FAILURE) & ~Q(state=TaskState.SUCCESS))
    )
    refs = MatchRef.objects.filter(source__in=_sources(), is_watched=True, gone_at=None, match__lifecycle__in=POLLED)
    return (
        refs.filter(_before_the_start(now) | _after_the_end())
        .exclude(has_open_breaker(now))
        .exclude(source__breaker__state__in=(BreakerState.OPEN, BreakerState.HALF_OPEN))
        .exclude(Exists(busy))
        .order_by("match__start_time")
    )


def _sources() -> list[int]:
    """Those whose adapter can tell who plays."""
    return [
        source.pk
        for source in Source.objects.filter(is_enabled=True)
        if isinstance(ADAPTERS.get(source.adapter_key), HasLineups)
    ]


def _before_the_start(now: datetime) -> Q:
    """Never looked at, due again, or looked at for a start that has been moved since."""
    until = now + timedelta(hours=settings.CONFIG.lineup_window_hours)
    is_soon = Q(match__status=Status.UPCOMING, match__start_time__gt=now, match__start_time__lte=until)
    is_moved_away = Q(lineups_at=None, lineups_read_at__lt=F("match__start_time") - MOVED)
    is_moved_closer = Q(lineups_at__gte=F("match__start_time"))
    return is_soon & (Q(lineups_read_at=None) | Q(lineups_at__lte=now) | is_moved_away | is_moved_closer)


def _after_the_end() -> Q:
    is_over = Q(match__status=Status.COMPLETED, match__completed_at__isnull=False)
    return is_over & (Q(lineups_read_at=None) | Q(lineups_read_at__lt=F("match__completed_at")))
