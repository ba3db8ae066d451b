"""Metrics of sources, from the tables that all workers add to: calls, traffic, read modes, integrity (FS-16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from django.db.models import Count, Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from scraping import drift, policies, traffic
from scraping.errors import ErrorClass
from scraping.models import Breaker, ErrorGroup, MatchRef, Source
from scraping.readings import ReadMode
from scraping.resilience.decide import RULES


def of_sources(now: datetime) -> Iterator[Metric]:
    yield from _calls()
    keys = dict(Source.objects.values_list("pk", "key"))
    yield from _traffic(keys, now)
    yield _integrity(keys, now)
    yield _modes()


def _calls() -> Iterator[Metric]:
    attempts = CounterMetricFamily("scraper_attempts", "Attempts to read something of a source.", labels=["source"])
    good = CounterMetricFamily("scraper_success", "Attempts that went well.", labels=["source"])
    rows = Breaker.objects.filter(source__isnull=False).values_list("source__key", "total_calls", "total_successes")
    for key, calls, successes in rows:
        attempts.add_metric([key], calls)
        good.add_metric([key], successes)
    yield attempts
    yield good
    failed = CounterMetricFamily(
        "scraper_fail", "Attempts that failed; soft: time may heal it.", labels=["source", "type", "reason"]
    )
    groups = ErrorGroup.objects.order_by().values_list("source__key", "error_class", "error_type")
    for key, error_class, reason, number in groups.annotate(number=Sum("count")):
        failed.add_metric([key, "soft" if RULES[ErrorClass(error_class)].is_soft else "hard", reason], number)
    yield failed


def _traffic(keys: Mapping[int, str], now: datetime) -> Iterator[Metric]:
    received = CounterMetricFamily("scraper_bytes_in_est", "Bytes received, about.", labels=["source"])
    requests = CounterMetricFamily("scraper_source_requests", "Requests made.", labels=["source"])
    blocked = CounterMetricFamily(
        "scraper_source_requests_blocked", "Requests of pages that were not let through.", labels=["source"]
    )
    reads = CounterMetricFamily("scraper_reads", "Readings, by the way they took.", labels=["source", "mode"])
    for key, cost in traffic.totals().items():
        received.add_metric([key], cost.bytes_in)
        requests.add_metric([key], cost.requests)
        blocked.add_metric([key], cost.requests_blocked)
        reads.add_metric([key, ReadMode.VISIT.value], cost.visits)
        reads.add_metric([key, ReadMode.DIRECT.value], cost.direct_reads)
        reads.add_metric([key, ReadMode.ATTACHED.value], cost.attached_reads)
    yield from (received, requests, blocked, reads)
    share = GaugeMetricFamily(
        "scraper_budget_used_ratio", "Part of a source's traffic of the day that is used.", labels=["source"]
    )
    for pk, budget in traffic.budgets(now.astimezone(UTC).date()).items():
        share.add_metric([keys[pk]], budget.percent / 100)
    yield share


def _integrity(keys: Mapping[int, str], now: datetime) -> Metric:
    score = GaugeMetricFamily(
        "data_integrity_score", "1 - null_field_rate, the mean of the last hour's readings.", labels=["source"]
    )
    for pk, fill in drift.integrity_by_source(policies.current().drift, now=now).items():
        score.add_metric([keys[pk]], fill.percent / 100)
    return score


def _modes() -> Metric:
    modes = GaugeMetricFamily(
        "scraper_matches_by_read_mode", "Watched matches, by the way they are read.", labels=["source", "mode"]
    )
    watched = MatchRef.objects.filter(is_watched=True).exclude(read_mode="").order_by()
    for key, mode, number in watched.values_list("source__key", "read_mode").annotate(number=Count("pk")):
        modes.add_metric([key, mode], number)
    return modes
