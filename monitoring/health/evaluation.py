"""The one evaluation of the system's state: /health, /status, /metrics, the grade and the admin's first page read it.

Every figure is read from the database when it is first used and kept for the life of the evaluation, so documents that
are built from one evaluation agree with each other and no figure is read twice. The number of queries does not depend
on the number of scrapers.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

from django.db.models import Count, Min, Q

from monitoring import queries
from monitoring.alerts import alert_keys
from monitoring.alerts.registry import open_keys
from monitoring.health import grading, match_cards
from monitoring.health.grading import AgeStats, GradeState, Trouble
from monitoring.health.scrapers import WatchedScraper, active_scrapers, health_of
from monitoring.health.status_rules import DEGRADED_FROM_ERRORS, StatusResult, SystemStatus, system_status
from monitoring.models import Alert, Grade, Severity
from monitoring.queries import LiveMatch, SourceStats, source_stats
from scraping.models import (
    Breaker,
    BreakerState,
    HealthStatus,
    Match,
    MatchLifecycle,
    Priority,
    Scraper,
    ScrapeTask,
    Snapshot,
    TaskState,
    Worker,
    match_keys,
)
from scraping.policies.ladder import Rung
from scraping.stats import traffic

MINUTE = timedelta(minutes=1)
FAILURE_WINDOW = timedelta(minutes=10)
LATENCY_WINDOW = timedelta(minutes=5)
LATENCY_SAMPLES = 1000
ENDED_STATES = (TaskState.SUCCESS, TaskState.FAILED, TaskState.DEAD)


@dataclass(frozen=True)
class ErrorCounts:
    """Failed polls of live matches; jobs are not counted. `worst_id`: the match with most of the last minute."""

    last_minute: int = 0
    last_hour: int = 0
    worst_id: int | None = None


@dataclass(frozen=True)
class Queue:
    """Pending tasks and the delay of the oldest due one, both by priority, and executing tasks."""

    depth: dict[str, int]
    ages_seconds: dict[str, float] = field(default_factory=dict)
    executing: int = 0

    @property
    def oldest_age_seconds(self) -> float:
        return max(self.ages_seconds.values(), default=0.0)

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
        self._named_ids: list[int] = []  # matches that the rules of /health name

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
        for name in ("status", "_rules", "live_matches", "freshness", "grade", "alerts", "trouble"):
            later.__dict__.pop(name, None)
        return later

    @cached_property
    def scrapers(self) -> list[WatchedScraper]:
        return active_scrapers(self.workers)

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
        recent = queries.scraper_errors().filter(timestamp__gt=self.now - timedelta(hours=1)).order_by()
        in_minute = Count("pk", filter=Q(timestamp__gt=self.now - MINUTE))
        rows = list(recent.values_list("match_id").annotate(hour=Count("pk"), minute=in_minute))
        worst, _, most = max(rows, key=lambda row: row[2], default=(None, 0, 0))
        return ErrorCounts(sum(row[2] for row in rows), sum(row[1] for row in rows), worst if most else None)

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
        """Two reads of partial indexes, whatever the size of the journal."""
        waiting = ScrapeTask.objects.filter(state=TaskState.PENDING).order_by().values_list("priority")
        rows = waiting.annotate(number=Count("priority"), oldest=Min("run_at"))
        found = {priority: (number, (self.now - oldest).total_seconds()) for priority, number, oldest in rows}
        counted = {each.label.lower(): found.get(each, (0, 0.0)) for each in Priority}
        return Queue(
            {name: number for name, (number, _) in counted.items()},
            {name: max(0.0, age) for name, (_, age) in counted.items()},
            ScrapeTask.objects.filter(state=TaskState.EXECUTING).count(),
        )

    @cached_property
    def sources_without_token(self) -> int:
        return len(open_keys(alert_keys.TOKEN))

    @cached_property
    def sources_over_budget(self) -> int:
        return traffic.spent_sources(self.now.astimezone(UTC).date())

    @cached_property
    def _rules(self) -> StatusResult:
        """The status by the rules of /health alone, without the grade."""
        live = [each for each in self.scrapers if each.is_live]
        unhealthy = [each for each in live if health_of(each, self.now) != HealthStatus.HEALTHY]
        return system_status(
            matches_to_watch=self.live.to_watch,
            active_scrapers=len(live),
            workers=len(self.workers),
            errors_last_minute=self.errors.last_minute,
            polls_last_minute=self.updates_per_minute + self.errors.last_minute,
            unhealthy_scrapers=len(unhealthy),
            paused_live_matches=self.live.paused,
            frozen_matches=self.live.frozen,
            sources_without_token=self.sources_without_token,
            sources_over_budget=self.sources_over_budget,
            names=self._names(unhealthy),
        )

    def _names(self, unhealthy: list[WatchedScraper]) -> dict[str, str]:
        """Returns the key of one match for each figure that is about matches; without a query in a healthy system."""
        live = Match.objects.live()
        ids: dict[str, int | None] = {}
        if unhealthy:
            ids["unhealthy_scrapers"] = max(unhealthy, key=lambda one: one.scraper.staleness_seconds(self.now)).match_id
        if self.live.frozen:
            ids["frozen_matches"] = live.filter(frozen_at__isnull=False).values_list("pk", flat=True).first()
        if self.live.paused:
            ids["paused_live_matches"] = live.paused().values_list("pk", flat=True).first()
        if self.errors.last_minute >= DEGRADED_FROM_ERRORS:
            ids["errors_last_minute"] = self.errors.worst_id
        keys = match_keys(pk for pk in ids.values() if pk)
        self._named_ids = list(keys)
        return {name: keys[pk] for name, pk in ids.items() if pk}

    @cached_property
    def alerts(self) -> list[Alert]:
        """Open alerts, critical ones first; without that of the grade, which this evaluation states itself."""
        opened = queries.open_alerts(self.live_matches).exclude(key=alert_keys.GRADE)
        return list(opened.order_by("severity", "-opened_at"))

    @cached_property
    def alert_texts(self) -> list[str]:
        """The texts of the open alerts for the public: matches by their keys, no reasons, hosts and addresses."""
        ids = [alert.detail.get("match_id") for alert in self.alerts]
        keys = match_keys(pk for pk in ids if pk)
        return [alert_keys.public_text(alert, keys.get(pk, "")) for pk, alert in zip(ids, self.alerts, strict=True)]

    @cached_property
    def trouble(self) -> Trouble:
        """Reasons for the grade other than old data, so that no page is green where another one is not."""
        rules = "; ".join(self._rules.reasons)
        if self._rules.status is SystemStatus.DOWN:
            return Trouble(failing=rules)
        critical = sum(each.severity == Severity.CRITICAL for each in self.alerts)
        more = f" (and {critical - 1} more critical alerts)" if critical > 1 else ""
        return Trouble(degraded=rules or (self.alert_texts[0] + more if critical else ""))

    @property
    def is_in_trouble(self) -> bool:
        is_late = max(self.freshness.median, self.freshness.p95) >= grading.DEGRADED_FROM_SECONDS
        is_lost = self.freshness.max >= grading.FAILING_FROM_SECONDS
        return is_late or is_lost or self.trouble != grading.NO_TROUBLE

    @property
    def cause_id(self) -> int | None:
        """The match that the trouble is about: one that is too old, or that a rule or an alert names; else the stalest.

        None if the trouble is that of a source, a worker or a machine.
        """
        stalest = self.freshness.stalest
        is_trouble_elsewhere = self.trouble != grading.NO_TROUBLE
        if is_trouble_elsewhere and (stalest is None or stalest.age_seconds < grading.DEGRADED_FROM_SECONDS):
            named = [*self._named_ids, *(alert.detail.get("match_id") for alert in self.alerts)]
            return next((pk for pk in named if isinstance(pk, int)), None)
        return stalest.match_id if stalest else None

    @cached_property
    def status(self) -> StatusResult:
        """The status of /health. Healthy only if the grade is."""
        rules, state = self._rules, self.grade
        if state.grade == Grade.HEALTHY:
            return rules
        others = tuple(reason for reason in rules.reasons if reason not in state.reason)
        status = SystemStatus.DOWN if rules.status is SystemStatus.DOWN else SystemStatus.DEGRADED
        return StatusResult(status, (state.reason, *others))

    @property
    def uptime_seconds(self) -> float:
        return (self.now - min((worker.started_at for worker in self.workers), default=self.now)).total_seconds()

    @cached_property
    def live_matches(self) -> list[LiveMatch]:
        return queries.live_matches(self.now)

    @property
    def live_ages(self) -> list[float]:
        return [match.age_seconds for match in self.live_matches]

    @cached_property
    def freshness(self) -> AgeStats:
        return AgeStats.of(self.live_matches)

    @cached_property
    def last_success_at(self) -> datetime | None:
        done = ScrapeTask.objects.filter(state=TaskState.SUCCESS).order_by("-finished_at")
        return done.values_list("finished_at", flat=True).first()

    @cached_property
    def failure_ratio(self) -> float:
        ended = ScrapeTask.objects.filter(state__in=ENDED_STATES, finished_at__gt=self.now - FAILURE_WINDOW)
        counted = ended.aggregate(total=Count("pk"), failed=Count("pk", filter=~Q(state=TaskState.SUCCESS)))
        return float(counted["failed"] / counted["total"]) if counted["total"] else 0.0

    @cached_property
    def grade(self) -> GradeState:
        return grading.current_grade(self.freshness, self.last_success_at, self.trouble, self.now)

    @cached_property
    def sources(self) -> dict[str, SourceStats]:
        return source_stats(self.now)

    @cached_property
    def matches(self) -> list[Match]:
        return match_cards.shown_matches()
