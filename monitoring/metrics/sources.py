"""Metrics of sources: calls, traffic, budget, integrity, read modes."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitoring.source_stats import SourceStats


def source_metrics(stats: dict[str, SourceStats]) -> Iterator[Metric]:
    yield from _calls(stats)
    yield from _traffic(stats)
    yield from _states(stats)


def _calls(stats: dict[str, SourceStats]) -> Iterator[Metric]:
    attempts = CounterMetricFamily("scraper_attempts", "Attempts to read something of a source.", labels=["source"])
    good = CounterMetricFamily("scraper_success", "Successful attempts.", labels=["source"])
    failed = CounterMetricFamily(
        "scraper_fail", "Failed attempts; soft: may pass without a change of ours.", labels=["source", "type", "reason"]
    )
    for key, source in stats.items():
        attempts.add_metric([key], source.attempts)
        good.add_metric([key], source.successes)
        for (kind, reason), number in source.failures.items():
            failed.add_metric([key, kind, reason], number)
    yield from (attempts, good, failed)


def _traffic(stats: dict[str, SourceStats]) -> Iterator[Metric]:
    received = CounterMetricFamily("scraper_bytes_in_est", "Bytes received (estimate).", labels=["source"])
    requests = CounterMetricFamily("scraper_source_requests", "Requests made.", labels=["source"])
    blocked = CounterMetricFamily(
        "scraper_source_requests_blocked", "Requests of pages that were blocked.", labels=["source"]
    )
    reads = CounterMetricFamily("scraper_reads", "Readings by read mode.", labels=["source", "mode"])
    for key, source in stats.items():
        received.add_metric([key], source.cost.bytes_in)
        requests.add_metric([key], source.cost.requests)
        blocked.add_metric([key], source.cost.requests_blocked)
        for mode, number in source.reads.items():
            reads.add_metric([key, mode], number)
    yield from (received, requests, blocked, reads)


def _states(stats: dict[str, SourceStats]) -> Iterator[Metric]:
    used = GaugeMetricFamily(
        "scraper_budget_used_ratio", "Used share of a source's daily traffic budget.", labels=["source"]
    )
    score = GaugeMetricFamily(
        "data_integrity_score", "1 - null_field_rate, the mean of the last hour's readings.", labels=["source"]
    )
    modes = GaugeMetricFamily(
        "scraper_matches_by_read_mode", "Watched matches by read mode.", labels=["source", "mode"]
    )
    for key, source in stats.items():
        if source.budget_used_ratio is not None:
            used.add_metric([key], source.budget_used_ratio)
        if source.integrity_score is not None:
            score.add_metric([key], source.integrity_score)
        for mode, number in source.matches_by_read_mode.items():
            modes.add_metric([key, mode], number)
    yield from (used, score, modes)
