"""Our metrics, read from the database at the moment Prometheus asks.

Counters that live in a process are wrong here: the work is done in workers, the question comes to the web, and there
may be several of each. The journal is the truth that all of them share, so every process can answer for all. The price
is two dozen queries a scrape, which come every 15 seconds. Labels stay bounded: only matches that are not archived.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime

from django.conf import settings
from django.db import Error, connections
from django.db.models import Count, Q, Sum
from django.utils import timezone
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from monitoring.audit import RECOVERIES
from monitoring.health.grading import Freshness, current_standing
from monitoring.health_metrics import of_health
from monitoring.models import Alert, AuditEntry, Grade, Severity
from monitoring.queries import failure_ratio, last_success_at, live_ages, matches_to_watch, percentile
from monitoring.slo import rows_of
from monitoring.source_metrics import of_sources
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef, ScrapeError, Scraper
from victoryline.lib import availability, pg_wait

logger = logging.getLogger(__name__)

BUCKETS = (1, 2.5, 5, 10, 30, 60, 120, 300)
NOT_ARCHIVED = ~Q(match__lifecycle=MatchLifecycle.ARCHIVED)


class JournalCollector(Collector):
    def __init__(self, *, closes_connections: bool = False) -> None:
        """`closes_connections` where each question comes on a thread of its own, as in prometheus_client's server."""
        self._closes_connections = closes_connections

    def describe(self) -> Iterable[Metric]:
        return []  # without this, registering would already ask the database

    def collect(self) -> Iterator[Metric]:
        """While the database is away only that is told: what this process knows of itself comes from elsewhere."""
        found = self._found(timezone.now())
        yield GaugeMetricFamily("victoryline_database_up", "1: the database answers.", value=float(bool(found)))
        if url := settings.CONFIG.redis_url:
            is_up = not availability.redis(url).is_away()
            yield GaugeMetricFamily("victoryline_redis_up", "1: Redis answers, or nobody has asked.", value=is_up)
        yield from found

    def _found(self, now: datetime) -> list[Metric]:
        if availability.database.is_away():
            return []
        try:
            with pg_wait.within(availability.READ_SECONDS):
                found = [*of_health(now), *_of_matches(now), _scrapes(), *_of_the_system(now)]
                return [*found, *of_sources(now), *_of_objectives(now)]
        except Error as error:
            availability.database.report(error)
            logger.warning("Metrics without the database: %s", error, extra={"action": "metrics_store_away"})
            return []
        finally:
            if self._closes_connections:
                connections.close_all()


def _keys() -> dict[int, str]:
    """The public name of each match that is not archived: at the source that is believed most."""
    refs = MatchRef.objects.filter(NOT_ARCHIVED).order_by("source__precedence_weight", "-pk")
    rows = refs.values_list("match_id", "source__key", "source_event_id")
    return {match_id: f"{source}_{event}" for match_id, source, event in rows}


def _of_matches(now: datetime) -> Iterator[Metric]:
    keys = _keys()
    errors = CounterMetricFamily("scraper_errors", "Failed attempts.", labels=["match_id", "error_type"])
    counted = ScrapeError.objects.filter(NOT_ARCHIVED, match__isnull=False).values_list("match_id", "error_type")
    for match_id, error_type, number in counted.annotate(number=Count("pk")).order_by():
        if match_id in keys:
            errors.add_metric([keys[match_id], error_type], number)
    yield errors
    yield from _of_updates(keys)
    staleness = GaugeMetricFamily("data_staleness_seconds", "Age of a live match's data.", labels=["match_id"])
    for pk, updated, created in matches_to_watch().values_list("pk", "last_scraper_update", "created_at"):
        staleness.add_metric([keys.get(pk, str(pk))], max(0.0, (now - (updated or created)).total_seconds()))
    yield staleness


def _of_updates(keys: dict[int, str]) -> Iterator[Metric]:
    updates = CounterMetricFamily("scraper_updates", "Successful polls.", labels=["match_id"])
    latency = SummaryMetricFamily(
        "scraper_update_latency_seconds", "From the end of a reading to its commit.", labels=["match_id"]
    )
    sums = (
        Scraper.objects.filter(ref__match__in=list(keys))
        .values_list("ref__match_id")
        .annotate(updates=Sum("total_updates"), milliseconds=Sum("latency_total_ms"))
        .order_by()
    )
    for match_id, number, milliseconds in sums:
        updates.add_metric([keys[match_id]], number)
        latency.add_metric([keys[match_id]], count_value=number, sum_value=milliseconds / 1000)
    yield updates
    yield latency


