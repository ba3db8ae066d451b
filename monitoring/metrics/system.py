"""Metrics of matches, freshness, grade, objectives, alerts and recoveries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Q, Sum
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from monitoring.audit import RECOVERIES
from monitoring.health.evaluation import Evaluation
from monitoring.models import Alert, AuditEntry, Grade, Severity
from monitoring.objectives import objectives_by_window
from monitoring.queries import matches_to_watch, percentile
from scraping.models import Breaker, BreakerState, Match, MatchLifecycle, MatchRef, ScrapeError, Scraper

BUCKETS = (1, 2.5, 5, 10, 30, 60, 120, 300)
NOT_ARCHIVED = ~Q(match__lifecycle=MatchLifecycle.ARCHIVED)


def system_metrics(evaluation: Evaluation) -> Iterator[Metric]:
    yield from _matches(evaluation.now)
    yield _scrapes()
    yield from _freshness(evaluation)
    yield from _states(evaluation)
    yield _alerts()
    yield _recycles()
    yield from _objectives(evaluation.now)


def _keys() -> dict[int, str]:
    """Returns the public key of each match that is not archived, at its source of the highest precedence."""
    refs = MatchRef.objects.filter(NOT_ARCHIVED).order_by("source__precedence_weight", "-pk")
    rows = refs.values_list("match_id", "source__key", "source_event_id")
    return {match_id: f"{source}_{event}" for match_id, source, event in rows}


def _matches(now: datetime) -> Iterator[Metric]:
    keys = _keys()
    errors = CounterMetricFamily("scraper_errors", "Failed attempts.", labels=["match_id", "error_type"])
    counted = ScrapeError.objects.filter(NOT_ARCHIVED, match__isnull=False).values_list("match_id", "error_type")
    for match_id, error_type, number in counted.annotate(number=Count("pk")).order_by():
        if match_id in keys:
            errors.add_metric([keys[match_id], error_type], number)
    yield errors
    yield from _updates(keys)
    staleness = GaugeMetricFamily("data_staleness_seconds", "Age of a live match's data.", labels=["match_id"])
    for pk, updated, created in matches_to_watch().values_list("pk", "last_scraper_update", "created_at"):
        staleness.add_metric([keys.get(pk, str(pk))], max(0.0, (now - (updated or created)).total_seconds()))
    yield staleness


def _updates(keys: dict[int, str]) -> Iterator[Metric]:
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


def _freshness(evaluation: Evaluation) -> Iterator[Metric]:
    ages = evaluation.live_ages
    buckets = [(str(float(limit)), float(sum(age <= limit for age in ages))) for limit in BUCKETS]
    yield HistogramMetricFamily(
        "scraper_freshness_seconds",
        "Ages of the live matches' data.",
        buckets=[*buckets, ("+Inf", float(len(ages)))],
        sum_value=sum(ages),
    )
    summary = Metric("scraper_data_staleness_seconds", "Quantiles of the live matches' ages.", "summary")
    for share in (0.5, 0.95, 0.99):
        summary.add_sample("scraper_data_staleness_seconds", {"quantile": str(share)}, percentile(ages, share))
    summary.add_sample("scraper_data_staleness_seconds_sum", {}, sum(ages))
    summary.add_sample("scraper_data_staleness_seconds_count", {}, len(ages))
    yield summary
    yield GaugeMetricFamily("scraper_live_matches", "Live matches that are watched.", value=len(ages))


def _states(evaluation: Evaluation) -> Iterator[Metric]:
    breakers = GaugeMetricFamily("scraper_breakers", "Breakers by state.", labels=["state"])
    by_state = dict(Breaker.objects.values_list("state").annotate(number=Count("pk")).order_by())
    for state in BreakerState:
        breakers.add_metric([state.value.lower()], by_state.get(state.value, 0))
    yield breakers
    grades = GaugeMetricFamily("scraper_grade", "1 for the current grade of the system.", labels=["grade"])
    for grade in Grade:
        grades.add_metric([grade.value.lower()], float(grade == evaluation.grade.grade))
    yield grades
    yield GaugeMetricFamily("scraper_paused_matches", "Paused matches.", value=Match.objects.paused().count())
    yield GaugeMetricFamily(
        "scraper_failure_ratio", "Share of failed tasks in the last ten minutes.", value=evaluation.failure_ratio
    )
    age = GaugeMetricFamily("scraper_last_success_age_seconds", "Seconds since the last successful task.")
    if (at := evaluation.last_success_at) is not None:
        age.add_metric([], (evaluation.now - at).total_seconds())
    yield age


def _objectives(now: datetime) -> Iterator[Metric]:
    ratio = GaugeMetricFamily(
        "scraper_objective_ratio", "Share of measurements that met the objective.", labels=["objective", "window"]
    )
    target = GaugeMetricFamily("scraper_objective_target_ratio", "Target of the objective.", labels=["objective"])
    measurements = GaugeMetricFamily(
        "scraper_objective_looks", "Number of measurements.", labels=["objective", "window"]
    )
    for window, objective in objectives_by_window(now):
        if objective.ratio is not None:
            ratio.add_metric([objective.name, window], objective.ratio)
        measurements.add_metric([objective.name, window], objective.total)
        if window == "1h":
            target.add_metric([objective.name], objective.target)
    yield from (ratio, target, measurements)


def _alerts() -> Metric:
    alerts = GaugeMetricFamily("scraper_alerts_open", "Open alerts.", labels=["severity"])
    rows = Alert.objects.filter(closed_at__isnull=True).values_list("severity").annotate(number=Count("pk")).order_by()
    by_severity = dict(rows)
    for severity in Severity:
        alerts.add_metric([severity.value], by_severity.get(severity.value, 0))
    return alerts


def _recycles() -> Metric:
    recycles = CounterMetricFamily("scraper_recycles", "Recovery actions by type.", labels=["reason"])
    rows = AuditEntry.objects.filter(action_type__in=RECOVERIES).values_list("action_type")
    for action, number in rows.annotate(number=Count("pk")).order_by():
        recycles.add_metric([action], number)
    return recycles
