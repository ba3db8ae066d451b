"""Metrics of the figures of /health: totals, scrapers, workers and breakers (BX-15).

Labels are bounded as the document is: one series for each active scraper, live worker and shown breaker.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitoring.health.evaluation import Evaluation, health_of
from monitoring.health.status_rules import SystemStatus
from monitoring.queries import WatchedScraper, percentile
from scraping.models import Breaker, BreakerState, HealthStatus, Worker

HEALTH_NUMBERS: Final = {HealthStatus.HEALTHY: 0, HealthStatus.DEGRADED: 1, HealthStatus.FAILING: 2}
BREAKER_NUMBERS: Final = {BreakerState.CLOSED.value: 0, BreakerState.HALF_OPEN.value: 1, BreakerState.OPEN.value: 2}
SCRAPER_GAUGES: Final = {
    "scraper_memory_bytes": "A scraper's share of its worker's memory.",
    "scraper_cpu_percent": "A scraper's share of its worker's CPU.",
    "scraper_uptime_seconds": "Seconds since the scraper started.",
    "scraper_last_update_age_seconds": "Seconds since its last successful reading, or since its start.",
    "scraper_consecutive_errors": "Consecutive failed attempts.",
    "scraper_errors_since_start": "Failed attempts of this scraper.",
    "scraper_updates_since_start": "Successful readings of this scraper.",
    "scraper_polling_interval_seconds": "Current polling interval of its match.",
    "scraper_health": "0: healthy, 1: degraded, 2: failing.",
}
WORKER_GAUGES: Final = {
    "scraper_pids_current": "Processes of a worker and its browser.",
    "scraper_contexts_active": "Browser contexts open.",
    "scraper_pages_open": "Browser pages open.",
    "scraper_browser_uptime_seconds": "Age of a worker's browser.",
    "scraper_browser_launches": "Browsers started by a worker.",
    "scraper_worker_memory_bytes": "Memory of a worker and its browser.",
    "scraper_worker_peak_memory_bytes": "Peak memory of a worker and its browser.",
    "scraper_worker_cpu_percent": "CPU of a worker and its browser.",
    "scraper_worker_uptime_seconds": "Seconds since the worker started.",
    "scraper_worker_heartbeat_age_seconds": "Seconds since the worker's last heartbeat.",
    "scraper_worker_tasks": "Tasks that a worker executes.",
}


def health_metrics(evaluation: Evaluation) -> Iterator[Metric]:
    yield from _totals(evaluation)
    yield from _matches(evaluation)
    yield from _scrapers(evaluation)
    yield from _workers(evaluation.workers, evaluation.now)
    yield from _breakers(evaluation.breakers, evaluation.now)


def _totals(evaluation: Evaluation) -> Iterator[Metric]:
    gauge = GaugeMetricFamily("victoryline_health", "1 for the current status of /health.", labels=["status"])
    for status in SystemStatus:
        gauge.add_metric([status.value], float(status == evaluation.status.status))
    yield gauge
    for name, text, value in (
        ("victoryline_uptime_seconds", "Seconds since the oldest worker at work started.", evaluation.uptime_seconds),
        ("active_scrapers_count", "Active scrapers.", len(evaluation.scrapers)),
        (
            "scraper_matches_scraping",
            "Matches with an active scraper.",
            len({each.match_id for each in evaluation.scrapers}),
        ),
        ("scraper_errors_last_minute", "Failed attempts in the last minute.", evaluation.errors.last_minute),
        ("scraper_errors_last_hour", "Failed attempts in the last hour.", evaluation.errors.last_hour),
        ("scraper_updates_per_minute", "Successful readings in the last minute.", evaluation.updates_per_minute),
    ):
        yield GaugeMetricFamily(name, text, value=value)
    latency = Metric(
        "scraper_recent_latency_seconds", "From the end of a reading to its commit, last five minutes.", "summary"
    )
    seconds = [milliseconds / 1000 for milliseconds in evaluation.latencies_ms]
    latency.add_sample(latency.name, {"quantile": "0.95"}, percentile(seconds, 0.95))
    latency.add_sample(f"{latency.name}_sum", {}, sum(seconds))
    latency.add_sample(f"{latency.name}_count", {}, len(seconds))
    yield latency


def _matches(evaluation: Evaluation) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "scraper_frozen_matches", "Live matches that no recovery step has helped.", value=evaluation.live.frozen
    )
    silent = GaugeMetricFamily(
        "scraper_silent_matches", "Silent live matches by their last recovery step.", labels=["rung"]
    )
    for rung, number in evaluation.live.silent.items():
        silent.add_metric([rung], number)
    yield silent
    depth = GaugeMetricFamily("scraper_queue_depth", "Pending tasks.", labels=["priority"])
    for priority, number in evaluation.queue.depth.items():
        depth.add_metric([priority], number)
    yield depth
    age = evaluation.queue.oldest_age_seconds
    yield GaugeMetricFamily("scraper_queue_oldest_age_seconds", "Delay of the oldest due task.", value=age)
    yield GaugeMetricFamily("scraper_tasks_executing", "Executing tasks.", value=evaluation.queue.executing)


def _scrapers(evaluation: Evaluation) -> Iterator[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["match_id"]) for name, text in SCRAPER_GAUGES.items()]
    for watched in evaluation.scrapers:
        for gauge, value in zip(gauges, _scraper_values(watched, evaluation), strict=True):
            gauge.add_metric([watched.key], value)
    yield from gauges


def _scraper_values(watched: WatchedScraper, evaluation: Evaluation) -> tuple[float, ...]:
    """In the order of SCRAPER_GAUGES."""
    scraper, now, shares = watched.scraper, evaluation.now, evaluation.resource_shares
    return (
        shares.memory_bytes(scraper),
        shares.cpu_percent(scraper),
        (now - scraper.start_time).total_seconds(),
        max(0.0, scraper.staleness_seconds(now)),
        scraper.error_count,
        scraper.total_errors,
        scraper.total_updates,
        scraper.polling_interval,
        HEALTH_NUMBERS[health_of(watched, now)],
    )


def _workers(workers: list[Worker], now: datetime) -> Iterator[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["instance"]) for name, text in WORKER_GAUGES.items()]
    for worker in workers:
        started = worker.browser_started_at
        values = (
            worker.process_count,
            worker.context_count,
            worker.page_count,
            (now - started).total_seconds() if started else 0.0,
            worker.browser_launches,
            worker.memory_bytes,
            worker.peak_memory_bytes,
            worker.cpu_percent,
            (now - worker.started_at).total_seconds(),
            max(0.0, (now - worker.heartbeat_at).total_seconds()),
            worker.active_tasks,
        )
        for gauge, value in zip(gauges, values, strict=True):
            gauge.add_metric([worker.worker_id], value)
    yield from gauges


def _breakers(breakers: list[Breaker], now: datetime) -> Iterator[Metric]:
    state = GaugeMetricFamily("scraper_breaker_state", "0: closed, 1: half open, 2: open.", labels=["name"])
    age = GaugeMetricFamily("scraper_breaker_state_age_seconds", "Seconds in the current state.", labels=["name"])
    counts: dict[str, GaugeMetricFamily | CounterMetricFamily] = {
        "failure_count": GaugeMetricFamily("scraper_breaker_failure_count", "Consecutive failures.", labels=["name"]),
        "success_count": GaugeMetricFamily(
            "scraper_breaker_success_count", "Consecutive successful probes.", labels=["name"]
        ),
        "total_calls": CounterMetricFamily("scraper_breaker_calls", "Calls.", labels=["name"]),
        "total_successes": CounterMetricFamily("scraper_breaker_successes", "Successful calls.", labels=["name"]),
        "total_failures": CounterMetricFamily("scraper_breaker_failures", "Failed calls.", labels=["name"]),
        "total_rejections": CounterMetricFamily("scraper_breaker_rejections", "Rejected calls.", labels=["name"]),
    }
    for breaker in breakers:
        state.add_metric([breaker.name], BREAKER_NUMBERS[breaker.state])
        age.add_metric([breaker.name], (now - breaker.last_state_change).total_seconds())
        for column, family in counts.items():
            family.add_metric([breaker.name], getattr(breaker, column))
    yield from (state, age, *counts.values())
