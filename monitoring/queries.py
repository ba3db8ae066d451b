"""What monitoring reads of the other apps' tables, in as few queries as it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from scraping.models import Match, MatchLifecycle, MatchRef, ScrapeError, Scraper, ScrapeTask, TaskState, Worker
from scraping.models.match import MatchQuerySet

WORKER_IS_SILENT_AFTER = timedelta(seconds=15)
MEGABYTE = 1024 * 1024
OF_SCRAPER = (
    "ref",
    "start_time",
    "last_update_time",
    "error_count",
    "total_errors",
    "total_updates",
    "last_latency_ms",
    "polling_interval",
    "worker_id",
)
OF_ITS_MATCH = ("ref__url", "ref__source_event_id", "ref__match__status", "ref__source__key")


def workers_at_work(now: datetime) -> list[Worker]:
    alive = Worker.objects.filter(stopped_at__isnull=True, heartbeat_at__gte=now - WORKER_IS_SILENT_AFTER)
    return list(alive.order_by("started_at"))


def active_scrapers() -> QuerySet[Scraper]:
    """With the few columns of their ref, match and source that health is about: this is read every second."""
    return (
        Scraper.objects.filter(stopped_at__isnull=True)
        .select_related("ref__match", "ref__source")
        .only(*OF_SCRAPER, *OF_ITS_MATCH)
        .order_by("ref_id")
    )


def matches_to_watch() -> MatchQuerySet:
    """Live, not paused, and at a source that is switched on: these must be fresh."""
    watched = MatchRef.objects.filter(match=OuterRef("pk"), is_watched=True, source__is_enabled=True)
    return Match.objects.live().filter(
        Exists(watched), lifecycle__in=(MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE)
    )


def live_ages(now: datetime) -> list[float]:
    """Seconds since each match to watch was last read; since it was found, when it was never read."""
    moments = matches_to_watch().values_list("last_scraper_update", "created_at")
    return [max(0.0, (now - (updated or created)).total_seconds()) for updated, created in moments]


def last_success_at() -> datetime | None:
    newest = ScrapeTask.objects.filter(state=TaskState.SUCCESS).order_by("-finished_at")
    return newest.values_list("finished_at", flat=True).first()


def updates_last_minute(now: datetime) -> int:
    return ScrapeTask.objects.filter(
        state=TaskState.SUCCESS, ref__isnull=False, finished_at__gt=now - timedelta(minutes=1)
    ).count()


@dataclass(frozen=True)
class ErrorCounts:
    last_minute: int
    last_hour: int


def error_counts(now: datetime) -> ErrorCounts:
    counted = ScrapeError.objects.filter(timestamp__gt=now - timedelta(hours=1)).aggregate(
        hour=Count("pk"), minute=Count("pk", filter=Q(timestamp__gt=now - timedelta(minutes=1)))
    )
    return ErrorCounts(last_minute=counted["minute"], last_hour=counted["hour"])


class Shares:
    """A worker's memory and processor time, divided among the scrapers it works for.

    One browser serves all of them, so nothing finer can be measured from outside.
    """

    def __init__(self, workers: Iterable[Worker], scrapers: Iterable[Scraper]) -> None:
        self._workers = {worker.worker_id: worker for worker in workers}
        self._served = Counter(scraper.worker_id for scraper in scrapers)

    def memory_bytes(self, scraper: Scraper) -> float:
        worker = self._workers.get(scraper.worker_id)
        return worker.memory_bytes / self._served[scraper.worker_id] if worker else 0.0

    def cpu_percent(self, scraper: Scraper) -> float:
        worker = self._workers.get(scraper.worker_id)
        return worker.cpu_percent / self._served[scraper.worker_id] if worker else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank: a value that really occurred. 0 for no values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * share // 1))
    return float(ordered[int(rank) - 1])