def _scrapes() -> Metric:
    scrapes = CounterMetricFamily(
        "scraper_scrapes", "Attempts to read a match, by source and outcome.", labels=["domain", "status"]
    )
    sums = (
        Scraper.objects.values_list("ref__source__key")
        .annotate(good=Sum("total_updates"), bad=Sum("total_errors"))
        .order_by()
    )
    for source, good, bad in sums:
        scrapes.add_metric([source, "success"], good)
        scrapes.add_metric([source, "failure"], bad)
    return scrapes


def _of_the_system(now: datetime) -> Iterator[Metric]:
    ages = live_ages(now)
    buckets = [(str(float(limit)), float(sum(age <= limit for age in ages))) for limit in BUCKETS]
    yield HistogramMetricFamily(
        "scraper_freshness_seconds",
        "Ages of the live matches' data.",
        buckets=[*buckets, ("+Inf", float(len(ages)))],
        sum_value=sum(ages),
    )
    yield from _quantiles(ages)
    breakers = GaugeMetricFamily("scraper_breakers", "Breakers by state.", labels=["state"])
    by_state = dict(Breaker.objects.values_list("state").annotate(number=Count("pk")).order_by())
    for state in BreakerState:
        breakers.add_metric([state.value.lower()], by_state.get(state.value, 0))
    yield breakers
    standing = current_standing(now)
    grades = GaugeMetricFamily("scraper_grade", "1 for the grade the system has.", labels=["grade"])
    for grade in Grade:
        grades.add_metric([grade.value.lower()], float(grade == standing.grade))
    yield grades
    paused = Match.objects.paused().count()
    yield GaugeMetricFamily("scraper_paused_matches", "Matches that are paused.", value=paused)
    yield _failure_ratio(now)
    yield _success_age(now)
    yield _alerts()
    yield _recycles()


def _quantiles(ages: list[float]) -> Iterator[Metric]:
    summary = Metric("scraper_data_staleness_seconds", "Quantiles of the live matches' ages.", "summary")
    for share in (0.5, 0.95, 0.99):
        summary.add_sample("scraper_data_staleness_seconds", {"quantile": str(share)}, percentile(ages, share))
    summary.add_sample("scraper_data_staleness_seconds_sum", {}, sum(ages))
    summary.add_sample("scraper_data_staleness_seconds_count", {}, len(ages))
    yield summary
    yield GaugeMetricFamily("scraper_live_matches", "Live matches that are watched.", value=Freshness.of(ages).count)


def _success_age(now: datetime) -> Metric:
    age = GaugeMetricFamily("scraper_last_success_age_seconds", "Since the last task that went well.")
    if (at := last_success_at()) is not None:
        age.add_metric([], (now - at).total_seconds())
    return age


def _failure_ratio(now: datetime) -> Metric:
    return GaugeMetricFamily("scraper_failure_ratio", "Tasks of ten minutes that failed.", value=failure_ratio(now))


def _of_objectives(now: datetime) -> Iterator[Metric]:
    ratio = GaugeMetricFamily(
        "scraper_objective_ratio", "The part of looks that were as promised.", labels=["objective", "window"]
    )
    target = GaugeMetricFamily("scraper_objective_target_ratio", "What was promised.", labels=["objective"])
    looks = GaugeMetricFamily("scraper_objective_looks", "How many looks there were.", labels=["objective", "window"])
    for window, objective in rows_of(now):
        if objective.ratio is not None:
            ratio.add_metric([objective.name, window], objective.ratio)
        looks.add_metric([objective.name, window], objective.total)
        if window == "1h":
            target.add_metric([objective.name], objective.target)
    yield from (ratio, target, looks)


def _alerts() -> Metric:
    alerts = GaugeMetricFamily("scraper_alerts_open", "Alerts that stand.", labels=["severity"])
    rows = Alert.objects.filter(closed_at__isnull=True).values_list("severity").annotate(number=Count("pk")).order_by()
    standing = dict(rows)
    for severity in Severity:
        alerts.add_metric([severity.value], standing.get(severity.value, 0))
    return alerts


def _recycles() -> Metric:
    recycles = CounterMetricFamily("scraper_recycles", "Recoveries, by what was done.", labels=["reason"])
    rows = AuditEntry.objects.filter(action_type__in=RECOVERIES).values_list("action_type")
    for action, number in rows.annotate(number=Count("pk")).order_by():
        recycles.add_metric([action], number)
    return recycles
