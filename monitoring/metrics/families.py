"""The metric families of the work: everything that /health and /status show, and the other way round (BX-15).

Labels are bounded: one series for each active scraper, live worker, shown breaker, source, and match that is not
archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from django.db.models import Count
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from monitoring.health.evaluation import Evaluation
from monitoring.health.scrapers import health_of
from monitoring.health.status_rules import SystemStatus
from monitoring.models import Grade, Severity
from monitoring.objectives import WINDOW_NAME, last_hour
from monitoring.queries import open_alerts, percentile
from scraping.models import (
    Breaker,
    BreakerState,
    HealthStatus,
    Match,
    MatchRef,
    Scraper,
)

HEALTH_NUMBERS: Final = {HealthStatus.HEALTHY: 0, HealthStatus.DEGRADED: 1, HealthStatus.FAILING: 2}
BREAKER_NUMBERS: Final = {BreakerState.CLOSED.value: 0, BreakerState.HALF_OPEN.value: 1, BreakerState.OPEN.value: 2}

# Gauges of each active scraper: name, help, column. A time is exported as the seconds since then.
SCRAPER_GAUGES: Final = (
    ("scraper_uptime_seconds", "Seconds since the scraper started.", "start_time"),
    ("scraper_consecutive_errors", "Consecutive failed attempts.", "error_count"),
    ("scraper_polling_interval_seconds", "Current polling interval of its match.", "polling_interval"),
)


def families(evaluation: Evaluation) -> Iterator[Metric]:
    yield from _totals(evaluation)
    yield from _freshness(evaluation)
    yield from _scrapers(evaluation)
    yield from _breakers(evaluation)
    yield from _matches(evaluation)
    yield from _objectives(evaluation)
    yield from _sources(evaluation)


def _number(row: Scraper, column: str, now: datetime) -> float:
    value = getattr(row, column)
    return max(0.0, (now - value).total_seconds()) if isinstance(value, datetime) else float(value or 0)


def _scrapers(evaluation: Evaluation) -> Iterator[Metric]:
    scrapers, now = evaluation.scrapers, evaluation.now
    for name, text, column in SCRAPER_GAUGES:
        yield gauge(name, text, [(one.key, _number(one.scraper, column, now)) for one in scrapers], "match_id")
    memory = [(one.key, one.memory_bytes) for one in scrapers]
    yield gauge("scraper_memory_bytes", "A scraper's share of its worker's memory.", memory, "match_id")
    cpu = [(one.key, one.cpu_percent) for one in scrapers]
    yield gauge("scraper_cpu_percent", "A scraper's share of its worker's CPU.", cpu, "match_id")
    health = [(one.key, HEALTH_NUMBERS[health_of(one, now)]) for one in scrapers]
    yield gauge("scraper_health", "0: healthy, 1: degraded, 2: failing.", health, "match_id")


def gauge(name: str, text: str, samples: Iterable[tuple[Any, ...]], *labels: str) -> Metric:
    """Returns a gauge; a sample is the values of the labels, and the number."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for *values, number in samples:
        family.add_metric(values, round(float(number), 3))
    return family


def counter(name: str, text: str, samples: Iterable[tuple[Any, ...]], *labels: str) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for *values, number in samples:
        family.add_metric(values, number)
    return family


def _summary(name: str, text: str, values: list[float], *quantiles: float) -> Metric:
    """Returns a summary with quantiles, which the library's own class does not have."""
    summary = Metric(name, text, "summary")
    for share in quantiles:
        summary.add_sample(name, {"quantile": str(share)}, percentile(values, share))
    summary.add_sample(f"{name}_sum", {}, sum(values))
    summary.add_sample(f"{name}_count", {}, len(values))
    return summary


