"""Metrics of sources."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitoring.source_figures import SourceFigures, source_figures


def of_sources(now: datetime) -> Iterator[Metric]:
    found = source_figures(now)
    yield from _calls(found)
    yield from _traffic(found)
    yield from _states(found)


def _calls(found: dict[str, SourceFigures]) -> Iterator[Metric]:
    attempts = CounterMetricFamily("scraper_attempts", "Attempts to read something of a source.", labels=["source"])
    good = CounterMetricFamily("scraper_success", "Attempts that went well.", labels=["source"])
    failed = CounterMetricFamily(
        "scraper_fail", "Attempts that failed; soft: time may heal it.", labels=["source", "type", "reason"]
    )
    for key, figures in found.items():
        attempts.add_metric([key], figures.attempts)
        good.add_metric([key], figures.successes)
        for (kind, reason), number in figures.failures.items():
            failed.add_metric([key, kind, reason], number)
    yield from (attempts, good, failed)


def _traffic(found: dict[str, SourceFigures]) -> Iterator[Metric]:
    received = CounterMetricFamily("scraper_bytes_in_est", "Bytes received, about.", labels=["source"])
    requests = CounterMetricFamily("scraper_source_requests", "Requests made.", labels=["source"])
    blocked = CounterMetricFamily(
        "scraper_source_requests_blocked", "Requests of pages that were not let through.", labels=["source"]
    )
    reads = CounterMetricFamily("scraper_reads", "Readings, by the way they took.", labels=["source", "mode"])
    for key, figures in found.items():
        received.add_metric([key], figures.cost.bytes_in)
        requests.add_metric([key], figures.cost.requests)
        blocked.add_metric([key], figures.cost.requests_blocked)
        for mode, number in figures.reads.items():
            reads.add_metric([key, mode], number)
    yield from (received, requests, blocked, reads)


def _states(found: dict[str, SourceFigures]) -> Iterator[Metric]:
    used = GaugeMetricFamily(
        "scraper_budget_used_ratio", "Part of a source's traffic of the day that is used.", labels=["source"]
    )
    score = GaugeMetricFamily(
        "data_integrity_score", "1 - null_field_rate, the mean of the last hour's readings.", labels=["source"]
    )
    modes = GaugeMetricFamily(
        "scraper_matches_by_read_mode", "Watched matches, by the way they are read.", labels=["source", "mode"]
    )
    for key, figures in found.items():
        if figures.budget_used_ratio is not None:
            used.add_metric([key], figures.budget_used_ratio)
        if figures.integrity_score is not None:
            score.add_metric([key], figures.integrity_score)
        for mode, number in figures.matches_by_read_mode.items():
            modes.add_metric([key, mode], number)
    yield from (used, score, modes)
