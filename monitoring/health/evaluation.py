"""The one evaluation of the system's state: /health, /status, /metrics, the grade and the admin's first page read it.

Every figure is read from the database when it is first used and kept for the life of the evaluation, so documents that
are built from one evaluation agree with each other and no figure is read twice. The number of queries does not depend
on the number of scrapers.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from django.conf import settings
from django.db.models import Count, Min, Q

from monitoring import queries
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import open_keys
from monitoring.health import grading, match_cards
from monitoring.health.grading import Freshness, GradeState
from monitoring.health.status_rules import StatusResult, system_status
from monitoring.queries import SourceStats, source_stats
from scraping.models import (
    Breaker,
    BreakerState,
    HealthStatus,
    Match,
    MatchLifecycle,
    Priority,
    ScrapeError,
    Scraper,
    ScrapeTask,
    Snapshot,
    TaskState,
    Worker,
)
from scraping.payloads import Status
from scraping.policies.ladder import Rung
from scraping.stats import traffic

MINUTE = timedelta(minutes=1)
FAILURE_WINDOW = timedelta(minutes=10)
LATENCY_WINDOW = timedelta(minutes=5)
LATENCY_SAMPLES = 1000
ENDED_STATES = (TaskState.SUCCESS, TaskState.FAILED, TaskState.DEAD)
_SCRAPER_COLUMNS = tuple(column.attname for column in Scraper._meta.concrete_fields)  # noqa: SLF001 - documented under this name
_MATCH_COLUMNS = ("ref__match_id", "ref__match__status", "ref__source__key", "ref__source_event_id", "ref__url")


@dataclass(frozen=True, slots=True)
class WatchedScraper:
    """An active scraper, with those columns of its match that health needs.

    One browser serves all scrapers of a worker, so its memory and CPU are divided evenly among them.
    """

    scraper: Scraper
    match_id: int
    is_live: bool
    key: str  # the match's public key
    url: str
    memory_bytes: float
    cpu_percent: float


@dataclass(frozen=True)
class ErrorCounts:
    last_minute: int = 0
    last_hour: int = 0


@dataclass(frozen=True)
class Queue:
    """Pending tasks by priority, the delay of the oldest due one, and executing tasks."""

    depth: dict[str, int]
    oldest_age_seconds: float = 0.0
    executing: int = 0

    @property
    def waiting(self) -> int:
        return sum(self.depth.values())


@dataclass(frozen=True)
class LiveCounts:
    """Counts of live matches: to be kept fresh, paused, frozen, and silent by rung of the ladder."""

    silent: dict[str, int]
    to_watch: int = 0
    paused: int = 0
    frozen: int = 0


class Evaluation:
    """The state of the system at `now`. Reads lazily; raises the driver's error while the database is away."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @classmethod
    def empty(cls, now: datetime) -> Evaluation:
        """Returns an evaluation for the health document before the database was ever reached."""
        evaluation = cls(now)
        evaluation.__dict__ |= {
            **dict.fromkeys(("scrapers", "workers", "breakers", "latencies_ms"), ()),
            **dict.fromkeys(("updates_per_minute", "sources_without_token", "sources_over_budget"), 0),
            "errors": ErrorCounts(),
            "live": LiveCounts({}),
            "queue": Queue({}),
        }
        return evaluation

    def as_of(self, now: datetime) -> Evaluation:
        """Returns the same readings with ages counted to a later time; used while the database is away."""
        later = copy.copy(self)
        later.now = now
        for name in ("status", "live_ages", "freshness", "grade"):
            later.__dict__.pop(name, None)
        return later

    @cached_property
    def scrapers(self) -> list[WatchedScraper]:
        """The active scrapers; read every second, so without row objects of reference, match and source."""
        active = Scraper.objects.filter(stopped_at__isnull=True).order_by("ref_id")
        split = len(_SCRAPER_COLUMNS)
        rows = list(active.values_list(*_SCRAPER_COLUMNS, *_MATCH_COLUMNS))
        scrapers = [Scraper.from_db(active.db, _SCRAPER_COLUMNS, row[:split]) for row in rows]
        workers = {worker.worker_id: worker for worker in self.workers}
        served = Counter(scraper.worker_id for scraper in scrapers)
        found = []
        for scraper, row in zip(scrapers, rows, strict=True):
            match_id, status, source, event, url = row[split:]
            worker, number = workers.get(scraper.worker_id), served[scraper.worker_id]
            memory, cpu = (worker.memory_bytes / number, worker.cpu_percent / number) if worker else (0.0, 0.0)
            key = f"{source}_{event}"
            found.append(WatchedScraper(scraper, match_id, status == Status.LIVE, key, url, memory, cpu))
        return found

    @cached_property
    def workers(self) -> list[Worker]:
        return queries.workers_at_work(self.now)

    @cached_property
    def breakers(self) -> list[Breaker]:
        """Breakers of active scrapers and of sources, and every other one that is not closed."""
        watched = Scraper.objects.filter(stopped_at__isnull=True).values("ref")
        shown = Q(ref__isnull=True) | Q(ref__in=watched) | ~Q(state=BreakerState.CLOSED)
        return list(Breaker.objects.filter(shown).order_by("name"))

    @cached_property
    def errors(self) -> ErrorCounts:
        counted = ScrapeError.objects.filter(timestamp__gt=self.now - timedelta(hours=1)).aggregate(
            last_hour=Count("pk"), last_minute=Count("pk", filter=Q(timestamp__gt=self.now - MINUTE))
        )
        return ErrorCounts(**counted)

    @cached_property
    def latencies_ms(self) -> list[int]:
        snapshots = Snapshot.objects.filter(created_at__gt=self.now - LATENCY_WINDOW).order_by("-created_at")
        return list(snapshots.values_list("update_latency_ms", flat=True)[:LATENCY_SAMPLES])

    @cached_property
    def updates_per_minute(self) -> int:
        done = ScrapeTask.objects.filter(state=TaskState.SUCCESS, ref__isnull=False)
        return done.filter(finished_at__gt=self.now - MINUTE).count()

    @cached_property
    def live(self) -> LiveCounts:
        rungs = [rung for rung in Rung if rung is not Rung.GROUND]
        counted = Match.objects.live().aggregate(
            to_watch=Count("pk", filter=Q(pk__in=queries.matches_to_watch().values("pk"))),
            paused=Count("pk", filter=Q(lifecycle=MatchLifecycle.PAUSED)),
            frozen=Count("pk", filter=Q(frozen_at__isnull=False)),
            **{rung.name: Count("pk", filter=Q(silence_rung=rung)) for rung in rungs},
        )
        silent = {rung.name.lower(): counted.pop(rung.name) for rung in rungs}
        return LiveCounts(silent, **counted)

    @cached_property
    def queue(self) -> Queue:
        is_waiting = Q(state=TaskState.PENDING)
        counted = ScrapeTask.objects.filter(state__in=(TaskState.PENDING, TaskState.EXECUTING)).aggregate(
            executing=Count("pk", filter=Q(state=TaskState.EXECUTING)),
            oldest=Min("run_at", filter=is_waiting & Q(run_at__lte=self.now)),
            **{priority.name: Count("pk", filter=is_waiting & Q(priority=priority)) for priority in Priority},
        )
        age = (self.now - (counted["oldest"] or self.now)).total_seconds()
        return Queue({each.label.lower(): counted[each.name] for each in Priority}, age, counted["executing"])

    @cached_property
    def sources_without_token(self) -> int:
        return len(open_keys(alert_keys.TOKEN))

    @cached_property
    def sources_over_budget(self) -> int:
        return traffic.spent_sources(self.now.astimezone(UTC).date())

    @cached_property
    def status(self) -> StatusResult:
        live = [each for each in self.scrapers if each.is_live]
        return system_status(
            matches_to_watch=self.live.to_watch,
            active_scrapers=len(live),
            workers=len(self.workers),
            errors_last_minute=self.errors.last_minute,
            unhealthy_scrapers=sum(health_of(each, self.now) != HealthStatus.HEALTHY for each in live),
            paused_live_matches=self.live.paused,
            frozen_matches=self.live.frozen,
            sources_without_token=self.sources_without_token,
            sources_over_budget=self.sources_over_budget,
        )

    @property
    def uptime_seconds(self) -> float:
        """Seconds since the oldest worker at work started."""
        return (self.now - min((worker.started_at for worker in self.workers), default=self.now)).total_seconds()

    @cached_property
    def live_ages(self) -> list[float]:
        return queries.live_ages(self.now)

    @cached_property
    def freshness(self) -> Freshness:
        return Freshness.of(self.live_ages)

    @cached_property
    def last_success_at(self) -> datetime | None:
        return queries.last_success_at()

    @cached_property
    def failure_ratio(self) -> float:
        """The share of failures among the tasks that ended in the last ten minutes."""
        ended = ScrapeTask.objects.filter(state__in=ENDED_STATES, finished_at__gt=self.now - FAILURE_WINDOW)
        counted = ended.aggregate(total=Count("pk"), failed=Count("pk", filter=~Q(state=TaskState.SUCCESS)))
        return float(counted["failed"] / counted["total"]) if counted["total"] else 0.0

    @cached_property
    def grade(self) -> GradeState:
        return grading.current_grade(self.live_ages, self.last_success_at, self.now)

    @cached_property
    def sources(self) -> dict[str, SourceStats]:
        return source_stats(self.now)

    @cached_property
    def matches(self) -> list[Match]:
        """The matches of the status page."""
        return match_cards.shown_matches()


def health_of(watched: WatchedScraper, now: datetime) -> HealthStatus:
    """Returns a scraper's health; the age of its data counts only while its match is live."""
    threshold, scraper = settings.CONFIG.staleness_threshold_seconds, watched.scraper
    if watched.is_live:
        return scraper.health_status(now, threshold)
    return scraper.health_status(scraper.last_update_time or scraper.start_time, threshold)