def _totals(evaluation: Evaluation) -> Iterator[Metric]:
    status, grade = evaluation.status.status, evaluation.grade.grade
    queue, live, errors = evaluation.queue, evaluation.live, evaluation.errors
    matches = {one.match_id for one in evaluation.scrapers}
    succeeded_at = evaluation.last_success_at
    ages = [] if succeeded_at is None else [((evaluation.now - succeeded_at).total_seconds(),)]
    alerts = _counts(open_alerts(evaluation.live_matches), "severity")
    text = "1 for the current status of /health."
    yield gauge("victoryline_health", text, [(one.value, one == status) for one in SystemStatus], "status")
    text = "1 for the current grade of the system."
    yield gauge("scraper_grade", text, [(one.value.lower(), one == grade) for one in Grade], "grade")
    yield gauge(
        "scraper_alerts_open", "Open alerts.", [(one.value, alerts.get(one, 0)) for one in Severity], "severity"
    )
    yield gauge("scraper_queue_depth", "Pending tasks.", queue.depth.items(), "priority")
    text = "Silent live matches by their last recovery step."
    yield gauge("scraper_silent_matches", text, live.silent.items(), "rung")
    yield gauge("scraper_last_success_age_seconds", "Seconds since the last successful task.", ages)
    for name, text, value in (
        ("victoryline_uptime_seconds", "Seconds since the oldest worker at work started.", evaluation.uptime_seconds),
        ("active_scrapers_count", "Active scrapers.", len(evaluation.scrapers)),
        ("scraper_matches_scraping", "Matches with an active scraper.", len(matches)),
        ("scraper_errors_last_minute", "Failed attempts in the last minute.", errors.last_minute),
        ("scraper_errors_last_hour", "Failed attempts in the last hour.", errors.last_hour),
        ("scraper_updates_per_minute", "Successful readings in the last minute.", evaluation.updates_per_minute),
        ("scraper_frozen_matches", "Live matches that no recovery step has helped.", live.frozen),
        ("scraper_queue_oldest_age_seconds", "Delay of the oldest due task.", queue.oldest_age_seconds),
        ("scraper_tasks_executing", "Executing tasks.", queue.executing),
        ("scraper_paused_matches", "Paused matches.", Match.objects.paused().count()),
        ("scraper_failure_ratio", "Share of failed tasks in the last ten minutes.", evaluation.failure_ratio),
    ):
        yield gauge(name, text, [(value,)])
    beats = [(one.worker_id, (evaluation.now - one.heartbeat_at).total_seconds()) for one in evaluation.workers]
    yield gauge("scraper_worker_heartbeat_age_seconds", "Seconds since a worker's last heartbeat.", beats, "worker")


def _counts(rows: Any, column: str) -> dict[str, int]:
    return dict(rows.values_list(column).annotate(number=Count("pk")).order_by())


def _freshness(evaluation: Evaluation) -> Iterator[Metric]:
    ages = evaluation.live_ages
    yield _summary("scraper_data_staleness_seconds", "Quantiles of the live matches' ages.", ages, 0.5, 0.95, 0.99)
    yield gauge("scraper_live_matches", "Live matches that are watched.", [(len(ages),)])
    seconds = [milliseconds / 1000 for milliseconds in evaluation.latencies_ms]
    text = "From the end of a reading to its commit, last five minutes."
    yield _summary("scraper_recent_latency_seconds", text, seconds, 0.95)


