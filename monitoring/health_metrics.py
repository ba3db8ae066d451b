"""Metrics of what /health shows: the system, its scrapers, workers and breakers (BX-15).

Labels stay bounded as the document is: a series a scraper at work, a worker that is alive, a breaker that is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitoring.health.document import Observed, health_of, observe, uptime_seconds, verdict_on
from monitoring.health.verdict import Status
from monitoring.queries import Shares, Watch, percentile
from scraping.models import BreakerState, HealthStatus, Worker

HEALTH_NUMBERS: Final = {HealthStatus.HEALTHY: 0, HealthStatus.DEGRADED: 1, HealthStatus.FAILING: 2}
BREAKER_NUMBERS: Final = {BreakerState.CLOSED.value: 0, BreakerState.HALF_OPEN.value: 1, BreakerState.OPEN.value: 2}
OF_SCRAPER: Final = {
    "scraper_memory_bytes": "A scraper's share of its worker.",
    "scraper_cpu_percent": "A scraper's share of its worker's processor time.",
    "scraper_uptime_seconds": "Since the scraper was started.",
    "scraper_last_update_age_seconds": "Since its last good reading; since its start when there was none.",
    "scraper_consecutive_errors": "Failed attempts in a row.",
    "scraper_errors_since_start": "Failed attempts of this scraper.",
    "scraper_updates_since_start": "Good readings of this scraper.",
    "scraper_polling_interval_seconds": "How often its match is polled just now.",
    "scraper_health": "0: healthy, 1: degraded, 2: failing.",
}
OF_WORKER: Final = {
    "scraper_pids_current": "Processes of a worker and its browser.",
    "scraper_contexts_active": "Browser contexts open.",
    "scraper_pages_open": "Browser pages open.",
    "scraper_browser_uptime_seconds": "Age of a worker's browser.",
    "scraper_browser_launches": "Browsers that a worker has started.",
    "scraper_worker_memory_bytes": "Memory of a worker and its browser.",
    "scraper_worker_peak_memory_bytes": "The most that a worker and its browser ever held.",
    "scraper_worker_cpu_percent": "Processor time of a worker and its browser.",
    "scraper_worker_uptime_seconds": "Since the worker was started.",
    "scraper_worker_heartbeat_age_seconds": "Since the worker was last heard of.",
    "scraper_worker_tasks": "Tasks that a worker has in hand.",
}


def of_health(now: datetime) -> Iterator[Metric]:
    seen = observe(now)
    yield from _of_the_whole(seen, now)
    yield from _of_matches(seen)
    yield from _of_scrapers(seen, now)
    yield from _of_workers(seen.workers, now)
    yield from _of_breakers(seen, now)


def _of_the_whole(seen: Observed, now: datetime) -> Iterator[Metric]:
    status = GaugeMetricFamily("victoryline_health", "1 for the word that /health says.", labels=["status"])
    said = verdict_on(seen, now).status
    for word in Status:
        status.add_metric([word.value], float(word == said))
    yield status
    for name, text, value in (
        ("victoryline_uptime_seconds", "Since the oldest worker at work began.", uptime_seconds(seen, now)),
        ("active_scrapers_count", "Scrapers at work.", len(seen.watches)),
        ("scraper_matches_scraping", "Matches with a scraper at work.", len({each.match_id for each in seen.watches})),
        ("scraper_errors_last_minute", "Failed attempts of the last minute.", seen.errors.last_minute),
        ("scraper_errors_last_hour", "Failed attempts of the last hour.", seen.errors.last_hour),
        ("scraper_updates_per_minute", "Good readings of the last minute.", seen.updates_per_minute),
    ):
        yield GaugeMetricFamily(name, text, value=value)
    latency = Metric("scraper_recent_latency_seconds", "From a reading's end to its commit, five minutes.", "summary")
    seconds = [milliseconds / 1000 for milliseconds in seen.latencies_ms]
    latency.add_sample(latency.name, {"quantile": "0.95"}, percentile(seconds, 0.95))
    latency.add_sample(f"{latency.name}_sum", {}, sum(seconds))
    latency.add_sample(f"{latency.name}_count", {}, len(seconds))
    yield latency


def _of_matches(seen: Observed) -> Iterator[Metric]:
    yield GaugeMetricFamily("scraper_frozen_matches", "Live matches that nothing has helped.", value=seen.live.frozen)
    silent = GaugeMetricFamily(
        "scraper_silent_matches", "Live matches that are silent, by what was done last.", labels=["rung"]
    )
    for rung, number in seen.live.silent.items():
        silent.add_metric([rung], number)
    yield silent
    depth = GaugeMetricFamily("scraper_queue_depth", "Tasks that wait.", labels=["priority"])
    for priority, number in seen.queue.depth.items():
        depth.add_metric([priority], number)
    yield depth
    age = seen.queue.oldest_age_seconds
    yield GaugeMetricFamily("scraper_queue_oldest_age_seconds", "Lateness of the oldest due task.", value=age)
    yield GaugeMetricFamily("scraper_tasks_executing", "Tasks at work.", value=seen.queue.executing)


def _of_scrapers(seen: Observed, now: datetime) -> Iterator[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["match_id"]) for name, text in OF_SCRAPER.items()]
    shares = Shares(seen.workers, seen.watches)
    for watch in seen.watches:
        for gauge, value in zip(gauges, _figures(watch, shares, now), strict=True):
            gauge.add_metric([watch.key], value)
    yield from gauges


def _figures(watch: Watch, shares: Shares, now: datetime) -> tuple[float, ...]:
    """In the order of OF_SCRAPER."""
    scraper = watch.scraper
    return (
        shares.memory_bytes(scraper),
        shares.cpu_percent(scraper),
        (now - scraper.start_time).total_seconds(),
        max(0.0, scraper.staleness_seconds(now)),
        scraper.error_count,
        scraper.total_errors,
        scraper.total_updates,
        scraper.polling_interval,
        HEALTH_NUMBERS[health_of(watch, now)],
    )


def _of_workers(workers: list[Worker], now: datetime) -> Iterator[Metric]:
    gauges = [GaugeMetricFamily(name, text, labels=["instance"]) for name, text in OF_WORKER.items()]
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


def _of_breakers(seen: Observed, now: datetime) -> Iterator[Metric]:
    state = GaugeMetricFamily("scraper_breaker_state", "0: closed, 1: half open, 2: open.", labels=["name"])
    age = GaugeMetricFamily("scraper_breaker_state_age_seconds", "How long it is in its state.", labels=["name"])
    counts: dict[str, GaugeMetricFamily | CounterMetricFamily] = {
        "failure_count": GaugeMetricFamily("scraper_breaker_failure_count", "Failures in a row.", labels=["name"]),
        "success_count": GaugeMetricFamily("scraper_breaker_success_count", "Good probes in a row.", labels=["name"]),
        "total_calls": CounterMetricFamily("scraper_breaker_calls", "Calls.", labels=["name"]),
        "total_successes": CounterMetricFamily("scraper_breaker_successes", "Good calls.", labels=["name"]),
        "total_failures": CounterMetricFamily("scraper_breaker_failures", "Failed calls.", labels=["name"]),
        "total_rejections": CounterMetricFamily("scraper_breaker_rejections", "Calls not made.", labels=["name"]),
    }
    for breaker in seen.breakers:
        state.add_metric([breaker.name], BREAKER_NUMBERS[breaker.state])
        age.add_metric([breaker.name], (now - breaker.last_state_change).total_seconds())
        for column, family in counts.items():
            family.add_metric([breaker.name], getattr(breaker, column))
    yield from (state, age, *counts.values())
