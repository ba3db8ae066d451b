"""The one evaluation of the system's state: /health, /status, /metrics, the grade and the admin's first page read it.

Every figure is read from the database when it is first used and kept for the life of the evaluation, so documents that
are built from one evaluation agree with each other and no figure is read twice. The number of queries does not depend
on the number of scrapers.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from functools import cached_property

from django.conf import settings
from django.db.models import Q

from monitoring import queries
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import open_keys
from monitoring.health import grading, match_cards
from monitoring.health.grading import Freshness, GradeState
from monitoring.health.status_rules import StatusInputs, StatusResult, system_status
from monitoring.queries import ErrorCounts, LiveCounts, Queue, ResourceShares, WatchedScraper
from monitoring.source_stats import SourceStats, source_stats
from scraping.models import Breaker, BreakerState, HealthStatus, Match, Scraper, Snapshot, Worker
from scraping.stats import traffic

LATENCY_WINDOW = timedelta(minutes=5)
LATENCY_SAMPLES = 1000


class Evaluation:
    """The state of the system at `now`. Reads lazily; raises the driver's error while the database is away."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    @classmethod
    def empty(cls, now: datetime) -> Evaluation:
        """Returns an evaluation for the health document before the database was ever reached."""
        evaluation = cls(now)
        evaluation.__dict__ |= {
            "scrapers": [],
            "workers": [],
            "breakers": [],
            "errors": ErrorCounts(0, 0),
            "latencies_ms": [],
            "updates_per_minute": 0,
            "live": LiveCounts(0, 0, 0, {}),
            "queue": Queue({}, 0.0, 0),
            "sources_without_token": 0,
            "sources_over_budget": 0,
        }
        return evaluation

    def as_of(self, now: datetime) -> Evaluation:
        """Returns the same readings with ages counted to a later time; used while the database is away."""
        later = copy.copy(self)
        later.now = now
        for name in ("resource_shares", "status", "live_ages", "freshness", "grade"):
            later.__dict__.pop(name, None)
        return later

    @cached_property
    def scrapers(self) -> list[WatchedScraper]:
        return queries.active_scrapers()

    @cached_property
    def workers(self) -> list[Worker]:
        return queries.workers_at_work(self.now)

    @cached_property
    def resource_shares(self) -> ResourceShares:
        return ResourceShares(self.workers, self.scrapers)

    @cached_property
    def breakers(self) -> list[Breaker]:
        """Breakers of active scrapers and of sources, and every other one that is not closed."""
        watched = Scraper.objects.filter(stopped_at__isnull=True).values("ref")
        shown = Q(ref__isnull=True) | Q(ref__in=watched) | ~Q(state=BreakerState.CLOSED)
        return list(Breaker.objects.filter(shown).order_by("name"))

    @cached_property
    def errors(self) -> ErrorCounts:
        return queries.error_counts(self.now)

    @cached_property
    def latencies_ms(self) -> list[int]:
        snapshots = Snapshot.objects.filter(created_at__gt=self.now - LATENCY_WINDOW).order_by("-created_at")
        return list(snapshots.values_list("update_latency_ms", flat=True)[:LATENCY_SAMPLES])

    @cached_property
    def updates_per_minute(self) -> int:
        return queries.updates_last_minute(self.now)

    @cached_property
    def live(self) -> LiveCounts:
        return queries.live_counts()

    @cached_property
    def queue(self) -> Queue:
        return queries.queue(self.now)

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
            StatusInputs(
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
        return queries.failure_ratio(self.now)

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


class LastEvaluation:
    """The last evaluation from which a document was built completely; shown while the database is away."""

    def __init__(self) -> None:
        self._value: Evaluation | None = None

    def put(self, evaluation: Evaluation) -> None:
        self._value = evaluation

    def get(self) -> Evaluation | None:
        return self._value

    def forget(self) -> None:
        self._value = None