def _breakers(evaluation: Evaluation) -> Iterator[Metric]:
    by_state = _counts(Breaker.objects, "state")
    states = [(state.value.lower(), by_state.get(state, 0)) for state in BreakerState]
    yield gauge("scraper_breakers", "Breakers by state.", states, "state")
    # A match's breaker has series while its match is watched (later nothing would close it) and it is not at rest.
    restless = [one for one in evaluation.breakers if BREAKER_NUMBERS[one.state] or one.failure_count]
    refs = [one.ref_id for one in restless if one.ref_id]
    watched = set(MatchRef.objects.filter(pk__in=refs, is_watched=True).values_list("pk", flat=True))
    shown = [one for one in evaluation.breakers if one.source_id or (one in restless and one.ref_id in watched)]
    numbers = [(one.name, BREAKER_NUMBERS[one.state]) for one in shown]
    yield gauge("scraper_breaker_state", "0: closed, 1: half open, 2: open.", numbers, "name")
    ages = [(one.name, (evaluation.now - one.last_state_change).total_seconds()) for one in shown]
    yield gauge("scraper_breaker_state_age_seconds", "Seconds in the current state.", ages, "name")
    for kind, name, text, column in (
        (gauge, "scraper_breaker_failure_count", "Consecutive failures.", "failure_count"),
        (gauge, "scraper_breaker_success_count", "Consecutive successful probes.", "success_count"),
        (counter, "scraper_breaker_calls", "Calls.", "total_calls"),
        (counter, "scraper_breaker_successes", "Successful calls.", "total_successes"),
        (counter, "scraper_breaker_failures", "Failed calls.", "total_failures"),
        (counter, "scraper_breaker_rejections", "Rejected calls.", "total_rejections"),
    ):
        yield kind(name, text, [(one.name, getattr(one, column)) for one in shown], "name")


def _matches(evaluation: Evaluation) -> Iterator[Metric]:
    ages = [(match.key, match.age_seconds) for match in evaluation.live_matches]
    yield gauge("data_staleness_seconds", "Age of a live match's data.", ages, "match_id")


def _objectives(evaluation: Evaluation) -> Iterator[Metric]:
    found = last_hour(evaluation.now)
    ratios = [(one.name, WINDOW_NAME, one.ratio) for one in found if one.ratio is not None]
    counts = [(one.name, WINDOW_NAME, one.total) for one in found]
    targets = [(one.name, one.target) for one in found]
    text = "Share of measurements that met the objective."
    yield gauge("scraper_objective_ratio", text, ratios, "objective", "window")
    yield gauge("scraper_objective_looks", "Number of measurements.", counts, "objective", "window")
    yield gauge("scraper_objective_target_ratio", "Target of the objective.", targets, "objective")


def _sources(evaluation: Evaluation) -> Iterator[Metric]:
    stats = evaluation.sources.items()
    for name, text, numbers in (
        ("scraper_attempts", "Attempts to read something of a source.", [(key, one.attempts) for key, one in stats]),
        ("scraper_success", "Successful attempts.", [(key, one.successes) for key, one in stats]),
        ("scraper_bytes_in_est", "Bytes received (estimate).", [(key, one.cost.bytes_in) for key, one in stats]),
        ("scraper_source_requests", "Requests made.", [(key, one.cost.requests) for key, one in stats]),
        (
            "scraper_source_requests_blocked",
            "Requests of pages that were blocked.",
            [(key, one.cost.requests_blocked) for key, one in stats],
        ),
    ):
        yield counter(name, text, numbers, "source")
    reads = [(key, mode, number) for key, one in stats for mode, number in one.reads.items()]
    yield counter("scraper_reads", "Readings by read mode.", reads, "source", "mode")
    modes = [(key, mode, number) for key, one in stats for mode, number in one.matches_by_read_mode.items()]
    yield gauge("scraper_matches_by_read_mode", "Watched matches by read mode.", modes, "source", "mode")
    learned = [
        (key, one.request_mode, one.request_mode_reason.partition(":")[0], 1) for key, one in stats if one.request_mode
    ]
    text = "How a source that refuses direct requests is read instead, and the error that taught it."
    yield gauge("scraper_source_request_mode", text, learned, "source", "mode", "reason")
    used = [(key, one.budget_used_ratio) for key, one in stats if one.budget_used_ratio is not None]
    yield gauge("scraper_budget_used_ratio", "Used share of a source's daily traffic budget.", used, "source")
    scores = [(key, one.integrity_score) for key, one in stats if one.integrity_score is not None]
    text = "1 - null_field_rate, the mean of the last hour's readings."
    yield gauge("data_integrity_score", text, scores, "source")
