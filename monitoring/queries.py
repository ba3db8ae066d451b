"""Queries over the other apps' tables that health, metrics, grade and watchdogs share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error
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
from victoryline.lib import availability, pg_wait

FAILURE_WINDOW = timedelta(minutes=10)
MEGABYTE = 1024 * 1024
_SCRAPER_COLUMNS = tuple(column.attname for column in Scraper._meta.concrete_fields)  # noqa: SLF001 - documented under this name
_MATCH_COLUMNS = ("ref__match_id", "ref__match__status", "ref__source__key", "ref__source_event_id", "ref__url")


class DatabaseAway(Exception):  # noqa: N818 - reads as a state at every `except`
    """The database does not answer; the message is the class of the driver's error."""


@contextmanager
def database_read() -> Iterator[None]:
    """Bounds the reads of its body in time; raises DatabaseAway if they fail, or at once if that is known already.

    `__cause__` is the driver's error, and None where no query was made.
    """
    if availability.database.is_away():
        raise DatabaseAway(availability.database.reason())
    try:
        with pg_wait.within(availability.READ_SECONDS):
            yield
    except Error as error:
        availability.database.report(error)
        raise DatabaseAway(type(error).__name__) from error


@dataclass(frozen=True, slots=True)
class WatchedScraper:
    """An active scraper, with those columns of its match that health needs."""

    scraper: Scraper
    match_id: int
    is_live: bool
    key: str  # the match's public key
    url: str


def workers_at_work(now: datetime) -> list[Worker]:
    return list(Worker.objects.at_work(now).order_by("started_at"))


def active_scrapers() -> list[WatchedScraper]:
    """Returns the active scrapers; read every second, so without row objects of reference, match and source."""
    active = Scraper.objects.filter(stopped_at__isnull=True).order_by("ref_id")
    split = len(_SCRAPER_COLUMNS)
    found = []
    for row in active.values_list(*_SCRAPER_COLUMNS, *_MATCH_COLUMNS):
        match_id, status, source, event, url = row[split:]
        scraper = Scraper.from_db(active.db, _SCRAPER_COLUMNS, row[:split])
        found.append(WatchedScraper(scraper, match_id, status == Status.LIVE, f"{source}_{event}", url))
    return found


def matches_to_watch() -> MatchQuerySet:
    """Returns matches that must be fresh: live, not paused, watched at an enabled source."""
    watched = MatchRef.objects.filter(match=OuterRef("pk"), is_watched=True, source__is_enabled=True)
    return Match.objects.live().filter(
        Exists(watched), lifecycle__in=(MatchLifecycle.DISCOVERED, MatchLifecycle.ACTIVE)
    )


def live_ages(now: datetime) -> list[float]:
    """Returns seconds since each match to watch was last read, or since its discovery if it never was."""
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
    """Returns the share of failures among the tasks that ended in the last ten minutes."""
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
    """Pending tasks by priority, the delay of the oldest due one, and executing tasks."""

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
    """Counts of live matches: to be kept fresh, paused, frozen, and silent by rung of the ladder."""

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


class ResourceShares:
    """Divides a worker's memory and CPU evenly among its scrapers.

    One browser serves all of them, so nothing finer can be measured.
    """

    def __init__(self, workers: Iterable[Worker], scrapers: Iterable[WatchedScraper]) -> None:
        self._workers = {worker.worker_id: worker for worker in workers}
        self._served = Counter(each.scraper.worker_id for each in scrapers)

    def memory_bytes(self, scraper: Scraper) -> float:
        worker = self._workers.get(scraper.worker_id)
        return worker.memory_bytes / self._served[scraper.worker_id] if worker else 0.0

    def cpu_percent(self, scraper: Scraper) -> float:
        worker = self._workers.get(scraper.worker_id)
        return worker.cpu_percent / self._served[scraper.worker_id] if worker else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the nearest-rank percentile, a value that really occurred; 0 for no values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * share // 1))
    return float(ordered[int(rank) - 1])
