"""What monitoring reads of the other apps' tables, in as few queries as it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Exists, Min, OuterRef, Q

from scraping.models import (
    Match,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScrapeError,
    Scraper,
    ScrapeTask,
    TaskState,
    Worker,
)
from scraping.models.match import MatchQuerySet
from scraping.payloads import Status
from scraping.policies.ladder import Rung

FAILURE_WINDOW = timedelta(minutes=10)
MEGABYTE = 1024 * 1024
_COLUMNS = tuple(column.attname for column in Scraper._meta.concrete_fields)  # noqa: SLF001 - documented under this name
_OF_ITS_MATCH = ("ref__match_id", "ref__match__status", "ref__source__key", "ref__source_event_id", "ref__url")


@dataclass(frozen=True, slots=True)
class Watch:
    """A scraper at work, with the little of its match that health is about."""

    scraper: Scraper
    match_id: int
    is_live: bool
    key: str  # the match's public name
    url: str


def workers_at_work(now: datetime) -> list[Worker]:
    return list(Worker.objects.at_work(now).order_by("started_at"))


def active_watches() -> list[Watch]:
    """Read every second, so without a row object for each reference, match and source."""
    active = Scraper.objects.filter(stopped_at__isnull=True).order_by("ref_id")
    split = len(_COLUMNS)
    found = []
    for row in active.values_list(*_COLUMNS, *_OF_ITS_MATCH):
        match_id, status, source, event, url = row[split:]
        scraper = Scraper.from_db(active.db, _COLUMNS, row[:split])
        found.append(Watch(scraper, match_id, status == Status.LIVE, f"{source}_{event}", url))
    return found


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


def failure_ratio(now: datetime) -> float:
    """Of the tasks that ended in the last ten minutes, those that ended in failure."""
    ended = ScrapeTask.objects.filter(
        state__in=(TaskState.SUCCESS, TaskState.FAILED, TaskState.DEAD), finished_at__gt=now - FAILURE_WINDOW
    )
    counted = ended.aggregate(total=Count("pk"), failed=Count("pk", filter=~Q(state=TaskState.SUCCESS)))
    return float(counted["failed"] / counted["total"]) if counted["total"] else 0.0


@dataclass(frozen=True)
class ErrorCounts:
    last_minute: int
    last_hour: int


def error_counts(now: datetime) -> ErrorCounts:
    counted = ScrapeError.objects.filter(timestamp__gt=now - timedelta(hours=1)).aggregate(
        hour=Count("pk"), minute=Count("pk", filter=Q(timestamp__gt=now - timedelta(minutes=1)))
    )
    return ErrorCounts(last_minute=counted["minute"], last_hour=counted["hour"])


@dataclass(frozen=True)
class Queue:
    """Tasks that wait, by priority; how late the oldest due one is; tasks at work."""

    depth: dict[str, int]
    oldest_age_seconds: float
    executing: int

    @property
    def waiting(self) -> int:
        return sum(self.depth.values())


def queue(now: datetime) -> Queue:
    is_waiting = Q(state=TaskState.PENDING)
    counted = ScrapeTask.objects.filter(state__in=(TaskState.PENDING, TaskState.EXECUTING)).aggregate(
        executing=Count("pk", filter=Q(state=TaskState.EXECUTING)),
        oldest=Min("run_at", filter=is_waiting & Q(run_at__lte=now)),
        **{priority.name: Count("pk", filter=is_waiting & Q(priority=priority)) for priority in Priority},
    )
    age = (now - counted["oldest"]).total_seconds() if counted["oldest"] else 0.0
    return Queue({each.label.lower(): counted[each.name] for each in Priority}, age, counted["executing"])


@dataclass(frozen=True)
class LiveCounts:
    """Live matches: how many must be fresh, are paused, are silent (by rung of the ladder), are known to be frozen."""

    to_watch: int
    paused: int
    frozen: int
    silent: dict[str, int]


def live_counts() -> LiveCounts:
    rungs = [rung for rung in Rung if rung is not Rung.GROUND]
    counted = Match.objects.live().aggregate(
        to_watch=Count("pk", filter=Q(pk__in=matches_to_watch().values("pk"))),
        paused=Count("pk", filter=Q(lifecycle=MatchLifecycle.PAUSED)),
        frozen=Count("pk", filter=Q(frozen_at__isnull=False)),
        **{rung.name: Count("pk", filter=Q(silence_rung=rung)) for rung in rungs},
    )
    silent = {rung.name.lower(): counted[rung.name] for rung in rungs}
    return LiveCounts(counted["to_watch"], counted["paused"], counted["frozen"], silent)


class Shares:
    """A worker's memory and processor time, divided among the scrapers it works for.

    One browser serves all of them, so nothing finer can be measured from outside.
    """

    def __init__(self, workers: Iterable[Worker], watches: Iterable[Watch]) -> None:
        self._workers = {worker.worker_id: worker for worker in workers}
        self._served = Counter(watch.scraper.worker_id for watch in watches)

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
